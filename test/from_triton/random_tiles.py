"""Random kernels of what is done with tiles: on the emulator as NumPy's interpreter has it.

    python test/from_triton/random_tiles.py --target sm_90a --seed 1 --count 1000

Tiles of one to three dimensions and of any dtype are loaded by one pointer, twice at places apart,
or along a loop that carries pointers; what is loaded is masked, reduced or scanned along an axis,
and stored, added up by atomics, or both. Offsets are of 32 or 64 bits. Numbers are whole and small,
so that results are equal. A launch that leaves its memory, races, or writes nothing, is drawn anew.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from interpreter import run
from interpreter_rules import Pointer, Race, Watch
from random_kernels import Text

import tilec.triton
from tilec.triton.reader import read_kernel

SHAPES = ((16,), (64,), (4, 16), (8, 32), (16, 8), (2, 4, 8), (4, 2, 16), (1, 8, 8))
DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
ATOMIC = ("f32", "i32", "i64")
"""Dtypes whose sums atomics give."""
ROOM = 6000
"""Elements of an array; the pointer is at the middle of its first half."""
FRONT = ROOM // 4


class Kernel:
    """One random kernel: `text`, and what it is launched with."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.body = draw, Text()
        self.sizes = draw.choice(SHAPES)
        self.rank = len(self.sizes)
        self.shape = "x".join(map(str, self.sizes))
        self.dtype = draw.choice(list(DTYPES))
        self.work = "i32" if self.dtype.startswith("i") else "f32"
        self.index = draw.choice(["i32", "i32", "i64"])
        self.n = [draw.randint(1, 2 * size + 1) for size in self.sizes]
        self.apart = draw.randint(-9, 40)
        self.trips = draw.randint(0, 3)
        self.grid = (draw.randint(1, 3), draw.randint(1, 2) if self.rank > 1 else 1)
        self.text = self._text()

    def tile(self, element: str) -> str:
        """The type of whole tiles."""
        return f"tensor<{self.shape}x{element}>"

    def _text(self) -> str:
        body = self.body
        ids = [body.op(f"tt.get_program_id {axis} : i32") for axis in "xy"]
        along = [self._along(axis, ids) for axis in range(self.rank)]
        box = self._box(along)
        value = self._loaded(self._pointer("%x", along, "%s"), box)
        for _ in range(self.draw.randint(0, 2)):
            value = self._changed(value, box)
        self._written(value, along, box)
        sizes = "".join(f", %n{axis}: i32" for axis in range(3))
        arguments = (
            f"%x: !tt.ptr<{self.dtype}>, %out: !tt.ptr<{self.dtype}>, %sum: !tt.ptr<{self.work}>"
            f"{sizes}, %s: i32, %d: i32, %k: i32"
        )
        lines = "\n".join(body.lines)
        function = f"  tt.func public @tiles({arguments}) {{\n{lines}\n    tt.return\n  }}\n"
        return f"module {{\n{function}}}\n"

    def _along(self, axis: int, ids: Sequence[str]) -> str:
        """A program's coordinates along an axis, spread over the tile."""
        body, size = self.body, self.sizes[axis]
        kind = f"tensor<{size}xi32>"
        found = body.op(f"tt.make_range {{end = {size} : i32, start = 0 : i32}} : {kind}")
        if axis < 2:
            first = body.op(f"arith.muli {ids[axis]}, {body.number(size)} : i32")
            found = body.both("arith.addi", body.splat(first, str(size)), found, str(size))
        shape = [size]
        for other in range(self.rank):
            if other != axis:
                before = "x".join(map(str, shape))
                shape.insert(other, 1)
                after = "x".join(map(str, shape))
                found = body.op(
                    f"tt.expand_dims {found} {{axis = {other} : i32}} : tensor<{before}xi32> -> "
                    f"tensor<{after}xi32>"
                )
        if shape != list(self.sizes):
            narrow = "x".join(map(str, shape))
            found = body.op(f"tt.broadcast {found} : tensor<{narrow}xi32> -> {self.tile('i32')}")
        return found

    def _box(self, along: Sequence[str]) -> str:
        """Where every coordinate is below its size."""
        flags = []
        for axis, one in enumerate(along):
            limit = self.body.splat(f"%n{axis}", self.shape)
            flags.append(self.body.op(f"arith.cmpi slt, {one}, {limit} : {self.tile('i32')}"))
        mask = flags[0]
        for flag in flags[1:]:
            mask = self.body.both("arith.andi", mask, flag, self.shape, "i1")
        return mask

    def _pointer(self, root: str, along: Sequence[str], stride: str, element: str = "") -> str:
        """Pointers to `((i0 * 9) + i1) * stride + i2`, or as much of it as there are axes."""
        body, element = self.body, element or self.dtype
        offset = along[0]
        for axis in range(1, self.rank):
            by = stride if axis == self.rank - 1 else body.number(9)
            offset = body.both("arith.muli", offset, body.splat(by, self.shape), self.shape)
            offset = body.both("arith.addi", offset, along[axis], self.shape)
        if self.index == "i64":
            offset = body.op(f"arith.extsi {offset} : {self.tile('i32')} to {self.tile('i64')}")
        kind = self.tile(f"!tt.ptr<{element}>")
        base = body.op(f"tt.splat {root} : !tt.ptr<{element}> -> {kind}")
        return body.op(f"tt.addptr {base}, {offset} : {kind}, {self.tile(self.index)}")

    def _load(self, pointer: str, mask: str) -> str:
        """A tile, widened."""
        body = self.body
        number = "0" if self.dtype.startswith("i") else "0.000000e+00"
        kind = self.tile(self.dtype)
        other = body.op(f"arith.constant dense<{number}> : {kind}")
        found = body.op(
            f"tt.load {pointer}, {mask}, {other} : {self.tile(f'!tt.ptr<{self.dtype}>')}"
        )
        return self._converted(found, self.dtype, self.work)

    def _converted(self, value: str, before: str, after: str) -> str:
        if before == after:
            return value
        kinds = f"{self.tile(before)} to {self.tile(after)}"
        if before[0] == "i":
            wider = int(after[1:]) > int(before[1:])
            return self.body.op(f"arith.{'extsi' if wider else 'trunci'} {value} : {kinds}")
        if "f8" in (before[:2], after[:2]):
            return self.body.op(
                f"tt.fp_to_fp {value}{self._rounding(after)} : {kinds.replace(' to ', ' -> ')}"
            )
        return self.body.op(f"arith.{'extf' if after == 'f32' else 'truncf'} {value} : {kinds}")

    def _rounding(self, after: str) -> str:
        return ", rounding = rtne" if after.startswith("f8") else ""

    def _loaded(self, pointer: str, mask: str) -> str:
        """One tile, two of one pointer, or the sum of a loop's."""
        body, add = self.body, f"arith.add{'i' if self.work == 'i32' else 'f'}"
        how = self.draw.choice(["one", "two", "loop"])
        if how == "one":
            return self._load(pointer, mask)
        kind = self.tile(f"!tt.ptr<{self.dtype}>")
        by = body.op(f"tt.splat %d : i32 -> {self.tile('i32')}")
        if how == "two":
            other = body.op(f"tt.addptr {pointer}, {by} : {kind}, {self.tile('i32')}")
            one, two = self._load(pointer, mask), self._load(other, mask)
            return body.both(add, one, two, self.shape, self.work)
        zero = body.op(f"arith.constant dense<{self._zero()}> : {self.tile(self.work)}")
        low, step = body.number(0), body.number(1)
        body.count += 1
        result = f"%v{body.count}"
        body.lines.append(
            f"    {result}:2 = scf.for %i = {low} to %k step {step} iter_args(%p = {pointer}, "
            f"%total = {zero}) -> ({kind}, {self.tile(self.work)})  : i32 {{"
        )
        total = body.both(add, "%total", self._load("%p", mask), self.shape, self.work)
        moved = body.op(f"tt.addptr %p, {by} : {kind}, {self.tile('i32')}")
        body.lines.append(f"      scf.yield {moved}, {total} : {kind}, {self.tile(self.work)}")
        body.lines.append("    }")
        return f"{result}#1"

    def _zero(self) -> str:
        return "0" if self.work == "i32" else "0.000000e+00"

    def _changed(self, value: str, mask: str) -> str:
        """Masked, and combined along an axis: summed, the largest, or sums of what is in front."""
        body, work, tile = self.body, self.work, self.tile(self.work)
        zero = body.op(f"arith.constant dense<{self._zero()}> : {tile}")
        kept = body.op(f"arith.select {mask}, {value}, {zero} : {self.tile('i1')}, {tile}")
        axis = self.draw.randrange(self.rank)
        largest = self.draw.random() < 0.5
        letter = "i" if work == "i32" else "f"
        combine = (
            f"arith.add{letter}"
            if not largest
            else {"i": "arith.maxsi", "f": "arith.maxnumf"}[letter]
        )
        name = self.draw.choice(["reduce", "scan"])
        reverse = f", reverse = {str(self.draw.random() < 0.5).lower()}" if name == "scan" else ""
        body.count += 1
        result = f"%v{body.count}"
        left = [size for other, size in enumerate(self.sizes) if other != axis]
        less = f"tensor<{'x'.join(map(str, left))}x{work}>" if left else work
        made = tile if name == "scan" else less
        body.lines += [
            f'    {result} = "tt.{name}"({kept}) <{{axis = {axis} : i32{reverse}}}> ({{',
            f"    ^bb0(%a: {work}, %b: {work}):",
            f"      %c = {combine} %a, %b : {work}",
            f"      tt.{name}.return %c : {work}",
            f"    }}) : ({tile}) -> {made}",
        ]
        if name == "scan":
            return result
        return self._spread(result, less, axis)

    def _spread(self, value: str, kind: str, axis: int) -> str:
        """What was reduced, along its axis again."""
        tile = self.tile(self.work)
        if self.rank == 1:
            return self.body.op(f"tt.splat {value} : {kind} -> {tile}")
        one = [1 if other == axis else size for other, size in enumerate(self.sizes)]
        narrow = f"tensor<{'x'.join(map(str, one))}x{self.work}>"
        value = self.body.op(f"tt.expand_dims {value} {{axis = {axis} : i32}} : {kind} -> {narrow}")
        return (
            value if narrow == tile else self.body.op(f"tt.broadcast {value} : {narrow} -> {tile}")
        )

    def _written(self, value: str, along: Sequence[str], box: str) -> None:
        """Stored, or added up where several programs may."""
        body, how = self.body, self.draw.choice(["store", "store", "atomic", "both"])
        if how != "store":
            pointer = self._pointer("%sum", along, "%s", self.work)
            letter = (
                "fadd" if self.work == "f32" else self.draw.choice(["add", "max", "umin", "xor"])
            )
            kind = self.tile(f"!tt.ptr<{self.work}>")
            body.op(
                f"tt.atomic_rmw {letter}, relaxed, gpu, {pointer}, {value}, {box} : "
                f"({kind}, {self.tile(self.work)}, {self.tile('i1')}) -> {self.tile(self.work)}"
            )
        if how != "atomic":
            pointer = self._pointer("%out", along, "%s")
            narrow = self._converted(value, self.work, self.dtype)
            body.lines.append(
                f"    tt.store {pointer}, {narrow}, {box} : {self.tile(f'!tt.ptr<{self.dtype}>')}"
            )

    def arguments(self) -> list[Any]:
        """x, out and sum, whose pointers are `FRONT` elements in, then numbers."""
        drawn = np.random.default_rng(self.draw.randrange(1 << 30))
        most = 3 if self.dtype.startswith("f8") else 9
        x = drawn.integers(-most, most + 1, ROOM).astype(np.float32).astype(DTYPES[self.dtype])
        out = np.full(ROOM, 5, np.float32).astype(DTYPES[self.dtype])
        total = drawn.integers(-9, 9, ROOM).astype(DTYPES[self.work])
        sizes = [*self.n, 1, 1][:3]
        return [x, out, total, *sizes, self.draw.choice([33, 48, 70]), self.apart, self.trips]


def drawn(seed: int) -> tuple[Kernel, list[Any], list[Any], list[int], int]:
    """The first kernel of a seed that stays in its memory, writes and does not race: with arrays
    before its launch and after it, numbers, and how many were drawn."""
    for attempt in itertools.count():
        kernel = Kernel(random.Random(f"{seed} {attempt}" if attempt else seed))
        x, out, total, *numbers = kernel.arguments()
        arrays = [x, out, total]
        expected = [array.copy() for array in arrays]
        try:
            given = [Pointer(array, FRONT, Watch(array)) for array in expected]
            run(read_kernel(kernel.text), [*given, *numbers], kernel.grid)
        except (IndexError, Race):
            continue
        pairs = zip(arrays, expected, strict=True)
        if any(before.tobytes() != after.tobytes() for before, after in pairs):
            return kernel, arrays, expected, numbers, attempt + 1
    raise AssertionError


def check(seed: int, tally: Counter[str]) -> None:
    """Draws one kernel, and compares all of the memory. AssertionError where it differs."""
    kernel, arrays, expected, numbers, attempts = drawn(seed)
    compiled = tilec.triton.kernel(kernel.text).on("emulator")
    compiled[kernel.grid](*(array[FRONT:] for array in arrays), *numbers)
    for name, found, right in zip(("x", "out", "sum"), arrays, expected, strict=True):
        one, two = (a.astype(np.float64) for a in (found, right))
        differ = np.flatnonzero(~((one == two) | (np.isnan(one) & np.isnan(two))))
        assert not differ.size, f"seed {seed}: {name}{differ[:8] - FRONT}: {found[differ[:8]]}"
    tally["equal"] += 1
    tally["drawn anew"] += attempts - 1
    tally[kernel.dtype] += 1


def main() -> None:
    """Draws kernels by consecutive seeds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    arguments = parser.parse_args()
    os.environ["TILEC_TARGET"] = arguments.target
    tally: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        try:
            check(seed, tally)
        except AssertionError as error:
            tally["differ"] += 1
            print(error, flush=True)
    print(f"{arguments.target}, seeds from {arguments.seed}: {dict(tally)}")


if __name__ == "__main__":
    main()
