"""A fast replacement for `sympy.lambdify`, native where possible."""
