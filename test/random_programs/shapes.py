"""Ops that move or rename elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from random_programs.casts import cast
from random_programs.memory import load
from random_programs.writer import MEMORY, SIZES, Tile, Writer, integers, tile_type


def broadcast_to(w: Writer, tile: Tile, dims: Sequence[int], shape: Sequence[int]) -> Tile:
    text = (
        f'"tile.broadcast"({tile.name}) {{dims = {integers(dims)}}} : ({tile.type}) -> '
        f"{tile_type(shape, tile.element)}"
    )
    return w.add(text, shape, tile.element, tile.bound)


def broadcast(w: Writer) -> None:
    """tile.broadcast: new dimensions, stretched ones, any order."""
    tile = w.tile(lambda t: len(t.shape) < 4) or load(w, w.shape(1))
    rank = w.number(len(tile.shape), min(4, len(tile.shape) + 2))
    dims = w.permutation(rank)[: len(tile.shape)]
    room = max(1, w.most // prod(tile.shape))
    sizes = []
    for d in range(rank):
        own = tile.shape[dims.index(d)] if d in dims else 1
        if own == 1:
            own = w.pick([s for s in SIZES if s <= room])
            room //= own
        sizes.append(own)
    broadcast_to(w, tile, dims, sizes)


def reshape(w: Writer) -> None:
    """tile.reshape to another factorisation."""
    tile = w.tile() or load(w)
    rest, sizes = prod(tile.shape), []
    for _ in range(w.number(0, 3)):
        divisors = [d for d in range(1, rest + 1) if rest % d == 0]
        sizes.append(w.pick(divisors))
        rest //= sizes[-1]
    if rest > 1 or (not sizes and tile.shape):
        sizes.append(rest)
    text = f'"tile.reshape"({tile.name}) : ({tile.type}) -> {tile_type(sizes, tile.element)}'
    w.add(text, sizes, tile.element, tile.bound)


def transpose(w: Writer) -> None:
    """tile.transpose."""
    tile = w.tile(lambda t: len(t.shape) > 1) or load(w, w.shape(2))
    permutation = w.permutation(len(tile.shape))
    sizes = [tile.shape[p] for p in permutation]
    text = (
        f'"tile.transpose"({tile.name}) {{permutation = {integers(permutation)}}} : '
        f"({tile.type}) -> {tile_type(sizes, tile.element)}"
    )
    w.add(text, sizes, tile.element, tile.bound)


def join(w: Writer) -> None:
    """tile.join with another tile, of another size along the axis."""
    tile = w.tile(lambda t: t.shape and t.element in MEMORY) or load(w, w.shape(2))
    axis = w.number(0, len(tile.shape) - 1)
    sizes = list(tile.shape)
    sizes[axis] = w.pick((sizes[axis], 1, 3))
    found = w.tile(lambda t: t.shape == tuple(sizes) and t.element == tile.element)
    other = found or load(w, sizes, tile.element)
    parts = [tile, other] if w.pick((True, False)) else [other, tile]
    sizes[axis] = tile.shape[axis] + other.shape[axis]
    if prod(sizes) > 2 * w.most:
        return
    text = (
        f'"tile.join"({parts[0].name}, {parts[1].name}) {{axis = {axis} : i32}} : '
        f"({parts[0].type}, {parts[1].type}) -> {tile_type(sizes, tile.element)}"
    )
    w.add(text, sizes, tile.element, max(tile.bound, other.bound))


def split(w: Writer) -> None:
    """tile.split into equal parts."""
    tile = w.tile(lambda t: any(s > 1 for s in t.shape)) or load(w, (6, 16))
    axis = w.pick([d for d, s in enumerate(tile.shape) if s > 1])
    count = w.pick(
        [c for c in (2, 3, 4, tile.shape[axis]) if tile.shape[axis] % c == 0 and c < 8] or [1]
    )
    sizes = list(tile.shape)
    sizes[axis] //= count
    group, part = w.name(), tile_type(sizes, tile.element)
    w.lines.append(
        f'{group}:{count} = "tile.split"({tile.name}) {{axis = {axis} : i32}} : ({tile.type}) -> '
        f"({', '.join([part] * count)})"
    )
    for number in range(count):
        w.scopes[-1].append(Tile(f"{group}#{number}", tuple(sizes), tile.element, tile.bound))


def take(w: Writer) -> None:
    """tile.take with indices inside the tile."""
    tile = w.tile(lambda t: bool(t.shape)) or load(w, w.shape(2))
    axis = w.number(0, len(tile.shape) - 1)
    sizes = list(tile.shape)
    sizes[axis] = w.pick((sizes[axis], 5, 16))
    if prod(sizes) > w.most:
        return
    indices = cast(w, load(w, sizes, w.pick(("i32", "i64", "i16"))), "i32")
    kind = tile_type(sizes, "i32")
    high = w.constant(tile.shape[axis] - 1, sizes, "i32")
    zero = w.constant(0, sizes, "i32")
    low = w.emit(f"arith.maxsi {indices.name}, {zero.name} : {kind}")
    inside = w.emit(f"arith.minsi {low}, {high.name} : {kind}")
    text = (
        f'"tile.take"({tile.name}, {inside}) {{axis = {axis} : i32}} : ({tile.type}, {kind}) -> '
        f"{tile_type(sizes, tile.element)}"
    )
    w.add(text, sizes, tile.element, tile.bound)
