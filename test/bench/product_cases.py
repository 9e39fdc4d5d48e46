"""Matrix products for Hopper: which are measured, in which regimes, and the ratios to reach.

`tensors`-free and compiler-free, as `bench_cases`. TN, NN: how BLAS calls a row-major `a` with `b`
column-major (K runs fastest in both) or row-major; TT, NT: the same with `a` column-major.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from array_spec import ArraySpec, row_major, transposed
from bench_cases import Variant
from configurations import Configuration, product_configurations, variant_of

BURST, SUSTAINED, INTERLEAVED = "burst", "sustained", "interleaved"
"""Regimes; see `regime_timing`."""

DTYPE_NAMES = {"f16": "fp16", "f8E4M3FN": "e4m3", "i8": "s8", "f32": "tf32"}
"""What a case's name calls a dtype, where that is not MLIR's name."""

BATCH = 8
MOST_DECODED = 64
"""Rows of products whose time is that of reading b."""
OPS = "ops.matmul"
"""The kernel of a variant that launches what `tilec.ops.matmul` does."""


@dataclass(frozen=True)
class ProductCase:
    """c = a @ b, `shape` = (M, N, K), `batch` times if that is given.

    `goals`: regime -> the ratio to the anchor, cuBLAS, to reach. `rivals`: other peers of interest,
    by how their names begin. `spread`: standard deviation of the inputs. f32 multiplies as tf32.
    """

    dtype: str
    output: str
    shape: tuple[int, int, int]
    layout: str
    goals: tuple[tuple[str, float], ...]
    batch: int = 0

    kernel = "product"
    anchor = "torch"
    untuned = ("tilec default", "tilec ops")
    rivals = ("triton persistent", "triton specialized", "triton gluon", "triton")
    scalars = ()
    spread = 0.1

    @property
    def name(self) -> str:
        """As in "bf16 8192^3 TN" or "e4m3 8x2048^3 TN to fp16"."""
        m, n, k = self.shape
        size = f"{m}^3" if m == n == k else f"{m}x{n}x{k}"
        kind, output = (DTYPE_NAMES.get(dtype, dtype) for dtype in (self.dtype, self.output))
        batch = f"{self.batch}x" if self.batch else ""
        tail = f" to {output}" if self.dtype == "f8E4M3FN" else ""
        return f"{kind} {batch}{size} {self.layout}{tail}"

    @property
    def transposed_a(self) -> bool:
        """Whether `a` is column-major."""
        return self.layout[1] == "T"

    @property
    def transposed_b(self) -> bool:
        """Whether `b` is."""
        return self.layout[0] == "T"

    @property
    def precision(self) -> str:
        """`tl.dot`'s, by which the reference knows the error to allow."""
        return "tf32" if self.dtype == "f32" else "ieee"

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        m, n, k = self.shape
        return 2 * m * n * k * max(self.batch, 1)

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """a, b and c."""
        m, n, k = self.shape
        lead = (self.batch,) if self.batch else ()
        a, b = row_major("a", self.dtype, (*lead, m, k)), row_major("b", self.dtype, (*lead, k, n))
        return (
            transposed_matrices(a) if self.transposed_a else a,
            transposed_matrices(b) if self.transposed_b else b,
            row_major("c", self.output, (*lead, m, n)),
        )

    @property
    def nbytes(self) -> int:
        """Bytes that must move."""
        return sum(spec.nbytes for spec in self.arrays)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The untuned ones, then the configurations worth trying."""
        return self.swept(product_configurations(self.dtype, self.shape))

    def shrunk(self) -> ProductCase:
        """The case small enough for the emulator, with the same facts."""
        m, n, k = (size if size < 128 else 128 + size % 16 for size in self.shape)
        return replace(self, shape=(m, n, k))

    def swept(self, configurations: list[Configuration]) -> tuple[Variant, ...]:
        """The README's kernel, `tilec.ops.matmul`, then a variant a configuration."""
        fixed = {"PRECISION": self.precision}
        default = "batched_matmul" if self.batch else "matmul"
        swept = "batched_matmul" if self.batch else "swept_matmul"
        found = [variant_of(swept, configuration, fixed) for configuration in configurations]
        untuned = [Variant("default", default, tuple(fixed.items())), Variant("ops", OPS)]
        if self.shape[0] <= MOST_DECODED:
            # The weights are there before anything runs: cuBLAS has no way to be told.
            untuned.append(Variant("ops settled", OPS, (("settled", ("b",)),)))
        return (*untuned, *found)


def transposed_matrices(spec: ArraySpec) -> ArraySpec:
    """The same shape with every matrix of the batch column-major."""
    if len(spec.shape) == 2:
        return transposed(spec)
    _, rows, columns = spec.shape
    return ArraySpec(spec.name, spec.dtype, spec.shape, (rows * columns, 1, rows))


def hopper_cases() -> list[ProductCase]:
    """All rows of the comparison with cuBLAS."""
    return [
        *(*_square(), *_fp8(), *_batched(), *_other_types()),
        *(*_decode(), *_odd(), *_ragged()),
    ]


def _goals(burst: float, sustained: float) -> tuple[tuple[str, float], ...]:
    return (BURST, burst), (SUSTAINED, sustained)


def _interleaved(ratio: float) -> tuple[tuple[str, float], ...]:
    return ((INTERLEAVED, ratio),)


_SQUARE = {
    8192: _goals(1.05, 1.03),
    4096: _goals(1.03, 1.01),
    2048: _interleaved(1.00),
    1024: _interleaved(1.00),
    512: _interleaved(1.05),
}


def _square() -> Iterator[ProductCase]:
    for size, goals in _SQUARE.items():
        for dtype in ("bf16", "f16"):
            for layout in ("TN", "NN"):
                yield ProductCase(dtype, dtype, (size,) * 3, layout, goals)


def _fp8() -> Iterator[ProductCase]:
    """TN alone: neither wgmma nor cuBLAS takes 8-bit operands that are not K-major."""
    for size, goals in ((8192, _goals(1.05, 1.03)), (4096, _goals(1.03, 1.02))):
        for output in ("f16", "bf16", "f8E4M3FN"):
            yield ProductCase("f8E4M3FN", output, (size,) * 3, "TN", goals)


def _batched() -> Iterator[ProductCase]:
    goals = _goals(1.03, 1.03)
    for layout in ("TN", "NN"):
        yield ProductCase("bf16", "bf16", (2048,) * 3, layout, goals, BATCH)
    yield ProductCase("f8E4M3FN", "f16", (2048,) * 3, "TN", goals, BATCH)


def _other_types() -> Iterator[ProductCase]:
    """s8: torch's anchor is a slow one, the goal is against Triton."""
    for layout in ("TN", "NN"):
        yield ProductCase("f32", "f32", (8192,) * 3, layout, _goals(1.0, 1.0))
    yield ProductCase("i8", "i32", (8192,) * 3, "TN", _goals(1.0, 1.0))


_DECODE = tuple(
    (m, n, k)
    for m in (1, 16, 64, 256)
    for n, k in ((4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192))
)


def _decode() -> Iterator[ProductCase]:
    for shape in _DECODE:
        for layout in ("TN", "NN"):
            yield ProductCase("bf16", "bf16", shape, layout, _interleaved(1.05))


def _odd() -> Iterator[ProductCase]:
    for shape in ((1000,) * 3, (4099, 4111, 4127)):
        for layout in ("TN", "NN"):
            yield ProductCase("bf16", "bf16", shape, layout, _interleaved(1.00))


_RAGGED = ((2048, 2304, 8192), (2304, 2304, 16384), (4224, 4608, 4096))
"""A little more than one round of 128 x 256 tiles on 132 multiprocessors, and four and a half."""


def _ragged() -> Iterator[ProductCase]:
    for shape in _RAGGED:
        for layout in ("TN", "NN"):
            yield ProductCase("bf16", "bf16", shape, layout, _goals(1.00, 1.00))
