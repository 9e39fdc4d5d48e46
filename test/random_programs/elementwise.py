"""Elementwise ops: arithmetic, comparisons, choices, casts."""

from __future__ import annotations

from random_programs.casts import cast
from random_programs.memory import load
from random_programs.shapes import broadcast_to
from random_programs.writer import EXACT, FLOATS, MEMORY, SMALL, Tile, Writer, tile_type


def partner(w: Writer, tile: Tile) -> Tile:
    """Another operand of the same type: in reach, loaded, or made."""
    found = w.tile(lambda t: t.shape == tile.shape and t.element == tile.element)
    kind = w.pick(("reach", "constant", "splat", "load", "broadcast"))
    if kind == "reach" and found is not None:
        return found
    if kind == "load" and tile.element in MEMORY:
        return load(w, tile.shape, tile.element)
    if kind == "broadcast" and tile.element in MEMORY and tile.shape:
        kept = w.subset(len(tile.shape))
        row = load(w, [tile.shape[d] for d in kept], tile.element)
        return broadcast_to(w, row, kept, tile.shape)
    value = w.pick((1, 2, -3, 0)) if tile.element != "i1" else 1
    if kind == "splat":
        scalar = w.scalar(value, tile.element)
        return w.add(f"tensor.splat {scalar} : {tile.type}", tile.shape, tile.element, abs(value))
    return w.constant(value, tile.shape, tile.element)


def binary(w: Writer) -> None:
    """An elementwise op of two operands."""
    tile = w.tile() or load(w)
    if tile.element == "i1":
        op = w.pick(("andi", "ori", "xori"))
        other = partner(w, tile)
        w.add(f"arith.{op} {tile.name}, {other.name} : {tile.type}", tile.shape, "i1", 1)
        return
    is_float = tile.element in FLOATS
    op = w.pick(
        ("add", "mul", "sub", "maximum" if is_float else "maxs", "minimum" if is_float else "mins")
    )
    other = partner(w, tile)
    limit = EXACT.get(tile.element, 1 << 62)
    grown = {"mul": lambda a, b: a * b, "add": lambda a, b: a + b, "sub": lambda a, b: a + b}
    bound = grown.get(op, max)(tile.bound, other.bound)
    if bound > limit:
        tile, other = w.clamped(tile, SMALL), w.clamped(other, SMALL)
        bound = grown.get(op, max)(tile.bound, other.bound)
    name = f"{op}{'f' if is_float else 'i'}"
    w.add(
        f"arith.{name} {tile.name}, {other.name} : {tile.type}",
        tile.shape,
        tile.element,
        w.settled(bound, tile.element),
    )


def compare_and_select(w: Writer) -> None:
    """A comparison, and a choice by it."""
    tile = w.tile(lambda t: t.element != "i1") or load(w, element="f32")
    other = partner(w, tile)
    op = w.pick(("olt", "oeq", "oge")) if tile.element in FLOATS else w.pick(("slt", "eq", "sge"))
    kind = "cmpf" if tile.element in FLOATS else "cmpi"
    flag = w.add(f"arith.{kind} {op}, {tile.name}, {other.name} : {tile.type}", tile.shape, "i1", 1)
    chosen = w.tile(lambda t: t.shape == tile.shape) or tile
    against = partner(w, chosen)
    w.add(
        f"arith.select {flag.name}, {chosen.name}, {against.name} : {flag.type}, {chosen.type}",
        chosen.shape,
        chosen.element,
        max(chosen.bound, against.bound),
    )


def convert(w: Writer) -> None:
    """A cast."""
    tile = w.tile() or load(w)
    cast(w, tile, w.pick([e for e in (*MEMORY, "index") if e != tile.element]))


def iota(w: Writer) -> None:
    """tile.iota."""
    shape = w.shape(w.pick((1, 2, 3)))
    element = w.pick(("i32", "index", "i64", "i16"))
    axis = w.number(0, len(shape) - 1)
    text = f'"tile.iota"() {{axis = {axis} : i32}} : () -> {tile_type(shape, element)}'
    w.add(text, shape, element, shape[axis])
