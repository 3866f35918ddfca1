"""Formulas that people type: tokens, names, a parser; nothing is evaluated."""
