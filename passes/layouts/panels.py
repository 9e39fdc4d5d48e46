"""Buffers in panels, as the copy engine writes them and matrix instructions read them: as wide as
the widest swizzle that rows are a multiple of. Eight rows' 16 bytes lie in other banks each.

Of an operand that several warpgroups cut along its rows, each instruction reads whole panels, or a
part of one: 192 columns of 16 bits for two warpgroups lie in panels of 32, not of 64.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.types import byte_width
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.sizes import SWIZZLE_BITS


def swizzle_bytes(size: int, element_type: ir.Type, part: int | None = None) -> int:
    """The widest swizzle that `size` elements fill with whole panels, 0 if none does; none of which
    an instruction that reads `part` elements begins inside of and ends in another one."""
    width = byte_width(element_type)
    whole = (span for span in SWIZZLE_BITS if size * width % span == 0)
    read = (part or size) * width
    return next((span for span in whole if read % span == 0 or span % read == 0), 0)


def panel_elements(size: int, element_type: ir.Type, part: int | None = None) -> int:
    """The number of elements in a row of such a panel, 0 if there is none."""
    return swizzle_bytes(size, element_type, part) // byte_width(element_type)


def operand_layout(
    sizes: tuple[int, ...], element_type: ir.Type, contiguous: int, part: int | None = None
) -> SharedLayout:
    """Panels of one swizzle's width along `contiguous`, of which instructions read `part` elements;
    rows of a panel one behind the other."""
    span = swizzle_bytes(sizes[contiguous], element_type, part)
    return in_panels(sizes, span // byte_width(element_type), contiguous, span)


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
