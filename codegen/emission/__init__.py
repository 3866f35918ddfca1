"""From machine operations to LLVM IR: order, lanes, straight lines and sweeps."""
