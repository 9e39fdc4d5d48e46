"""Kernels as C: a header and a source that load and launch them by the driver alone."""
