"""Launches of JAX's CPU: on the emulator, on copies of the arrays that a launch changes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tilec.jax.description import ArrayArgument, Description
from tilec.runtime.host import numpy_dtype


def _seen(array: ArrayArgument, own: np.ndarray) -> np.ndarray:
    """What the kernel sees of an array's memory."""
    if array.seen is None:
        return own
    shape, strides = array.seen
    steps = [stride * own.itemsize for stride in strides]
    row_major, writes = np.ascontiguousarray(own), own.flags.writeable
    return np.lib.stride_tricks.as_strided(row_major, shape, steps, writeable=writes)


def run_emulated(described: Description, *operands: Any) -> tuple[Any, ...]:
    """The results of a launch, or of one for each element of its batch, on host arrays."""
    given = iter(operands)
    memory: dict[str, Any] = {}
    for array in described.arrays:
        if not array.is_given:
            shape = array.full_shape(described.batch)
            memory[array.name] = np.empty(shape, numpy_dtype(array.dtype))
        elif array.name in described.results:
            memory[array.name] = np.array(next(given))
        else:
            memory[array.name] = np.asarray(next(given))
    statics = {static.name: static.value for static in described.statics}
    for place in itertools.product(*map(range, described.batch)):
        arrays = {
            array.name: _seen(
                array,
                memory[array.name][
                    tuple(n for n, has in zip(place, array.batched, strict=True) if has)
                ],
            )
            for array in described.arrays
        }
        values = {**arrays, **statics}
        described.launcher(
            *(values[argument.name] for argument in described.launcher.arguments),
            grid=described.grid,
        )
    return tuple(memory[name] for name in described.results)
