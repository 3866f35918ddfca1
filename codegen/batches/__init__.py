"""Kernels at many points."""
