"""What the choice of tiles knows of a call: sizes in classes, and the device.

A kernel is compiled for any sizes; only which tiles are best depends on them. Sizes up to 16 are
classes of their own, above that there are 16 an octave, and 32 where these would be more than a
tile's 64 rows apart: arrays that grow by an element a call meet a new class seldom. Rows that begin
at multiples of 16, 32, 64 and 128 bytes are other classes, as a row that begins inside of a line of
the caches takes part of one more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilec.costs.dot_work import Memory
from tilec.costs.machine import FIGURES, Machine
from tilec.executable.kernel import Parameter
from tilec.hardware.sizes import LINE_BYTES, VECTOR_BYTES
from tilec.records import dataclass
from tilec.runtime.array_list import undescribed
from tilec.runtime.arrays import ArrayView
from tilec.runtime.launcher import shape_of
from tilec.terms.dtypes import BY_MLIR, ELEMENT_BYTES

EXACT_SIZES = 16
"""Sizes up to here are classes of their own: the sides of the smallest tiles."""
_PER_OCTAVE = 16
"""With 8, choices for 24 drawn calls were 1.0 % from the best tiles, with 16 0.6 % (H200)."""
_FINE_STEP = 64
"""What classes are no further apart than, if it takes no more than twice as many: 2073 rows as 2176
are 34 tiles of 64 for 33, and both parts of each of two columns of tiles more than 132
multiprocessors (28.4 us in others, 17.2 in these). 7 of 120 drawn products got other tiles than by
their own sizes, and 4 do now."""
UNKNOWN_SIZE, UNKNOWN_BATCH = 1024, 8
"""What unknown sizes count as, those of matrices and others: some steps of loops, and some rounds
of programs."""
_FAR = 1 << 24
"""Elements: a stride of a multiple of whole lines."""

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class CallClass:
    """The class of a call, which decides its tiles. `sizes`: of each parameter, an array's shape,
    how many arrays and elements a list has, a whole number's value, or None of any other;
    `pitches`: of each, the power of two of bytes, a line at most, at whose multiples rows of an
    array begin; `machine`: where it runs; `is_most`: whether no launch of what is compiled for the
    class has larger sizes."""

    sizes: tuple[Sizes | int | None, ...]
    pitches: tuple[int, ...]
    machine: Machine
    is_most: bool = False

    @property
    def text(self) -> str:
        """The same in every process: what is kept on disk is kept under it."""
        figures = {name: getattr(self.machine, name) for name in FIGURES}
        most = ", no larger ones" if self.is_most else ""
        return f"{self.sizes}{most}, rows at {self.pitches} on {figures}"

    def with_axes_of(self, least: int) -> CallClass:
        """The same of arrays without shorter axes."""
        sizes = (
            tuple(max(least, n) for n in one) if isinstance(one, tuple) else one
            for one in self.sizes
        )
        return replace(self, sizes=tuple(sizes))

    def arguments(self, parameters: Sequence[Parameter]) -> dict[str, Any]:
        """Arguments of this class by name, arrays without memory behind."""
        known = zip(parameters, self.sizes, self.pitches, strict=True)
        return {
            one.name: _described(one, size, pitch) if isinstance(size, tuple) else size or 0
            for one, size, pitch in known
        }


def class_of(
    parameters: Sequence[Parameter], values: Mapping[str, Any], machine: Machine
) -> CallClass:
    """The class of a call with these arguments, arrays described."""
    given = [values[parameter.name] for parameter in parameters]
    return CallClass(tuple(map(_class, given)), tuple(map(_pitch, given)), machine, is_most=True)


def class_of_specs(
    parameters: Sequence[Parameter],
    usual: Mapping[str, Any],
    machine: Machine,
    *,
    is_most: bool = False,
) -> CallClass | None:
    """The class of calls with these parameters; None where a size, or a whole number, is unknown.
    `usual`: shapes and whole numbers by name, in place of sizes that parameters leave open; their
    rows follow one another without gaps where strides are open, too. `is_most`: see `CallClass`.

    ValueError for a name or a rank that no parameter has.
    """
    ranks = {p.name: 2 if p.is_list else p.rank for p in parameters}
    for name, size in usual.items():
        if ranks.get(name) != (len(size) if isinstance(size, (tuple, list)) else 0):
            raise ValueError(f"sizes: {name!r} is no parameter with as many sizes as {size!r}")
    found = [_size_of(parameter, usual.get(parameter.name)) for parameter in parameters]
    if any(size == _UNKNOWN for size in found):
        return None
    pitches = (_dense_pitch(one, usual.get(one.name)) for one in parameters)
    return CallClass(tuple(found), tuple(pitches), machine, is_most)


_UNKNOWN = -1
"""No class: sizes are none below 0."""


def _size_of(parameter: Parameter, usual: Any) -> Sizes | int | None:
    if parameter.is_list:
        return _UNKNOWN if usual is None else tuple(map(size_class, usual))
    if parameter.kind != "array":
        if BY_MLIR[parameter.dtype].kind is not int:
            return None
        return _UNKNOWN if usual is None else _class(usual)
    sizes = _sizes_of(parameter, usual)
    return _UNKNOWN if sizes is None else tuple(map(size_class, sizes))


def _sizes_of(parameter: Parameter, usual: Any) -> Sizes | None:
    """The sizes of an array, None where one is unknown."""
    known = zip(parameter.sizes, usual or parameter.sizes, strict=True)
    sizes = [given if size is None else size for size, given in known]
    found = tuple(size for size in sizes if size is not None)
    return found if len(found) == len(sizes) else None


def any_class(parameters: Sequence[Parameter], machine: Machine) -> CallClass:
    """A class that stands for sizes of which nothing is known."""
    return CallClass(tuple(map(_unknown, parameters)), (LINE_BYTES,) * len(parameters), machine)


def _unknown(parameter: Parameter) -> Sizes | int:
    if parameter.is_list:
        return UNKNOWN_SIZE, UNKNOWN_SIZE**2
    return _assumed(parameter.sizes) if parameter.has_memory else UNKNOWN_SIZE


def size_class(size: int) -> int:
    """The largest size of a size's class."""
    if size <= EXACT_SIZES:
        return size
    step = max(1, (1 << (size - 1).bit_length() - 1) // _PER_OCTAVE)
    step = step if step <= _FINE_STEP else step // 2
    return -(-size // step) * step


def _assumed(known: Sequence[int | None]) -> Sizes:
    assumed = (UNKNOWN_SIZE if axis < 2 else UNKNOWN_BATCH for axis in reversed(range(len(known))))
    return tuple(a if size is None else size for a, size in zip(assumed, known, strict=True))


def _class(value: Any) -> Sizes | int | None:
    if isinstance(value, ArrayView):
        return tuple(map(size_class, shape_of(value)))
    if isinstance(value, int) and not isinstance(value, bool):
        return size_class(abs(value)) * (1 if value >= 0 else -1)
    return None


def _pitch(value: Any) -> int:
    """Bytes, a line at most, that all places where rows of an array begin are multiples of."""
    if not isinstance(value, ArrayView) or len(value.shape) < 2:
        return LINE_BYTES
    return Memory.of(value.pointer, value.shape, value.strides, value.element_bytes).alignment


def _dense_pitch(parameter: Parameter, usual: Any) -> int:
    """The same of an array of which sizes are known: dense along its axis of stride 1, or the
    last."""
    if parameter.kind != "array" or parameter.rank < 2:
        return LINE_BYTES
    sizes = _sizes_of(parameter, usual)
    assert sizes is not None  # else there is no class
    width, axes = ELEMENT_BYTES[parameter.dtype], list(range(parameter.rank))
    inner = parameter.strides.index(1) if 1 in parameter.strides else axes[-1]
    strides, dense = dict.fromkeys(axes, 1), sizes[inner]
    for axis in reversed([axis for axis in axes if axis != inner]):
        known = parameter.strides[axis]
        strides[axis], dense = dense if known is None else known, dense * sizes[axis]
    return Memory.of(0, sizes, [strides[axis] for axis in axes], width).alignment


def _described(parameter: Parameter, shape: Sizes, pitch: int) -> ArrayView:
    """An array of this shape as far as it is known: unit strides, and what others are multiples
    of; or a list."""
    if parameter.is_list:
        return undescribed(parameter, shape)
    width = ELEMENT_BYTES[parameter.dtype]
    whole = pitch // width if pitch < LINE_BYTES else 0
    strides = tuple(
        _FAR + (whole if known * width >= VECTOR_BYTES else known) if stride is None else stride
        for stride, known in zip(parameter.strides, parameter.facts.strides, strict=True)
    )
    return ArrayView(parameter.facts.align % 16, shape, strides, parameter.dtype, ("host", 0))
