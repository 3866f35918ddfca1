"""Write rolled programs as LLVM IR."""
