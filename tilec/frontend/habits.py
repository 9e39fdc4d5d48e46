"""What NumPy, torch and Triton say, and how the same is said here: for messages."""

from __future__ import annotations

from typing import Any

import tilec.language as tl

_MEMBERS = {
    "astype": "x.to(dtype)",
    "type": "x.to(dtype)",
    "view": "x.reshape(shape) or x.bitcast(dtype)",
    "mean": "x.sum() / n",
    "item": "x.reshape(()), for a tile of one element",
    "t": "x.T",
}
"""Members of a tile elsewhere, and what to write."""

_IN_BOUNDS = "accesses outside an array load `padding` and store nothing, so no mask is needed"

_KEYWORDS = {
    "mask": _IN_BOUNDS,
    "boundary_check": _IN_BOUNDS,
    "other": "elements outside the array are `padding`",
    "dim": "dimensions are called `axis`",
    "keepdim": "it is called `keepdims`",
    "num_stages": "it is called `stages`",
}
"""Arguments of functions elsewhere, and what there is instead."""

READ_AN_ARRAY = (
    "help: an array is no pointer and no tile: tl.load(array, offsets, shape) reads a tile of it, "
    "tl.gather(array, indices) reads single elements"
)
"""For an array where a value is wanted."""

NO_LISTS = (
    "help: a list is a tuple in a kernel, which does not change: write it with all its parts, as a "
    "comprehension, or put two together with +"
)
"""For methods of lists."""


def member_help(name: str) -> tuple[str, ...]:
    """A note for an attribute that tiles have elsewhere, else nothing."""
    return (f"help: write {_MEMBERS[name]}",) if name in _MEMBERS else ()


def keyword_help(text: str) -> tuple[str, ...]:
    """A note for an unexpected keyword, from Python's text about it; else nothing."""
    return tuple(f"help: {said}" for word, said in _KEYWORDS.items() if f"'{word}'" in text)


def function_help(function: Any) -> tuple[str, ...]:
    """A note where `tl` has a function of the same name, such as for numpy.exp; else nothing."""
    name = getattr(function, "__name__", "")
    return (f"help: use tl.{name}",) if callable(getattr(tl, name, None)) else ()
