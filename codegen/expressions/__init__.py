"""Expressions: from SymPy to rows."""
