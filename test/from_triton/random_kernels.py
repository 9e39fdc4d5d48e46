"""Random kernels of pointers and masks: on the emulator as NumPy's interpreter has it.

    python test/from_triton/random_kernels.py --target sm_90a --seed 1 --count 1000

A kernel loads a tile of one or two dimensions, or sums tiles along a loop whose pointers move on,
and stores it. Indices are shifted, turned, wrapped or clamped; masks are boxes, parts of boxes,
conditions of a program, or no boxes at all. Numbers are whole, so that results are equal. Strides,
sizes and shifts are drawn with them; a launch that leaves its memory, or writes nothing, is drawn
anew.
With `--near` one program stores into the memory that it has loaded from, by another pointer.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from interpreter import run
from interpreter_rules import Pointer

import tilec.triton
from tilec.triton.reader import read_kernel

KINDS = (
    "same", "same", "shift", "shift", "constant", "turn", "wrap", "where", "min", "program",
)  # fmt: skip
"""What may become of an index."""
FRONT, BEHIND = 400, 4000
"""Elements in front of the first and behind it, which shifted accesses reach."""


@dataclass
class Text:
    """A function body as it grows."""

    lines: list[str] = field(default_factory=list)
    count: int = 0
    depth: int = 2

    def op(self, text: str) -> str:
        """An op's one result."""
        self.count += 1
        self.lines.append(f"{'  ' * self.depth}%v{self.count} = {text}")
        return f"%v{self.count}"

    def number(self, value: int, shape: str = "") -> str:
        """A constant, or a tile of it."""
        if shape:
            return self.op(f"arith.constant dense<{value}> : tensor<{shape}xi32>")
        return self.op(f"arith.constant {value} : i32")

    def splat(self, value: str, shape: str) -> str:
        """A scalar i32 in a tile."""
        return self.op(f"tt.splat {value} : i32 -> tensor<{shape}xi32>")

    def both(self, name: str, one: str, two: str, shape: str, element: str = "i32") -> str:
        """An op of two tiles."""
        return self.op(f"{name} {one}, {two} : tensor<{shape}x{element}>")


class Kernel:
    """One random kernel: `text`, and what it is launched with. `wider`: loops from the end, masks
    that are multiplied, and remainders of program ids are drawn, too."""

    def __init__(self, draw: random.Random, *, wider: bool = False) -> None:
        self.draw, self.body, self.wider = draw, Text(), wider
        self.sizes = draw.choice([(16,), (32,), (48,), (4, 16), (8, 32), (6, 8)])
        self.shape = "x".join(map(str, self.sizes))
        self.grid = (draw.randint(1, 3), draw.randint(1, 2) if len(self.sizes) > 1 else 1)
        self.n = [draw.randint(1, 3 * size + 2) for size in self.sizes]
        self.shift = draw.randint(-20, 20)
        self.stride = draw.choice([1, 8, 35, 64, 100])
        self.loops = draw.random() < 0.4
        self.in_place = not self.loops and draw.random() < 0.15
        self.text = self._text()

    def _text(self) -> str:
        body = self.body
        ids = [body.op(f"tt.get_program_id {axis} : i32") for axis in "xy"]
        plain = [self._index(axis, ids[axis]) for axis in range(len(self.sizes))]
        used = (
            plain if self.in_place else [self._changed(a, i, ids[a]) for a, i in enumerate(plain)]
        )
        box = self._mask(plain, ids, always=True)
        looked_at = self.draw.choice([plain, used])
        mask = box if self.in_place else self._mask(looked_at, ids, always=False)
        loaded = self._loaded(used, mask, ids)
        pointer = self._pointer("%x" if self.in_place else "%out", plain, "%o")
        tile = f"tensor<{self.shape}x!tt.ptr<f32>>"
        one = body.op(f"arith.constant dense<1.000000e+00> : tensor<{self.shape}xf32>")
        stored = body.both("arith.addf", loaded, one, self.shape, "f32")
        body.lines.append(f"    tt.store {pointer}, {stored}, {box} : {tile}")
        arguments = (
            "%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n0: i32, %n1: i32, %d: i32, %s: i32, %o: i32"
        )
        lines = "\n".join(body.lines)
        return (
            f"module {{\n  tt.func public @random({arguments}, %k: i32) {{\n{lines}\n"
            "    tt.return\n  }\n}\n"
        )

    def _index(self, axis: int, program: str) -> str:
        """Coordinates of a program's tile along an axis."""
        body, size = self.body, str(self.sizes[axis])
        first = body.op(f"arith.muli {program}, {body.number(self.sizes[axis])} : i32")
        along = body.op(
            f"tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32>"
        )
        return body.both("arith.addi", body.splat(first, size), along, size)

    def _changed(self, axis: int, index: str, program: str) -> str:
        """What is loaded there: shifted, turned, wrapped or clamped."""
        body, size = self.body, str(self.sizes[axis])
        n = body.splat(f"%n{axis}", size)
        kind = self.draw.choice(KINDS)
        if self.wider and self.draw.random() < 0.1:
            kind = "remainder"
        if kind == "program":  # what only a launch knows the sign of
            before = body.op(f"arith.subi {program}, {body.number(self.draw.randint(0, 1))} : i32")
            times = body.op(f"arith.muli {before}, {body.number(6)} : i32")
            half = body.op(f"arith.divsi {times}, {body.number(2)} : i32")
            return body.both("arith.addi", index, body.splat(half, size), size)
        if kind == "remainder":
            parts = body.op(f"arith.divsi {program}, {body.number(2)} : i32")
            whole = body.op(f"arith.muli {parts}, {body.number(2)} : i32")
            return self._index(axis, body.op(f"arith.subi {program}, {whole} : i32"))
        if kind == "shift":
            return body.both("arith.addi", index, body.splat("%d", size), size)
        if kind == "constant":
            by = body.number(self.draw.randint(-9, 9), size)
            return body.both("arith.addi", index, by, size)
        if kind == "turn":
            last = body.both("arith.subi", n, body.number(1, size), size)
            return body.both("arith.subi", last, index, size)
        if kind == "wrap":
            return body.both("arith.remsi", index, n, size)
        if kind == "where":
            less = body.op(f"arith.cmpi slt, {index}, {n} : tensor<{size}xi32>")
            zero = body.number(0, size)
            kinds = f"tensor<{size}xi1>, tensor<{size}xi32>"
            return body.op(f"arith.select {less}, {index}, {zero} : {kinds}")
        if kind == "min":
            last = body.both("arith.subi", n, body.number(1, size), size)
            return body.both("arith.minsi", index, last, size)
        return index

    def _spread(self, value: str, axis: int, element: str = "i32") -> str:
        """One axis' tile along all."""
        body, size = self.body, self.sizes[axis]
        if len(self.sizes) == 1:
            return value
        sizes = f"{size}x1" if axis == 0 else f"1x{size}"
        wide = body.op(
            f"tt.expand_dims {value} {{axis = {1 - axis} : i32}} : tensor<{size}x{element}> -> "
            f"tensor<{sizes}x{element}>"
        )
        return body.op(
            f"tt.broadcast {wide} : tensor<{sizes}x{element}> -> tensor<{self.shape}x{element}>"
        )

    def _mask(self, indices: list[str], ids: list[str], *, always: bool) -> str:
        """A mask; `always` one that bounds every axis."""
        parts = []
        for axis, index in enumerate(indices):
            size = str(self.sizes[axis])
            if always or self.draw.random() < 0.75:
                limit = f"%n{axis}"
                if self.draw.random() < 0.3:
                    by = self.body.number(self.draw.randint(-3, 1 if always else 3))
                    limit = self.body.op(f"arith.addi {limit}, {by} : i32")
                word = "slt" if always else self.draw.choice(["slt", "slt", "sle", "ult"])
                parts.append(self._compare(word, index, self.body.splat(limit, size), axis))
            if self.draw.random() < 0.2:
                least = self.body.number(self.draw.randint(-2, 4), size)
                parts.append(self._compare("sge", index, least, axis))
            if self.draw.random() < 0.1:
                rest = self.body.both("arith.remsi", index, self.body.number(3, size), size)
                parts.append(self._compare("ne", rest, self.body.number(1, size), axis))
        if self.draw.random() < 0.15:
            flag = self.body.op(f"arith.cmpi slt, {self.draw.choice(ids)}, %k : i32")
            parts.append(self.body.op(f"tt.splat {flag} : i1 -> tensor<{self.shape}xi1>"))
        if not parts:
            return self.body.op(f"arith.constant dense<true> : tensor<{self.shape}xi1>")
        mask = parts[0]
        for part in parts[1:]:
            name = self.draw.choice(["arith.andi", "arith.muli"]) if self.wider else "arith.andi"
            mask = self.body.both(name, mask, part, self.shape, "i1")
        return mask

    def _compare(self, word: str, one: str, two: str, axis: int) -> str:
        size = self.sizes[axis]
        found = self.body.op(f"arith.cmpi {word}, {one}, {two} : tensor<{size}xi32>")
        return self._spread(found, axis, "i1")

    def _pointer(self, root: str, indices: list[str], stride: str) -> str:
        body, last = self.body, len(self.sizes) - 1
        offset = self._spread(indices[last], last)
        if last:
            size = str(self.sizes[0])
            rows = body.both("arith.muli", indices[0], body.splat(stride, size), size)
            offset = body.both("arith.addi", self._spread(rows, 0), offset, self.shape)
        tile = f"tensor<{self.shape}x!tt.ptr<f32>>"
        base = body.op(f"tt.splat {root} : !tt.ptr<f32> -> {tile}")
        return body.op(f"tt.addptr {base}, {offset} : {tile}, tensor<{self.shape}xi32>")

    def _loaded(self, indices: list[str], mask: str, ids: list[str]) -> str:
        body, tile = self.body, f"tensor<{self.shape}x!tt.ptr<f32>>"
        pointer = self._pointer("%x", indices, "%o" if self.in_place else "%s")
        kind = f"tensor<{self.shape}xf32>"
        other = body.op(f"arith.constant dense<{self.draw.choice(['0.0', '-7.0'])}> : {kind}")
        if self.draw.random() < 0.2:
            number = body.op("arith.sitofp %d : i32 to f32")
            other = body.op(f"tt.splat {number} : f32 -> {kind}")
        if not self.loops:
            return body.op(f"tt.load {pointer}, {mask}, {other} : {tile}")
        zero = body.op(f"arith.constant dense<0.0> : {kind}")
        if self.wider and self.draw.random() < 0.5:
            return self._from_the_end(indices, other, zero)
        low, step = body.number(0), body.number(self.draw.choice([1, 1, 3]))
        body.count += 1
        result = f"%v{body.count}"
        body.lines.append(
            f"    {result}:2 = scf.for %i = {low} to %k step {step} iter_args(%p = {pointer}, "
            f"%sum = {zero}) -> ({tile}, {kind})  : i32 {{"
        )
        loaded = body.op(f"tt.load %p, {mask}, {other} : {tile}")
        total = body.both("arith.addf", "%sum", loaded, self.shape, "f32")
        by = self.draw.choice([body.number(self.draw.randint(1, 40)), "%s", "%d"])
        moved = body.op(
            f"tt.addptr %p, {body.splat(by, self.shape)} : {tile}, tensor<{self.shape}xi32>"
        )
        body.lines.append(f"      scf.yield {moved}, {total} : {tile}, {kind}")
        body.lines.append("    }")
        return f"{result}#1"

    def _from_the_end(self, indices: list[str], other: str, zero: str) -> str:
        """A loop that goes backwards along the last axis, a tile at a time; masked or not."""
        body, tile = self.body, f"tensor<{self.shape}x!tt.ptr<f32>>"
        kind, last = f"tensor<{self.shape}xf32>", len(self.sizes) - 1
        size = str(self.sizes[last])
        begin, step = body.number(self.draw.choice([0, -1])), body.number(1)
        past = body.op(f"arith.addi {begin}, %k : i32")
        body.count += 1
        result = f"%v{body.count}"
        body.lines.append(
            f"    {result} = scf.for %i = {begin} to {past} step {step} iter_args(%sum = {zero}) "
            f"-> ({kind})  : i32 {{"
        )
        left = body.op(f"arith.subi {past}, %i : i32")
        trip = body.op(f"arith.subi {left}, {body.number(1)} : i32")
        first = body.op(f"arith.muli {trip}, {body.number(self.sizes[last])} : i32")
        moved = body.both("arith.addi", indices[last], body.splat(first, size), size)
        mask = self._compare("slt", moved, body.splat(f"%n{last}", size), last)
        pointer = self._pointer("%x", [*indices[:last], moved], "%s")
        loaded = body.op(f"tt.load {pointer}, {mask}, {other} : {tile}")
        total = body.both("arith.addf", "%sum", loaded, self.shape, "f32")
        body.lines.append(f"      scf.yield {total} : {kind}")
        body.lines.append("    }")
        return result

    def arguments(self) -> list[Any]:
        """x, out (flat, the pointers are `FRONT` elements in), n0, n1, d, s, o, k."""
        drawn = np.random.default_rng(self.draw.randrange(1 << 30))
        x = drawn.integers(-50, 50, FRONT + BEHIND).astype(np.float32)
        out = np.full(FRONT + BEHIND, -1000, np.float32)
        apart = self.draw.choice([100, 128])  # rows that are stored do not overlap
        numbers = [self.n[0], self.n[-1], self.shift, self.stride, apart, self.draw.randint(1, 3)]
        return [x, out, *numbers]


@dataclass
class Launch:
    """A kernel with its memory before a launch and after it, x and out; the pointer of `out` is
    `behind` elements in. `near`: both are into one array."""

    kernel: Kernel
    memory: list[Any]
    expected: list[Any]
    numbers: list[int]
    behind: int = FRONT

    @classmethod
    def drawn(cls, draw: random.Random, *, near: bool, wider: bool) -> Launch:
        """By the interpreter. IndexError where it leaves its memory."""
        kernel = Kernel(draw, wider=wider)
        x, out, *numbers = kernel.arguments()
        behind = FRONT
        if near:
            kernel.grid = (1, 1)
            behind += draw.choice([-128, -100, -7, 1, 32, 50, 64, 300])
            out = x
        one = x.copy()
        expected = [one, one if near else out.copy()]
        given = [Pointer(expected[0], FRONT), Pointer(expected[1], behind)]
        run(read_kernel(kernel.text), [*given, *numbers], kernel.grid)
        return cls(kernel, [x, out], expected, numbers, behind)

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        pairs = zip(self.memory, self.expected, strict=True)
        return any(not np.array_equal(before, after) for before, after in pairs)


def drawn(seed: int, *, near: bool, wider: bool) -> tuple[Launch, int]:
    """The first launch of a seed that stays in its memory and writes, and how many were drawn."""
    for attempt in itertools.count():
        draw = random.Random(f"{seed} {attempt}" if attempt else seed)
        try:
            launch = Launch.drawn(draw, near=near, wider=wider)
        except IndexError:
            continue
        if launch.writes:
            return launch, attempt + 1
    raise AssertionError


def check(seed: int, tally: Counter[str], *, near: bool = False, wider: bool = False) -> None:
    """Draws one kernel, and compares all of the memory. AssertionError where it differs. `near`:
    both pointers are into one array; `wider`: see `Kernel`."""
    launch, attempts = drawn(seed, near=near, wider=wider)
    x, out = launch.memory
    compiled = tilec.triton.kernel(launch.kernel.text).on("emulator")
    compiled[launch.kernel.grid](x[FRONT:], out[launch.behind :], *launch.numbers)
    for name, found, right in zip(("x", "out"), launch.memory, launch.expected, strict=True):
        differ = np.flatnonzero(found != right)
        assert not differ.size, f"seed {seed}: {name}{differ[:8] - FRONT}: {found[differ[:8]]}"
    tally["equal"] += 1
    tally["drawn anew"] += attempts - 1
    tally["accesses raised"] += len(compiled.plan().raised)
    tally["accesses kept"] += len(compiled.plan().kept)
    joined = any(groups for _, _, groups, *_ in compiled._plans)
    tally["joined" if joined else "apart"] += 1


def main() -> None:
    """Draws kernels by consecutive seeds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--near", action="store_true")
    parser.add_argument("--wider", action="store_true")
    arguments = parser.parse_args()
    os.environ["TILEC_TARGET"] = arguments.target
    tally: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        check(seed, tally, near=arguments.near, wider=arguments.wider)
    print(f"{arguments.target}, seeds from {arguments.seed}: {dict(tally)}")


if __name__ == "__main__":
    main()
