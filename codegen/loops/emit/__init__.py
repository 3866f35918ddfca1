"""Emit: the LLVM IR of rolled programs."""
