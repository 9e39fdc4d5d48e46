"""Where the arrays of a random kernel lie: dense or with gaps, at any address, turned, the same.

What is between and around their elements is `OUTSIDE`, before and after a launch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from random_functions.kernel_writer import ArrayOf

OUTSIDE = 80.0
"""What every dtype holds and no kernel computes."""


@dataclass(frozen=True)
class Lie:
    """How an array lies: elements in front of it and behind each row, whether the first dimension
    is the dense one, and the number of an array of which it is another name."""

    before: int = 0
    gap: int = 0
    turned: bool = False
    same_as: int | None = None


DENSE = Lie()


def drawn_lies(
    rng: random.Random, arrays: Sequence[ArrayOf], arguments: Sequence[np.ndarray]
) -> list[Lie]:
    """Three of four are dense; those that are only read may be another's."""
    lies: list[Lie] = []
    for number, (array, argument) in enumerate(zip(arrays, arguments, strict=True)):
        alike = [
            n for n in range(number)
            if array.kind == arrays[n].kind == "data" and array.dtype == arrays[n].dtype
            and argument.shape == arguments[n].shape and lies[n].same_as is None
        ]  # fmt: skip
        if alike and rng.random() < 0.15:
            lies.append(Lie(same_as=rng.choice(alike)))
        elif rng.random() < 0.25:
            before, gap = rng.choice((0, 1, 8, 16)), rng.choice((0, 1, 8, 16, 64))
            lies.append(Lie(before, gap, argument.ndim == 2 and rng.random() < 0.3))
        else:
            lies.append(DENSE)
    return lies


@dataclass
class Placed:
    """An array in memory of which it may be a part: what lies there, and where in it."""

    memory: Any
    before: np.ndarray
    array: Any
    outside: np.ndarray


def placed(
    arguments: Sequence[np.ndarray],
    lies: Sequence[Lie],
    made: Callable[[int, np.ndarray], Any],
    strided: Callable[[Any, tuple[int, ...], tuple[int, ...], int], Any],
) -> list[Placed]:
    """The arguments as they lie. `made`: an array's memory from float64; `strided`: a view of it
    from sizes, strides and offset in elements."""
    found: list[Placed] = []
    for number, (argument, lie) in enumerate(zip(arguments, lies, strict=True)):
        if lie.same_as is not None:
            found.append(found[lie.same_as])
            continue
        order = list(range(argument.ndim))[:: -1 if lie.turned else 1]
        strides, step = [0] * argument.ndim, 1
        for position in reversed(range(argument.ndim)):
            axis = order[position]
            strides[axis] = step
            step *= argument.shape[axis]
            step += lie.gap if position == argument.ndim - 1 and argument.ndim > 1 else 0
        numbers = np.full(lie.before + step + lie.gap, OUTSIDE)
        outside = np.ones(numbers.size, bool)
        for flat, values in ((numbers, argument), (outside, False)):
            bytes_ = tuple(stride * flat.itemsize for stride in strides)
            whole = flat[lie.before :]
            np.lib.stride_tricks.as_strided(whole, argument.shape, bytes_)[...] = values
        memory = made(number, numbers)
        view = strided(memory, argument.shape, tuple(strides), lie.before)
        found.append(Placed(memory, numbers, view, outside))
    return found


def harmed(one: Placed, memory: np.ndarray) -> bool:
    """Whether anything beside the array, in float64 or truths, is another than it was."""
    after = memory[one.outside].astype(np.float64)
    wanted = one.before[one.outside]
    return bool((after != (wanted if memory.dtype != bool else 1.0)).any())
