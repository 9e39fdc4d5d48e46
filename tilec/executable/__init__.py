"""What the compiler hands to the runtime: plain data, without MLIR and CUDA."""
