"""Derivatives of rolled programs, which are rolled programs again; their bodies are differentiated once."""
