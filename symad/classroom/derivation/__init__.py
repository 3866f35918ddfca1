"""Derivatives of functions of calculus, rule by rule, as a textbook writes them."""
