"""Derivatives of rolled programs are rolled programs. Each body is differentiated once."""
