"""Kernels of rows, columns and elements, written at random; the compiler chooses their tiles.

Programs take a row each, some rows, some columns, or tiles of both (`WAYS`), and walk along the
other axis as often as they like, with guards, lists of lengths, numbers from the host, in place.
What they leave follows from the arrays alone, not from the sides of tiles: what lies outside of the
arrays is made 0 before it is summed.
"""

from __future__ import annotations

import random

from random_functions.kernel_writer import Written
from random_functions.row_steps import steps
from random_functions.row_writer import DTYPES, Rows, carry

WIDE = ("f32", "f32", "f32", "i32", "f64", "i64")
WAYS = ("row", "row", "rows", "rows", "columns", "elements", "whole", "whole", "bags")
FAR = ("0", "0", "1", "-3", "4294967296", "-4294967304", "2147483647")
"""Numbers that are added to a place: some lead out of every array, and out of 32 bits."""


def rows(seed: int, dtype: str | None = None) -> Written:
    """The same for the same seed. `dtype`: of most arrays, where another kernel comes before."""
    rng = random.Random(f"rows {seed}")
    w = Rows(rng, dtype or rng.choice(DTYPES), comes_behind=dtype is not None)
    w.begin(rng.choice(WAYS), rng.choice(WIDE))
    for axis in "MK":
        like = w.array(axis, "f32", "extent")
        w.line(f"size_{axis.lower()} = {like.name}.shape[0]")
    own, side = w.own, w.sides[w.own]
    w.line(f"{w.places_of[own]} = tl.program_id(0) * {side}")
    if w.way == "elements":
        w.line("k = tl.program_id(1) * BK")
    w.head = len(w.blocks_of_lines[0])
    for _ in range(0 if w.way == "elements" else rng.randint(1, 3)):
        w.carried.append(carry(w))
        w.how[w.carried[-1].name] = rng.choice(("sum", "sum", "max", "min"))
    if w.way == "bags":
        ends = w.array(own, "i32", "ends")
        w.line(f"begin, end = tl.load({ends.name}, (m - 1,), ()), tl.load({ends.name}, (m,), ())")
        w.end = "end"
    elif rng.random() < 0.2 and w.way in ("row", "rows", "columns"):
        most = w.array("", "int", "number")
        w.end = most.name
    for _ in range(1 if w.way == "elements" else rng.choice((1, 1, 2, 2, 3))):
        _walk(w)
        for value in w.carried:  # now that it is the same whatever the tiles were
            w.let(f"tl.clamp({value.name}, -2, 2)", own, w.wide)
    for value in w.carried:
        out = w.array(own, w.wide, "out")
        out.large = True
        w.line(f"tl.store({out.name}, ({w.places_of[own]},), {value.name})")
    sides = [name for name in ("BM", "BK", "N") if name in (w.sides["M"], w.sides["K"])]
    consts = {name: None if name == "N" else "tl.auto" for name in sides}
    first = f"tl.cdiv(extent{'MK'.index(own)}.shape[0], {side})"
    rule = first if w.way != "elements" else f"({first}, tl.cdiv(extent1.shape[0], BK))"
    programs = "MK" if w.way == "elements" else own
    return Written(w.arrays, w.blocks_of_lines[0], {}, programs, w.dtype, consts, rule)


def _walk(w: Rows) -> None:
    """Along the other axis, if there is one, maybe under a guard."""
    guarded = w.way in ("row", "bags", "whole") and w.sides["M"] == "1" and w.chance(0.2)
    if guarded:
        flags = w.array("M", "i32", "flags")
        with w.block(f"if tl.load({flags.name}, (m,), ()) > 0:"):
            _walk_on(w)
    else:
        _walk_on(w)


def _walk_on(w: Rows) -> None:
    place, side = w.places_of[w.walked], w.sides[w.walked]
    if w.way in ("elements", "whole"):
        if w.way == "whole":
            w.line("k = 0")
        steps(w)
        return
    begin = "begin" if w.way == "bags" else "0"
    if w.chance(0.15):
        w.line(f"{place} = {begin}")
        with w.block(f"while {place} < {w.end}:"):
            steps(w)
            w.line(f"{place} += {side}")
        return
    words = w.rng.choice(("", "", "", "", ", stages=2", ", stages=3"))
    with w.block(f"for {place} in tl.range({begin}, {w.end}, {side}{words}):"):
        steps(w)
