"""Launches products whose last round of tiles is split along k; keeps their flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.ops import tail_kernel
from tilec.ops.launch_steps import OwnArrays, Step
from tilec.ops.new_arrays import array_maker
from tilec.ops.tile_choice import MOST_TAIL_PARTS, TileChoice
from tilec.runtime.arrays import CUDA
from tilec.runtime.cuda.stopwatch import is_captured
from tilec.terms.dtypes import DType

SUMS, FLAGS = "sums", "flags"
_flags: dict[Any, Any] = {}


def step_with_tail(
    arguments: Sequence[tuple[str, Any]],
    constants: Mapping[str, Any],
    choice: TileChoice,
    sums_dtype: DType,
    own: OwnArrays,
    device: Any,
    stream: int,
    workers: int,
) -> Step:
    """Plans the launch of a product whose last tiles are summed in parts. `arguments`, `constants`:
    the plain kernel's. `own`: gets the array of partial sums and the flags. `stream`: of the first
    launch. `workers`: multiprocessors."""
    out = arguments[2][1]
    tiles = tl.cdiv(out.shape[-2], choice.rows) * tl.cdiv(out.shape[-1], choice.columns)
    for size in out.shape[:-2]:
        tiles *= size
    slots = tiles % workers * (choice.tail - 1)
    sums = own.new(SUMS, (slots, choice.rows * choice.columns), sums_dtype)
    count = workers * (MOST_TAIL_PARTS - 1)
    make = array_maker(own.like, own.view, (count,), tl.i32)
    flags_of = partial(_flags_of, make, count, device)
    flags = own.add(FLAGS, flags_of, stream)
    kept = {name: value for name, value in constants.items() if name != "KEPT"}
    return Step(
        _kernel_on("product_with_tail", device),
        [*arguments, (SUMS, sums), (FLAGS, flags)],
        {**kept, "WORKERS": workers, "SPLITS": choice.tail},
    )


def _flags_of(make: Callable[[], Any], count: int, device: Any, stream: int) -> Any:
    """Gives `count` flags that are down, enough for every launch.

    Launches of one stream follow each other and each leaves the flags down, so a stream has one
    array for ever: in the driver's memory, as a framework's allocator may serve a graph's pool. A
    graph may be replayed beside anything: what is captured gets its own by `make`, which the graph
    takes down first. So does the emulator, where threads may launch at once.
    """
    is_kept = device.kind == CUDA and not is_captured(device.context, stream)
    key = (device, stream)
    found = _flags.get(key) if is_kept else None
    if found is None:
        found = device.empty((count,), tl.i32.mlir) if is_kept else make()
        _kernel_on("clear", device)(found, stream=stream)
        if is_kept:
            _flags[key] = found
    return found


@cache
def _kernel_on(name: str, device: Any) -> Kernel[...]:
    return getattr(tail_kernel, name).on(device)
