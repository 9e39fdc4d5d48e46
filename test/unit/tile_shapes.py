"""Arrays and their products, by shape alone, and the tiles that are chosen for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import tilec
import tilec.language as tl
from tilec.call.auto_tiles import AutoTiles
from tilec.call.call_class import class_of
from tilec.call.jit import Kernel
from tilec.call.specialization import specialize
from tilec.costs.machine import usual_machine
from tilec.examples.matmul import matmul
from tilec.hardware.target import find_target
from tilec.ops.attention_kernel import attention
from tilec.runtime.arrays import ArrayView
from tilec.runtime.launch_argument import REQUIRED

HOPPER = find_target("sm_90a")
H200 = usual_machine(HOPPER)


def array(*shape: int, dtype: str = "bf16") -> ArrayView:
    """A row-major array without memory."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return ArrayView(0, shape, tuple(strides), dtype, ("host", 0))


def heads(batch: int, count: int, length: int, width: int, **constants: Any) -> dict[str, Any]:
    """Arguments of attention."""
    arrays = {name: array(batch, count, length, width) for name in "qkvo"}
    defaults = {p.name: p.default for p in attention.parameters if p.default is not REQUIRED}
    return {**defaults, **arrays, "scale": 0.1, "D": width, **constants}


def product(m: int, n: int, k: int) -> dict[str, Any]:
    """Arguments of a product."""
    defaults = {p.name: p.default for p in matmul.parameters if p.kind == "const"}
    return {**defaults, "a": array(m, k), "b": array(k, n), "c": array(m, n)}


def taken(
    kernel: Kernel, values: Mapping[str, Any], *, is_most: bool = True
) -> list[dict[str, int]]:
    """The choices of tiles for a call on an H200, the first in front. `is_most`: of its class."""
    call = class_of(specialize(kernel.parameters, values).parameters, values, H200)
    call = replace(call, is_most=is_most)
    return [dict(tiles.chosen) for tiles in choices(kernel, values).order(call)]


def choices(kernel: Kernel, values: Mapping[str, Any]) -> AutoTiles:
    """The choices of tiles for calls like this one, of any sizes."""
    return kernel._programs.choices(specialize(kernel.parameters, values), HOPPER)


@tilec.kernel(grid=lambda x: x.shape[0])
def soften(x: tl.array, y: tl.array, B: tl.const = tl.auto):
    """y = exp(x - max x) of each row, which is read twice."""
    row, highest = tl.program_id(0), -tl.inf
    for start in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, start), B, padding=-tl.inf).to(tl.f32)
        highest = tl.maximum(highest, tl.max(v))
    for start in tl.range(0, x.shape[1], B):
        v = tl.load(x, (row, start), B).to(tl.f32)
        tl.store(y, (row, start), tl.exp(v - highest).to(y.dtype))
