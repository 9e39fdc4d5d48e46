"""Text of a program under construction: its tiles in reach, and the decisions taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st
from tile_programs import Options

FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i8", "i16", "i32", "i64")
MEMORY = (*FLOATS, *INTEGERS, "i1")
EXACT = {"f64": 1 << 50, "f32": 1 << 23, "f16": 1 << 11, "bf16": 1 << 8, "index": 1 << 24}
"""Integers up to here are exact; an index must also fit 32 bits."""
SIZES = (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 24, 32, 33, 48, 64, 97, 128)
SMALL = 3
"""Magnitude of inputs and of what is clamped."""
CARRIED = 8
"""Magnitude of what a loop carries."""

T = TypeVar("T")


@dataclass(frozen=True)
class Tile:
    """A tile of the program under construction; `bound`: no element is larger in magnitude."""

    name: str
    shape: tuple[int, ...]
    element: str
    bound: int

    @property
    def type(self) -> str:
        """As MLIR writes it."""
        return tile_type(self.shape, self.element)


def tile_type(shape: Sequence[int], element: str) -> str:
    """`tensor<...>`."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


class Writer:
    """Writes one program; every decision is hypothesis's, so failures shrink."""

    def __init__(
        self,
        draw: Callable,
        most: int,
        targets: Sequence[str],
        ops: Sequence[Callable[[Writer], object]],
    ) -> None:
        self.draw = draw
        self.options = Options(
            target=self.pick(targets),
            num_warps=self.pick((4, 1, 2, 8, 16)),
            index_bits=self.pick((32, 64)),
            facts=self.pick((True, False)),
        )
        self.most = min(most, 512 * self.options.num_warps)
        self.rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
        self.grid = (self.pick((1, 2)), self.pick((1, 1, 3)))
        self.lines: list[str] = []
        self.scopes: list[list[Tile]] = [[]]
        self.indices: list[list[str]] = [["%pid"]]
        self.parameters: list[str] = []
        self.arguments: list[np.ndarray] = []
        self.used: set[str] = set()
        self.ops = ops
        self._names = 0

    def pick(self, choices: Sequence[T]) -> T:
        """One of several; the first is the simplest."""
        return self.draw(st.sampled_from(list(choices)))

    def number(self, low: int, high: int) -> int:
        """An integer within bounds."""
        return self.draw(st.integers(low, high))

    def permutation(self, count: int) -> list[int]:
        """The numbers below `count` in some order."""
        return list(self.draw(st.permutations(range(count))))

    def subset(self, count: int) -> list[int]:
        """Some of the numbers below `count`, in order."""
        return sorted(self.draw(st.sets(st.integers(0, count - 1))))

    def tile(self, fits: Callable[[Tile], bool] = lambda _: True) -> Tile | None:
        """A tile in reach, preferably a recent one."""
        found = [t for scope in self.scopes for t in scope if fits(t)]
        if not found:
            return None
        chosen = self.pick(found[::-1][:8])
        self.used.add(chosen.name)
        return chosen

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        """A shape of at most `most` elements."""
        rank = self.pick((2, 1, 3, 0, 4)) if rank is None else rank
        sizes: list[int] = []
        for _ in range(rank):
            room = max(1, self.most // prod(sizes))
            sizes.append(self.pick([s for s in SIZES if s <= room]))
        return tuple(sizes)

    def name(self) -> str:
        """A fresh SSA name."""
        self._names += 1
        return f"%v{self._names}"

    def emit(self, text: str, result: str | None = None) -> str:
        """Writes an op; the name of its result."""
        result = result or self.name()
        self.lines.append(f"{result} = {text}")
        return result

    def add(self, text: str, shape: Sequence[int], element: str, bound: int) -> Tile:
        """Writes an op that makes a tile."""
        made = Tile(self.emit(text), tuple(shape), element, int(bound))
        self.scopes[-1].append(made)
        return made

    def scalar(self, value: int, type_: str = "index") -> str:
        """A scalar constant."""
        written = f"{float(value)}" if type_ in FLOATS else str(value)
        if type_ == "i1":
            return self.emit(f"arith.constant {'true' if value else 'false'}")
        return self.emit(f"arith.constant {written} : {type_}")

    def constant(self, value: int, shape: Sequence[int], element: str) -> Tile:
        """A tile of one value."""
        written = f"{float(value)}" if element in FLOATS else str(value)
        if element == "i1":
            written = "true" if value else "false"
        text = f"arith.constant dense<{written}> : {tile_type(shape, element)}"
        return Tile(self.emit(text), tuple(shape), element, abs(value))

    def clamped(self, tile: Tile, bound: int) -> Tile:
        """The tile with no element larger than `bound`."""
        if tile.bound <= bound or tile.element == "i1":
            return tile
        low, high = ("maximumf", "minimumf") if tile.element in FLOATS else ("maxsi", "minsi")
        name = tile.name
        for op, limit in ((low, -bound), (high, bound)):
            edge = self.constant(limit, tile.shape, tile.element)
            name = self.emit(f"arith.{op} {name}, {edge.name} : {tile.type}")
        return Tile(name, tile.shape, tile.element, bound)

    def settled(self, bound: int, element: str) -> int:
        """The bound of an integer that may have wrapped."""
        if element in FLOATS or element == "index":
            return bound
        return min(bound, 1 << (int(element[1:]) - 1))

    def step(self) -> None:
        """One random op."""
        self.pick(self.ops)(self)

    def kernel(self) -> str:
        """The whole text, once every op is written."""
        parameters, body = ", ".join(self.parameters), "\n  ".join(self.lines)
        return f"""func.func @k({parameters}) attributes {{tile.kernel}} {{
  %pid = "tile.program_id"() {{axis = 0 : i32}} : () -> index
  %row = "tile.program_id"() {{axis = 1 : i32}} : () -> index
  {body}
  return
}}"""


def integers(values: Sequence[int]) -> str:
    """`array<i32: ...>`."""
    return f"array<i32: {', '.join(map(str, values))}>" if values else "array<i32>"
