"""What a launch in JAX is before any array exists: shapes, dtypes, constants and the grid.

All of it is static to JAX, so that equal descriptions share a compiled launch.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod
from typing import Any

from tilec.executable.kernel import Grid
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.dlpack import contiguous_strides
from tilec.runtime.launcher import Launcher
from tilec.terms.dtypes import ELEMENT_BYTES


@dataclass(frozen=True)
class ArrayArgument:
    """An array of a launch, row-major as XLA's are for us.

    `dtype`: MLIR's name. `is_given`: it is an operand of the launch; else only a result. `batched`:
    of each dimension that `vmap` has added, outermost first, whether this array has it. `seen`:
    shape and strides (in elements) that the kernel sees from its first element on, None for its
    own.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_given: bool
    batched: tuple[bool, ...] = ()
    seen: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    @property
    def bytes(self) -> int:
        """Bytes of the array that one launch takes."""
        return prod(self.shape) * ELEMENT_BYTES[self.dtype]

    def full_shape(self, batch: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes with those dimensions of `batch` that this array has in front."""
        own = (size for size, has in zip(batch, self.batched, strict=True) if has)
        return (*own, *self.shape)

    def view(self, device: tuple[str, int]) -> ArrayView:
        """An array of this description at the least aligned place that a launch may find it at.

        XLA aligns buffers to 16 bytes and more; slices of a batch lie as their size has it.
        """
        step = gcd(VECTOR_BYTES, self.bytes) if any(self.batched) else VECTOR_BYTES
        pointer = VECTOR_BYTES + step % VECTOR_BYTES
        shape, strides = self.seen or (self.shape, contiguous_strides(self.shape))
        return ArrayView(pointer, shape, strides, self.dtype, device, "jax")


@dataclass(frozen=True)
class Static:
    """A number or constant of a launch; `text` tells 1, 1.0 and True apart, which are equal."""

    name: str
    value: Any
    text: str


@dataclass(frozen=True)
class Description:
    """One launch, or one for each element of `batch`.

    `launcher`: the kernel. `arrays`: in the order of its parameters. `results`: the names of those
    that it writes. `grid`: what the caller gave, None for the kernel's rule.
    """

    launcher: Launcher
    arrays: tuple[ArrayArgument, ...]
    statics: tuple[Static, ...]
    results: tuple[str, ...]
    grid: Grid | None
    batch: tuple[int, ...] = ()

    @property
    def operands(self) -> tuple[ArrayArgument, ...]:
        """The arrays that are given, in order."""
        return tuple(array for array in self.arrays if array.is_given)

    @property
    def outputs(self) -> tuple[ArrayArgument, ...]:
        """The arrays that are results, in order."""
        return tuple(array for array in self.arrays if array.name in self.results)

    @property
    def aliases(self) -> dict[int, int]:
        """Number of an operand -> number of the result that takes its memory over."""
        places = {array.name: number for number, array in enumerate(self.outputs)}
        operands = enumerate(self.operands)
        return {number: places[a.name] for number, a in operands if a.name in places}

    def bound(self, device: tuple[str, int]) -> dict[str, Any]:
        """What the launcher resolves: an `ArrayView`, a number or a constant a name."""
        views = {array.name: array.view(device) for array in self.arrays}
        statics = {static.name: static.value for static in self.statics}
        return {a.name: views.get(a.name, statics.get(a.name)) for a in self.launcher.arguments}

    def batched(self, size: int, has: tuple[bool, ...]) -> Description:
        """The description with one more dimension in front, of `size`, which the operands have that
        `has` says, and all results."""
        given = iter(has)
        arrays = tuple(
            replace(
                array,
                batched=((next(given) if array.is_given else True), *array.batched),
            )
            for array in self.arrays
        )
        return replace(self, arrays=arrays, batch=(size, *self.batch))

    def offsets(self, array: ArrayArgument) -> list[int]:
        """Bytes from the beginning of an array to what each launch of the batch takes of it."""
        found, step = [0], array.bytes
        steps = []
        for size, has in zip(reversed(self.batch), reversed(array.batched), strict=True):
            steps.append(step if has else 0)
            step *= size if has else 1
        for size, step in zip(self.batch, reversed(steps), strict=True):
            found = [start + step * number for start in found for number in range(size)]
        return found
