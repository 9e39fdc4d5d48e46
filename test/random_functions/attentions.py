"""Loops of products that the next one multiplies, in tiles of the compiler's choice.

Each program has some queries, or some keys, and walks along the others: scores, what people do to
them (masks by place and by array, biases, caps), and the sums of products with values; gradients
multiply scores turned over. Nothing is rescaled on the way, so that what is left follows from the
arrays alone, as of `rows.py`.
"""

from __future__ import annotations

import random

from random_functions.kernel_writer import Value, Writer, Written
from random_functions.row_writer import SPREAD

OPERANDS = ("f16", "f16", "bf16", "bf16", "f32", "i8", "f8e4m3")
WIDTHS = (16, 32, 64, 64, 128)
SIDES = {"M": "BM", "K": "BK"}
PLACES = {"M": "m", "K": "k"}


def attentions(seed: int, dtype: str | None = None) -> Written:
    """The same for the same seed. `dtype`: of the operands, where another kernel comes before."""
    rng = random.Random(f"attentions {seed}")
    usable = dtype if dtype in OPERANDS else None
    w = Writer(rng, usable or rng.choice(OPERANDS), comes_behind=dtype is not None)
    w.blocks = {"D": rng.choice(WIDTHS)}
    for axis in "MK":
        w.line(f"size_{axis.lower()} = {w.array(axis, 'f32', 'extent').name}.shape[0]")
    w.line("m = tl.program_id(0) * BM")
    query = _loaded(w, "M") if w.chance(0.8) else ""
    names = ("acc0", "acc1")[: rng.choice((1, 1, 2))]
    sums = [Value(name, "MD", w.wide, large=True) for name in names]
    for value in sums:
        w.line(f"{value.name} = tl.full((BM, {w.blocks['D']}), 0, tl.{w.wide})")
    w.line(f"total = tl.full((BM,), 0, tl.{w.wide})")
    causal = w.chance(0.3)
    end = "tl.minimum(size_k, m + BM)" if causal else "size_k"
    words = rng.choice(("", "", "", "", ", stages=2", ", stages=3", ", warp_specialize=True"))
    with w.block(f"for k in tl.range(0, {end}, BK{words}):"):
        _step(w, query, sums, causal=causal)
    for value in sums:
        out = w.array("MD", w.wide, "out")
        out.large = True
        w.line(f"tl.store({out.name}, (m, 0), {value.name})")
    out = w.array("M", w.wide, "out")
    out.large = True
    w.line(f"tl.store({out.name}, (m,), total)")
    constants = dict.fromkeys(SIDES.values(), "tl.auto")
    rule = "tl.cdiv(extent0.shape[0], BM)"
    return Written(w.arrays, w.blocks_of_lines[0], w.blocks, "M", w.dtype, constants, rule)


def _loaded(w: Writer, axis: str) -> str:
    """Rows of D elements: of queries or of keys."""
    source = w.array(axis + "D", w.dtype)
    return w.let(
        f"tl.load({source.name}, ({PLACES[axis]}, 0), ({SIDES[axis]}, {w.blocks['D']}))",
        axis + "D",
        w.dtype,
    ).name


def _step(w: Writer, query: str, sums: list[Value], *, causal: bool) -> None:
    """Scores, and what they are multiplied with."""
    query = query or _loaded(w, "M")
    tf32 = ', precision="tf32"' if w.dtype == "f32" else ""
    keys = _loaded(w, "K")
    scores = w.let(f"tl.dot({query}, {keys}.T{tf32})", "MK", w.wide).name
    for kind in w.rng.sample(range(5), w.rng.choice((0, 1, 2))):
        scores = _changed(w, scores, kind)
    place = {axis: f"({PLACES[axis]} + tl.arange({SIDES[axis]}))" for axis in "MK"}
    kept = f"({place['K']} < size_k)[None, :]"
    if causal:
        kept = f"({kept} & ({place['M']}[:, None] >= {place['K']}[None, :]))"
    scores = w.let(f"tl.where({kept}, tl.clamp({scores}, -2, 2), 0)", "MK", w.wide).name
    w.line(f"total = total + tl.sum({scores}, axis=1)")
    operand = w.let(f"{scores}.to(tl.{w.dtype})", "MK", w.dtype).name
    for value in sums:
        values = keys if w.chance(0.25) else _loaded(w, "K")
        if w.chance(0.3):
            added = f"tl.dot({operand}, {values}{tf32})"
            w.line(f"{value.name} = {value.name} + {added}")
        else:
            w.line(f"{value.name} = tl.dot({operand}, {values}, {value.name}{tf32})")
        if value is sums[0] and len(sums) > 1 and w.chance(0.5):
            second = f"tl.dot({query}, {values}.T{tf32})"
            changed = w.let(f"tl.clamp({second}, -2, 2) * {scores}", "MK", w.wide).name
            operand = w.let(f"tl.clamp({changed}, -2, 2).to(tl.{w.dtype})", "MK", w.dtype).name


def _changed(w: Writer, scores: str, kind: int) -> str:
    """Scores with a bias, where an array allows them, scaled by rows or columns, turned over."""
    at, shape = "(m, k)", "(BM, BK)"
    if kind == 0:
        text = f"{scores} + tl.load({w.array('MK', 'f32').name}, {at}, {shape}).to(tl.{w.wide})"
    elif kind == 1:
        text = f"tl.where(tl.load({w.array('MK', 'i1').name}, {at}, {shape}), {scores}, 0)"
    elif kind == 2:
        axis = w.rng.choice("MK")
        factors = f"tl.load({w.array(axis, 'f32').name}, ({PLACES[axis]},), ({SIDES[axis]},))"
        text = f"{scores} * {factors}.to(tl.{w.wide}){SPREAD[axis]}"
    elif kind == 3:
        text = f"tl.where({scores} > 0, {scores}, {w.rng.choice((0, 1))})"
    else:
        text = f"tl.abs({scores}) - 1"
    return w.let(text, "MK", w.wide).name
