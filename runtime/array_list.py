"""Lists of arrays as one argument: what is said of all of them, and the table that kernels read.

A list of torch's tensors that a launch has seen before is read by `cuda/known_lists.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import field, replace
from itertools import accumulate
from math import gcd, prod
from typing import Any

from tilec.executable.kernel import INDEX_LIMIT_32, Parameter, row_words
from tilec.records import dataclass
from tilec.runtime.arrays import HOST, ArrayView, describe, form_of
from tilec.runtime.dlpack import contiguous_strides
from tilec.runtime.errors import ArgumentError

LIMIT_32 = INDEX_LIMIT_32 - 2**16
"""Sizes below this take 32-bit indices: the last part of an array may begin up to 2^16 elements
behind its end (`tile.find_part`)."""
MOST_ALIGNMENT = 256
"""Bytes, of what pointers are known to be multiples of: the most that a spec promises."""


@dataclass(frozen=True)
class Common:
    """What is so of each array of a list: its dtype, and by axis its size and its stride, None
    where they differ, and what divides them; pointers are multiples of `align` bytes, a power of
    two. `fits_32`: whether 32-bit indices reach everywhere.

    A stride that leads nowhere, of an axis of size 1, is not looked at.
    """

    dtype: str
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    size_divisors: tuple[int, ...]
    stride_divisors: tuple[int, ...]
    align: int
    fits_32: bool


@dataclass(frozen=True, eq=False)
class ArrayList(ArrayView):
    """The memory of a list of somebody else's arrays, seen as one argument.

    `pointer`: address of its table on a GPU, else 0. `shape`: how many arrays there are. `dtype`,
    `device`, `framework`: of each of them. `common`: see `Common`. `elements`: of all arrays
    together. `members`: the arrays, but for a list that a launch has seen before. `rows`: which
    sizes and strides the table has, as `rows_of` says.
    """

    common: Common = field(default=Common("", (), (), (), (), 1, True), repr=False)
    elements: int = 0
    members: tuple[ArrayView, ...] = field(default=(), repr=False)
    rows: tuple[bool, ...] = ()

    @property
    def counts(self) -> tuple[int, int]:
        """How many arrays, and how many elements they have: what a grid rule reads."""
        return self.shape[0], self.elements

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = (self.form, self.common, self.elements, self.rows)
        object.__setattr__(self, "form", form_of(parts))


def describe_list(value: Any, name: str, stream: int | None = None, *, flat: bool) -> ArrayList:
    """The list `value` of arrays; ArgumentError, naming the argument `name`, if it is none.

    `flat`: each array is seen as a row of all its elements, and must be dense and row-major.
    """
    if isinstance(value, ArrayList):
        return value
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(
            f"argument {name!r}: expected a list of arrays, found {type(value).__name__}"
        )
    if not value:
        raise ArgumentError(f"argument {name!r}: an empty list; nobody knows its dtype")
    members = [describe(one, f"{name}[{n}]", stream) for n, one in enumerate(value)]
    return list_of(members, name, flat=flat)


def list_of(members: Sequence[ArrayView], name: str, *, flat: bool) -> ArrayList:
    """These arrays as a list without a table. ArgumentError, naming the argument `name`, where they
    make none."""
    if flat:
        members = [_flattened(one, f"{name}[{n}]") for n, one in enumerate(members)]
    _check_alike(members, name)
    first = members[0]
    return ArrayList(
        0,
        (len(members),),
        (1,),
        first.dtype,
        first.device,
        first.framework,
        common=_common(members),
        elements=sum(prod(one.shape) for one in members),
        members=tuple(members),
    )


def _flattened(view: ArrayView, name: str) -> ArrayView:
    """An array as one row of all its elements. ArgumentError where it is not dense and
    row-major."""
    dense = contiguous_strides(view.shape)
    if 0 not in view.shape and any(
        size > 1 and stride != wanted
        for size, stride, wanted in zip(view.shape, view.strides, dense, strict=True)
    ):
        raise ArgumentError(
            f"argument {name!r}: expected an array without gaps, row-major, as tl.flat_arrays are; "
            f"found shape {view.shape}, strides {view.strides}"
        )
    # NumPy's own array, which has the other shape, is no longer asked for.
    framework = "" if view.framework == "numpy" else view.framework
    return replace(view, shape=(prod(view.shape),), strides=(1,), framework=framework)


def _check_alike(members: Sequence[ArrayView], name: str) -> None:
    first = members[0]
    for number, one in enumerate(members):
        for what, found, expected, help_ in (
            ("dtype", one.dtype, first.dtype, ""),
            ("rank", one.ndim, first.ndim, "; tl.flat_arrays takes arrays of any"),
            ("device", one.device, first.device, ""),
            ("framework", one.framework, first.framework, ""),
        ):
            if found != expected:
                raise ArgumentError(
                    f"argument '{name}[{number}]': expected the {what} of '{name}[0]', {expected}, "
                    f"found {found}{help_}"
                )


def undescribed(parameter: Parameter, counts: Sequence[int]) -> ArrayList:
    """A list of which nothing is known but its parameter and its `counts`, without memory."""
    return ArrayList(
        *(0, (counts[0],), (1,), parameter.dtype, (HOST, 0)),
        common=Common(
            parameter.dtype,
            parameter.sizes,
            parameter.strides,
            parameter.facts.sizes,
            parameter.facts.strides,
            parameter.facts.align,
            fits_32=True,
        ),
        elements=counts[1],
    )


def _common(members: Sequence[ArrayView]) -> Common:
    """What is so of all these arrays, which have one dtype and rank."""
    sizes = list(zip(*(one.shape for one in members), strict=True))
    strides = [_led(members, axis) for axis in range(members[0].ndim)]
    spans = (one.extent() for one in members)
    pointers = gcd(MOST_ALIGNMENT, *(one.pointer for one in members))
    return Common(
        members[0].dtype,
        tuple(map(_only, sizes)),
        tuple(_only(found) if found else 1 for found in strides),
        tuple(gcd(*found) for found in sizes),
        tuple(1 if any(n < 0 for n in found) else gcd(*found) for found in strides),
        pointers & -pointers,
        all(high - low < LIMIT_32 for low, high in spans)
        and all(size < LIMIT_32 for found in sizes for size in found),
    )


def _led(members: Sequence[ArrayView], axis: int) -> tuple[int, ...]:
    """The strides along an axis that lead anywhere."""
    return tuple(one.strides[axis] for one in members if one.shape[axis] > 1 and 0 not in one.shape)


def _only(values: Sequence[int]) -> int | None:
    """The value of all, None where they differ."""
    return values[0] if len(set(values)) == 1 else None


def rows_of(parameter: Parameter) -> tuple[bool, ...]:
    """Of each size, then of each stride: whether a list's table has it."""
    return tuple(value is None for value in (*parameter.sizes, *parameter.strides))


def table_of(arrays: ArrayList, parameter: Parameter) -> array[int]:
    """The words of the table of a list (see `tilec.executable.kernel`) for a kernel with this
    parameter."""
    words = array("q")
    for one in arrays.members:
        told = zip((*one.shape, *one.strides), rows_of(parameter), strict=True)
        words.extend([_signed(one.pointer), *(value for value, is_told in told if is_told)])
    sizes = (prod(one.shape) for one in arrays.members)
    words.extend([0, *accumulate(sizes)][:-1])
    assert len(words) == len(arrays.members) * (row_words(parameter.sizes, parameter.strides) + 1)
    return words


def _signed(pointer: int) -> int:
    """An address as the table has it, whose numbers have a sign."""
    return pointer - (1 << 64) if pointer >> 63 else pointer
