"""The encoder: x86-64 machine code for straight lines and sweeps, without LLVM. It is the quick tier."""
