"""Emission: machine operations become LLVM IR, as straight lines or as sweeps, on lanes."""
