"""Export kernels as C: object files, headers, sources."""
