"""Python kernels to the tile dialect: `build_module`. Importing this imports MLIR."""

from tilec.frontend.kernel_module import LIMITED, build_module

__all__ = ["LIMITED", "build_module"]
