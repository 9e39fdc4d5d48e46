"""The ways in which people write a loop, each a function: its header, and where its tiles begin."""

from __future__ import annotations

from random_functions.kernel_writer import PLACES, Writer
from random_functions.steps import STEPS, load_more, steps

STAGES = ("", "", "", "", ", stages=2", ", stages=3", ", stages=4")
OTHERS = ("", "", "", "", "", ", any_order=False", ", warp_specialize=True")


def loop(w: Writer, axis: str) -> None:
    """A loop along an axis, in one of these ways."""
    ways = (counted, counted, counted, counted, counted, walked, listed, begun, reversed_, limited)
    w.loops.append(axis)
    w.rng.choice(ways)(w, axis)
    w.loops.pop()


def counted(w: Writer, axis: str) -> None:
    """`for k in tl.range(0, n, B)`."""
    with w.block(f"for {PLACES[axis]} in tl.range(0, {_end(axis)}, {w.blocks[axis]}{_words(w)}):"):
        _body(w)


def walked(w: Writer, axis: str) -> None:
    """`while k < n`."""
    place = PLACES[axis]
    w.line(f"{place} = 0")
    with w.block(f"while {place} < {_end(axis)}:"):
        _guarded(w)
        w.line(f"{place} += {w.blocks[axis]}")


def limited(w: Writer, axis: str) -> None:
    """`while` that counts as well."""
    place = PLACES[axis]
    w.line(f"{place} = 0")
    with w.block(f"while ({place} < {_end(axis)}) & (count < {w.rng.randint(3, 40)}):"):
        _guarded(w)
        w.line(f"{place} += {w.blocks[axis]}")
        w.line("count = count + 1")


def listed(w: Writer, axis: str) -> None:
    """Over the blocks that an array lists."""
    blocks = w.array(f"number of {axis}", "i32", "blocks")
    index = w.name("i")
    with w.block(f"for {index} in tl.range({blocks.name}.shape[0]{_words(w)}):"):
        w.line(f"{PLACES[axis]} = tl.load({blocks.name}, ({index},), ()) * {w.blocks[axis]}")
        _body(w)


def begun(w: Writer, axis: str) -> None:
    """From where an array says, in the midst of a block."""
    begins = w.array("number of M", "i32", "blocks")
    begin = f"tl.load({begins.name}, (tl.program_id(0),), ()) * {w.blocks[axis] // 2}"
    step = w.blocks[axis]
    with w.block(f"for {PLACES[axis]} in tl.range({begin}, {_end(axis)}, {step}{_words(w)}):"):
        _body(w)


def reversed_(w: Writer, axis: str) -> None:
    """From the last block to the first."""
    index, blocks = w.name("i"), f"tl.cdiv({_end(axis)}, {w.blocks[axis]})"
    with w.block(f"for {index} in tl.range({blocks}{_words(w)}):"):
        w.line(f"{PLACES[axis]} = ({blocks} - 1 - {index}) * {w.blocks[axis]}")
        _body(w)


def inner_loop(w: Writer) -> None:
    """A loop of an axis that no loop around has."""
    free = [axis for axis in "KL" if axis not in w.loops]
    if free and not w.guards and len(w.loops) < 2:
        loop(w, w.rng.choice(free))


def _end(axis: str) -> str:
    return f"size_{axis.lower()}"


def _words(w: Writer) -> str:
    return w.rng.choice(STAGES) + w.rng.choice(OTHERS)


def _guarded(w: Writer) -> None:
    """A body that no `continue` leaves: the place would stay."""
    before = w.guards, w.counting
    w.guards, w.counting = w.guards + 1, int(w.guards == 0)
    _body(w)
    w.guards, w.counting = before


def _body(w: Writer) -> None:
    if w.comes_behind and w.loops[-1] == "K" and w.chance(0.8):
        acc, handed = w.carried[0], w.load("KN", w.dtype)
        tf32 = ', precision="tf32"' if w.dtype == "f32" else ""
        w.line(f"{acc.name} = tl.dot({w.operand('MK')}, {handed.name}, {acc.name}{tf32})")
    for _ in range(w.rng.randint(0, 2)):
        load_more(w)
    steps(w, w.rng.randint(1, 5))


STEPS.append((inner_loop, 2))
