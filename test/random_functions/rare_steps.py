"""Steps that are rarer in kernels: bits, order, histograms, batches of products, scattered rows."""

from __future__ import annotations

from random_functions.kernel_writer import PLACES, Value, Writer
from random_functions.other_numbers import WRAPPING
from random_functions.steps import Step, clamped

BINS = 8


def change_bits(w: Writer) -> None:
    """Of a carried tile of whole numbers: and, or, exclusive or, shifts."""
    fitting = [v for v in w.carried if v.dtype in WRAPPING]
    if not fitting:
        return
    one = w.rng.choice(fitting)
    tile = w.found(lambda v: v.axes == one.axes)
    if tile is None or w.chance(0.3):
        op, by = w.rng.choice(("<<", ">>")), w.rng.randint(1, 7)
        w.line(f"{one.name} = ({one.name} {op} {by}).to(tl.{one.dtype})")
        return
    op = w.rng.choice(("&", "|", "^"))
    other = f"{clamped(w, tile)}.to(tl.i32).to(tl.{one.dtype})"
    w.line(f"{one.name} = {one.name} {op} {other}")


def sort(w: Writer) -> None:
    """Columns in order."""
    tile = _tile(w)
    if tile is not None and w.blocks[tile.axes[1]] <= 64:
        w.narrowed(f"tl.sort({clamped(w, tile)})", tile.axes)


def count_values(w: Writer) -> None:
    """A histogram, of which one count is carried."""
    tile = _tile(w)
    if tile is None or w.guards:
        return
    whole = f"{clamped(w, tile)}.to(tl.i32) + 2"
    counts, at = w.name("c"), w.rng.randrange(5)
    w.line(f"{counts} = tl.histogram({whole}, {BINS})")
    w.line(f"count = count + tl.sum(tl.where(tl.arange({BINS}) == {at}, {counts}, 0)) % 3")


def add_batches(w: Writer) -> None:
    """A product of halves of rows, as a batch of two."""
    acc = [v for v in w.carried if v.large and len(v.axes) == 2]
    if not acc or w.dtype == "f32":
        return
    one = w.rng.choice(acc)
    inner = w.rng.choice([*w.reachable(), *w.loops])
    rows, columns, depth = (w.blocks[axis] for axis in (*one.axes, inner))
    if rows < 32:
        return
    lhs, rhs = w.operand(one.axes[0] + inner), w.operand(inner + one.axes[1])
    halves = f"tl.reshape({lhs}, (2, {rows // 2}, {depth}))"
    both = f"tl.broadcast_to({rhs}[None, :, :], (2, {depth}, {columns}))"
    w.line(f"{one.name} = {one.name} + tl.reshape(tl.dot({halves}, {both}), ({rows}, {columns}))")


def scatter_rows(w: Writer) -> None:
    """A program's rows from the last to the first, or its even ones alone."""
    if w.programs != "M":
        return
    tile = w.found(lambda v: v.axes[:1] == "M" and len(v.axes) == 2 and v.axes[1] != "M")
    if tile is None or tile.axes[1] not in w.reachable():
        return
    out = w.array(tile.axes, w.dtype, "out")
    block, place = w.blocks["M"], PLACES[tile.axes[1]]
    row = w.rng.choice((f"m + {block - 1} - tl.arange({block})", f"m + tl.arange({block})"))
    column = f"({place} + tl.arange({w.blocks[tile.axes[1]]}))[None, :]"
    mask = f", mask=(tl.arange({block}) % 2 == 0)[:, None]" if w.chance(0.5) else ""
    value = w.narrowed(clamped(w, tile), tile.axes)
    w.line(f"tl.scatter({out.name}, (({row})[:, None], {column}), {value.name}{mask})")


def multiply_along(w: Writer) -> None:
    """The product, or the place of the smallest, along an axis, carried."""
    tile = _tile(w)
    fitting = [v for v in w.carried if len(v.axes) == 1 and v.dtype == w.wide]
    for vector in fitting:
        if tile is not None and vector.axes in tile.axes:
            axis, whole = 1 - tile.axes.index(vector.axes), clamped(w, tile)
            found = f"tl.prod(tl.clamp({whole}, -1, 1), axis={axis})"
            if w.chance(0.5):
                found = f"tl.argmin({whole}, axis={axis}).to(tl.{vector.dtype})"
            w.line(f"{vector.name} = {vector.name} + {found}")
            return


def _tile(w: Writer) -> Value | None:
    return w.found(lambda v: len(v.axes) == 2 and v.axes[0] != v.axes[1])


RARE: list[tuple[Step, int]] = [
    (change_bits, 2),
    (sort, 1),
    (count_values, 1),
    (add_batches, 2),
    (scatter_rows, 1),
    (multiply_along, 1),
]
"""How often each is drawn, as in `steps.STEPS`."""
