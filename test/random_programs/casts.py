"""Casts between any two element types."""

from __future__ import annotations

from random_programs.writer import EXACT, FLOATS, Tile, Writer, tile_type


def cast(w: Writer, tile: Tile, element: str) -> Tile:
    """Another element type, values kept (clamped where they would not fit)."""
    if tile.element == element:
        return tile
    if element == "i1":
        zero = w.constant(0, tile.shape, tile.element)
        op = "cmpf ogt" if tile.element in FLOATS else "cmpi sgt"
        text = f"arith.{op}, {tile.name}, {zero.name} : {tile.type}"
        return w.add(text, tile.shape, "i1", 1)
    between = _between(tile.element, element)
    if between:
        return cast(w, cast(w, tile, between), element)
    limit = EXACT.get(element) or (1 << (int(element[1:]) - 1)) - 1
    tile = w.clamped(tile, limit)
    name = _cast_name(tile.element, element)
    text = f"arith.{name} {tile.name} : {tile.type} to {tile_type(tile.shape, element)}"
    return w.add(text, tile.shape, element, max(1, tile.bound))


def _between(source: str, result: str) -> str | None:
    """A type to go through where no one cast leads from one to the other."""
    if {source, result} == {"f16", "bf16"}:
        return "f32"
    if "index" in (source, result) and (source in FLOATS or result in FLOATS):
        return "i32"
    return None


def _cast_name(source: str, result: str) -> str:
    if source in FLOATS and result in FLOATS:
        return "extf" if FLOATS.index(source) > FLOATS.index(result) else "truncf"
    if source in FLOATS or result in FLOATS:
        if source == "i1":
            return "uitofp"
        return "sitofp" if result in FLOATS else "fptosi"
    if "index" in (source, result):
        return "index_castui" if source == "i1" else "index_cast"
    if source == "i1":
        return "extui"
    return "extsi" if int(source[1:]) < int(result[1:]) else "trunci"
