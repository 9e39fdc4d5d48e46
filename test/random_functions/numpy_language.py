"""The tile language in NumPy: a kernel's own text runs on it, a program behind the other.

Numbers are float64 whatever their dtype, so that it judges kernels whose numbers are exact in the
dtypes they have: small integers.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

NAMES = (
    *("array", "arrays", "const", "i1", "i8", "i16", "i32", "i64", "u8", "u16"),
    *("f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64"),
)
"""What a kernel names and NumPy has no use for: annotations, dtypes."""
AUTO_SIDE = 64
"""Of tiles, here, that the compiler chooses: what such kernels leave does not follow from it."""
WRAPPING = {
    "i8": (8, True),
    "i16": (16, True),
    "i32": (32, True),
    "u8": (8, False),
    "u16": (16, False),
}
"""Integers of which a cast keeps so many bits; whether the first is a sign."""


class Number(np.ndarray):
    """A tile, or a scalar."""

    def to(self, dtype: Any) -> Number:
        """Floats hold what the kernel has, integers the bits that fit; `tl.i1` says whether it is
        something."""
        if dtype == "i1":
            return tile(self != 0)
        numbers = np.asarray(self, np.float64)
        if dtype in WRAPPING:
            bits, signed = WRAPPING[dtype]
            least = -(2.0 ** (bits - 1)) if signed else 0.0
            numbers = np.mod(np.trunc(numbers) - least, 2.0**bits) + least
        return tile(numbers)

    def __iadd__(self, other: Any) -> Number:  # type: ignore[misc]
        """Another number: what else has the name of the old one keeps that."""
        return self + other

    def __index__(self) -> int:
        return int(self)

    def __and__(self, other: Any) -> Number:
        return _bits(np.bitwise_and, self, other)

    def __or__(self, other: Any) -> Number:
        return _bits(np.bitwise_or, self, other)

    def __xor__(self, other: Any) -> Number:
        return _bits(np.bitwise_xor, self, other)

    def __lshift__(self, other: Any) -> Number:
        return _bits(np.left_shift, self, other)

    def __rshift__(self, other: Any) -> Number:
        return _bits(np.right_shift, self, other)


def _bits(operation: Any, x: Any, y: Any) -> Number:
    """Of truths, or of whole numbers that float64 holds."""
    pair = (np.asarray(x), np.asarray(y))
    if any(each.dtype != bool for each in pair):
        pair = (pair[0].astype(np.int64), pair[1].astype(np.int64))
    return tile(operation(*pair))


def tile(values: Any) -> Number:
    """Numbers as float64, truths as they are."""
    array = np.asarray(values)
    return (array if array.dtype == bool else array.astype(np.float64)).view(Number)


class Window:
    """A part of an array, all of it at first: what lies outside is not read and not written."""

    def __init__(self, memory: np.ndarray, begin: Sequence[int], shape: Sequence[int]) -> None:
        self.memory, self.begin, self.shape = memory, tuple(begin), tuple(shape)
        self.dtype, self.ndim = "dtype", len(self.shape)

    def places(self, indices: Sequence[Any]) -> tuple[Any, Any]:
        """Where elements lie in the memory, and which of them lie in the window and in the array.

        Of the others the place is 0."""
        spread = np.broadcast_arrays(*(np.asarray(i, dtype=np.int64) for i in indices))
        inside = np.ones(spread[0].shape, bool)
        for index, begin, size, whole in zip(
            spread, self.begin, self.shape, self.memory.shape, strict=True
        ):
            inside &= (index >= 0) & (index < size) & (index + begin >= 0) & (index + begin < whole)
        at = [np.where(inside, i + b, 0) for i, b in zip(spread, self.begin, strict=True)]
        return tuple(at), inside


def _indices(offsets: Any, shape: Any, dims: Any) -> list[Any]:
    """Index tiles of a rectangle, dimensions in the order that `dims` says."""
    offsets, shape = _several(offsets), tuple(map(int, _several(shape)))
    rank = len(offsets)
    dims = tuple(_several(dims)) if dims is not None else tuple(range(rank - len(shape), rank))
    found: list[Any] = [np.full((1,) * len(shape), int(offset)) for offset in offsets]
    for axis, (size, dim) in enumerate(zip(shape, dims, strict=True)):
        along = [1] * len(shape)
        along[axis] = size
        found[dim] = found[dim] + np.arange(size).reshape(along)
    return [np.broadcast_to(index, shape) for index in found]


def _several(x: Any) -> Any:
    return x if isinstance(x, (tuple, list)) else (x,)


def load(array: Window, offsets: Any, shape: Any, dims: Any = None, padding: float = 0) -> Number:
    """`tl.load`."""
    return gather(array, _indices(offsets, shape, dims), other=padding)


def store(array: Window, offsets: Any, values: Any, dims: Any = None) -> None:
    """`tl.store`."""
    values = np.asarray(values)
    scatter(array, _indices(offsets, values.shape, dims), values)


def gather(array: Window, indices: Any, mask: Any = True, other: float = 0) -> Number:
    """`tl.gather`."""
    at, inside = array.places(_several(indices))
    inside, mask = np.broadcast_arrays(inside, np.asarray(mask, bool))
    values = array.memory[at] if array.memory.size else other
    return tile(np.where(inside & mask, values, np.asarray(other, array.memory.dtype)))


def scatter(array: Window, indices: Any, values: Any, mask: Any = True) -> None:
    """`tl.scatter`."""
    _write(array, indices, values, mask, lambda memory, at, value: memory.__setitem__(at, value))


def atomic_add(array: Window, indices: Any, values: Any, mask: Any = True) -> None:
    """`tl.atomic_add`, whose result nobody takes."""
    _write(array, indices, values, mask, np.add.at)


def atomic_max(array: Window, indices: Any, values: Any, mask: Any = True) -> None:
    """`tl.atomic_max`, the same."""
    _write(array, indices, values, mask, np.maximum.at)


def atomic_min(array: Window, indices: Any, values: Any, mask: Any = True) -> None:
    """`tl.atomic_min`, the same."""
    _write(array, indices, values, mask, np.minimum.at)


def _write(array: Window, indices: Any, values: Any, mask: Any, how: Callable[..., Any]) -> None:
    at, inside = array.places(_several(indices))
    *at, inside, values, mask = np.broadcast_arrays(
        *at, inside, np.asarray(values), np.asarray(mask, bool)
    )
    chosen = inside & mask
    how(array.memory, tuple(index[chosen] for index in at), values[chosen])


def window(array: Window, offsets: Any, sizes: Any = None) -> Window:
    """`tl.window`."""
    offsets = [int(offset) for offset in _several(offsets)]
    sizes = _several(sizes) if sizes is not None else (None,) * len(offsets)
    shape = [
        max(0, whole - offset if size is None else int(size))
        for offset, size, whole in zip(offsets, sizes, array.shape, strict=True)
    ]
    # What a window's window has beside the first one is outside, too.
    begin = [b + o for b, o in zip(array.begin, offsets, strict=True)]
    return Window(array.memory, begin, shape)


def dot(a: Any, b: Any, acc: Any = None, **_: Any) -> Number:
    """`tl.dot`."""
    product = np.asarray(a) @ np.asarray(b)
    return tile(product if acc is None else product + np.asarray(acc))


def cumsum(x: Any, axis: int = 0, reverse: bool = False) -> Number:
    """`tl.cumsum`."""
    values = np.asarray(x, dtype=np.float64)
    found = np.flip(np.cumsum(np.flip(values, axis), axis), axis) if reverse else None
    return tile(np.cumsum(values, axis) if found is None else found)


def associative_scan(x: Any, axis: int, combine: Any, reverse: bool = False) -> Number:
    """`tl.associative_scan` of one tile, element by element."""
    rows = np.moveaxis(np.array(x), axis, 0)
    rows = rows[::-1] if reverse else rows
    for row in builtins.range(1, len(rows)):
        rows[row] = combine(rows[row - 1], rows[row])
    return tile(np.moveaxis(rows[::-1] if reverse else rows, 0, axis))


def ranged(*bounds: Any, **_: Any) -> Iterator[int]:
    """`tl.range`, whatever is demanded of it."""
    return iter(builtins.range(*map(int, bounds)))


def language(program: tuple[int, ...], grid: tuple[int, ...]) -> SimpleNamespace:
    """`tl` as one program of a grid sees it."""
    shapes = {
        "zeros": lambda shape, dtype: tile(np.zeros(shape)),
        "full": lambda shape, value, dtype=None: tile(np.full(shape, value)),
        "arange": lambda *bounds: tile(np.arange(*bounds)),
        "cat": lambda tiles, axis=0: tile(np.concatenate(tiles, axis)),
        "split": lambda x, parts, axis=0: tuple(map(tile, np.split(x, parts, axis))),
        "broadcast_to": lambda x, shape: tile(np.broadcast_to(x, shape)),
        "permute": lambda x, axes: tile(np.transpose(x, axes)),
        "reshape": lambda x, shape: tile(np.reshape(x, shape)),
    }
    elements = {
        "maximum": lambda x, y: tile(np.maximum(x, y)),
        "minimum": lambda x, y: tile(np.minimum(x, y)),
        "clamp": lambda x, low, high: tile(np.clip(x, low, high)),
        "abs": lambda x: tile(np.abs(x)),
        "where": lambda c, x, y: tile(np.where(c, x, y)),
    }
    reductions = {
        "sum": lambda x, axis=None: tile(np.sum(np.asarray(x, np.float64), axis)),
        "max": lambda x, axis=None: tile(np.max(x, axis)),
        "min": lambda x, axis=None: tile(np.min(x, axis)),
        "argmax": lambda x, axis: tile(np.argmax(x, axis)),
        "prod": lambda x, axis=None: tile(np.prod(x, axis)),
        "argmin": lambda x, axis: tile(np.argmin(x, axis)),
        "any": lambda x, axis=None: tile(np.any(x, axis)),
        "all": lambda x, axis=None: tile(np.all(x, axis)),
        "sort": lambda x: tile(np.sort(x, axis=-1)),
        "histogram": lambda x, bins: tile(np.bincount(np.ravel(x).astype(int), minlength=bins)),
        "cumsum": cumsum,
        "associative_scan": associative_scan,
    }
    control = {
        "range": ranged,
        "static_range": builtins.range,
        "program_id": lambda axis: program[axis],
        "num_programs": lambda axis: grid[axis],
        "cdiv": lambda x, y: -(-int(x) // int(y)),
        "assume": lambda x, **_: x,
    }
    memory = (load, store, gather, scatter, atomic_add, atomic_max, atomic_min, window, dot)
    return SimpleNamespace(
        **{name: name for name in NAMES},
        auto=AUTO_SIDE,
        **shapes,
        **elements,
        **reductions,
        **control,
        **{function.__name__: function for function in memory},
    )


def run(
    text: str,
    name: str,
    arguments: Sequence[np.ndarray],
    grid: tuple[int, ...],
    constants: Mapping[str, int] | None = None,
) -> None:
    """Runs a kernel's text, all programs of a grid; `arguments` are float64 arrays, written in
    place, and numbers, of no dimension."""
    own = "\n".join(line for line in text.splitlines() if not line.startswith("import "))
    code = compile(own, "<kernel>", "exec")
    for program in itertools.product(*map(builtins.range, grid)):
        undecorated = SimpleNamespace(kernel=lambda **_: lambda function: function)
        scope: dict[str, Any] = {"tilec": undecorated, "tl": language(program, grid)}
        exec(code, scope)  # the text is the generator's
        given = (Window(a, (0,) * a.ndim, a.shape) if a.ndim else int(a) for a in arguments)
        scope[name](*given, **(constants or {}))
