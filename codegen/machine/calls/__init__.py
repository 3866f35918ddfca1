"""Kernels and all ways to call them."""
