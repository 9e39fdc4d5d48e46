"""Triton's candidates for each case: the launches whose best is the peer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
import triton_kernels
from bench_cases import BenchCase
from kernel_checks import EPS

SMS = (
    torch.cuda.get_device_properties(0).multi_processor_count if torch.cuda.is_available() else 132
)
"""Multiprocessors of the GPU that is there, for persistent candidates; in a dry run an H200's."""

Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class TritonLaunch:
    """A kernel, its grid and arguments; call it to launch."""

    label: str
    kernel: Any
    grid: tuple[int, ...]
    arguments: Callable[[Tensors], tuple[Any, ...]]
    options: dict[str, Any]

    def launch(self, tensors: Tensors) -> None:
        """Launches on the tensors of a case, by the names of its arrays."""
        self.kernel[self.grid](*self.arguments(tensors), **self.options)

    def warm(self, tensors: Tensors) -> None:
        """Compiles without launching; only the tensors' dtypes and alignment count."""
        self.kernel.warmup(*self.arguments(tensors), grid=self.grid, **self.options)


def triton_launches(case: BenchCase) -> list[TritonLaunch]:
    """All candidates of a case."""
    return list(_CANDIDATES[case.kernel](case))


def _vector_add(case: BenchCase) -> Iterator[TritonLaunch]:
    (n,) = case.shape
    for tile, warps in ((1024, 4), (1024, 8), (2048, 4), (2048, 8), (4096, 8), (8192, 8)):
        yield TritonLaunch(
            f"B{tile} w{warps}",
            triton_kernels.vector_add,
            (triton.cdiv(n, tile),),
            lambda t: (t["x"], t["y"], t["z"], n),
            {"B": tile, "num_warps": warps},
        )


def _row_warps(columns: int) -> tuple[int, ...]:
    if columns <= 1024:
        return 1, 2, 4, 8
    return (4, 8, 16) if columns <= 8192 else (8, 16, 32)


def _softmax(case: BenchCase) -> Iterator[TritonLaunch]:
    rows, columns = case.shape
    tile = triton.next_power_of_2(columns)
    for warps in _row_warps(columns):
        yield TritonLaunch(
            f"w{warps}",
            triton_kernels.softmax,
            (rows,),
            lambda t: (t["x"], t["y"], columns, columns),
            {"B": tile, "num_warps": warps},
        )
    if columns > 8192:
        return
    for warps, per_sm in ((4, 8), (8, 4), (8, 8), (16, 2)):
        stages = 3 if columns <= 4096 else 2
        yield TritonLaunch(
            f"persistent w{warps} x{per_sm}",
            triton_kernels.softmax_persistent,
            (min(rows, SMS * per_sm),),
            lambda t: (t["x"], t["y"], columns, rows, columns),
            {"B": tile, "STAGES": stages, "num_warps": warps},
        )


def _layer_norm(case: BenchCase) -> Iterator[TritonLaunch]:
    rows, columns = case.shape
    tile = triton.next_power_of_2(columns)
    for warps in _row_warps(columns):
        yield TritonLaunch(
            f"w{warps}",
            triton_kernels.layer_norm,
            (rows,),
            lambda t: (t["x"], t["weight"], t["bias"], t["y"], columns, columns, EPS),
            {"B": tile, "num_warps": warps},
        )


def _row_sum(case: BenchCase) -> Iterator[TritonLaunch]:
    rows, columns = case.shape
    tiles = (
        (1, 1024, 4),
        (1, 2048, 4),
        (1, 4096, 8),
        (1, 8192, 8),
        (1, 8192, 16),
        (4, 1024, 4),
        (4, 1024, 8),
        (8, 512, 4),
        (8, 1024, 8),
    )
    for per_program, tile, warps in tiles:
        if tile < 2 * columns:
            yield TritonLaunch(
                f"{per_program}x{tile} w{warps}",
                triton_kernels.row_sum,
                (triton.cdiv(rows, per_program),),
                lambda t: (t["x"], t["y"], columns, rows, columns),
                {"R": per_program, "B": tile, "num_warps": warps},
            )


def _matmul(case: BenchCase) -> Iterator[TritonLaunch]:
    m, n, k = case.shape
    accumulator = tl.int32 if case.dtype == "i8" else tl.float32
    precision = case.precision if case.dtype == "f32" else None
    for bm, bn, bk, stages, warps in _matmul_tiles(case):
        yield TritonLaunch(
            f"{bm}x{bn}x{bk} s{stages} w{warps}",
            triton_kernels.matmul,
            (triton.cdiv(m, bm) * triton.cdiv(n, bn),),
            lambda t: (
                *(t["a"], t["b"], t["c"], m, n, k),
                *(*t["a"].stride(), *t["b"].stride(), *t["c"].stride()),
            ),
            {
                **{"BM": bm, "BN": bn, "BK": bk, "GROUP": 8},
                **{"ACC": accumulator, "PRECISION": precision},
                **{"num_stages": stages, "num_warps": warps},
            },
        )


def _matmul_tiles(case: BenchCase) -> tuple[tuple[int, int, int, int, int], ...]:
    if case.dtype == "f32" and case.precision == "ieee":
        return (64, 64, 16, 3, 4), (128, 64, 16, 3, 8), (128, 128, 16, 3, 8), (128, 64, 32, 3, 8)
    k = {"f32": 32, "f16": 64, "bf16": 64}.get(case.dtype, 128)
    return (
        (64, 64, k, 4, 4),
        (64, 128, k, 4, 4),
        (128, 128, k, 4, 4),
        (128, 128, k, 3, 8),
        (128, 256, k, 3, 8),
    )


_CANDIDATES: dict[str, Callable[[BenchCase], Iterator[TritonLaunch]]] = {
    "vector_add": _vector_add,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "row_sum": _row_sum,
    "matmul": _matmul,
}
