"""Loops: find them in rows, place them in buffers, optimise them, write them as LLVM IR."""
