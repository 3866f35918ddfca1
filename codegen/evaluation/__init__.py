"""Evaluate programs without a compiler: in floats, by columns, with many digits. Fold constants."""
