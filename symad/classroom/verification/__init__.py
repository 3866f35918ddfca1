"""Compare kernels with exact numbers: at a point, over a box, and by ball arithmetic."""
