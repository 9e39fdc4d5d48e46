"""Every kind of layout that a kernel's text may name, for those who treat them alike."""

from tilec.hardware.layout import Layout
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.tensor_memory import TensorMemoryLayout

LAYOUTS = (Layout, SharedLayout, TensorMemoryLayout)
"""Of registers, of shared memory, of tensor memory: constants, equal where their texts are."""
