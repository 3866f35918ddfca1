"""Traced numbers and arrays."""
