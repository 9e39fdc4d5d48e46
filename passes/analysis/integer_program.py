"""The integers of a kernel, read once for `index_ranges.py`: a step an op, a rule a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from mlir import ir

from tilec.dialects import gpu_tile, tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile import LaunchCount
from tilec.dialects.op import TileOp
from tilec.dialects.tile import GridAxis
from tilec.dialects.types import is_index, number_type, shape
from tilec.executable.grid import GRID_LIMITS
from tilec.executable.kernel import MOST_PROGRAMS
from tilec.hardware.sizes import PORTABLE_CTAS
from tilec.passes.analysis.divisibility import constant_of, static_sizes
from tilec.passes.analysis.intervals import (
    ANYTHING,
    NARROW,
    RULES,
    Interval,
    Rule,
    always,
    constant_rule,
    joined,
    modulo,
)
from tilec.passes.analysis.launch_texts import described
from tilec.passes.demands.kernels import MOST_PER_CTA, MOST_STRIPES, is_whole
from tilec.passes.rewriting.walk import blocks_in
from tilec.records import dataclass


@dataclass
class Block:
    """A block of the IR: the numbers of its arguments, and its ops as steps."""

    arguments: list[int | None]
    steps: list[Step] = field(default_factory=list)


@dataclass
class Step:
    """An op of the program. Its operands and results are numbers of values, None for values that
    are no integers."""

    name: str
    operands: list[int | None]
    results: list[int | None]
    rule: Rule | None
    blocks: list[Block]
    op: ir.Operation


class IntegerProgram:
    """The integers of one function: scalars and tiles, carried values included.

    `size_limit`: sizes of arrays are below it.
    """

    def __init__(self, function: ir.Operation, size_limit: int) -> None:
        self.full: list[Interval] = []
        """What a value's type holds."""
        self.assumed: dict[int, Interval] = {}
        self.of_grid: dict[int, int] = {}
        """Ids of programs along x (0) and how many there are (1)."""
        self.texts: dict[int, str] = {}
        self.sizes: set[int] = set()
        """Sizes of arrays, as they are."""
        self._size_limit = size_limit
        self._most_ctas = MOST_PROGRAMS if is_whole(function) else _MOST_RESIDENT
        self._numbers: dict[ir.Value, int] = {}
        body = function.regions[0].blocks[0]
        self.body = self._read(body)
        for argument in body.arguments:  # launched with what 32 bits hold
            if is_index(argument):
                self.full[self._numbers[argument]] = NARROW

    @property
    def values(self) -> Mapping[ir.Value, int]:
        """Numbers every integer value, in the order of the program."""
        return self._numbers

    def _read(self, block: ir.Block) -> Block:
        found = Block([self._number(argument) for argument in block.arguments])
        for view in block.operations:
            op = view.operation
            operands = [self._numbers.get(operand) for operand in op.operands]
            results = [self._number(result) for result in op.results]
            if isinstance(view, tile.AssumeOp) and operands[0] is not None:
                self._assume(view, operands[0])
            inner = [self._read(b) for b in blocks_in(op)]
            if len(results) == 1 and results[0] is not None and not inner:
                self._describe(op, results[0])
            if inner or any(result is not None for result in results) or op.name in TERMINATORS:
                rule = None if inner else self._rule(op, results)
                found.steps.append(Step(op.name, operands, results, rule, inner, op))
        return found

    def _number(self, value: ir.Value) -> int | None:
        kind = number_type(value)
        if is_index(kind):
            full = ANYTHING
        elif isinstance(kind, ir.IntegerType):
            half = 1 << (kind.width - 1)
            full = (0, 1) if kind.width == 1 else (-half, half - 1)
        else:
            return None
        self._numbers[value] = number = len(self.full)
        self.full.append(full)
        return number

    def _describe(self, op: ir.Operation, number: int) -> None:
        """Writes what follows from sizes as an expression of `tilec.executable.grid`."""
        text = described(op, lambda value: self.texts.get(self._numbers[value]))
        if text is not None:
            self.texts[number] = text
            if op.name == "memref.dim":
                self.sizes.add(number)

    def _assume(self, op: tile.AssumeOp, number: int) -> None:
        low, high = self.assumed.get(number, ANYTHING)
        facts = op.facts
        self.assumed[number] = (max(low, facts.get("min", low)), min(high, facts.get("max", high)))

    def _rule(self, op: ir.Operation, results: Sequence[int | None]) -> Rule | None:
        """The rule by which an op without regions gives an interval; None: its result may be
        anything."""
        view = op.opview
        if isinstance(view, GridAxis):
            return self._of_grid(view, results)
        if isinstance(view, LaunchCount):
            return always((view.LEAST, self._most_ctas - 1 + view.LEAST))
        few = _few(view)
        if few is not None:
            return always(few)
        if op.name == "arith.addi" and _is_modulo(op):
            return modulo
        if isinstance(view, tile.IotaOp):
            return always((0, shape(view.result)[view.axis] - 1))
        if isinstance(view, TileOp) and view.MOVES:
            return joined
        if op.name == "memref.dim":
            return always(self._size(op))
        if op.name == "arith.constant":
            return constant_rule(op.attributes["value"])
        if not isinstance(view, TileOp) or isinstance(view, tile.InlinePtxOp):
            return RULES.get(op.name)
        # Another op of ours that gives an index counts something.
        counts = any(is_index(value) for value in op.results)
        return always(NARROW) if counts else None

    def _of_grid(self, op: GridAxis, results: Sequence[int | None]) -> Rule | None:
        first = op.LEAST
        if op.axis == 0 and results[0] is not None:
            self.of_grid[results[0]] = first
            return None
        return always((first, GRID_LIMITS[op.axis] - 1 + first))

    def _size(self, op: ir.Operation) -> Interval:
        axis = constant_of(op.operands[1])
        known = None if axis is None else static_sizes(op.operands[0])[axis]
        return (0, self._size_limit - 1) if known is None else (known, known)


def _few(view: object) -> Interval | None:
    """The interval of an op's result, where that counts CTAs beside this one, or bytes in front of
    a row."""
    if isinstance(view, gpu_tile.ClusterPositionOp):
        return 0, PORTABLE_CTAS - 1
    if isinstance(view, gpu_tile.ProgramInCtaOp):
        return 0, MOST_PER_CTA - 1
    if isinstance(view, gpu_tile.NumProgramsInCtaOp):
        return 1, MOST_PER_CTA
    if isinstance(view, (tile.StripeIdOp, tile.PartIdOp)):
        return 0, MOST_STRIPES - 1
    return (0, view.bytes - 1) if isinstance(view, tile.MisalignmentOp) else None


TERMINATORS = ("scf.yield", "scf.condition", "gpu.yield", "func.return")
_MOST_RESIDENT = 2**16
"""CTAs that run side by side: 32 a multiprocessor (CUDA C++ Programming Guide, "Compute
Capabilities"), and a few hundred of these."""


def _is_modulo(op: ir.Operation) -> bool:
    """Whether an addition is that of `x % y` as Python has it: a remainder and its divisor, chosen
    where the signs differ."""
    remainder, divisor = op.operands
    modulo = defining_op(remainder, "arith.remsi")
    if modulo is None:
        return False
    users = [use.owner.name for use in op.results[0].uses]
    return modulo.operands[1] == divisor and set(users) == {"arith.select"}
