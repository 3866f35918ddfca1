"""SciPy's functions and objects on traced values, one file for each kind."""
