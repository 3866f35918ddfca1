"""Kernels against exact numbers: at a point, all over a box, enclosed by ball arithmetic."""
