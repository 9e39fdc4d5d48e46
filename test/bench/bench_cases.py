"""What is measured: kernels, dtypes and sizes, and for each case the variants of tilec's kernel.

Memory-bound cases move at least 1 GB. `tensors`-free and compiler-free: read by the build here and
by the run on the GPU machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from array_spec import ArraySpec, row_major, transposed

COLUMNS = (1024, 2048, 4096, 8192, 16384, 32768, 5000, 4099)
ROW_DTYPES = ("f32", "f16", "bf16")
MATMUL_SIZES = (1024, 2048, 4096)
MATMUL_DTYPES = (
    ("f32", "ieee"),
    ("f32", "tf32"),
    ("f16", "ieee"),
    ("bf16", "ieee"),
    ("f8E4M3FN", "ieee"),
    ("f8E5M2", "ieee"),
    ("i8", "ieee"),
)
SMS = 132
"""Multiprocessors of the GPU that persistent variants are sized for."""
BYTES = {"f32": 4, "f16": 2, "bf16": 2}


@dataclass(frozen=True)
class Variant:
    """One way to compile the kernel of a case.

    `kernel`: its name in `variant_compiler.KERNELS`. `constants`: None for the kernel and constants
    that the example's own function chooses; a name that the kernel has no parameter for is a demand
    of the compiler. `warps`: None for the compiler's choice. `target`: None for the GPU's own.
    """

    label: str
    kernel: str
    constants: tuple[tuple[str, Any], ...] | None = None
    warps: int | None = None
    target: str | None = None


@dataclass(frozen=True)
class BenchCase:
    """One row of the report. `shape`: (n,), (rows, columns) or (M, N, K)."""

    kernel: str
    dtype: str
    shape: tuple[int, ...]
    precision: str = "ieee"

    @property
    def name(self) -> str:
        """As in "softmax f16 32768x8192"."""
        kind = self.precision if self.precision != "ieee" else self.dtype
        return f"{self.kernel} {kind} {'x'.join(map(str, self.shape))}"

    @property
    def flops(self) -> int:
        """Multiplications and additions of a matrix product; 0 where bytes are what counts."""
        m, n, k = self.shape if self.kernel == "matmul" else (0, 0, 0)
        return 2 * m * n * k

    @property
    def arrays(self) -> tuple[ArraySpec, ...]:
        """The kernel's arrays in its order."""
        return _ARRAYS[self.kernel](self)

    @property
    def nbytes(self) -> int:
        """Bytes that must move: each input read once, each output written once."""
        return sum(spec.nbytes for spec in self.arrays)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The default first, then what else might be faster."""
        return tuple(_VARIANTS[self.kernel](self))


def memory_cases() -> list[BenchCase]:
    """Vector add, softmax, layer norm and row sum, at least 1 GB of traffic each."""
    cases = [BenchCase("vector_add", d, (2**30 // BYTES[d],)) for d in ROW_DTYPES]
    cases += [BenchCase("vector_add", d, (2**30 // BYTES[d] - 5,)) for d in ("f32", "f16")]
    for kernel in ("softmax", "layer_norm"):
        for dtype in ROW_DTYPES:
            cases += [_rows(kernel, dtype, columns, 2**29) for columns in COLUMNS]
    for dtype in ("f32", "f16"):
        cases += [_rows("row_sum", dtype, columns, 2**30) for columns in COLUMNS]
    return cases


def matmul_cases() -> list[BenchCase]:
    """Square products."""
    return [
        BenchCase("matmul", dtype, (size,) * 3, precision)
        for dtype, precision in MATMUL_DTYPES
        for size in MATMUL_SIZES
    ]


def _rows(kernel: str, dtype: str, columns: int, nbytes: int) -> BenchCase:
    """As many rows as make the input `nbytes` or a little more."""
    return BenchCase(kernel, dtype, (-(-nbytes // (BYTES[dtype] * columns)), columns))


def _vector_arrays(case: BenchCase) -> tuple[ArraySpec, ...]:
    return tuple(row_major(name, case.dtype, case.shape) for name in "xyz")


def _softmax_arrays(case: BenchCase) -> tuple[ArraySpec, ...]:
    return tuple(row_major(name, case.dtype, case.shape) for name in "xy")


def _layer_norm_arrays(case: BenchCase) -> tuple[ArraySpec, ...]:
    x, y = _softmax_arrays(case)
    columns = case.shape[1:]
    return (x, *(row_major(name, case.dtype, columns) for name in ("weight", "bias")), y)


def _row_sum_arrays(case: BenchCase) -> tuple[ArraySpec, ...]:
    return row_major("x", case.dtype, case.shape), row_major("y", "f32", case.shape[:1])


def _matmul_arrays(case: BenchCase) -> tuple[ArraySpec, ...]:
    """Row-major; b is column-major with 8-bit operands, the one form that cuBLAS takes."""
    m, n, k = case.shape
    a, b = row_major("a", case.dtype, (m, k)), row_major("b", case.dtype, (k, n))
    narrow = case.dtype in ("f8E4M3FN", "f8E5M2", "i8")
    result = {"f8E4M3FN": "f16", "f8E5M2": "f16", "i8": "i32"}.get(case.dtype, case.dtype)
    return a, transposed(b) if narrow else b, row_major("c", result, (m, n))


_ARRAYS = {
    "vector_add": _vector_arrays,
    "softmax": _softmax_arrays,
    "layer_norm": _layer_norm_arrays,
    "row_sum": _row_sum_arrays,
    "matmul": _matmul_arrays,
}


def _vector_variants(case: BenchCase) -> Iterator[Variant]:
    yield Variant("default", "vector_add")
    yield Variant("default sm_80", "vector_add", target="sm_80")
    for tile, warps in (
        (1024, 4),
        (1024, 8),
        (2048, 4),
        (2048, 8),
        (4096, 4),
        (4096, 8),
        (8192, 8),
    ):
        yield Variant(f"B{tile} w{warps}", "vector_add", (("B", tile),), warps)


def _whole_row_variants(case: BenchCase) -> Iterator[Variant]:
    """One tile a row; for short rows several rows a program, for long ones the two-pass kernel."""
    columns = case.shape[1]
    one_row = (("N", columns),)
    yield Variant("default", case.kernel)
    yield Variant("default sm_80", case.kernel, target="sm_80")
    for warps in _warps(columns):
        yield Variant(f"w{warps}", case.kernel, one_row, warps)
    for rows, warps in ((2, 4), (4, 4), (2, 8), (4, 8)):
        if rows * columns <= 8192:
            constants = (("R", rows), *one_row)
            yield Variant(f"R{rows} w{warps}", f"{case.kernel}_block", constants, warps)
    if columns <= 8192:
        for warps, per_sm in ((4, 8), (8, 4), (8, 8)):
            constants = (("P", SMS * per_sm), *one_row)
            yield Variant(f"P{per_sm} w{warps}", f"{case.kernel}_persistent", constants, warps)
    if case.kernel == "softmax" and columns >= 8192:
        for tile, warps in ((4096, 8), (8192, 16)):
            yield Variant(f"online {tile} w{warps}", "online_softmax", (("N", tile),), warps)


def _warps(columns: int) -> tuple[int, ...]:
    """Warps worth trying: 4 to 128 elements a thread."""
    return tuple(w for w in (1, 2, 4, 8, 16, 32) if 4 <= columns / (32 * w) <= 80)


def _row_sum_variants(case: BenchCase) -> Iterator[Variant]:
    columns = case.shape[1]
    yield Variant("default", "row_sum")
    yield Variant("default sm_80", "row_sum", target="sm_80")
    for tile, warps in (
        (1024, 2),
        (1024, 4),
        (2048, 4),
        (2048, 8),
        (4096, 4),
        (4096, 8),
        (8192, 8),
    ):
        if tile < 2 * columns:
            yield Variant(f"N{tile} w{warps}", "row_sum", (("N", tile),), warps)
    if columns <= 32768:
        warps = 4 if columns <= 8192 else 16
        yield Variant(f"whole row w{warps}", "row_sum", (("N", columns),), warps)
    for rows, tile, warps in ((4, 512, 4), (4, 1024, 4), (8, 512, 4), (8, 1024, 8)):
        constants = (("R", rows), ("N", tile))
        yield Variant(f"R{rows} N{tile} w{warps}", "row_sum", constants, warps)


def _matmul_variants(case: BenchCase) -> Iterator[Variant]:
    precision = (("PRECISION", case.precision),)
    yield Variant("default", "matmul", precision)
    yield Variant("default sm_80", "matmul", precision, target="sm_80")
    bits = {"f32": 32, "f16": 16, "bf16": 16}.get(case.dtype, 8)
    if case.dtype == "f32" and case.precision == "ieee":
        tiles = ((64, 64, 16, 4), (128, 64, 16, 8), (128, 128, 16, 8), (128, 192, 16, 8))
    else:
        k = 1024 // bits
        tiles = ((64, 64, k, 4), (128, 64, k, 4), (128, 128, k // 2, 8), (128, 128, k // 2, 4))
    for m, n, k, warps in tiles:
        sizes = (("BM", m), ("BN", n), ("BK", k))
        yield Variant(f"{m}x{n}x{k} w{warps}", "matmul", (*sizes, *precision), warps)


_VARIANTS = {
    "vector_add": _vector_variants,
    "softmax": _whole_row_variants,
    "layer_norm": _whole_row_variants,
    "row_sum": _row_sum_variants,
    "matmul": _matmul_variants,
}
