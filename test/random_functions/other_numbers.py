"""Tiles of dtypes that are not multiplied, beside those that are: truths, bytes, 16 and 64 bits.

Integers wrap as they do (each sum is cast to its dtype, which NumPy takes as cutting it off), and
those of 64 bits have a high half.
"""

from __future__ import annotations

from random_functions.kernel_writer import Value, Writer
from random_functions.steps import STEPS, clamped, condition

OTHERS = ("i1", "i1", "u8", "u8", "u16", "i16", "i64", "f64")
WRAPPING = ("u8", "u16", "i16")


def carry_others(w: Writer) -> None:
    """In front of the loops: none, one or two tiles or rows of such numbers."""
    for number in range(w.rng.choice((0, 0, 1, 1, 2))):
        dtype = w.rng.choice(OTHERS)
        axes = w.rng.choice(("MN", "MK", "KN", "M", "N", "K"))
        value = Value(f"other{number}", axes, dtype)
        w.line(f"{value.name} = tl.full({w.sizes(axes)}, {zero(dtype)}, tl.{dtype})")
        w.carried.append(value)
        w.scopes[0].append(value)


def zero(dtype: str) -> str:
    """A constant of this dtype."""
    return "False" if dtype == "i1" else "0.0" if dtype.startswith("f") else "0"


def change_other(w: Writer) -> None:
    """A carried one: added to, chosen from, turned over."""
    fitting = [v for v in w.carried if v.dtype in OTHERS]
    if not fitting:
        return
    one = w.rng.choice(fitting)
    if not set(one.axes) <= set(w.reachable()):
        return
    if one.dtype == "i1":
        op = w.rng.choice(("^", "&", "|"))
        w.line(f"{one.name} = {one.name} {op} {truth(w, one.axes)}")
        return
    new = addend(w, one)
    if w.chance(0.3):
        w.line(f"{one.name} = tl.where({truth(w, one.axes)}, {one.name}, {new})")
    elif one.dtype in WRAPPING:
        factor = w.rng.choice((1, 1, 3))
        w.line(f"{one.name} = ({one.name} * {factor} + {new}).to(tl.{one.dtype})")
    else:
        w.line(f"{one.name} = {one.name} + {new} * {factor_of(w, one.dtype)}")


def factor_of(w: Writer, dtype: str) -> str:
    """One for numbers that 32 bits do not hold, where a cast to the sums' dtype may follow."""
    if dtype == "i64":
        return "4294967297"
    return "3.0" if w.wide == "i32" else "1073741825.0"


def addend(w: Writer, one: Value) -> str:
    """What is added: loaded, or a tile in reach, cast, as negative as it may be."""
    tile = w.found(lambda v: v.axes == one.axes)
    if tile is None or w.chance(0.4):
        return w.load(one.axes, one.dtype).name
    whole = f"{clamped(w, tile)}.to(tl.i32)"
    return f"({whole} - 1).to(tl.{one.dtype})" if w.chance(0.5) else f"{whole}.to(tl.{one.dtype})"


def truth(w: Writer, axes: str) -> str:
    """A tile of truths: carried, loaded, compared, or where an axis' elements are even."""
    kind = w.rng.randrange(4)
    old = w.found(lambda v: v.dtype == "i1" and v.axes == axes)
    if kind == 0 and old is not None:
        return old.name if w.chance(0.5) else f"(~{old.name})"
    if kind == 1 and set(axes) <= set(w.reachable()):
        return w.load(axes, "i1").name
    tile = w.found(lambda v: v.axes == axes and v.dtype != "i1")
    if kind == 2 and tile is not None:
        return f"({clamped(w, tile)} {w.rng.choice(('>', '<=', '=='))} 0)"
    even = f"(tl.arange({w.blocks[axes[-1]]}) % 2 == {w.rng.randrange(2)})"
    return f"tl.broadcast_to({even}{'[None, :]' if len(axes) == 2 else ''}, {w.sizes(axes)})"


def mask_operand(w: Writer) -> None:
    """What is multiplied, or 0, as a tile of truths says."""
    loops = [a for a in w.reachable()]
    axes = "".join(w.rng.sample(loops, 2))
    one = w.load(axes, w.dtype)
    none = f"tl.full({w.sizes(axes)}, 0, tl.f32).to(tl.{w.dtype})"
    two = w.load(axes, w.dtype).name if w.chance(0.3) else none
    w.let(f"tl.where({truth(w, axes)}, {one.name}, {two})", axes, w.dtype)


def cast_operand(w: Writer) -> None:
    """A tile of bytes, truths or wide numbers, loaded and narrowed to what is multiplied."""
    axes = "".join(w.rng.sample(w.reachable(), 2))
    one = w.load(axes, w.rng.choice(OTHERS))
    w.narrowed(f"{one.name}.to(tl.{w.wide})", axes)


def ask_all(w: Writer) -> None:
    """Whether all, or any, of a row are true, carried as a number."""
    vector = [v for v in w.carried if len(v.axes) == 1 and v.dtype == w.wide]
    tile = w.found(lambda v: len(v.axes) == 2 and v.axes[0] != v.axes[1])
    if tile is None:
        return
    for v in vector:
        if v.axes in tile.axes:
            axis = 1 - tile.axes.index(v.axes)
            asked = f"tl.{w.rng.choice(('any', 'all'))}({clamped(w, tile)} > 0, axis={axis})"
            w.line(f"{v.name} = {v.name} + {asked}.to(tl.{v.dtype})")
            return


def load_in_branches(w: Writer) -> None:
    """One name, loaded in both branches, from two arrays."""
    if w.guards >= 2:
        return
    axes = "".join(w.rng.sample(w.reachable(), 2))
    name = w.name("b")
    chosen = condition(w)
    w.guards += 1
    for header in (f"if {chosen}:", "else:"):
        with w.block(header):
            w.line(f"{name} = {w.load(axes, w.dtype).name}")
    w.guards -= 1
    w.scopes[-1].append(Value(name, axes, w.dtype))


STEPS.extend(
    [
        (change_other, 5),
        (mask_operand, 2),
        (cast_operand, 2),
        (ask_all, 1),
        (load_in_branches, 1),
    ]
)
