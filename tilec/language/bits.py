"""What integers are as bits, element by element.

All integer dtypes but `index` have bits; where a function names 32 or 64 bits it takes no others,
as PTX. Numbers with a sign count as the bits they are.
"""

# The frontend has the bodies.
# pyright: reportReturnType=false

from __future__ import annotations

from tilec.language.builtin import builtin
from tilec.language.tile import Tile
from tilec.terms.numbers import Number

__all__ = ["brev", "byte_perm", "clz", "ffs", "popc", "umulhi"]


@builtin
def popc(x: Number) -> Tile:
    """How many bits are 1 (i32)."""


@builtin
def clz(x: Number) -> Tile:
    """How many bits are 0 above the highest 1 (i32): all of them of 0."""


@builtin
def ffs(x: Number) -> Tile:
    """The place of the lowest 1, counted from 1 (i32); 0 where there is none."""


@builtin
def brev(x: Number) -> Tile:
    """The bits in the opposite order, in the dtype of `x`, of 32 or 64 bits."""


@builtin
def umulhi(x: Number, y: Number) -> Tile:
    """The upper half of the product of two numbers without sign, which has twice their bits."""


@builtin
def byte_perm(x: Number, y: Number, selector: Number) -> Tile:
    """Four bytes of the eight of `x` (0 to 3) and `y` (4 to 7), all three of 32 bits.

    The lowest 4 bits of `selector` choose the lowest byte, and so on: 3 bits its number; with the
    fourth the byte is its highest bit, repeated (PTX ISA 9.0, "prmt").
    """
