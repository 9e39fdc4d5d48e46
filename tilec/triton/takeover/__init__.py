"""Triton's `@triton.jit` kernels, compiled and launched by tilec where they run. The only modules
that import Triton, and only when they are asked to."""
