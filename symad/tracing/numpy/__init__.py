"""NumPy: what its functions and ufuncs, and SciPy's, are for traced values."""
