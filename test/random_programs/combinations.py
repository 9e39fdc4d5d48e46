"""Ops that combine elements: reductions, scans, dots."""

from __future__ import annotations

from random_programs.memory import load
from random_programs.writer import EXACT, FLOATS, SMALL, Tile, Writer, integers, tile_type


def combine(w: Writer) -> None:
    """tile.reduce or tile.scan of one value: sum, maximum, minimum or exclusive or."""
    tile = w.tile(lambda t: bool(t.shape)) or load(w, w.shape(2))
    axis = w.number(0, len(tile.shape) - 1)
    size = tile.shape[axis]
    is_float = tile.element in FLOATS
    ops = ["addf", "maximumf", "minimumf"] if is_float else ["addi", "maxsi", "minsi", "xori"]
    if tile.element == "i1":
        ops = ["ori", "andi", "xori"]
    op = w.pick(ops)
    limit = EXACT.get(tile.element, 1 << 62)
    if op in ("addf", "addi"):
        if size * SMALL > limit:
            return
        tile = w.clamped(tile, max(SMALL, limit // size))
        bound = tile.bound * size
    else:
        bound = tile.bound
    region = (
        f"({{\n^bb0(%p: {tile.element}, %q: {tile.element}):\n"
        f"%r = arith.{op} %p, %q : {tile.element}\ngpu.yield %r : {tile.element}\n}})"
    )
    bound = w.settled(bound, tile.element)
    if w.pick((True, False)):
        sizes = tile.shape[:axis] + tile.shape[axis + 1 :]
        text = (
            f'"tile.reduce"({tile.name}) {region} {{axis = {axis} : i32}} : ({tile.type}) -> '
            f"{tile_type(sizes, tile.element)}"
        )
        w.add(text, sizes, tile.element, bound)
        return
    reverse = w.pick(("false", "true"))
    text = (
        f'"tile.scan"({tile.name}) {region} {{axis = {axis} : i32, reverse = {reverse}}} : '
        f"({tile.type}) -> {tile.type}"
    )
    w.add(text, tile.shape, tile.element, bound)


def argmax(w: Writer) -> None:
    """tile.reduce of two values: the largest and its place."""
    tile = w.tile(lambda t: bool(t.shape) and t.element in FLOATS) or load(w, w.shape(2), "f32")
    axis, e = w.number(0, len(tile.shape) - 1), tile.element
    place_type = tile_type(tile.shape, "i32")
    at = w.emit(f'"tile.iota"() {{axis = {axis} : i32}} : () -> {place_type}')
    sizes = tile.shape[:axis] + tile.shape[axis + 1 :]
    group = w.name()
    w.lines.append(
        f"""{group}:2 = "tile.reduce"({tile.name}, {at}) ({{
^bb0(%p: {e}, %i: i32, %q: {e}, %j: i32):
%gt = arith.cmpf ogt, %p, %q : {e}
%eq = arith.cmpf oeq, %p, %q : {e}
%lt = arith.cmpi slt, %i, %j : i32
%tie = arith.andi %eq, %lt : i1
%first = arith.ori %gt, %tie : i1
%v = arith.select %first, %p, %q : {e}
%k = arith.select %first, %i, %j : i32
gpu.yield %v, %k : {e}, i32
}}) {{axis = {axis} : i32}} : ({tile.type}, {place_type}) ->
({tile_type(sizes, e)}, {tile_type(sizes, "i32")})"""
    )
    w.scopes[-1].append(Tile(f"{group}#0", sizes, e, tile.bound))
    w.scopes[-1].append(Tile(f"{group}#1", sizes, "i32", tile.shape[axis]))


def affine_scan(w: Writer) -> None:
    """tile.scan of two values whose order matters: compositions of x -> a x + b."""
    tile = w.tile(lambda t: bool(t.shape) and t.element == "i32") or load(w, w.shape(2), "i32")
    axis = w.number(0, len(tile.shape) - 1)
    shift = load(w, tile.shape, "i32")
    group, reverse = w.name(), w.pick(("false", "true"))
    w.lines.append(
        f"""{group}:2 = "tile.scan"({tile.name}, {shift.name}) ({{
^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
%m = arith.muli %a, %c : i32
%n = arith.muli %b, %c : i32
%o = arith.addi %n, %d : i32
gpu.yield %m, %o : i32, i32
}}) {{axis = {axis} : i32, reverse = {reverse}}} : ({tile.type}, {tile.type}) ->
({tile.type}, {tile.type})"""
    )
    for number in range(2):
        w.scopes[-1].append(Tile(f"{group}#{number}", tile.shape, "i32", 1 << 31))


def dot(w: Writer) -> None:
    """tile.dot in every type the table has, any m, n, k, maybe a batch."""
    kind, acc, precision = w.pick(
        (
            ("f16", "f32", ""),
            ("bf16", "f32", ""),
            ("f16", "f16", ""),
            ("f32", "f32", 'precision = "tf32"'),
            ("f32", "f32", ""),
            ("f64", "f64", ""),
            ("i8", "i32", ""),
        )
    )
    sizes = (16, 8, 32, 1, 5, 17, 24, 40, 64, 33)
    m, n = w.pick(sizes), w.pick(sizes)
    k = w.pick((16, 8, 32, 1, 3, 20, 33, 64))
    batch = w.pick(((), (), (2,)))
    lhs, rhs = matrix(w, (*batch, m, k), kind), matrix(w, (*batch, k, n), kind)
    shape = (*batch, m, n)
    found = w.tile(lambda t: t.shape == shape and t.element == acc)
    total = found or w.constant(0, shape, acc)
    bound = k * lhs.bound * rhs.bound
    limit = EXACT.get(acc, 1 << 40)
    if bound + total.bound > limit:
        total = w.clamped(total, SMALL)
    if bound + total.bound > limit:
        return
    text = (
        f'"tile.dot"({lhs.name}, {rhs.name}, {total.name}) {{options = {{{precision}}}}} : '
        f"({lhs.type}, {rhs.type}, {total.type}) -> {total.type}"
    )
    w.add(text, shape, acc, bound + total.bound)


def matrix(w: Writer, shape: tuple[int, ...], element: str) -> Tile:
    """An operand of a dot: in reach or loaded, maybe transposed."""
    found = w.tile(lambda t: t.shape == shape and t.element == element)
    if found is not None:
        return w.clamped(found, SMALL)
    if w.pick((True, False)):
        return load(w, shape, element)
    loaded = load(w, (*shape[:-2], shape[-1], shape[-2]), element)
    rank = len(shape)
    permutation = [*range(rank - 2), rank - 1, rank - 2]
    text = (
        f'"tile.transpose"({loaded.name}) {{permutation = {integers(permutation)}}} : '
        f"({loaded.type}) -> {tile_type(shape, element)}"
    )
    return w.add(text, shape, element, loaded.bound)
