"""What a random kernel does between its loads: a function a kind of step, and the loops around."""

from __future__ import annotations

from collections.abc import Callable

from random_functions.kernel_writer import FLOATS_OF_8_BITS, PLACES, Value, Writer

Step = Callable[[Writer], None]


def clamped(w: Writer, tile: Value) -> str:
    """A tile of which any sum is exact, in the sums' dtype."""
    return f"tl.clamp({tile.name}.to(tl.{w.wide}), -2, 2)"


def _carried(w: Writer, wanted: Callable[[Value], bool]) -> Value | None:
    fitting = [v for v in w.carried if wanted(v)]
    return w.rng.choice(fitting) if fitting else None


def widened(w: Writer, tile: Value) -> str:
    """A tile in the sums' dtype, where that holds its numbers; else clamped."""
    alike = tile.dtype in (w.dtype, w.wide, "f16", "i32", *FLOATS_OF_8_BITS)
    return f"{tile.name}.to(tl.{w.wide})" if alike else clamped(w, tile)


def add_product(w: Writer) -> None:
    """A carried sum of products, maybe scaled."""
    acc = _carried(w, lambda v: len(v.axes) == 2 and v.large)
    if acc is None:
        return
    way = w.rng.randrange(4)
    if way < 2:
        made = w.product(acc.axes, acc=acc.name)
        w.line(f"{acc.name} = {made.name}")
        return
    made = w.product(acc.axes)
    if way == 2:
        w.line(f"{acc.name} = {acc.name} + {made.name} * {scalar(w)}")
    else:
        w.line(f"{acc.name} = {acc.name} * {scalar(w)} + {made.name}")


def scalar(w: Writer) -> str:
    """A number of an array, of this iteration or of this program, as the sums' dtype."""
    axis = w.rng.choice(w.reachable())
    flags = w.array("number of " + axis, w.wide, "flags")
    return f"tl.load({flags.name}, ({PLACES[axis]} // {w.blocks[axis]},), ())"


def add_sum(w: Writer) -> None:
    """Sums, or the greatest, along an axis of a tile in reach, carried."""
    vector = _carried(w, lambda v: len(v.axes) == 1 and v.dtype == w.wide)
    if vector is None:
        return
    tile = w.found(lambda v: len(v.axes) == 2 and vector.axes in v.axes and v.axes[0] != v.axes[1])
    if tile is None:
        if vector.axes not in w.reachable():
            return
        other = w.rng.choice([a for a in w.reachable() if a != vector.axes])
        tile = w.load(vector.axes + other, w.dtype)
    axis = 1 - tile.axes.index(vector.axes)
    wide = clamped(w, tile)
    if w.chance(0.6):
        w.line(f"{vector.name} = {vector.name} + tl.sum({wide}, axis={axis})")
    else:
        w.line(f"{vector.name} = tl.maximum({vector.name}, tl.max({wide}, axis={axis}))")


def combine(w: Writer) -> None:
    """Arithmetic of two tiles in reach, or of one and a vector, in the sums' dtype, narrowed."""
    one = w.found(lambda v: len(v.axes) == 2)
    if one is None:
        return
    vector = w.found(lambda v: len(v.axes) == 1 and v.axes == one.axes[-1])
    two = w.found(lambda v: v.axes == one.axes)
    right = widened(w, two) if two is not None else "1"
    if vector is not None and w.chance(0.5):
        right = f"{widened(w, vector)}[None, :]"
    left = widened(w, one)
    op = w.rng.choice(("+", "-", "*"))
    if w.chance(0.25):
        text = f"tl.where({left} > {right}, {left}, {right})"
    else:
        text = f"{left} {op} {right}"
    w.narrowed(f"({text})", one.axes)


def scan(w: Writer) -> None:
    """Running sums, or the greatest so far, of a tile; sums go on from the last iteration's."""
    tile = w.found(lambda v: len(v.axes) == 2)
    if tile is None:
        return
    axis, reverse, whole = w.rng.randrange(2), w.chance(0.5), clamped(w, tile)
    before = _carried(w, lambda v: v.axes == tile.axes[1 - axis] and v.dtype == w.wide)
    if w.chance(0.3):
        how = f"{axis}, lambda x, y: tl.maximum(x, y), reverse={reverse}"
        w.narrowed(f"tl.associative_scan({whole}, {how})", tile.axes)
        return
    text = f"tl.cumsum({whole}, axis={axis}, reverse={reverse})"
    if before is not None and w.chance(0.7):
        text += f" + {before.name}{('[None, :]', '[:, None]')[axis]}"
    w.narrowed(f"({text})", tile.axes)
    if before is not None:
        w.line(f"{before.name} = {before.name} + tl.sum({whole}, axis={axis})")


def exchange_halves(w: Writer) -> None:
    """The second half of a tile in front of the first."""
    tile = w.found(lambda v: len(v.axes) == 2)
    if tile is None:
        return
    axis, halves = w.rng.randrange(2), w.name("h")
    w.line(f"{halves} = tl.split({tile.name}, 2, axis={axis})")
    w.let(f"tl.cat(({halves}[1], {halves}[0]), axis={axis})", tile.axes, tile.dtype, tile.large)


def reshape(w: Writer) -> None:
    """Columns in another order: those at even places first."""
    tile = w.found(lambda v: len(v.axes) == 2)
    if tile is None:
        return
    rows, columns = (w.blocks[axis] for axis in tile.axes)
    pairs = f"tl.reshape({tile.name}, ({rows}, {columns // 2}, 2))"
    text = f"tl.reshape(tl.permute({pairs}, (0, 2, 1)), ({rows}, {columns}))"
    w.let(text, tile.axes, tile.dtype, tile.large)


def divide(w: Writer) -> None:
    """Whole quotients and remainders, of what has a sign."""
    tile = w.found(lambda v: len(v.axes) == 2)
    if tile is not None:
        whole = f"{clamped(w, tile)}.to(tl.i32)"
        op, by = w.rng.choice(("//", "%")), w.rng.choice((2, 3, 7))
        w.narrowed(f"({whole} * 5 {op} {by}).to(tl.{w.wide})", tile.axes)


def add_places(w: Writer) -> None:
    """Where the greatest of a row or column stands, carried."""
    vector = _carried(w, lambda v: len(v.axes) == 1 and v.dtype == w.wide)
    if vector is None:
        return
    tile = w.found(lambda v: len(v.axes) == 2 and vector.axes in v.axes and v.axes[0] != v.axes[1])
    if tile is not None:
        axis = 1 - tile.axes.index(vector.axes)
        place = f"tl.argmax({clamped(w, tile)}, axis={axis}).to(tl.{vector.dtype})"
        w.line(f"{vector.name} = {vector.name} + {place}")


def keep(w: Writer) -> None:
    """A carried tile becomes one of this iteration: the last one's, in the next."""
    tile = _carried(w, lambda v: len(v.axes) == 2 and v.dtype == w.dtype and not v.large)
    if tile is not None:
        w.line(f"{tile.name} = {w.operand(tile.axes)}")


def count(w: Writer) -> None:
    """A carried number."""
    w.line(f"count = count + {w.rng.choice(('1', '2', number_of_a_tile(w)))}")


def number_of_a_tile(w: Writer) -> str:
    """What a tile in reach says, as an i32."""
    tile = w.found(lambda v: len(v.axes) == 2)
    if tile is None:
        return "1"
    return f"(tl.max({clamped(w, tile)}) > 0).to(tl.i32)"


def condition(w: Writer) -> str:
    """By the place, by an array, by what was counted, by a tile."""
    axis = w.rng.choice([*w.loops, *w.loops, "M"])
    place, block = PLACES[axis], w.blocks[axis]
    kind = w.rng.randrange(6)
    if kind == 0:
        return f"{place} // {block} % 2 == {w.rng.randrange(2)}"
    if kind == 1:
        return f"{place} {w.rng.choice(('>', '<='))} {block * w.rng.randrange(3)}"
    if kind in (2, 3):
        return f"{scalar(w)} > 0"
    if kind == 4:
        return f"count < {w.rng.randrange(1, 5)}"
    tile = w.found(lambda v: len(v.axes) == 2)
    if tile is None:
        return f"{scalar(w)} > 0"
    return f"tl.sum({clamped(w, tile)}) > {w.rng.choice((0, -3, 3))}"


def guard(w: Writer) -> None:
    """Steps inside an `if`, maybe with an `else`."""
    if w.guards >= 2:
        return
    w.guards += 1
    with w.block(f"if {condition(w)}:"):
        steps(w, w.rng.randint(1, 3))
    if w.chance(0.3):
        with w.block("else:"):
            steps(w, w.rng.randint(1, 2))
    w.guards -= 1


def leave(w: Writer) -> None:
    """On to the next iteration, or out of the loop; of a `while` that counts only out of it."""
    if not w.loops or w.guards > w.counting:
        return
    word = "break" if w.counting else w.rng.choice(("continue", "continue", "break"))
    chosen = condition(w)
    with w.block(f"if {chosen}:"):
        w.line(word)


def write(w: Writer) -> None:
    """A tile of this program's rows is stored, and maybe loaded again."""
    alone = w.programs == "M"
    tile = w.found(lambda v: "M" in v.axes and len(v.axes) == 2 and v.axes[0] != v.axes[1])
    if tile is None or not alone:
        return
    out = w.array(tile.axes, tile.dtype, "out")
    at = w.places(tile.axes) if set(tile.axes) <= set(w.reachable()) else None
    if at is None:
        return
    out.large = tile.large
    w.line(f"tl.store({out.name}, {at}, {tile.name})")
    if w.chance(0.5):
        text = f"tl.load({out.name}, {at}, {w.sizes(tile.axes)})"
        again = w.let(text, tile.axes, tile.dtype, tile.large)
        if tile.dtype == w.dtype and w.chance(0.5) and not tile.large and w.dtype[:2] != "f8":
            w.line(f"tl.store({out.name}, {at}, tl.clamp({again.name} + 1, -2, 2))")


def change_in_place(w: Writer) -> None:
    """What an array has is changed, and loaded where it is multiplied."""
    if w.programs != "M" or w.dtype.startswith("f8"):
        return
    other = w.rng.choice([a for a in w.reachable() if a != "M"])
    axes = w.rng.choice(("M" + other, other + "M"))
    array = w.array(axes, w.dtype, "out")
    at, sizes = w.places(axes), w.sizes(axes)
    old = w.let(f"tl.load({array.name}, {at}, {sizes})", axes, w.dtype)
    w.line(f"tl.store({array.name}, {at}, tl.clamp(1 - {old.name}, -2, 2))")
    w.let(f"tl.load({array.name}, {at}, {sizes})", axes, w.dtype)


def add_atomically(w: Writer) -> None:
    """What several programs add to."""
    tile = w.found(lambda v: len(v.axes) == 2 and v.axes[0] != v.axes[1])
    if tile is None or not set(tile.axes) <= set(w.reachable()):
        return
    out = w.array(tile.axes, w.wide, "out")
    out.large = True
    rows, columns = (
        f"({PLACES[axis]} + tl.arange({w.blocks[axis]})){index}"
        for axis, index in zip(tile.axes, ("[:, None]", "[None, :]"), strict=True)
    )
    how = w.rng.choice(("add", "add", "max", "min"))
    w.line(f"tl.atomic_{how}({out.name}, ({rows}, {columns}), {widened(w, tile)})")


def load_more(w: Writer) -> None:
    """A tile, or a row of numbers, that may be used or not."""
    axes = w.reachable()
    if w.chance(0.25):
        w.load(w.rng.choice(axes), w.rng.choice((w.dtype, "f32")))
        return
    one = w.rng.choice([*axes, *w.loops])
    w.load(one + w.rng.choice([a for a in axes if a != one]), w.dtype)


def unrolled(w: Writer) -> None:
    """A loop that is unrolled: the same steps, several times."""
    if w.guards:
        return
    with w.block(f"for _ in tl.static_range({w.rng.randint(0, 3)}):"):
        w.guards += 1
        steps(w, w.rng.randint(1, 2))
        w.guards -= 1


STEPS: list[tuple[Step, int]] = [
    (add_product, 10),
    (add_sum, 4),
    (combine, 4),
    (scan, 2),
    (exchange_halves, 1),
    (reshape, 1),
    (divide, 1),
    (add_places, 1),
    (keep, 2),
    (count, 2),
    (guard, 4),
    (leave, 2),
    (write, 2),
    (change_in_place, 1),
    (add_atomically, 2),
    (load_more, 4),
    (unrolled, 1),
]
"""How often each is drawn; `loops` adds loops inside of loops."""


def steps(w: Writer, number: int) -> None:
    """Some steps, one behind the other."""
    kinds, weights = zip(*STEPS, strict=True)
    for _ in range(number):
        w.rng.choices(kinds, weights)[0](w)
