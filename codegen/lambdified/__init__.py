"""Lambdified: a fast replacement for `sympy.lambdify`, native where that may be."""
