"""Products written at random whose tiles, parts and clusters the compiler chooses.

c = a b in tiles of `tl.auto` sides, whatever people put around: operands that lie transposed, come
by numbers of rows, through windows, from other dtypes, scaled or masked by rows and columns; two
products of one operand, sums beside them; behind the loop scales, residuals, gates, what is stored
transposed or added to columns. What is left follows from the arrays alone, as of `rows.py`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from random_functions.kernel_writer import FLOATS_OF_8_BITS, Value, Writer, Written
from random_functions.row_writer import SPREAD

OPERANDS = ("f16", "f16", "bf16", "bf16", "f32", "i8", "f8e4m3", "f64")
OTHERS = ("f16", "bf16", "f32", "i8", "u8", "i1")
SIDES = {"M": "BM", "N": "BN", "K": "BK"}
PLACES = {"M": "m", "N": "n", "K": "k"}


def products(seed: int, dtype: str | None = None) -> Written:
    """The same for the same seed. `dtype`: of the operands, where another kernel comes before."""
    rng = random.Random(f"products {seed}")
    usable = dtype if dtype in OPERANDS else None
    w = Writer(rng, usable or rng.choice(OPERANDS), comes_behind=dtype is not None)
    for axis in "MNK":
        w.line(f"size_{axis.lower()} = {w.array(axis, 'f32', 'extent').name}.shape[0]")
    w.line("m, n = tl.program_id(0) * BM, tl.program_id(1) * BN")
    sums = [
        Value(f"acc{number}", "MN", w.wide, large=True) for number in range(rng.choice((1, 1, 2)))
    ]
    beside = [Value(f"v{axis}", axis, w.wide, large=True) for axis in "MN" if rng.random() < 0.2]
    for value in (*sums, *beside):
        w.line(f"{value.name} = tl.full({_shape(value.axes)}, 0, tl.{w.wide})")
    for _ in range(rng.choice((1, 1, 1, 2))):
        _walk(w, sums, beside)
    _end(w, sums, beside)
    constants = dict.fromkeys(SIDES.values(), "tl.auto")
    rule = "(tl.cdiv(extent0.shape[0], BM), tl.cdiv(extent1.shape[0], BN))"
    return Written(w.arrays, w.blocks_of_lines[0], {}, "MN", w.dtype, constants, rule)


def _shape(axes: str) -> str:
    return "(" + "".join(f"{SIDES[axis]}, " for axis in axes).rstrip() + ")"


def _walk(w: Writer, sums: list[Value], beside: list[Value]) -> None:
    """Along k, in a loop that adds up products and what lies beside them."""
    words = w.rng.choice(("", "", "", "", ", stages=2", ", stages=3", ", warp_specialize=True"))
    header = f"for k in tl.range(0, size_k, BK{words}):"
    if w.chance(0.1):
        w.line("k = 0")
        header = "while k < size_k:"
    with w.block(header):
        lhs, rhs = _operand(w, "MK"), _operand(w, "KN")
        for value in sums:
            if value is not sums[0] and w.chance(0.8):
                lhs, rhs = (lhs, _operand(w, "KN")) if w.chance(0.6) else (_operand(w, "MK"), rhs)
            _add(w, value, lhs, rhs)
        for value in beside:
            operand, axis = (lhs, 1) if value.axes == "M" else (rhs, 0)
            whole = f"tl.clamp({operand}.to(tl.{w.wide}), -2, 2)"
            w.line(f"{value.name} = {value.name} + tl.sum({whole}, axis={axis})")
        if header.startswith("while"):
            w.line("k += BK")


def _add(w: Writer, value: Value, lhs: str, rhs: str) -> None:
    tf32 = ', precision="tf32"' if w.dtype == "f32" and w.chance(0.7) else ""
    if w.chance(0.2):
        factor = w.array("N", "f32", "data").name
        scale = f"tl.load({factor}, (n,), (BN,)).to(tl.{w.wide})[None, :]"
        w.line(f"{value.name} = {value.name} + tl.dot({lhs}, {rhs}{tf32}) * {scale}")
    else:
        w.line(f"{value.name} = tl.dot({lhs}, {rhs}, {value.name}{tf32})")


def _operand(w: Writer, axes: str) -> str:
    """The name of a tile, which is 0 outside of the arrays."""
    found = _loaded(w, axes, w.dtype)
    narrow = w.dtype in FLOATS_OF_8_BITS
    kind = w.rng.randrange(8)
    if kind == 0 and not narrow:
        other = _loaded(w, axes, w.rng.choice(OTHERS))
        found = w.let(f"{other.name}.to(tl.{w.dtype})", axes, w.dtype)
    elif kind == 1:
        axis = w.rng.choice(axes)
        factors = f"tl.load({w.array(axis, 'f32').name}, ({PLACES[axis]},), {_shape(axis)})"
        spread = SPREAD["M" if axis == axes[0] else "K"]
        text = f"{found.name}.to(tl.f32) * {factors}{spread}"
        found = w.let(f"({text}).to(tl.{w.dtype})", axes, w.dtype)
    elif kind == 2:
        truths = _loaded(w, axes, "i1")
        none = f"tl.full((1, 1), 0, tl.f32).to(tl.{w.dtype})"
        found = w.let(f"tl.where({truths.name}, {found.name}, {none})", axes, w.dtype)
    return found.name


def _loaded(w: Writer, axes: str, dtype: str) -> Value:
    """As it lies, transposed, through a window, or by numbers of its rows."""
    way = w.rng.randrange(8)
    at, sizes = (f"({', '.join(PLACES[a] for a in axes)})", _shape(axes))
    if way < 2:
        lies = axes[::-1]
        source, place = w.array(lies, dtype), f"({', '.join(PLACES[a] for a in lies)})"
        text = f"tl.load({source.name}, {place}, {_shape(lies)}).T"
        if way == 1:
            text = f"tl.load({source.name}, {place}, {sizes}, dims=(1, 0))"
        return w.let(text, axes, dtype)
    source = w.array(axes, dtype)
    if way == 2:
        ends = ", ".join(f"size_{a.lower()} - {PLACES[a]}" for a in axes)
        name = w.name("w")
        w.line(f"{name} = tl.window({source.name}, {at}, ({ends}))")
        return w.let(f"tl.load({name}, (0, 0), {sizes})", axes, dtype)
    if way == 3:
        by = w.rng.randrange(2)
        numbers = w.array(axes[by], "i32", "rows")
        row = w.name("r")
        at = PLACES[axes[by]]
        w.line(f"{row} = tl.load({numbers.name}, ({at},), {_shape(axes[by])}, padding=-1)")
        places = [f"({PLACES[a]} + tl.arange({SIDES[a]}))" for a in axes]
        places[by] = row
        text = f"tl.gather({source.name}, ({places[0]}[:, None], {places[1]}[None, :]))"
        return w.let(text, axes, dtype)
    return w.let(f"tl.load({source.name}, {at}, {sizes})", axes, dtype)


def _end(w: Writer, sums: list[Value], beside: list[Value]) -> None:
    """Behind the loop: what becomes of the sums, and where they go."""
    name = sums[0].name
    for step in w.rng.sample(EPILOGUE, w.rng.choice((0, 1, 1, 2))):
        name = step(w, name, sums)
    whole = w.array("MN", w.wide, "out")
    whole.large = True
    if w.chance(0.3):
        whole.axes = "NM"
        w.line(f"tl.store({whole.name}, (n, m), {name}.T)")
    else:
        w.line(f"tl.store({whole.name}, (m, n), {name})")
    if w.chance(0.5):
        out = w.array("MN", w.dtype, "out")
        w.line(f"tl.store({out.name}, (m, n), tl.clamp({name}, -2, 2).to(tl.{w.dtype}))")
    if w.chance(0.2):
        axis = w.rng.choice("MN")
        out = w.array(axis, w.wide, "out")
        out.large = True
        places = f"({PLACES[axis]} + tl.arange({SIDES[axis]}),)"
        there = f"({_inside('M')}[:, None] & {_inside('N')}[None, :])"
        kept = f"tl.where({there}, tl.clamp({name}, -2, 2), 0)"
        added = f"tl.sum({kept}, axis={1 - 'MN'.index(axis)})"
        w.line(f"tl.atomic_add({out.name}, {places}, {added})")
    for value in beside:  # of all programs beside each other the same
        out = w.array(value.axes, w.wide, "out")
        out.large = True
        with w.block(f"if tl.program_id({1 - 'MN'.index(value.axes)}) == 0:"):
            w.line(f"tl.store({out.name}, ({PLACES[value.axes]},), {value.name})")


def _inside(axis: str) -> str:
    return f"({PLACES[axis]} + tl.arange({SIDES[axis]}) < size_{axis.lower()})"


def _scale(w: Writer, name: str, sums: list[Value]) -> str:
    axis = w.rng.choice("MN")
    factors = w.array(axis, "f32").name
    spread = SPREAD["M" if axis == "M" else "K"]
    load = f"tl.load({factors}, ({PLACES[axis]},), {_shape(axis)}).to(tl.{w.wide}){spread}"
    return w.let(f"{name} {w.rng.choice('+*-')} {load}", "MN", w.wide).name


def _residual(w: Writer, name: str, sums: list[Value]) -> str:
    other = w.array("MN", w.rng.choice(("f16", "bf16", "f32", "i8"))).name
    return w.let(f"{name} + tl.load({other}, (m, n), (BM, BN)).to(tl.{w.wide})", "MN", w.wide).name


def _gate(w: Writer, name: str, sums: list[Value]) -> str:
    return w.let(f"tl.where({sums[-1].name} > 0, {name}, 0)", "MN", w.wide).name


def _in_place(w: Writer, name: str, sums: list[Value]) -> str:
    array = w.array("MN", w.wide, "out")
    old = w.let(f"tl.load({array.name}, (m, n), (BM, BN))", "MN", w.wide)
    found = w.let(f"{name} + tl.clamp({old.name}, -2, 2)", "MN", w.wide)
    w.line(f"tl.store({array.name}, (m, n), tl.clamp({found.name}, -2, 2))")
    return found.name


EPILOGUE: list[Callable[[Writer, str, list[Value]], str]] = [_scale, _residual, _gate, _in_place]
