"""Kernels at many points on a GPU: one thread computes one point."""
