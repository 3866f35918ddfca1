"""Compiling: from functions to kernels."""
