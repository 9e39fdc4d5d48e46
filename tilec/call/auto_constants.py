"""The usual sizes of `tl.auto` constants: finds what each is for, then looks one up.

The kernel is built once with a probe for each constant: 16 times a prime of its own, so that the
shapes in the IR show which constants they are made of (less where tiles would be too large). A
constant that is a dimension of a dot gets that dimension's size, any other that is a dimension of a
tile its part of an elementwise size, beside the tile's other dimensions.

Sizes (elements): K spans 128 bytes, one row of the widest shared-memory swizzle; 64 where warps
multiply on tensor cores, so that a second CTA fits beside a ring of four slots (4 to 11 % more than
two slots of twice the size, bf16 on an H200). M and N are 128 on tensor cores (64 where a loop
of three or more dots walks along them: several scores are alive beside the sums); N is 256 for
warpgroup instructions, whose operands then take the least shared-memory traffic, where one dot has
the registers, and for sums in tensor memory, which holds two of them; M is 192 where the dots of a
loop, as in attention with narrow heads, leave three warpgroups the registers for 64 rows each: what
stands between the dots then has three warps a scheduler to hide in. Both are 64 where the dot
runs on FMA units (exact f32) or the accumulator has 8 bytes (f64), which need the registers. An
elementwise tile spans 4 KiB of its widest element: two 16-byte accesses for each of 128
threads; its last dimension takes up to 64 elements where several constants share it.

Sizes of arrays are no part of these: `auto_tiles.py` ranks them and those around them (`sides`) for
a class of sizes. What turns out not to fit is halved, the largest size first (`halved`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import isqrt, prod
from typing import Any

from tilec.call.call_class import CallClass
from tilec.call.constant_roles import MOST_NAMES, Parts, Roles, probe
from tilec.call.short_rows import (
    LONGEST_AXIS,
    short_step,
    short_tile,
    walked_length,
    whole_tile,
)
from tilec.call.tile_choice import Constants
from tilec.compile.row_walks import HeldAxis
from tilec.executable.kernel import Parameter
from tilec.hardware.mma_shapes import WIDEST_N
from tilec.hardware.powers import power_above, power_below
from tilec.hardware.sizes import LINE_BYTES, SECTOR_BYTES, SWIZZLE_BITS
from tilec.hardware.target import Feature, Target
from tilec.language.parameters import auto
from tilec.messages.diagnostics import CompileError
from tilec.terms.dtypes import BY_MLIR
from tilec.terms.tile_sizes import USUAL_SIDE

K_BYTES = max(SWIZZLE_BITS)
"""Of k that a tile of warpgroups or tensor memory spans: a row of the widest swizzle (PTX ISA 9.0,
"Swizzling modes")."""
WARP_K_BYTES = 64
"""The same for single warps: with half of it 4 slots of 128 x 128 tiles fit where two CTAs share a
multiprocessor (163 KiB on sm_80)."""
THREE_WARPGROUPS = 192
"""Rows; also the most columns of the dots of a loop: 96 sums a thread, and 32 registers of them as
the operand of the next, of 160."""
STREAMED_SIDE = 64
"""Of what a loop of three or more dots walks along, where the scores of several are alive at once
beside the sums (gradients of attention: 64 keys or queries at a time on an H200 and an A100)."""
FMA_SIDE = 64
"""Of tiles for FMA units and f64: 64 sums for each of 64 threads (`compile/product_warps.py`)."""
LEAST_SIDE = 16
"""Below which a tile that does not fit is not halved: matrix instructions have 16 rows (PTX ISA
9.0, "mma": m16n8)."""
ROWS = (64, 128, 256)
"""Of tiles that warpgroups multiply, whole ones of theirs (PTX ISA 9.0, "wgmma": m64)."""
COLUMNS, COLUMNS_BETWEEN = (32, 64, 128, 256), (96, 160, 192, 224)
"""Columns of theirs that are tried with all rows, and with those that promise most: with all rows
the latter were chosen more often than they were the fastest (17 drawn products, H200)."""
ROWS_OF_MANY, ROWS_OF_FOUR = (64, 128, THREE_WARPGROUPS), (256,)
"""The same where a loop has several dots, which have less room for sums: of two dots narrow ones
leave room for rows of four warpgroups (`compile/product_warps.py`)."""
COLUMNS_OF_MANY = (32, 64, 80, 96, 112, 128, 192)
"""Columns there, which the loop walks along, too: those of 8 sizes that were the fastest on an H200
for some attention or recurrence, and 112: key_gradients of 64 elements, 4096 long, take 1736 us in
112 x 128, 1812 in 96 x 128, 1795 in 128 x 128; causal, 8192 long, 1915, 1979 and 1977."""
BESIDE_STATES = 16
"""Columns, too, that three products of a loop or more have in common, and none sums over: each part
of a recurrence's state is a chain of products of its own, and few programs leave multiprocessors
idle. Gated retention in chunks of 64 takes 104.6 us by 16 columns, 117.8 by 32 (3 x 8 x 3776, 128
and 64 elements), 25.7 and 27.8 (2 x 8 x 1024, 64 and 128), 5.5 and 5.9 (5 x 192; H200)."""
WARP_SIDES = (32, 64, 128)
"""Of tiles that single warps multiply, and of what is rows here and summed over there."""
NARROW_SIDES = (16, 32)
"""Below the least of these: rows of an instruction of single warps (PTX ISA 9.0, "mma": m16n8)."""
NARROW_STEPS = (1, 2, 4)
"""Times the usual k of a tile with such a side, which leaves room for longer steps."""
MANY_DOTS = 2
"""More dots than so many in one loop have several sums of scores alive at once (attention has
two)."""
SMALL_SHARED = 128 * 1024
"""Bytes; below, what a loop of two dots walks along is as short: so that two stages fit where a CTA
has 99 KiB."""
ELEMENTWISE_BYTES = 4096
"""Of a tile where no threads meet, in registers: 16 bytes, one access, for each of 256 threads.
Elements that come one by one take a word each: resizing 16 planes of f16 by four gathers takes 6.4
us with 1024 a program, 8.5 with 4096, turning 8 x 277917 pixels of 3 bytes into planes 8.7 and 9.6,
the 3 x 3 stencil of bytes in 16 x 64 10.5, in 64 x 64 14.9 (H200)."""
STREAMED_BYTES = 8192
"""Of a tile that a loop loads as it walks along a row, or down columns (4096 elements of
cross-entropy in bf16, 2048 of row sums in f32: within 15 % of the best for most rows, H200)."""
STREAMED = (1024, 2048, 4096, 8192, 16384)
"""Elements of such a tile, among which a class of sizes chooses."""
SHORT_STREAMED = (256, 512)
"""Others where a tile is of one row: of many short ones each takes one warp or two. Cross-entropy
of 54248 rows of 736 takes 53.6 us with 256, 78.7 with 1024; sparse rows of 336 and 465 in the mean
11.3 for 13.5 and 93.5 for 101.6 (H200)."""
SHORT_STEPS = 4
"""Of those, that a row takes at most: each waits for what a warp reduces, in registers that hold
the loads of others. Cross-entropy of 15901 rows of 4361 bf16 takes 140 us with 512, in a warp, 114
with 1024, in two, 16384 of 4096 85 and 74, 8000 of 5000 60.6 and 49.8, 8192 of 8192 108 and 80 (and
74.8 with 4096, in four; H200)."""
SHARED_ROW = 64
"""Columns of an elementwise tile of several dimensions: 128 bytes of 2-byte elements, a line of the
caches."""
LONG_ROW = 1024
"""The same where elements come one by one since rows begin anywhere: tiles beside each other share
sectors there. A step of Adafactor on 307 x 6393 bf16 takes 5.6 us in tiles of one row, 6.5 of 4 x
256, 7.2 of 32 x 64; on 3582 x 2669 20.7, 23.0 and 26.3; outer products of 80 and 199 f16, whose
rows are shorter, 7.3 in 4 x 224, 10.2 in 32 x 64; a stencil, 3 x 3 bytes of 938 x 1370, whose tiles
share rows with those above, too, 11.4 in 4 x 256 and 10.5 in 16 x 64 (H200)."""
WHOLE_ROW = 512
"""The same where tiles share nothing with those above: fewer rows of them begin and end inside of
lines. y += u v^T takes 11.6 us in 2 x 512 for 12281 x 728 bf16, in 32 x 64 18.6; 14.9 and 16.9 for
946 x 5561 f32, 19.8 and 21.3 for 6000 x 3072 bf16, 26.0 and 26.7 for 3000 x 4096 f32 (H200)."""
BESIDE_ELEMENTS, MOST_BESIDE = 8192, 32768
"""Of a tile that has as many columns as fill a line, or as fill a sector at least, beside rows that
the author fixes. Norms over 136 channels of 1239 places of f16 take 11.8 us in columns of 32, 11.9
of 64, 14.8 of 16, 20.7 of 8; over 58 of 173 37.5 of 64, 54.1 of 32; over 512 of 3136 bf16 20.9 of
16, 22.5 of 32, 60.6 of 4; over 96 of 400 f32 23.9 of 32, 25.6 of 16, 33.0 of 8; softmax alike, but
of 512 22.3 in columns of 16, 37.8 in 32 (H200)."""


class AutoConstants:
    """The `tl.auto` constants among `constants`, and the others as `given`.

    `values`: the usual size of each, `reasons`: why. CompileError where one is no tile size, so
    that nothing says how large it should be.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        parameters: Sequence[Parameter],
        constants: Mapping[str, Any],
        target: Target,
    ) -> None:
        names = [name for name, value in constants.items() if value is auto]
        if len(names) > MOST_NAMES:
            raise CompileError(f"at most {MOST_NAMES} constants may be tl.auto, found {len(names)}")
        self.given = {name: value for name, value in constants.items() if value is not auto}
        self._roles = probe(fn, parameters, constants, names)
        self._target = target
        self.values: dict[str, int] = {}
        self.reasons: dict[str, str] = {}
        for name in names:
            value, why = _size(name, self._roles, target)
            self.values[name] = value
            self.reasons[name] = f"{value}: {why}"

    @property
    def is_limited(self) -> bool:
        """Whether static assertions say which constants the kernel can have."""
        return self._roles.is_limited

    def sides(self, name: str) -> tuple[int, ...]:
        """Sizes worth a prediction: the usual one, of sides of dots those that the unit that
        multiplies can have, and of what loops walk along a row by `STREAMED`."""
        usual = self.values[name]
        if _is_streamed_row(name, self._roles):
            beside = _largest(name, self._roles).fixed
            every = (*SHORT_STREAMED, *STREAMED) if len(self.values) == 1 else STREAMED
            sizes = (max(1, size // beside) for size in every)
            return tuple(dict.fromkeys((usual, *sizes)))
        if name not in self._roles.dots:
            return (usual,)
        role, dtype, precision = self._roles.dots[name]
        if _is_on_registers(dtype, precision):
            return (usual,)
        roles = {role for _, role in self._roles.uses[name]}
        if roles == {"k"}:
            return (usual,)
        if not self._target.supports(Feature.WGMMA) or {"m", "k"} <= roles:
            return tuple(dict.fromkeys((usual, *WARP_SIDES)))
        most = max(map(len, self._roles.columns.values()), default=0)
        rows, columns = (ROWS_OF_MANY, COLUMNS_OF_MANY) if most > 1 else (ROWS, COLUMNS)
        if most == 2 and _leaves_three_warpgroups_room(self._roles, self._target):
            rows += ROWS_OF_FOUR
        if most > MANY_DOTS and roles == {"n"}:
            columns = (BESIDE_STATES, *columns)
        return tuple(dict.fromkeys((usual, *(rows if role == "m" else columns))))

    @property
    def covering(self) -> dict[str, int]:
        """The usual sizes in the order of an elementwise tile's dimensions; none where constants
        are for something else, too, or loops walk along rows by the only one."""
        tiles = {_largest(name, self._roles) for name in self.values if name in self._roles.tiles}
        names = next(iter(tiles)).chosen if len(tiles) == 1 else []
        is_row = len(names) == 1 and _is_streamed_row(names[0], self._roles)
        others = self._roles.dots or is_row
        return (
            {} if others or set(names) != set(self.values) else {n: self.values[n] for n in names}
        )

    def in_few_steps(self, candidates: Iterable[Constants], call: CallClass) -> list[Constants]:
        """Those by which no loop walks along a row in more than `SHORT_STEPS` short steps."""
        return [tiles for tiles in candidates if not self._steps_often(dict(tiles), call)]

    def _steps_often(self, tiles: Mapping[str, int], call: CallClass) -> bool:
        for name, size in tiles.items():
            if _is_streamed_row(name, self._roles) and name in self._roles.steps:
                is_short = size * _largest(name, self._roles).fixed < STREAMED[0]
                longest = walked_length(self._roles.steps[name], call)
                if is_short and longest is not None and longest > SHORT_STEPS * size:
                    return True
        return False

    def walked(self, call: CallClass, names: Collection[str]) -> dict[str, int | None]:
        """Those of some constants that loops walk on by, and how many elements at most in calls of
        a class; None where nobody knows."""
        steps = self._roles.steps
        return {name: walked_length(steps[name], call) for name in names if name in steps}

    def shallow(self, call: CallClass) -> dict[str, int]:
        """Of k of dots, elements of the narrowest swizzle that holds all a loop walks along, where
        that is not the usual one: a longer slot would be zeros that somebody writes."""
        steps, found = self._roles.steps, {}
        for name in (name for name in self.values if name in steps and self._is_along_k(name)):
            longest, usual = walked_length(steps[name], call), self.values[name]
            bits = BY_MLIR[self._roles.dots[name][1]].bits
            sizes = (span * 8 // bits for span in sorted(SWIZZLE_BITS))
            short = next((n for n in sizes if longest is not None and longest <= n), usual)
            found |= {name: short} if short < usual else {}
        return found

    def deeper(self, tiles: Mapping[str, int]) -> dict[str, int] | None:
        """The tiles with twice the usual k, which take half of the steps; None where they have
        another k, or single warps multiply by this target's fastest instructions."""
        deep = {name for name in self.values if self._is_along_k(name)}
        if not deep or not self._target.supports(Feature.WGMMA):
            return None
        if any(tiles[name] != self.values[name] for name in deep):
            return None
        return {name: value * (2 if name in deep else 1) for name, value in tiles.items()}

    def between(self, tiles: Mapping[str, int]) -> list[dict[str, int]]:
        """The tiles with columns between powers of two, where warpgroups multiply one dot."""
        names = {self._roles.dots[name][0]: name for name in filter(self.may_be_narrow, tiles)}
        rows = tiles[names["m"]] if "m" in names else USUAL_SIDE
        if "n" not in names or not self._target.supports(Feature.WGMMA) or rows < ROWS[0]:
            return []
        most = USUAL_SIDE * WIDEST_N // rows
        return [{**tiles, names["n"]: n} for n in COLUMNS_BETWEEN if n <= most]

    def is_between(self, tiles: Mapping[str, int]) -> bool:
        """Whether tiles have columns of `between`."""
        wide = [n for n in filter(self.may_be_narrow, tiles) if self._roles.dots[n][0] == "n"]
        return any(tiles[name] in COLUMNS_BETWEEN for name in wide)

    def _is_along_k(self, name: str) -> bool:
        """Whether a constant is k of dots on tensor cores, and nothing else."""
        if name not in self._roles.dots or _is_on_registers(*self._roles.dots[name][1:]):
            return False
        return {role for _, role in self._roles.uses[name]} == {"k"}

    def short_row(
        self, call: CallClass, longest_axis: int = LONGEST_AXIS
    ) -> tuple[dict[str, int], dict[str, str]] | None:
        """The values, and the reasons, where loops walk along rows that one tile holds for calls of
        a class (`short_tile`); None where they do not."""
        name = self._walking()
        size = None if name is None else short_tile(self._roles.steps[name], call, longest_axis)
        if name is None or size is None:
            return None
        return {name: size}, {name: f"{size}: holds a whole row"}

    def short_step(self, call: CallClass) -> tuple[dict[str, int], dict[str, str]] | None:
        """The same where loops add up rows that memory ends in short steps (`short_step`)."""
        name = self._walking()
        size = None if name is None else short_step(self._roles.steps[name], call)
        if name is None or size is None:
            return None
        return {name: size}, {name: f"{size}: steps of rows that end where memory says"}

    def whole_row(
        self, call: CallClass
    ) -> tuple[dict[str, int], dict[str, str], tuple[HeldAxis, ...], bool] | None:
        """The same where loops walk along rows that are whole axes, with these axes, and whether
        several do."""
        name = self._walking()
        found = None if name is None else whole_tile(self._roles.steps[name], call)
        if name is None or found is None:
            return None
        is_read_again = len(self._roles.steps[name]) > 1
        return {name: found[0]}, {name: f"{found[0]}: keeps a whole row"}, found[1], is_read_again

    def _walking(self) -> str | None:
        """The only constant, if loops walk along rows by it and its tiles are of one row."""
        name = next(iter(self.values))
        is_only = len(self.values) == 1 and _is_streamed_row(name, self._roles)
        return name if is_only and _largest(name, self._roles).fixed == 1 else None

    def may_be_narrow(self, name: str) -> bool:
        """Whether a constant is nothing but rows, or columns, of the only dot of its loop."""
        if name not in self._roles.dots or _is_on_registers(*self._roles.dots[name][1:]):
            return False
        is_only = all(len(columns) == 1 for columns in self._roles.columns.values())
        return is_only and {role for _, role in self._roles.uses[name]} in ({"m"}, {"n"})

    def narrow_sides(self, name: str, few: Mapping[str, int]) -> tuple[int, ...]:
        """Sizes of a constant in tiles of single warps: `few` has those of short sides, with which
        k comes in longer steps."""
        if name not in self._roles.dots:
            return (self.values[name],)
        if name in few:
            return (few[name],)
        factors = NARROW_STEPS if self._roles.dots[name][0] == "k" else ()
        return tuple(factor * self.values[name] for factor in factors) or WARP_SIDES

    def halved(self, times: int) -> tuple[dict[str, int], dict[str, str]] | None:
        """The values where the largest is halved so many times, and the reasons; None where no one
        is left to be."""
        values, reasons = dict(self.values), dict(self.reasons)
        for _ in range(times):
            largest = max(values, key=lambda name: values[name])
            whole = values[largest]
            if whole <= LEAST_SIDE:
                return None
            values[largest] = power_below(whole - 1)
            reasons[largest] = f"{values[largest]}: tiles of {whole} do not fit {self._target.name}"
        return values, reasons


def _size(name: str, roles: Roles, target: Target) -> tuple[int, str]:
    if name in roles.dots:
        if roles.dots[name][0] == "m" and _leaves_three_warpgroups_room(roles, target):
            return THREE_WARPGROUPS, f"m of dots of one loop by three warpgroups of {target.name}"
        side, why = _dot_size(*roles.dots[name], target, alone=roles.dot_count == 1)
        if side > STREAMED_SIDE and _is_streamed(name, roles, MANY_DOTS):
            return STREAMED_SIDE, f"{why}, of three or more in a loop along it"
        if side > STREAMED_SIDE and _is_small(target) and _is_streamed(name, roles, 1):
            return STREAMED_SIDE, f"{why}, in a loop along it, which leaves memory for two stages"
        return side, why
    if name not in roles.tiles:
        raise CompileError(
            f"'{name}' is tl.auto, but it is no tile size; give it a value",
        )
    parts = _largest(name, roles)
    others = [part for part in parts.chosen if part not in roles.dots]
    walked = any(part in roles.steps for part in others)
    bytes_ = STREAMED_BYTES if walked else ELEMENTWISE_BYTES
    kind = "tile of a loop" if walked else f"elementwise tile of {bytes_} bytes"
    bits = roles.loaded[1] if walked else roles.moved[1]
    elements = max(1, bytes_ * 8 // max(bits, 8) // parts.fixed)
    if len(others) <= 1:
        beside = f" beside {parts.fixed} elements" if parts.fixed > 1 else ""
        if beside and not walked and roles.keeps_rows and parts.names[-1] == name:
            elements = max(elements, _columns_beside(parts.fixed, roles))
        return elements, f"{kind}{beside}"
    sizes = {other: 1 for other in others}
    if _is_streamed_row(others[-1], roles):
        sizes[others[-1]] = elements
    else:
        sizes[others[-1]] = SHARED_ROW if walked else _row(elements, roles)
        leading = others[:-1]
        sizes[leading[-1]] = max(elements // prod(sizes.values()), 1)
    return sizes[name], f"its part of a {kind}" if walked else f"its part of an {kind}"


def _columns_beside(rows: int, roles: Roles) -> int:
    """Columns of a tile with so many rows: of a line, of fewer where that makes too many elements,
    but of a sector, as far as threads can hold that."""
    in_line, in_sector = (
        8 * size // max(roles.loaded[1], 8) for size in (LINE_BYTES, SECTOR_BYTES)
    )
    columns = max(in_sector, min(in_line, power_below(max(1, BESIDE_ELEMENTS // rows))))
    return columns if columns * rows <= MOST_BESIDE else 1


def _row(elements: int, roles: Roles) -> int:
    """Columns of an elementwise tile of so many elements. Where both sides are rows of an array, at
    whose ends tiles share sectors, the sides are alike: 9 x 550 x 1403 f16 are turned in 11.2 us in
    tiles of 32 x 32, in 16 x 64 13.4, 60 x 777 x 333 in 22.5 and 27.3, 5 x 1023 x 1537 f32 in 23.2
    and 26.3 (H200)."""
    if roles.wants_long_rows:
        return LONG_ROW
    if roles.turns_torn_rows:
        return min(SHARED_ROW, power_above(isqrt(elements)))
    return WHOLE_ROW if roles.keeps_rows else SHARED_ROW


def _largest(name: str, roles: Roles) -> Parts:
    """Of the tiles that a constant is a dimension of, the one with most to choose."""
    return max(roles.tiles[name], key=lambda each: (len(each.chosen), each.fixed))


def _is_streamed_row(name: str, roles: Roles) -> bool:
    """Whether loops walk along rows by a constant: the last dimension of tiles, none of a dot."""
    if name not in roles.steps or name not in roles.tiles or name in roles.dots:
        return False
    return _largest(name, roles).names[-1] == name


def _leaves_three_warpgroups_room(roles: Roles, target: Target) -> bool:
    """Whether warpgroups multiply all dots, each has a second one with the same rows, and these are
    narrow together."""
    narrow = all(len(ns) > 1 and sum(ns) <= THREE_WARPGROUPS for ns in roles.columns.values())
    exact = any(dtype in ("f32", "f64") for _, dtype, _ in roles.dots.values())
    return target.supports(Feature.WGMMA) and narrow and not exact


def _is_small(target: Target) -> bool:
    return target.shared_bytes < SMALL_SHARED


def _is_streamed(name: str, roles: Roles, most: int) -> bool:
    """Whether a loop of more than `most` dots sums over a constant that is a side of one before."""
    uses = roles.uses[name]
    crowded = [block for block, columns in roles.columns.items() if len(columns) > most]
    return any((block, "k") in uses and len(uses) > 1 for block in crowded)


def _is_on_fma(dtype: str, precision: str) -> bool:
    return dtype == "f32" and precision == "ieee"


def _is_on_registers(dtype: str, precision: str) -> bool:
    """Whether a dot runs on FMA units, or has sums of 8 bytes, so that one size fits."""
    return _is_on_fma(dtype, precision) or BY_MLIR[dtype].bits == 64


def _dot_size(
    role: str, dtype: str, precision: str, target: Target, *, alone: bool
) -> tuple[int, str]:
    bits = BY_MLIR[dtype].bits
    on_fma = _is_on_fma(dtype, precision)
    in_tensor_memory = Feature.TCGEN05_I8 if dtype == "i8" else Feature.TCGEN05
    wide = target.supports(Feature.WGMMA) or target.supports(in_tensor_memory)
    if role == "k":
        span = K_BYTES if wide or on_fma or bits == 64 else WARP_K_BYTES
        return span * 8 // bits, f"k of a dot of {dtype}, usually {span} bytes"
    if on_fma or bits == 64:
        unit = "FMA units" if on_fma else "8-byte accumulators"
        return FMA_SIDE, f"{role} of a dot of {dtype} on {unit} of {target.name}"
    if role == "n" and alone and wide:
        return WIDEST_N, f"n of a dot of {dtype} by the wide instructions of {target.name}"
    return USUAL_SIDE, f"{role} of a dot of {dtype} on tensor cores of {target.name}"
