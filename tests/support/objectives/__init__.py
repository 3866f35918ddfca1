"""Objective functions of the optimisation literature in plain NumPy, a table for the tests; see corpus.py."""
