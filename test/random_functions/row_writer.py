"""What kernels of rows are written by: their places, what is carried, and loaded tiles."""

from __future__ import annotations

from random_functions.kernel_writer import Line, Value, Writer

OTHER = {"M": "K", "K": "M"}
DTYPES = ("f16", "bf16", "f32", "f32", "i8", "i32", "i64", "u8", "f64", "i1")
SPREAD = {"M": "[:, None]", "K": "[None, :]"}
"""How a row or a column is spread over a tile."""


class Rows(Writer):
    """A kernel of rows under construction. `way`: what a program takes; `own`: the axis of the
    programs, `walked`: the other; `zero`: names of tiles that are 0 outside of the arrays."""

    def begin(self, way: str, wide: str) -> None:
        """Names and places."""
        self.way, self.wide_dtype, self.zero = way, wide, set[str]()
        self.own = "K" if way == "columns" else "M"
        self.walked = OTHER[self.own]
        self.sides = {"M": "BM", "K": "BK"}
        if way in ("row", "bags"):
            self.sides["M"] = "1"
        if way == "whole":
            self.sides = {"M": self.rng.choice(("1", "1", "4")), "K": "N"}
        self.end = "size_" + self.walked.lower()
        self.places_of = {"M": "m", "K": "k"}
        self.head = 0
        self.stored: list[tuple[str, str]] = []
        self.how: dict[str, str] = {}

    @property
    def wide(self) -> str:
        """What is computed in."""
        return self.wide_dtype

    def shape(self, axes: str) -> str:
        """Of a tile."""
        return "(" + "".join(f"{self.sides[axis]}, " for axis in axes).rstrip() + ")"

    def inside(self, axis: str) -> str:
        """Which elements along an axis are there."""
        end = self.end if axis == self.walked and self.way != "elements" else f"size_{axis.lower()}"
        return f"(({self.places_of[axis]} + tl.arange({self.sides[axis]})) < {end})"

    def made(self, text: str, axes: str, *, zero: bool) -> Value:
        """A tile in the wide dtype, of numbers that stay small."""
        value = self.let(f"tl.clamp({text}, -2, 2)", axes, self.wide)
        self.zero |= {value.name} if zero else set()
        return value

    def tile(self, axes: str = "MK") -> Value:
        """One in reach, or loaded."""
        old = self.found(lambda v: v.axes == axes and v.dtype == self.wide)
        return old if old is not None and self.chance(0.6) else loaded(self, axes)

    def masked(self, tile: Value, axes: str = "") -> str:
        """A tile that is 0 outside of the arrays along axes, along both if none are named."""
        if tile.name in self.zero and not axes:
            return tile.name
        spread = SPREAD if len(tile.axes) == 2 else {"M": "", "K": ""}
        there = " & ".join(self.inside(axis) + spread[axis] for axis in axes or tile.axes)
        return f"tl.where({there}, {tile.name}, 0)"


def carry(w: Rows) -> Value:
    """A number of each of a program's rows or columns, 0 at first."""
    value = Value(w.name("v"), w.own, w.wide, large=True)
    text = f"{value.name} = tl.full(({w.sides[w.own]},), 0, tl.{w.wide})"
    w.blocks_of_lines[0].insert(w.head, Line(text))
    return value


def loaded(w: Rows, axes: str) -> Value:
    """A tile of an array: at its place or beside it, by numbers of rows or of places."""
    dtype = w.dtype if w.chance(0.7) else w.rng.choice(DTYPES)
    to_wide = "" if dtype == w.wide else f".to(tl.{w.wide})"
    flat = w.way == "bags" and "K" in axes  # one row, behind it the next
    k = f"k + tl.arange({w.sides['K']})"
    at = ", ".join(w.places_of[axis] for axis in axes)
    if flat and len(axes) == 2:
        source = w.array("K", dtype)
        text = f"tl.load({source.name}, (k,), {w.shape('K')})[None, :]"
        spread = w.let(f"{text}{to_wide}", axes, w.wide)
        return w.made(w.masked(spread), axes, zero=True)
    way = w.rng.randrange(12)
    if axes == "MK" and w.stored and w.chance(0.2):
        name, dtype = w.rng.choice(w.stored)
        cast = "" if dtype == w.wide else f".to(tl.{w.wide})"
        text = f"tl.load({name}, (m, k), {w.shape(axes)}){cast}"
        return w.made(text, axes, zero=w.end.startswith("size"))
    if len(axes) == 2 and way == 0:
        numbers, source = w.array("M", "i32", "rows"), w.array(axes, dtype)
        row = w.let(f"tl.load({numbers.name}, (m,), {w.shape('M')})", "M", "index")
        text = f"tl.gather({source.name}, ({row.name}[:, None], ({k})[None, :]))"
    elif way == 1 and not flat:
        numbers, source = w.array(axes, "i32", "rows"), w.array(axes[-1], dtype)
        places = w.let(f"tl.load({numbers.name}, ({at},), {w.shape(axes)})", axes, "index")
        text = f"tl.gather({source.name}, ({places.name},))"
    elif way == 2 and not flat:
        far, source = w.array("", "int", "number" if w.chance(0.3) else "far"), w.array(axes, dtype)
        text = f"tl.load({source.name}, ({at} + {far.name},), {w.shape(axes)})"
    elif way == 3 and not flat:
        source, name = w.array(axes, dtype), w.name("w")
        ends = ", ".join(f"size_{axis.lower()} - {w.places_of[axis]}" for axis in axes)
        w.line(f"{name} = tl.window({source.name}, ({at},), ({ends},))")
        text = f"tl.load({name}, ({', '.join('0' for _ in axes)},), {w.shape(axes)})"
    else:
        source = w.array(axes, dtype)
        text = f"tl.load({source.name}, ({at},), {w.shape(axes)})"
    # Elements at other places are there where this one is not.
    return w.made(f"{text}{to_wide}", axes, zero=way > 2 and w.end.startswith("size"))
