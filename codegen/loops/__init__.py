"""Loops: found in rows, placed in buffers, optimised, and written as LLVM IR."""
