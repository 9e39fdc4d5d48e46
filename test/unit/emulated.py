"""Runs tile programs with given layouts on the emulator: what the lowering tests share."""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from mlir import ir
from mlir.dialects import llvm
from mlir.passmanager import PassManager

from tilec.compile.compiler import find_kernel
from tilec.compile.emit_ptx import emit_ptx
from tilec.compile.pipeline import LLVM_PIPELINE, TILE_PIPELINE, UPSTREAM_LOWERING
from tilec.dialects.context import lent_context
from tilec.hardware.layout import Layout, Mode, normalize
from tilec.hardware.target import find_target
from tilec.passes.analysis.placement import SHARED_BYTES
from tilec.passes.checks.program_check import ProgramCheck
from tilec.passes.contract import PassContext
from tilec.passes.pack_programs import pack_programs
from tilec.passes.split_reductions import split_reductions
from tilec.runtime.emulator import Result, load

AFTER_LAYOUTS = tuple(
    tile_pass
    for tile_pass in TILE_PIPELINE[TILE_PIPELINE.index(split_reductions) :]
    if tile_pass is not pack_programs  # the tests launch a CTA a program
)


def lower(
    text: str, *, num_warps: int, target: str = "sm_80", index_bits: int = 64
) -> tuple[str, int]:
    """PTX of a kernel whose tiles have layouts, and its shared memory in bytes."""
    return _lower(text, num_warps, target, index_bits)


@functools.lru_cache(maxsize=8)  # tests look at what they run, and run it in several modes
def _lower(text: str, num_warps: int, target: str, index_bits: int) -> tuple[str, int]:
    chip = find_target(target)
    with lent_context() as context, context, ir.Location.unknown():
        module = ir.Module.parse(text)
        check = ProgramCheck()
        check(module, None)
        state = PassContext(chip, num_warps, index_bits)
        shared = 0
        for tile_pass in (*AFTER_LAYOUTS, *LLVM_PIPELINE):
            tile_pass(module, state)
            check(module, None)
            if tile_pass is AFTER_LAYOUTS[-1]:
                shared = find_kernel(module, None).attributes[SHARED_BYTES].value
        PassManager.parse(UPSTREAM_LOWERING).run(module.operation)
        return emit_ptx(llvm.translate_module_to_llvmir(module.operation), chip), shared


def run(
    text: str,
    arguments: Sequence[Any],
    *,
    num_warps: int,
    target: str = "sm_80",
    index_bits: int = 64,
    grid: int | tuple[int, ...] = 1,
    mode: str = "check",
) -> Result:
    """Runs kernel @k of a program whose tiles have layouts; arrays are changed in place."""
    ptx, shared = lower(text, num_warps=num_warps, target=target, index_bits=index_bits)
    result = load(ptx).run(
        "k", grid, 32 * num_warps, flatten(arguments), shared_bytes=shared, mode=mode
    )
    assert not result.findings, result.findings
    return result


def flatten(arguments: Sequence[Any]) -> list[Any]:
    """Hardware parameters: an array's pointer, sizes, and strides but the last (which is 1)."""
    flat: list[Any] = []
    for argument in arguments:
        flat.append(argument)
        if isinstance(argument, np.ndarray):
            strides = [step // argument.itemsize for step in argument.strides[:-1]]
            flat += [*argument.shape, *strides]
    return flat


def array_type(rank: int, element: str) -> str:
    """An array of run-time sizes whose last stride is 1."""
    sizes = "?x" * rank
    strides = ", ".join([*["?"] * (rank - 1), *["1"] * (rank > 0)])
    return f"memref<{sizes}{element}, strided<[{strides}]>>"


def tile_type(shape: Sequence[int], element: str, layout: Layout | str) -> str:
    """A tile with a layout."""
    sizes = "".join(f"{size}x" for size in shape)
    return f'tensor<{sizes}{element}, #gpu_tile.layout<"{layout}">>'


def segments(count: int, most: int) -> str:
    """The segment attribute of an `each` group of which the first `count` values are there."""
    return f"array<i32: {', '.join(str(int(n < count)) for n in range(most))}>"


def print_text(values: Sequence[str], types: Sequence[str], template: str) -> str:
    """`tile.print` of values."""
    return (
        f'"tile.print"({", ".join(values)}) {{format = "{template}", '
        f"operandSegmentSizes = {segments(len(values), 8)}}} : ({', '.join(types)}) -> ()"
    )


def inline_ptx_text(
    text: str,
    constraints: str,
    inputs: tuple[Sequence[str], Sequence[str]],
    results: Sequence[str],
    *,
    pure: bool = True,
) -> str:
    """`tile.inline_ptx`, without the names of its results; `inputs`: values and their types."""
    values, types = inputs
    return (
        f'"tile.inline_ptx"({", ".join(values)}) {{text = "{text}", constraints = "{constraints}", '
        f"pure = {str(pure).lower()}, operandSegmentSizes = {segments(len(values), 16)}, "
        f"resultSegmentSizes = {segments(len(results), 8)}}} "
        f": ({', '.join(types)}) -> ({', '.join(results)})"
    )


def seed_of(*case: object) -> int:
    """A seed for what a test draws: of the case alone, whatever Python and machine."""
    return zlib.crc32(repr(case).encode())


def random_layout(rng: random.Random, shape: Sequence[int], num_warps: int) -> Layout:
    """Any layout that covers the tile: bits of the thread number and registers in any order."""
    reach = [1] * len(shape)
    threads: list[Mode] = []
    values: list[Mode] = []
    for _ in range((32 * num_warps).bit_length() - 1):
        if rng.random() < 0.4:
            _grow(rng, shape, reach, values)
        open_dims = [d for d, size in enumerate(shape) if reach[d] < size or rng.random() < 0.05]
        if not open_dims or rng.random() < 0.1:
            threads.append(Mode(2, 0, -1))
            continue
        dim = rng.choice(open_dims)
        threads.append(Mode(2, reach[dim], dim))
        reach[dim] *= 2
    for dim, size in enumerate(shape):
        values.append(Mode(-(-size // reach[dim]), reach[dim], dim))
    if rng.random() < 0.7:
        rng.shuffle(threads)
    rng.shuffle(values)
    return normalize(Layout(tuple(threads), tuple(values)))


def _grow(rng: random.Random, shape: Sequence[int], reach: list[int], values: list[Mode]) -> None:
    dim = rng.randrange(len(shape))
    size = rng.choice([2, 2, 3, 4])
    if reach[dim] < shape[dim]:
        values.append(Mode(size, reach[dim], dim))
        reach[dim] *= size
