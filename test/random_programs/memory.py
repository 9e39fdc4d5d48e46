"""Arrays, and what reads and writes them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from tile_arithmetic import DTYPES
from tile_programs import blank, place

from random_programs.casts import cast
from random_programs.writer import FLOATS, MEMORY, SMALL, Tile, Writer, integers, tile_type


def array(w: Writer, values: np.ndarray, element: str, *, output: bool = False) -> tuple[str, str]:
    """A new kernel argument; its name and type."""
    rank = values.ndim
    order = w.permutation(rank) if w.pick((False, True)) else range(rank)
    where = {"order": list(order), "pitch": w.pick((0, 8, 3)), "lead": w.pick((0, 16, 1))}
    placed = blank(values.shape, element, **where) if output else place(values, **where)
    strides = [s // placed.itemsize for s in placed.strides]
    kind = w.pick(("contiguous", "dynamic", "static"))
    sizes = [str(s) if kind == "static" else "?" for s in values.shape]
    fastest = list(order)[-1] if rank else -1
    known = [kind == "static" or (kind == "contiguous" and d == fastest) for d in range(rank)]
    steps = [str(s) if k else "?" for s, k in zip(strides, known, strict=True)]
    name = f"%a{len(w.arguments)}"
    type_ = f"memref<{''.join(s + 'x' for s in sizes)}{element}, strided<[{', '.join(steps)}]>>"
    w.arguments.append(placed)
    w.parameters.append(f"{name}: {type_}")
    return name, type_


def values(w: Writer, shape: Sequence[int], element: str) -> np.ndarray:
    """Small integers of any element type."""
    low, high = (0, 2) if element == "i1" else (-SMALL, SMALL + 1)
    return w.rng.integers(low, high, shape).astype(DTYPES[element])


def offset(w: Writer, size: int) -> str:
    """An element offset: zero, a constant that may lie outside, or a loop's counter."""
    kind = w.pick(("zero", "constant", "counter", "outside"))
    if kind == "counter":
        counter = w.pick([i for scope in w.indices for i in scope])
        step = w.scalar(w.pick((size, 8, 3, 1)))
        return w.emit(f"arith.muli {counter}, {step} : index")
    values = {"zero": (0, 0), "constant": (0, size), "outside": (-size - 2, size + 2)}
    return w.scalar(w.number(*values[kind]))


def load(w: Writer, shape: Sequence[int] | None = None, element: str | None = None) -> Tile:
    """tile.load of a new array, somewhere around it."""
    shape = w.shape() if shape is None else tuple(shape)
    element = w.pick(MEMORY) if element is None else element
    rank = len(shape) + w.pick((0, 0, 1))
    dims = w.permutation(rank)[: len(shape)]
    if w.pick((True, False)):
        dims = sorted(dims)
    sizes = [w.number(1, 4)] * rank
    for d, axis in enumerate(dims):
        sizes[axis] = max(1, shape[d] + w.pick((0, 8, -1, 3, -5, 1)))
    name, type_ = array(w, values(w, sizes, element), element)
    offsets = [offset(w, size) for size in sizes]
    padding = w.pick((0, 1, -2)) if element != "i1" else w.pick((0, 1))
    text = f"{float(padding)}" if element in FLOATS else str(padding)
    text = ("true" if padding else "false") if element == "i1" else f"{text} : {element}"
    return w.add(
        f'"tile.load"({", ".join([name, *offsets])}) {{dims = {integers(dims)}, '
        f"padding = {text}, options = {{}}}} : ({', '.join([type_, *['index'] * rank])}) -> "
        f"{tile_type(shape, element)}",
        shape,
        element,
        SMALL,
    )


def store(w: Writer, tile: Tile) -> None:
    """tile.store into a new array, each program in its own part."""
    if tile.element == "index":
        tile = cast(w, tile, "i64")
    rank = len(tile.shape)
    dims = w.permutation(rank) if w.pick((False, True)) else list(range(rank))
    sizes = [0] * rank
    for d, axis in enumerate(dims):
        sizes[axis] = max(1, tile.shape[d] + w.pick((0, 3, -1, 8)))
    sizes += list(w.grid)
    target = np.zeros(sizes, DTYPES[tile.element])
    name, type_ = array(w, target, tile.element, output=True)
    offsets = [w.scalar(w.pick((0, 0, 8, -1, 2))) for _ in dims]
    offsets += ["%pid", "%row"]
    w.lines.append(
        f'"tile.store"({", ".join([tile.name, name, *offsets])}) {{dims = {integers(dims)}, '
        f"options = {{}}}} : ({', '.join([tile.type, type_, *['index'] * len(sizes)])}) -> ()"
    )


def gather(w: Writer) -> None:
    """tile.gather with indices that may lie outside."""
    shape = w.shape(w.pick((1, 2)))
    element = w.pick(MEMORY)
    rank = w.pick((1, 2))
    sizes = [w.pick((2, 3, 7)) for _ in range(rank)]
    name, type_ = array(w, values(w, sizes, element), element)
    kind = w.pick(("i32", "i64", "i8"))
    indices = [load(w, shape, kind) for _ in range(rank)]
    mask = cast(w, load(w, shape, "i16"), "i1")
    other = w.tile(lambda t: t.shape == shape and t.element == element)
    other = other or w.constant(1, shape, element)
    types = [type_, mask.type, other.type, *[i.type for i in indices]]
    text = (
        f'"tile.gather"({", ".join([name, mask.name, other.name, *[i.name for i in indices]])}) '
        f"{{options = {{}}}} : ({', '.join(types)}) -> {other.type}"
    )
    w.add(text, shape, element, max(SMALL, other.bound))


def scatter(w: Writer) -> None:
    """tile.scatter to places of their own, some of them outside."""
    if len(w.scopes) > 1:
        return  # programs of a loop would write the same places
    tile = w.tile(lambda t: t.element in MEMORY) or load(w)
    total = prod(tile.shape)
    name, type_ = array(
        w, np.zeros((max(1, total - 2), *w.grid), DTYPES[tile.element]), tile.element, output=True
    )
    kind = tile_type(tile.shape, "i32")
    at = w.constant(w.pick((0, 1, -2)), tile.shape, "i32").name
    for d in range(len(tile.shape)):
        along = w.emit(f'"tile.iota"() {{axis = {d} : i32}} : () -> {kind}')
        step = w.constant(prod(tile.shape[d + 1 :]), tile.shape, "i32")
        term = w.emit(f"arith.muli {along}, {step.name} : {kind}")
        at = w.emit(f"arith.addi {at}, {term} : {kind}")
    places = [at]
    for counter in ("%pid", "%row"):
        narrow = w.emit(f"arith.index_cast {counter} : index to i32")
        places.append(w.emit(f"tensor.splat {narrow} : {kind}"))
    mask = cast(w, load(w, tile.shape, "i8"), "i1")
    types = [tile.type, type_, mask.type, kind, kind, kind]
    w.lines.append(
        f'"tile.scatter"({", ".join([tile.name, name, mask.name, *places])}) {{options = {{}}}} : '
        f"({', '.join(types)}) -> ()"
    )
