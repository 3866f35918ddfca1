"""NumPy's and SciPy's functions on traced values."""
