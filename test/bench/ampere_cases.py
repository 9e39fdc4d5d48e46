"""Products by `sm_80` code: which shapes, tiles and rivals are timed together.

A group is one interleaved run. Operands are a (M, K) and b (K, N), which in layout TN lies as
(N, K); rows are a multiple of `pitch` elements apart (1: contiguous).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from array_spec import ArraySpec

Shape = tuple[int, int, int]
OUTPUTS = {"i8": "i32"}
COPIED = "copies"
"""Kind of a variant: unaligned operands are copied to aligned rows first, as by ops.matmul."""


@dataclass(frozen=True)
class Variant:
    """A tile and its demands, `stages` None for the compiler's choice; `kind`: "plain", "copies",
    "stream_k", or "step 1" to "step 6" of the SGEMM example."""

    tile: tuple[int, int, int] = (0, 0, 0)
    stages: int | None = None
    warps: int = 0
    kind: str = "plain"

    @property
    def label(self) -> str:
        """As in "128x128x64 s3 w4"."""
        if not self.warps:
            return self.kind
        stages = "" if self.stages is None else f" s{self.stages}"
        text = f"{'x'.join(map(str, self.tile))}{stages} w{self.warps}"
        return text if self.kind == "plain" else f"{self.kind} {text}"


@dataclass(frozen=True)
class Case:
    """One product; `precision` as `tl.dot` takes it."""

    dtype: str
    layout: str
    shape: Shape
    variants: tuple[Variant, ...]
    pitch: int = 1
    precision: str = "ieee"
    output: str = ""

    @property
    def name(self) -> str:
        """As in "bf16 4096x4096x4096 TN"."""
        dtype = "tf32" if self.precision == "tf32" else self.dtype
        rows = f", rows of {self.pitch}" if self.pitch > 1 else ""
        return f"{dtype} {'x'.join(map(str, self.shape))} {self.layout}{rows}"

    @property
    def flops(self) -> float:
        """Operations, a multiply-add counting as two."""
        m, n, k = self.shape
        return 2.0 * m * n * k

    def arrays(self, pitch: int | None = None) -> tuple[ArraySpec, ...]:
        """a, b and c; `pitch` of the operands' rows instead of the case's own."""
        m, n, k = self.shape
        own = self.pitch if pitch is None else pitch

        def rows(name: str, dtype: str, shape: tuple[int, int], unit: int) -> ArraySpec:
            return ArraySpec(name, dtype, shape, (-(-shape[1] // unit) * unit, 1))

        a = rows("a", self.dtype, (m, k), own)
        b = rows("b", self.dtype, (n, k) if self.layout == "TN" else (k, n), own)
        if self.layout == "TN":
            b = ArraySpec("b", self.dtype, (k, n), b.strides[::-1])
        output = self.output or OUTPUTS.get(self.dtype, self.dtype)
        return a, b, rows("c", output, (m, n), self.pitch)


def plain(*tiles: tuple[int, int, int, int, int]) -> tuple[Variant, ...]:
    """Variants from (BM, BN, BK, stages, warps)."""
    return tuple(Variant(t[:3], *t[3:]) for t in tiles)


LARGE = plain((128, 128, 32, 4, 4), (128, 128, 64, 3, 4), (256, 128, 64, 3, 8))
SMALL = plain((64, 128, 64, 4, 4), (128, 64, 64, 4, 4), (64, 64, 128, 3, 2), (128, 128, 32, 4, 4))
F32 = plain(
    (64, 64, 16, 4, 4), (64, 128, 16, 4, 4), (128, 64, 16, 4, 4), (128, 128, 16, 4, 8),
    (256, 128, 8, 4, 8), (128, 192, 16, 3, 8),
)  # fmt: skip
TF32 = plain((128, 128, 16, 4, 4), (128, 128, 32, 3, 4), (256, 128, 32, 3, 8))
F64 = plain((64, 64, 16, 4, 4), (64, 64, 16, 3, 4), (64, 64, 32, 2, 4), (128, 64, 16, 3, 4))
I8 = plain((128, 128, 64, 4, 4), (128, 128, 128, 3, 4), (256, 128, 64, 4, 8))
RAGGED = plain((128, 128, 64, 3, 4), (256, 128, 64, 3, 8))
UNALIGNED = Variant((128, 128, 64), None, 4)
"""No stages: nothing can be copied asynchronously."""
STREAM_K = Variant((256, 128, 64), 3, 8, "stream_k")
STEPS = tuple(Variant(kind=f"step {number}") for number in range(1, 7))
SIZES = (1024, 2048, 4096, 8192)


def groups() -> Mapping[str, tuple[Case, ...]]:
    """All groups by name."""
    found: dict[str, tuple[Case, ...]] = {}
    for dtype in ("bf16", "f16"):
        for size in SIZES:
            variants = SMALL if size == 1024 else LARGE
            found[f"{dtype} {size}"] = (Case(dtype, "TN", (size,) * 3, variants),)
    for size in SIZES:
        found[f"f32 {size}"] = (Case("f32", "NN", (size,) * 3, F32),)
    for size in SIZES[1:]:
        shape = (size,) * 3
        found[f"tf32 {size}"] = (Case("f32", "TN", shape, TF32, precision="tf32"),)
        found[f"f64 {size}"] = (Case("f64", "TN", shape, F64),)
        found[f"i8 {size}"] = (Case("i8", "TN", shape, I8),)
    for layout in ("TN", "NN"):
        found[f"ragged {layout}"] = _ragged(layout, 8, RAGGED)
        copied = tuple(Variant(v.tile, v.stages, v.warps, COPIED) for v in RAGGED)
        found[f"unaligned {layout}"] = _ragged(layout, 1, (UNALIGNED, *copied))
        sizes = ((4096,) * 3, (4097,) * 3)
        found[f"stream_k {layout}"] = tuple(
            Case("bf16", layout, shape, (*RAGGED, STREAM_K), 8, output="f32") for shape in sizes
        )
    found["steps"] = (Case("f32", "NN", (4096,) * 3, STEPS),)
    return found


def _ragged(layout: str, pitch: int, variants: tuple[Variant, ...]) -> tuple[Case, ...]:
    """4096 cubed, and one more or less in one dimension, or in all."""
    shapes = [(4096,) * 3]
    for step in (-1, 1):
        for axis in range(3):
            shapes.append(tuple(4096 + step * (d == axis) for d in range(3)))
        shapes.append((4096 + step,) * 3)
    return tuple(Case("bf16", layout, shape, variants, pitch) for shape in shapes)
