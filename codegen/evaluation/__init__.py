"""Evaluation: programs in floats, by columns, at many digits; constants folded."""
