"""Kernels as C: files, headers, sources."""
