"""Kernels of one row alone: which CTA, and which thread, holds which of its elements."""
