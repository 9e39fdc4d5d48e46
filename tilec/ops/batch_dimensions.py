"""Leading dimensions: broadcast by NumPy's rule, then merged where every operand's strides allow.

Three-dimensional operands of a plain linear layer end as two matrices; what cannot be merged stays
a dimension of its own, a broadcast one with stride 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError

Strides = tuple[int, ...]


class Strided(Protocol):
    """Shape and strides in elements: an array, or how one is looked at."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> Strides: ...


def broadcast_sizes(shapes: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """The common leading sizes of several arguments. ArgumentError names two that do not fit."""
    sizes: list[int] = []
    owner: dict[int, str] = {}
    for name, shape in shapes.items():
        sizes = [1] * (len(shape) - len(sizes)) + sizes
        for back, size in enumerate(reversed(shape), 1):
            if size == 1 or size == sizes[-back]:
                continue
            if sizes[-back] != 1:
                raise ArgumentError(
                    f"argument {name!r}: leading dimensions {tuple(shape)} do not broadcast with "
                    f"those of {owner[back]!r}, which end in {tuple(sizes[-back:])}"
                )
            sizes[-back] = size
            owner[back] = name
    return tuple(sizes)


def lead_strides(view: Strided, sizes: Sequence[int], own: int) -> Strides:
    """Strides of `view` along common leading `sizes`; it ends in `own` dimensions of its own."""
    lead = len(view.shape) - own
    missing = (0,) * (len(sizes) - lead)
    given = zip(view.shape[:lead], view.strides[:lead], strict=True)
    return missing + tuple(0 if size == 1 else stride for size, stride in given)


def merge(
    sizes: Sequence[int], strides: Mapping[str, Strides]
) -> tuple[tuple[int, ...], dict[str, Strides]]:
    """The same elements in fewer dimensions: those of size 1 go, neighbours become one dimension
    where each step of the outer one is a whole round of the inner one, for every operand."""
    kept: list[int] = []
    found: dict[str, list[int]] = {name: [] for name in strides}
    for axis in reversed(range(len(sizes))):
        size = sizes[axis]
        if size == 1:
            continue
        if kept and all(strides[name][axis] == kept[0] * found[name][0] for name in strides):
            kept[0] *= size
            continue
        kept.insert(0, size)
        for name in strides:
            found[name].insert(0, strides[name][axis])
    return tuple(kept), {name: tuple(found[name]) for name in strides}


def with_dimensions(view: ArrayView, shape: Sequence[int], strides: Sequence[int]) -> ArrayView:
    """Makes another view of the same memory, one that a launcher takes as it is.

    Of JAX arrays the framework is kept: their launches wait.
    """
    framework = view.framework if view.framework == "jax" else "tilec"
    return replace(view, shape=tuple(shape), strides=tuple(strides), framework=framework)
