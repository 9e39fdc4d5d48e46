"""Loops and branches around random blocks."""

from __future__ import annotations

from collections.abc import Sequence

from random_programs.memory import load
from random_programs.writer import CARRIED, Tile, Writer, tile_type

DEPTH = 2
"""Deepest nesting of loops and branches."""


def condition(w: Writer) -> str:
    """A scalar i1: by the program's place, or by what was computed."""
    tile = w.tile(lambda t: t.element == "i32")
    if tile is not None and w.pick((True, False)):
        name, sizes = tile.name, tile.shape
        while sizes:
            text = (
                f'"tile.reduce"({name}) ({{\n^bb0(%p: i32, %q: i32):\n'
                f"%r = arith.xori %p, %q : i32\ngpu.yield %r : i32\n}}) {{axis = 0 : i32}} : "
                f"({tile_type(sizes, 'i32')}) -> {tile_type(sizes[1:], 'i32')}"
            )
            name, sizes = w.emit(text), sizes[1:]
        scalar = w.emit(f"tensor.extract {name}[] : tensor<i32>")
        return w.emit(f"arith.cmpi sgt, {scalar}, {w.scalar(0, 'i32')} : i32")
    counter = w.pick([i for scope in w.indices for i in scope])
    return w.emit(f"arith.cmpi eq, {counter}, {w.scalar(w.pick((0, 1)))} : index")


def body(w: Writer, tiles: Sequence[Tile], counters: Sequence[str], steps: int) -> list[str]:
    """A nested block: random ops, then one value per tile to yield."""
    w.scopes.append(list(tiles))
    w.indices.append(list(counters))
    for _ in range(steps):
        w.step()
    yielded = []
    for tile in tiles:
        made = (
            w.tile(lambda t, like=tile: (t.shape, t.element) == (like.shape, like.element)) or tile
        )
        yielded.append(w.clamped(made, CARRIED).name)
    w.scopes.pop()
    w.indices.pop()
    return yielded


def carried(w: Writer) -> list[Tile]:
    """What a loop or branch carries."""
    found = []
    for _ in range(w.pick((1, 2))):
        tile = w.tile() or load(w)
        found.append(w.clamped(tile, CARRIED))
    return found


def results(w: Writer, tiles: Sequence[Tile], group: str, start: int = 0) -> None:
    """The tiles an op with regions results in."""
    for number, tile in enumerate(tiles):
        name = f"{group}#{number + start}"
        w.scopes[-1].append(Tile(name, tile.shape, tile.element, max(CARRIED, tile.bound)))


def renamed(w: Writer, tiles: Sequence[Tile]) -> list[Tile]:
    """Block arguments for carried tiles."""
    return [Tile(w.name(), t.shape, t.element, max(CARRIED, t.bound)) for t in tiles]


def loop(w: Writer) -> None:
    """scf.for with carried tiles; no, one or several trips."""
    if len(w.scopes) > DEPTH:
        return
    tiles = carried(w)
    low, trips, step = w.pick((0, 1)), w.pick((2, 1, 0, 3)), w.pick((1, 2, 8))
    bounds = [w.scalar(low), w.scalar(low + trips * step), w.scalar(step)]
    inner, counter, group = renamed(w, tiles), w.name(), w.name()
    pairs = ", ".join(f"{i.name} = {t.name}" for i, t in zip(inner, tiles, strict=True))
    types = ", ".join(t.type for t in tiles)
    w.lines.append(
        f"{group}:{len(tiles)} = scf.for {counter} = {bounds[0]} to {bounds[1]} step {bounds[2]} "
        f"iter_args({pairs}) -> ({types}) {{"
    )
    yielded = body(w, inner, [counter], w.number(1, 3))
    w.lines.append(f"scf.yield {', '.join(yielded)} : {types}\n}}")
    results(w, tiles, group)


def branch(w: Writer) -> None:
    """scf.if that yields tiles."""
    if len(w.scopes) > DEPTH:
        return
    tiles = carried(w)
    chosen, group = condition(w), w.name()
    types = ", ".join(t.type for t in tiles)
    w.lines.append(f"{group}:{len(tiles)} = scf.if {chosen} -> ({types}) {{")
    for separator in ("} else {", "}"):
        yielded = body(w, tiles, [], w.number(0, 2))
        w.lines.append(f"scf.yield {', '.join(yielded)} : {types}\n{separator}")
    results(w, tiles, group)


def repeat(w: Writer) -> None:
    """scf.while with a counter and carried tiles."""
    if len(w.scopes) > DEPTH:
        return
    tiles = carried(w)
    limit, zero = w.scalar(w.pick((2, 0, 1))), w.scalar(0)
    group, before, after = w.name(), renamed(w, tiles), renamed(w, tiles)
    types = ", ".join(["index", *(t.type for t in tiles)])
    counters = w.name(), w.name()
    pairs = [f"{counters[0]} = {zero}"]
    pairs += [f"{i.name} = {t.name}" for i, t in zip(before, tiles, strict=True)]
    w.lines.append(
        f"{group}:{len(tiles) + 1} = scf.while ({', '.join(pairs)}) : ({types}) -> ({types}) {{"
    )
    passed = body(w, before, [counters[0]], w.number(0, 1))
    going = w.emit(f"arith.cmpi slt, {counters[0]}, {limit} : index")
    w.lines.append(
        f"scf.condition({going}) {', '.join([counters[0], *passed])} : {types}\n}} do {{"
    )
    declared = ", ".join([f"{counters[1]}: index", *(f"{t.name}: {t.type}" for t in after)])
    w.lines.append(f"^bb0({declared}):")
    yielded = body(w, after, [counters[1]], w.number(0, 2))
    following = w.emit(f"arith.addi {counters[1]}, {w.scalar(1)} : index")
    w.lines.append(f"scf.yield {', '.join([following, *yielded])} : {types}\n}}")
    results(w, tiles, group, start=1)
