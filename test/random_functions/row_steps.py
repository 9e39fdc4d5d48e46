"""What a kernel of rows does with its tiles: a function a kind of step."""

from __future__ import annotations

from collections.abc import Callable

from random_functions.row_writer import DTYPES, Rows, carry

GROUPS = (2, 4, 8)


def combine(w: Rows) -> None:
    """Arithmetic of a tile with another, or with a row or column of numbers."""
    one = w.tile()
    kind = w.rng.randrange(4)
    if kind < 2:
        axis = w.rng.choice("MK")
        vector = w.tile(axis)
        spread = f"tl.clamp({vector.name}, -2, 2){'[:, None]' if axis == 'M' else '[None, :]'}"
        op = w.rng.choice("+-*")
        w.made(f"{one.name} {op} {spread}", "MK", zero=op == "*" and one.name in w.zero)
        return
    two = w.tile()
    zero = {one.name, two.name} <= w.zero
    if kind == 2:
        op = w.rng.choice("+-*")
        w.made(f"{one.name} {op} {two.name}", "MK", zero=zero or (op == "*" and one.name in w.zero))
    else:
        compared = f"{one.name} {w.rng.choice(('>', '<=', '=='))} {w.rng.choice((two.name, '0'))}"
        w.made(f"tl.where({compared}, {one.name}, {two.name})", "MK", zero=zero)


def divide(w: Rows) -> None:
    """Whole quotients and remainders."""
    one = w.tile()
    whole = one.name if w.wide.startswith("i") else f"{one.name}.to(tl.i32)"
    back = "" if w.wide.startswith("i") else f".to(tl.{w.wide})"
    op, by = w.rng.choice(("//", "%")), w.rng.choice((2, 3, 7))
    w.made(f"({whole} * 5 {op} {by}){back}", "MK", zero=one.name in w.zero)


def add_up(w: Rows) -> None:
    """A sum, the greatest or the smallest along the walk, carried."""
    if not w.carried:
        return
    value, tile = w.rng.choice(w.carried), w.tile()
    whole, axis, how = w.masked(tile), "MK".index(w.walked), w.how[value.name]
    if how == "sum":
        w.line(f"{value.name} = {value.name} + tl.sum({whole}, axis={axis})")
    else:  # alone: in other tiles a sum would lie elsewhere between
        w.line(f"{value.name} = tl.{how}imum({value.name}, tl.{how}({whole}, axis={axis}))")


def ask(w: Rows) -> None:
    """Whether any, carried as a number."""
    greatest = [value for value in w.carried if w.how[value.name] == "max"]
    if not greatest:
        return
    value, tile = w.rng.choice(greatest), w.tile()
    asked = f"tl.any({w.masked(tile)} > 0, axis={'MK'.index(w.walked)})"
    w.line(f"{value.name} = tl.maximum({value.name}, {asked}.to(tl.{w.wide}))")


def run_on(w: Rows) -> None:
    """Running sums, which go on from the last tile's."""
    if w.way == "elements":
        return
    value, tile = carry(w), w.tile()
    whole, axis = w.let(w.masked(tile), "MK", w.wide), "MK".index(w.walked)
    before = f"{value.name}{('[None, :]', '[:, None]')[axis]}"
    running = w.let(f"tl.cumsum({whole.name}, axis={axis}) + {before}", "MK", w.wide, large=True)
    w.line(f"{value.name} = {value.name} + tl.sum({whole.name}, axis={axis})")
    w.made(running.name, "MK", zero=False)
    w.zero.add(whole.name)


def group(w: Rows) -> None:
    """The greatest of each few neighbours, taken from them, and stored beside."""
    if w.sides["K"] == "1" or w.way == "bags":
        return
    tile, size = w.tile(), w.rng.choice(GROUPS)
    rows, columns = w.sides["M"], w.sides["K"]
    shape = f"({rows}, {columns} // {size}, {size})"
    parts = w.name("g")
    w.line(f"{parts} = tl.reshape({w.masked(tile)}, {shape})")
    w.line(f"{parts}m = tl.max({parts}, axis=2)")
    text = f"tl.reshape({parts} - {parts}m[:, :, None], ({rows}, {columns}))"
    w.made(text, "MK", zero=False)


def write(w: Rows) -> None:
    """A tile into an array of its own."""
    tile, axes = w.tile(), "MK"
    if w.way == "bags":
        return
    narrow = w.dtype if w.chance(0.7) else w.rng.choice(DTYPES)
    if narrow == "u8":
        narrow = "i8"
    out = w.array(axes, narrow, "out")
    value = f"tl.clamp({tile.name}, -2, 2)"
    if narrow == "i1":
        value = f"({tile.name} > 0)"
    elif narrow != w.wide:
        value += f".to(tl.{narrow})"
    name = out.name
    if not w.end.startswith("size"):  # what lies beyond the end stays
        sizes = f"{w.end}, size_k" if w.walked == "M" else f"size_m, {w.end}"
        name = w.name("t")
        w.line(f"{name} = tl.window({out.name}, (0, 0), ({sizes}))")
    if w.end.startswith("size") and w.chance(0.15):
        row = f"(size_m - 1 - (m + tl.arange({w.sides['M']})))[:, None]"
        column = f"(k + tl.arange({w.sides['K']}))[None, :]"
        w.line(f"tl.scatter({out.name}, ({row}, {column}), {value})")
    else:
        w.line(f"tl.store({name}, (m, k), {value})")
        w.stored.append((out.name, narrow))


def change(w: Rows) -> None:
    """An array in place."""
    if w.way == "bags" or not w.end.startswith("size"):
        return
    array = w.array("MK", w.wide, "out")
    old = w.let(f"tl.load({array.name}, (m, k), {w.shape('MK')})", "MK", w.wide)
    w.line(f"tl.store({array.name}, (m, k), tl.clamp({old.name} + {w.tile().name}, -2, 2))")


def keep(w: Rows) -> None:
    """An array in place, several times over: each time reads what the last one has stored."""
    if w.way == "bags" or not w.end.startswith("size"):
        return
    array, tile, turn = w.array("MK", w.wide, "out"), w.tile(), w.name("i")
    with w.block(f"for {turn} in tl.range({w.rng.choice(('2', '5', f'size_{w.own.lower()}'))}):"):
        old = w.let(f"tl.load({array.name}, (m, k), {w.shape('MK')})", "MK", w.wide)
        w.line(f"tl.store({array.name}, (m, k), tl.clamp({tile.name} - {old.name}, -2, 2))")


def add_atomically(w: Rows) -> None:
    """Sums of columns, or counts of numbers, of all programs."""
    tile = w.tile()
    if w.wide == "i64" or (w.way == "bags" and w.chance(0.7)):
        return
    out = w.array("K", w.wide, "out")
    out.large = True
    if w.chance(0.5):
        total = f"tl.sum({w.masked(tile, 'M' if w.way == 'bags' else 'MK')}, axis=0)"
        if w.way == "bags":
            total = f"tl.where({w.inside('K')}, {total}, 0)"
        w.line(f"tl.atomic_add({out.name}, (k + tl.arange({w.sides['K']}),), {total})")
        return
    places = f"tl.clamp({tile.name}, -2, 2).to(tl.i32) + 2"
    w.line(f"tl.atomic_add({out.name}, ({places},), {w.masked(tile, 'MK')})")


def of_whole_rows(w: Rows) -> None:
    """What asks for all of a row at once: its order, places, scans from its end, its halves."""
    if w.way != "whole":
        return
    tile, (rows, columns) = w.tile(), (w.sides["M"], w.sides["K"])
    kind = w.rng.randrange(6)
    if kind == 0:
        w.made(f"tl.sort({tile.name})", "MK", zero=False)
    elif kind == 1:
        value, which = w.rng.choice(w.carried), w.rng.choice(("argmax", "argmin"))
        w.line(f"{value.name} = {value.name} + tl.{which}({tile.name}, axis=1).to(tl.{w.wide})")
    elif kind == 2:
        how = f"1, lambda x, y: tl.maximum(x, y), reverse={w.chance(0.5)}"
        w.made(f"tl.associative_scan({tile.name}, {how})", "MK", zero=False)
    elif kind == 3:
        halves = w.name("h")
        w.line(f"{halves} = tl.split({tile.name}, 2, axis=1)")
        w.made(f"tl.cat(({halves}[1], {halves}[0]), axis=1)", "MK", zero=False)
    elif kind == 4:
        pairs = f"tl.permute(tl.reshape({tile.name}, ({rows}, {columns} // 2, 2)), (0, 2, 1))"
        w.made(f"tl.reshape({pairs}, ({rows}, {columns}))", "MK", zero=False)
    else:
        value, signs = w.rng.choice(w.carried), f"tl.where({tile.name} > 1, {tile.name} - 3, 1)"
        w.line(f"{value.name} = {value.name} + tl.prod({signs}, axis=1)")


STEPS: list[tuple[Callable[[Rows], None], int]] = [
    (combine, 6),
    (add_up, 6),
    (write, 4),
    (divide, 1),
    (ask, 1),
    (run_on, 2),
    (group, 1),
    (change, 1),
    (keep, 1),
    (add_atomically, 2),
    (of_whole_rows, 3),
]
"""How often each is drawn."""


def steps(w: Rows) -> None:
    kinds, weights = zip(*STEPS, strict=True)
    for _ in range(w.rng.randint(2, 6)):
        w.rng.choices(kinds, weights)[0](w)
