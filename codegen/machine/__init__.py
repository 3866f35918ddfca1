"""Machine: from programs to kernels: building, calls, batches, storage, exports."""
