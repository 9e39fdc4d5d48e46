"""Writes kernels at random: loops whose tiles wait in rings, and what people do between.

Along the axes M (programs), N (columns), K and L (loops) there are blocks; a tile is named by the
axes it runs along, so that any two that share one can be multiplied. Numbers are small integers,
clamped before they would round, so that NumPy is the judge (`numpy_language`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

AXES = "MNKL"
PLACES = {"M": "m", "N": "n", "K": "k", "L": "l"}
NARROW = ("f16", "f16", "f16", "bf16", "bf16", "f8e4m3", "f8e5m2", "i8", "f32", "f32", "f64")
"""Dtypes of what is multiplied."""
MOST_EXACT = 1 << 17
"""Of products of f32 tiles in full: an instruction each, for which ptxas takes long."""
FLOATS_OF_8_BITS = ("f8e4m3", "f8e5m2")


@dataclass(eq=False)
class Line:
    """A statement; `body`: what is indented under it."""

    text: str
    body: list[Line] | None = None

    def lines(self, depth: int = 0) -> Iterator[str]:
        """As Python has it; an empty body is a `pass`."""
        yield "    " * depth + self.text
        if self.body is not None:
            for line in self.body or [Line("pass")]:
                yield from line.lines(depth + 1)


@dataclass(frozen=True)
class Value:
    """A tile of the kernel: its name, the axes it runs along, its dtype; `large`: its numbers are
    sums, which an operand's dtype may not hold."""

    name: str
    axes: str
    dtype: str
    large: bool = False


@dataclass
class ArrayOf:
    """A parameter: what its dimensions are, its dtype, the numbers in it.

    `kind`: "data" (-1, 0, 1), "flags" (0, 1), "blocks" (numbers of blocks along K), "out", "rows",
    "ends" (where lists end); "number", an int, or "far", one that leads out of every array.
    `large`: sums are written into it.
    """

    name: str
    axes: str
    dtype: str
    kind: str = "data"
    large: bool = False


@dataclass
class Written:
    """A kernel: its text but for the decorator, its arrays, its blocks, its grid's axes, and the
    dtype of what it multiplies. `constants`: names with their defaults, which the compiler chooses,
    or None, which the call gives; `rule`: its grid by these."""

    arrays: list[ArrayOf]
    body: list[Line]
    blocks: dict[str, int]
    programs: str
    dtype: str
    constants: dict[str, str | None] = field(default_factory=dict)
    rule: str = ""

    def text(self, demands: str = "") -> str:
        """Python; `demands`: of the decorator."""
        types = {"int": "int"}
        given = [f"{array.name}: {types.get(array.dtype, 'tl.array')}" for array in self.arrays]
        defaults = {name: f" = {value}" if value else "" for name, value in self.constants.items()}
        constants = [f"{name}: tl.const{default}" for name, default in defaults.items()]
        parameters = ", ".join([*given, *constants])
        if self.rule:
            names = dict.fromkeys(re.findall(r"extent\d|[A-Z]+", self.rule))
            rule = f"grid=lambda {', '.join(names)}: {self.rule}"
            demands = f"{rule}, {demands}" if demands else rule
        head = ["import tilec", "import tilec.language as tl", ""]
        head += [f"@tilec.kernel({demands})", f"def kernel({parameters}):"]
        return "\n".join([*head, *(text for line in self.body for text in line.lines(1)), ""])


@dataclass
class Writer:
    """The kernel under construction. `scopes`: values in reach, innermost last; `mutable`: names
    that a loop around carries; `loops`: axes of the loops around, innermost last; `guards`:
    branches around, and loops that no `continue` leaves; `counting`: 1 in one of these alone;
    `comes_behind`: another kernel, whose matrix lies along K."""

    rng: random.Random
    dtype: str = "f16"
    blocks: dict[str, int] = field(default_factory=dict)
    programs: str = "M"
    arrays: list[ArrayOf] = field(default_factory=list)
    blocks_of_lines: list[list[Line]] = field(default_factory=lambda: [[]])
    scopes: list[list[Value]] = field(default_factory=lambda: [[]])
    loops: list[str] = field(default_factory=list)
    carried: list[Value] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    guards: int = 0
    counting: int = 0
    comes_behind: bool = False

    # -- names and lines ------------------------------------------------------------------------

    def name(self, stem: str) -> str:
        """A new one."""
        self.numbers[stem] = self.numbers.get(stem, -1) + 1
        return f"{stem}{self.numbers[stem]}"

    def line(self, text: str) -> None:
        """Behind what the current block has."""
        self.blocks_of_lines[-1].append(Line(text))

    def let(self, text: str, axes: str, dtype: str, large: bool = False) -> Value:
        """A new value in reach."""
        value = Value(self.name("x"), axes, dtype, large)
        self.line(f"{value.name} = {text}")
        self.scopes[-1].append(value)
        return value

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """What is written in it is indented under the header, and its values end with it."""
        line = Line(header, [])
        self.blocks_of_lines[-1].append(line)
        assert line.body is not None
        self.blocks_of_lines.append(line.body)
        self.scopes.append([])
        yield
        self.scopes.pop()
        self.blocks_of_lines.pop()

    def chance(self, probability: float) -> bool:
        """True so often."""
        return self.rng.random() < probability

    # -- values ---------------------------------------------------------------------------------

    def sizes(self, axes: str) -> str:
        """The shape of a tile."""
        return "(" + "".join(f"{self.blocks[axis]}, " for axis in axes).rstrip() + ")"

    def array(self, axes: str, dtype: str, kind: str = "data") -> ArrayOf:
        """A new parameter, or one that there is."""
        like = [a for a in self.arrays if (a.axes, a.dtype, a.kind) == (axes, dtype, kind)]
        if like and kind != "out" and self.chance(0.4):
            return self.rng.choice(like)
        stem = {"data": "a", "out": "o"}.get(kind, kind)
        made = ArrayOf(self.name(stem), axes, dtype, kind)
        self.arrays.append(made)
        return made

    def found(self, wanted: Callable[[Value], bool]) -> Value | None:
        """One in reach, mostly a young one."""
        all_of = [v for scope in self.scopes for v in scope if wanted(v)]
        if not all_of:
            return None
        return self.rng.choice(all_of[-4:])

    def places(self, axes: str) -> str:
        """Where the tile of the current iteration begins."""
        return "(" + "".join(f"{PLACES[axis]}, " for axis in axes).rstrip() + ")"

    def reachable(self) -> str:
        """Axes whose place is known here."""
        return "MN" + "".join(dict.fromkeys(self.loops))

    def load(self, axes: str, dtype: str) -> Value:
        """A tile of a new or an old array: as it lies, transposed, through a window, by rows."""
        turned = len(axes) == 2 and self.chance(0.3)
        lies = axes[::-1] if turned else axes
        source = self.array(lies, dtype)
        name, at = source.name, self.places(lies)
        if not turned and len(axes) == 2 and self.chance(0.15):
            return self.gathered(axes, dtype)
        if self.chance(0.1):
            name, at = self.name("w"), self.places(lies)
            ends = ", ".join(f"{source.name}.shape[{i}]" for i in range(len(lies)))
            self.line(f"{name} = tl.window({source.name}, {at}, ({ends},))")
            at = "(" + "0, " * len(lies) + ")"
        if turned and self.chance(0.4):
            return self.let(f"tl.load({name}, {at}, {self.sizes(axes)}, dims=(1, 0))", axes, dtype)
        if len(axes) == 2 and self.chance(0.1):
            return self.halves(name, lies, axes, dtype)
        text = f"tl.load({name}, {at}, {self.sizes(lies)})"
        return self.let(f"{text}.T" if turned else text, axes, dtype)

    def halves(self, name: str, lies: str, axes: str, dtype: str) -> Value:
        """Two loads of half a tile, side by side."""
        axis = self.rng.randrange(2)
        sizes = [self.blocks[a] for a in lies]
        sizes[axis] //= 2
        at = [PLACES[a] for a in lies]
        further = [*at]
        further[axis] = f"{at[axis]} + {sizes[axis]}"
        parts = [f"tl.load({name}, ({', '.join(a)}), {tuple(sizes)})" for a in (at, further)]
        text = f"tl.cat(({parts[0]}, {parts[1]}), axis={axis})"
        return self.let(f"{text}.T" if lies != axes else text, axes, dtype)

    def gathered(self, axes: str, dtype: str) -> Value:
        """A tile whose rows, or columns, an array numbers."""
        by = self.rng.choice((0, 0, 1))
        numbers = self.array(axes[by], "i32", "rows")
        source, row, number = self.array(axes, dtype), self.name("r"), PLACES[axes[by]]
        self.line(f"{row} = tl.load({numbers.name}, ({number},), {self.sizes(axes[by])})")
        other = axes[1 - by]
        places = [f"({PLACES[other]} + tl.arange({self.blocks[other]}))"] * 2
        places[by] = row
        text = f"tl.gather({source.name}, ({places[0]}[:, None], {places[1]}[None, :]))"
        return self.let(text, axes, dtype)

    def operand(self, axes: str, depth: int = 0) -> str:
        """What is multiplied: in reach, transposed, converted, loaded, or a product itself."""
        small = [v for scope in self.scopes for v in scope if v.dtype == self.dtype and not v.large]
        same = self.found(lambda v: v.axes == axes and v in small)
        if same is not None and self.chance(0.5):
            return same.name
        turned = self.found(lambda v: v.axes == axes[::-1] and v in small)
        if turned is not None and self.chance(0.5):
            return f"{turned.name}.T"
        wide = self.found(lambda v: v.axes == axes and v.large)
        if wide is not None and self.chance(0.4):
            return self.narrowed(wide.name, axes).name
        if depth == 0 and self.chance(0.3):
            scores = self.product(axes, depth + 1)
            if scores is not None:
                return self.narrowed(scores.name, axes).name
        if set(axes) <= set(self.reachable()):
            return self.load(axes, self.dtype).name
        return f"tl.full({self.sizes(axes)}, 1, tl.f32).to(tl.{self.dtype})"

    def narrowed(self, name: str, axes: str) -> Value:
        """A wide tile as an operand."""
        return self.let(f"tl.clamp({name}, -2, 2).to(tl.{self.dtype})", axes, self.dtype)

    def product(self, axes: str, depth: int = 0, acc: str = "") -> Value | None:
        """A product of two operands, whatever lies between them."""
        inner = self.rng.choice([*self.reachable(), *self.loops, *self.loops])
        lhs = self.operand(axes[0] + inner, depth)
        rhs = self.operand(inner + axes[1], depth)
        known = {axes[0], inner} <= set(self.reachable())
        if self.dtype in FLOATS_OF_8_BITS and known and self.chance(0.2):
            lhs = self.load(axes[0] + inner, self.rng.choice(FLOATS_OF_8_BITS)).name
        more = f", {acc}" if acc else ""
        small = self.blocks[axes[0]] * self.blocks[axes[1]] * self.blocks[inner] <= MOST_EXACT
        if self.dtype == "f32" and (self.chance(0.8) or not small):
            more += ', precision="tf32"'
        elif self.dtype == "f16" and not acc and self.chance(0.1):
            return self.let(f"tl.dot({lhs}, {rhs}, dtype=tl.f16)", axes, "f16", large=True)
        return self.let(f"tl.dot({lhs}, {rhs}{more})", axes, self.wide, large=True)

    @property
    def wide(self) -> str:
        """What products are summed in."""
        return {"i8": "i32", "f64": "f64"}.get(self.dtype, "f32")
