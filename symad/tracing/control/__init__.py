"""Loops and conditions: bodies that are traced once, and paths that are merged."""
