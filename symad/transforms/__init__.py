"""Transforms: the public derivatives, a few lines of composition each."""
