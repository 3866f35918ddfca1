"""Formulas of matrices: reading them, their shapes, their values, and derivatives by differentials."""
