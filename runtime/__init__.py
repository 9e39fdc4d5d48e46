"""Running compiled kernels: arrays in, a device, a launch. Knows nothing of MLIR or LLVM."""
