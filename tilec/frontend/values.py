"""What a name in a kernel may stand for while it is compiled.

Numbers, strings, None, tuples, dtypes, functions and modules stand for themselves: they are the
compile-time constants. Run-time values are `Scalar`, `Tile`, `Array` and `ArrayList`. The classes
below them exist only between two expressions (a method, a range, a shape).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from mlir import ir

from tilec.dialects.gpu_tile.types import layout_in
from tilec.hardware.any_layout import LAYOUTS
from tilec.messages.diagnostics import Note
from tilec.records import dataclass
from tilec.terms.dtypes import DType
from tilec.terms.tile_sizes import LARGEST_TILE


class Mistake(Exception):
    """The author's mistake, found where no source position is known yet.

    The visitor that meets it makes it a CompileError at its node, or at the argument named
    `argument` if the node is a call.
    """

    def __init__(self, message: str, *notes: Note, argument: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.notes = notes
        self.argument = argument


@dataclass(frozen=True)
class Scalar:
    """A run-time number: an SSA value of scalar type."""

    value: ir.Value
    dtype: DType

    def __str__(self) -> str:
        return f"a scalar of {self.dtype}"


@dataclass(frozen=True)
class Tile:
    """A run-time tile: an SSA value of ranked tensor type.

    `source`: where this is a broadcast, its input and the `dims` of the op, so that broadcasting it
    again starts from the input.
    """

    value: ir.Value
    dtype: DType
    shape: tuple[int, ...]
    source: tuple[ir.Value, tuple[int, ...]] | None = field(default=None, compare=False)

    @property
    def layout(self) -> ir.Attribute | None:
        """Its layout attribute; None where it has none (yet)."""
        return self.value.type.encoding

    def __str__(self) -> str:
        where = "" if self.layout is None else f" in {layout_in(self.layout)}"
        return f"a tile {show_shape(self.shape)} of {self.dtype}{where}"


@dataclass(frozen=True)
class Array:
    """An array in global memory: an SSA value of memref type. `sizes`: None where run-time, but
    for a window's own, which are scalars."""

    value: ir.Value
    name: str
    dtype: DType
    sizes: tuple[int | Scalar | None, ...]

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    def __str__(self) -> str:
        return f"the {self.rank}-dimensional array '{self.name}' of {self.dtype}"


@dataclass(frozen=True)
class ArrayList:
    """A list of arrays: an SSA value of a memref of memrefs. `sizes`: of each of them."""

    value: ir.Value
    name: str
    dtype: DType
    sizes: tuple[int | None, ...]

    @property
    def rank(self) -> int:
        """The number of dimensions of each array."""
        return len(self.sizes)

    def __str__(self) -> str:
        return f"the list '{self.name}' of arrays of {self.dtype}"


@dataclass(frozen=True)
class Resource:
    """A value that only the explicit level has: a buffer, a ring of barriers, a tensor map, a
    pending tile.

    `words`: what it is, in a message.
    """

    value: ir.Value
    kind: str
    words: str = field(compare=False)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Role:
    """`gpu.role(...)` before its `with`: the attributes of the op."""

    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        return f"the role '{self.attributes['name']}'"


@dataclass(frozen=True)
class ArrayShape:
    """`array.shape`, whose sizes are read when they are asked for."""

    array: Array

    def __str__(self) -> str:
        return f"the shape of {self.array}"


@dataclass(frozen=True)
class Method:
    """`x.to` before its call."""

    receiver: Any
    name: str

    def __str__(self) -> str:
        return f"the method '{self.name}'"


MOST_UNROLLED = 4096
"""Iterations of a static_range: of some ops each, which come to `MOST_STEPS` where two such loops
nest."""


@dataclass(frozen=True)
class Range:
    """The range that a `for` loop runs over. `static`: unrolled. `demands`: of the loop, by
    name."""

    start: Any
    stop: Any
    step: Any
    static: bool = False
    demands: Mapping[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of items, where all are constant integers: `len` of Python's has 63 bits."""
        return max(0, -(-(self.stop - self.start) // self.step))

    def __str__(self) -> str:
        return "a range"


@dataclass(frozen=True)
class Text:
    """An f-string with run-time values: `parts` are strings and values."""

    parts: tuple[Any, ...]

    def __str__(self) -> str:
        return "an f-string with run-time values"


@dataclass(frozen=True)
class LambdaFunction:
    """A lambda written in a kernel, with the names it may see."""

    node: ast.Lambda
    names: Mapping[str, Any]

    def __str__(self) -> str:
        return "a lambda"


@dataclass(frozen=True)
class Undefined:
    """A name without a usable value here; using it is a mistake with this message."""

    message: str
    notes: tuple[Note, ...] = ()


def is_number(value: Any) -> bool:
    """Whether this is a compile-time number (bools included)."""
    return isinstance(value, (bool, int, float))


def is_runtime(value: Any) -> bool:
    """Whether this is a scalar or a tile."""
    return isinstance(value, (Scalar, Tile))


def show_shape(shape: tuple[int, ...]) -> str:
    """A shape as the author writes it: `(128, 64)`."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


_DESCRIBED = (
    Scalar,
    Tile,
    Array,
    ArrayList,
    Resource,
    Role,
    ArrayShape,
    Method,
    Range,
    Text,
    LambdaFunction,
)


def describe(value: Any) -> str:
    """A value in a message: "a tile (128, 64) of f32", "the constant 3"."""
    if isinstance(value, _DESCRIBED):
        return str(value)
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if isinstance(value, DType):
        return f"the dtype {value}"
    if isinstance(value, LAYOUTS):
        return f"the layout {value}"
    if value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return f"the constant {text if len(text) <= 60 else text[:57] + '...'}"
    name = getattr(value, "__name__", None)
    return f"'{name}'" if isinstance(name, str) else f"an object of type {type(value).__name__}"


def check_shape(shape: Any, what: str = "shape", argument: str | None = "shape") -> tuple[int, ...]:
    """A tuple of positive constants as a tile's shape; Mistake otherwise."""
    sizes = shape if isinstance(shape, tuple) else (shape,)
    for size in sizes:
        if isinstance(size, (Scalar, Tile, Array, ArrayShape)):
            raise Mistake(
                f"{what} must be made of compile-time constants, found {describe(size)}",
                "help: sizes of tiles are known at compile time: numbers, or parameters "
                "declared as in 'B: tl.const'; a tile may stick out of its array",
                argument=argument,
            )
        if isinstance(size, bool) or not isinstance(size, int):
            is_float = isinstance(size, float)
            raise Mistake(
                f"{what} must be made of integers, found {describe(size)}",
                *(["help: `/` gives a float; `//` and tl.cdiv divide whole numbers"] * is_float),
                argument=argument,
            )
        if size <= 0:
            raise Mistake(f"{what} must be positive, found {size}", argument=argument)
    elements = 1
    for size in sizes:
        elements *= size
        if elements > LARGEST_TILE:
            raise Mistake(
                f"a tile of shape {show_shape(sizes)} has more than {LARGEST_TILE} elements",
                argument=argument,
            )
    return sizes


def check_axis(axis: Any, rank: int, argument: str = "axis") -> int:
    """A constant axis from -rank to rank - 1, counted from 0; Mistake otherwise."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise Mistake(
            f"{argument} must be a constant integer, found {describe(axis)}", argument=argument
        )
    if not -rank <= axis < rank:
        raise Mistake(f"{argument} {axis} is out of range for {rank} dimensions", argument=argument)
    return axis % rank
