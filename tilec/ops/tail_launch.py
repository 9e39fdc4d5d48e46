"""Launches products whose last round of tiles is split along k; keeps their flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import tilec.language as tl
from tilec.jit import Kernel
from tilec.language.dtypes import DType
from tilec.ops import tail_kernel
from tilec.ops.new_arrays import new_array
from tilec.ops.tile_choice import MOST_TAIL_PARTS, TileChoice
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.cuda.stopwatch import is_captured

_flags: dict[Any, Any] = {}


def launch_with_tail(
    arguments: Sequence[Any],
    constants: Mapping[str, Any],
    choice: TileChoice,
    sums_dtype: DType,
    like: tuple[Any, ArrayView],
    device: Any,
    stream: int,
    workers: int,
) -> None:
    """`arguments`, `constants`: the plain kernel's. `like`: an argument beside which arrays are
    made, and its description. `workers`: multiprocessors."""
    kernel = _kernel_on("product_with_tail", device)
    out = arguments[2]
    tiles = tl.cdiv(out.shape[-2], choice.rows) * tl.cdiv(out.shape[-1], choice.columns)
    for size in out.shape[:-2]:
        tiles *= size
    slots = tiles % workers * (choice.tail - 1)
    sums = new_array(*like, (slots, choice.rows * choice.columns), sums_dtype)
    flags = _flags_of(like, device, stream, workers)
    kept = {name: value for name, value in constants.items() if name != "KEPT"}
    own = {"WORKERS": workers, "SPLITS": choice.tail}
    kernel(*arguments, sums, flags, **kept, **own, stream=stream)


def _flags_of(like: tuple[Any, ArrayView], device: Any, stream: int, workers: int) -> Any:
    """Flags that are down, enough for every launch.

    Launches of one stream follow each other and each leaves the flags down, so a stream has one
    array for ever. A graph may be replayed beside anything: what is captured gets its own, which
    the graph takes down first. So does the emulator, where threads may launch at once.
    """
    is_kept = device.kind == CUDA and not is_captured(device.context, stream)
    key = (like[1].framework, device, stream)
    found = _flags.get(key) if is_kept else None
    if found is None:
        found = new_array(*like, (workers * (MOST_TAIL_PARTS - 1),), tl.i32)
        _kernel_on("clear", device)(found, stream=stream)
        if is_kept:
            _flags[key] = found
    return found


@cache
def _kernel_on(name: str, device: Any) -> Kernel[...]:
    return getattr(tail_kernel, name).on(device)
