"""Buffers in panels, as the copy engine writes them and matrix instructions read them: as wide as
the widest swizzle that rows are a multiple of. Eight rows' 16 bytes lie in other banks each."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.types import byte_width
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.sizes import SWIZZLE_BITS


def swizzle_bytes(size: int, element_type: ir.Type) -> int:
    """The widest swizzle that `size` elements fill with whole panels, 0 if none does."""
    bytes_ = size * byte_width(element_type)
    return next((span for span in SWIZZLE_BITS if bytes_ % span == 0), 0)


def panel_elements(size: int, element_type: ir.Type) -> int:
    """The number of elements in a row of such a panel, 0 if there is none."""
    return swizzle_bytes(size, element_type) // byte_width(element_type)


def operand_layout(sizes: tuple[int, ...], element_type: ir.Type, contiguous: int) -> SharedLayout:
    """Panels of one swizzle's width along `contiguous`, rows of a panel one behind the other."""
    span = swizzle_bytes(sizes[contiguous], element_type)
    return in_panels(sizes, panel_elements(sizes[contiguous], element_type), contiguous, span)


def in_panels(sizes: tuple[int, ...], width: int, contiguous: int, row_bytes: int) -> SharedLayout:
    """Panels of `width` elements, `row_bytes`, along `contiguous`, rows of a panel one behind the
    other, swizzled where a swizzle is so wide."""
    other = 1 - contiguous
    panels = sizes[contiguous] // width
    along = ((width, 1),) if panels == 1 else ((width, 1), (panels, sizes[other] * width))
    across = ((sizes[other], width),)
    dims = (along, across) if contiguous == 0 else (across, along)
    bits = SWIZZLE_BITS.get(row_bytes)
    return SharedLayout(dims, None if bits is None else (bits, 4, 3))
