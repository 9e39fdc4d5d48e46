"""Random kernels: `@tilec.kernel` functions, written at random, that NumPy executes as they are."""

from __future__ import annotations

import random

from random_functions.kernel_writer import NARROW, Value, Writer, Written
from random_functions.loops import loop
from random_functions.other_numbers import carry_others
from random_functions.rare_steps import RARE
from random_functions.steps import STEPS, steps

STEPS.extend(RARE)
MOST = 8192
"""Elements of a tile."""


def kernel(seed: int, dtype: str | None = None) -> Written:
    """The same for the same seed. `dtype`: of what it multiplies, where it comes behind another
    kernel, whose matrix it reads along K."""
    rng = random.Random(seed)
    while True:
        blocks = {
            "M": rng.choice((16, 32, 64, 64, 64, 128, 128)),
            "N": rng.choice((8, 16, 32, 64, 64, 128)),
            "K": rng.choice((16, 32, 32, 64, 64, 128)),
            "L": rng.choice((16, 32, 64)),
        }
        if max(a * b for a in blocks.values() for b in blocks.values()) <= 2 * MOST:
            break
    drawn = rng.choice(NARROW)
    programs = rng.choice(("M", "M", "MN"))
    w = Writer(rng, dtype or drawn, blocks, programs, comes_behind=dtype is not None)
    _begin(w)
    for _ in range(rng.randint(1, 2)):
        if rng.random() < 0.2:
            steps(w, 1)
        loop(w, "K" if w.comes_behind else rng.choice("KKL"))
    _end(w)
    return Written(w.arrays, w.blocks_of_lines[0], blocks, w.programs, w.dtype)


def _begin(w: Writer) -> None:
    """Places, sizes, and what loops carry."""
    w.line(f"m = tl.program_id(0) * {w.blocks['M']}")
    w.line(f"n = tl.program_id(1) * {w.blocks['N']}" if "N" in w.programs else "n = 0")
    k_like, l_like = w.array("K", "f32", "extent"), w.array("L", "f32", "extent")
    w.line(f"size_k, size_l = {k_like.name}.shape[0], {l_like.name}.shape[0]")
    w.line("count = tl.full((), 0, tl.i32)")
    made = [Value("acc0", "MN", w.wide, large=True)]
    for number in range(1, w.rng.randint(1, 3)):
        axes = w.rng.choice(("MN", "NM", "MK", "KN", "MM", "LN", "MN"))
        made.append(Value(f"acc{number}", axes, w.wide, large=True))
    for number in range(w.rng.randint(0, 2)):
        made.append(Value(f"v{number}", w.rng.choice("MNK"), w.wide, large=True))
    if w.chance(0.3):
        made.append(Value("kept", w.rng.choice(("MN", "MK", "KN", "NK")), w.dtype))
    for value in made:
        if value.dtype.startswith("f8"):
            w.line(f"{value.name} = tl.full({w.sizes(value.axes)}, 0, tl.f32).to(tl.{value.dtype})")
        else:
            w.line(f"{value.name} = tl.full({w.sizes(value.axes)}, 0, tl.{value.dtype})")
    w.carried += made
    w.scopes[0] += made
    carry_others(w)


def _end(w: Writer) -> None:
    """Stores what was carried: a block a program, and maybe a matrix that can be multiplied."""
    if w.chance(0.5):
        out = w.array("MN", w.dtype, "out")
        w.line(f"tl.store({out.name}, (m, n), {w.narrowed('acc0', 'MN').name})")
    for value in [*w.carried, Value("count", "", "i32")]:
        out = w.array("P" + value.axes, value.dtype, "out")
        if "N" in w.programs:
            out.axes = "PQ" + value.axes
        at = ", ".join(["tl.program_id(0)", "tl.program_id(1)"][: len(w.programs)])
        dims = ", ".join(str(len(w.programs) + i) for i in range(len(value.axes)))
        zeros = ", 0" * len(value.axes)
        more = f", dims=({dims},)" if dims else ""
        w.line(f"tl.store({out.name}, ({at}{zeros}), {value.name}{more})")
