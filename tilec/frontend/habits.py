"""What NumPy, torch and Triton say, and how the same is said here: for messages."""

from __future__ import annotations

from typing import Any

import tilec.language as tl
from tilec.language.elsewhere import instead_of
from tilec.messages.names import did_you_mean
from tilec.terms.dtypes import DType

_MEMBERS = {
    "astype": "x.to(dtype)",
    "type": "x.to(dtype)",
    "view": "x.reshape(shape) or x.bitcast(dtype)",
    "mean": "x.sum() / n",
    "item": "x.reshape(()), for a tile of one element",
    "t": "x.T",
    "at": "tl.where(tl.arange(n) == i, value, x)",
    **dict.fromkeys(
        ("detach", "cpu", "cuda", "numpy", "clone", "contiguous"),
        "the tile itself: it has no device, no layout in memory and no gradient",
    ),
    **dict.fromkeys(("add_", "mul_", "fill_", "zero_"), "x = ...: a tile does not change"),
}
"""Members of a tile elsewhere, and what to write."""

_ARRAY_MEMBERS = {
    **dict.fromkeys(("T", "t", "mT"), "a tile of it is turned: tl.load(array, offsets, shape).T"),
    **dict.fromkeys(
        ("size", "numel", "nbytes", "itemsize"), "array.shape has the size of each axis"
    ),
    **dict.fromkeys(
        ("stride", "strides", "data_ptr", "data", "is_contiguous", "contiguous"),
        "offsets count elements along each axis, whatever the strides are",
    ),
    **dict.fromkeys(
        ("device", "cuda", "cpu", "to", "astype", "float", "half"),
        "a tile of it is converted: tl.load(array, offsets, shape).to(dtype)",
    ),
}
"""Members of an array elsewhere, and how it is here."""

_IN_BOUNDS = "accesses outside an array load `padding` and store nothing, so no mask is needed"

_MISSING = {
    "shape": "its elements are of one rectangle; tl.gather(array, indices) reads those at any tile "
    "of indices",
    "tile": "the order is array, offsets, tile",
}
"""Arguments of functions that have no such argument elsewhere."""

_KEYWORDS = {
    "mask": _IN_BOUNDS,
    "boundary_check": _IN_BOUNDS,
    "other": "elements outside the array are `padding`",
    "dim": "dimensions are called `axis`",
    "keepdim": "it is called `keepdims`",
    "keep_dims": "it is called `keepdims`",
    "num_stages": "it is called `stages`",
    "allow_tf32": "precision='tf32' puts f32 on tensor cores, which nothing does by itself",
    "input_precision": "it is called `precision`",
    "out_dtype": "it is called `dtype`",
    "eviction_policy": "it is called `cache`",
    "cache_modifier": "it is called `cache`",
    "sem": "it is called `order`",
}
"""Arguments of functions elsewhere, and what there is instead."""

READ_AN_ARRAY = (
    "help: an array is no pointer and no tile: tl.load(array, offsets, shape) reads a tile of it, "
    "tl.gather(array, indices) reads single elements"
)
"""For an array where a value is wanted."""


def number_help(name: str) -> str:
    """Says how to pass or read a number where an array of no dimensions stands in its place."""
    return (
        f"help: annotate the parameter to pass it as a number ({name}: float), or read it: "
        f"tl.load({name}, (), ())"
    )


NO_LISTS = (
    "help: a list is a tuple in a kernel, which does not change: write it with all its parts, as a "
    "comprehension, or put two together with +"
)
"""For methods of lists."""


AT_A_TIME = (
    "help: a list of any length is known when the kernel runs: xs[i] is one of its arrays, as in "
    "for i in tl.range(len(xs)): ..."
)
"""For what tuples can do and lists of arrays cannot."""

WHOLE = "help: `/` gives a float; `//` divides whole numbers, .to(tl.i32) rounds toward zero"
"""For a float where a whole number is wanted."""

LEFT_OUT = "help: what a call leaves out is None: ask before using it, if x is not None: ..."
"""For None where a value is wanted."""

MISSING_AXIS = (
    "help: shapes meet at their last axes: a reduction keeps its axis with keepdims=True, and "
    "x[:, None] adds one"
)
"""For tiles whose shapes would fit if their first axes met, as a tile and its rows' sums."""

PERMUTE = "help: tl.permute(x, axes) takes all axes in their new order"
"""For axes given to tl.transpose, which swaps two."""

FULL = "help: the order is shape, value, dtype"
"""For a value in front of a shape."""

UNROLL = "help: the variable of a loop over tl.static_range(n), which is unrolled, is a constant"
"""For a run-time index into a tuple."""

LISTS = (
    "help: of a list of arrays declared as xs: tl.arrays the kernel chooses one when it runs, xs[i]"
)
"""For the same, where it is a list of arrays."""

TILES_TOGETHER = "help: `&` and `|` combine the elements of tiles, as in (a > 0) & (b > 0)"
"""For `and` and `or` of tiles."""

TILES_NEGATED = "help: `~` negates each element of a tile of i1"
"""For `not` of a tile."""


def module_help(module: Any, name: str) -> tuple[str, ...]:
    """A note for a name that a module lacks."""
    instead = instead_of(name) if module is tl else None
    return did_you_mean(name, dir(module)) if instead is None else (f"help: write {instead}",)


def dtype_help(value: Any) -> tuple[str, ...]:
    """A note where something is a dtype elsewhere, or the name of one; else nothing."""
    text = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    name = text.rpartition(".")[2]
    instead = instead_of(name) or f"tl.{name}"
    known = isinstance(getattr(tl, instead.removeprefix("tl."), None), DType)
    return (f"help: write {instead}",) if known else ()


def member_help(name: str) -> tuple[str, ...]:
    """A note for an attribute that tiles have elsewhere, else nothing."""
    instead = _MEMBERS.get(name) or instead_of(name)
    if instead is None and callable(getattr(tl, name, None)) and name in tl.__all__:
        instead = f"tl.{name}(x)"
    elif isinstance(getattr(tl, (instead or "").removeprefix("tl."), None), DType):
        instead = f"x.to({instead})"
    return () if instead is None else (f"help: write {instead}",)


def array_member_help(name: str) -> tuple[str, ...]:
    """A note for an attribute that arrays have elsewhere, else nothing."""
    said = _ARRAY_MEMBERS.get(name)
    return () if said is None else (f"help: {said}",)


def keyword_help(text: str) -> tuple[str, ...]:
    """A note for an unexpected or a missing argument, from Python's text about it; else nothing."""
    if "missing" in text:
        return tuple(f"help: {said}" for word, said in _MISSING.items() if f"'{word}'" in text)
    return tuple(f"help: {said}" for word, said in _KEYWORDS.items() if f"'{word}'" in text)


def function_help(function: Any) -> tuple[str, ...]:
    """Notes that name what `tl` has instead of another library's function: one of the same name, as
    for numpy.exp, or another way. None where it has neither."""
    name = getattr(function, "__name__", "")
    if name in dir(tl) and callable(getattr(tl, name)):
        return (f"help: use tl.{name}",)
    instead = instead_of(name)
    return () if instead is None else (f"help: write {instead}",)
