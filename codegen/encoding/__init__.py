"""Straight lines as x86-64 machine code, without LLVM: the quick tier, where its processor and its operations allow."""
