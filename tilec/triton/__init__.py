"""Triton's kernels in tilec: `kernel(text)` launches what is written in Triton's IR (TTIR)."""

from tilec.triton.kernel import TritonKernel, kernel

__all__ = ["TritonKernel", "kernel"]
