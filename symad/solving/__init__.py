"""Solving: doors to solvers that others wrote; what they ask for are kernels."""
