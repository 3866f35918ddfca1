"""SciPy's functions and objects on traced values, one file for each kind of them; `registry` knows them by name."""
