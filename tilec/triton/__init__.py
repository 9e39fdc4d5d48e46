"""Triton's kernels in tilec, from Triton's IR (TTIR) or where they run; see the README."""

from tilec.triton.kernel import TritonKernel
from tilec.triton.takeover.hooks import disable, enable
from tilec.triton.takeover.wish import FallbackWarning
from tilec.triton.ways_in import kernel

__all__ = ["FallbackWarning", "TritonKernel", "disable", "enable", "kernel"]
