"""Matrix products of tiles."""

# The frontend has the bodies.
# pyright: reportReturnType=false

from __future__ import annotations

from typing import Literal

from tilec.language.builtin import builtin
from tilec.language.tile import Tile
from tilec.terms.dtypes import DType

__all__ = ["dot", "dot_scaled", "unpack"]


@builtin
def dot(
    a: Tile,
    b: Tile,
    acc: Tile | None = None,
    precision: Literal["ieee", "tf32"] = "ieee",
    dtype: DType | None = None,
) -> Tile:
    """`a @ b + acc`: (..., M, K) times (..., K, N); leading dimensions are a batch.

    Both inputs have one dtype (two fp8 formats may mix; f6e2m3, f6e3m2 and f4e2m1x2, of which two
    numbers a byte lie along K, count as f8e4m3, which holds them all). `acc` (zeros without it)
    fixes the result's dtype, else `dtype`, else f32 for f16, bf16, fp8 and f32, f64 for f64, i32
    for i8; f16 and fp8 may also accumulate in f16. `precision` is about f32 inputs: "ieee"
    multiplies all 24 significant bits, "tf32" the upper 11, what tensor cores read. `a @ b` is
    `dot(a, b)`; in a loop `acc += a @ b` is `acc = dot(a, b, acc)`.
    """


@builtin
def dot_scaled(
    a: Tile, a_scale: Tile | None, b: Tile, b_scale: Tile | None, acc: Tile | None = None
) -> Tile:
    """`(a * a_scale) @ (b * b_scale) + acc` in f32, with scales of blocks along K.

    `a`: (M, K), `b`: (K, N), of fp8, f6e2m3, f6e3m2, f16, bf16 or f4e2m1x2, of which two numbers a
    byte lie along K: (M, K / 2), (K / 2, N). `a_scale`: (M, K / block), `b_scale`: (K / block, N),
    of f8e8m0 (mx formats, 32 a block; i8 stands for the same bytes) or f8e4m3 (nv, 16 a block);
    None stands for ones. Targets with an instruction that reads scales use it (10.x: tcgen05.mma,
    12.x: mma.sync), others multiply the scales out in bf16, which has every product of such a
    number and a scale that is not at the edge of its range; beside f16, in f16.
    """


@builtin
def unpack(x: Tile, axis: int = -1) -> Tile:
    """The numbers of a tile of pairs, f4e2m1x2, in bf16: twice as many along `axis`."""
