"""The part of a program that some of its ops need: themselves, the loops and branches around them,
scalars."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.op import TileOp
from tilec.dialects.tile import LoadOp
from tilec.dialects.types import is_tile, shape
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.rewriting.free_ops import is_one_element, is_scalar, stays_in_thread
from tilec.passes.rewriting.loops import COUNTED, is_inside, terminator
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.walk import is_of


class Slice:
    """The ops that `roots` need inside `function`. `refusal`: why they cannot stand alone, or None.

    `tiles`: whether tiles may be loaded and computed, element by element, in there, too. `within`:
    an op outside of which all values are given. `what`: that scalars are for, in refusals.
    """

    def __init__(
        self,
        function: ir.Operation,
        roots: Iterable[ir.Operation],
        *,
        tiles: bool = False,
        within: ir.Operation | None = None,
        what: str = "address",
    ) -> None:
        self._function, self._within, self._what = function, within, what
        self._tiles = tiles
        self._kept = OpSet()
        self._carried: OpMap[set[int]] = OpMap()
        self._passed: OpMap[set[int]] = OpMap()  # by the condition of an scf.while
        self.refusal: str | None = None
        for root in roots:
            self._keep(root)

    @property
    def ops(self) -> list[ir.Operation]:
        """Lists everything that belongs to it, loops included, not in the program's order."""
        return list(self._kept)

    def _keep(self, op: ir.Operation) -> None:
        if op in self._kept:
            return
        self._kept.add(op)
        operands = list(op.operands)
        if op.name in COUNTED:  # what it carries is needed one by one
            self._carried.setdefault(op, set())
            self._passed.setdefault(op, set())
            operands = operands[:3]
        if op.name == "scf.while":
            operands = [terminator(op.regions[0].blocks[0]).operands[0]]
        for value in operands:
            self._need(value)
        inside = self._within is None or op != self._within
        if inside and op.parent != self._function:
            self._shell(op.parent)

    def _shell(self, op: ir.Operation) -> None:
        if op.name not in COUNTED:
            self.refusal = self.refusal or f"it stands in '{op.name}'"
            return
        self._keep(op)

    def _need(self, value: ir.Value) -> None:
        if self._within is not None and not is_inside(value, self._within):
            return
        op = defining_op(value)
        if op is None:
            if value.owner.owner != self._function:
                self._need_argument(value.owner, ir.BlockArgument(value).arg_number)
            return
        if op.name in COUNTED:
            self._shell(op)
            give = self._pass if op.name == "scf.while" else self._carry
            give(op, next(i for i, r in enumerate(op.results) if r == value))
        elif op in self._kept:
            return
        elif is_scalar(op) or (self._tiles and stays_in_thread(op)):
            self._keep(op)
        elif is_one_element(op):
            reason = is_of(op, LoadOp) and read_ahead_hazard(
                self._function, [op.opview.src], "the kernel"
            )
            self.refusal = self.refusal or reason or None
            self._keep(op)
        elif not (is_of(op, TileOp) and op.opview.COMMON):
            what = "tile" if is_tile(value) and shape(value) else self._what
            self.refusal = self.refusal or f"its {what} depends on '{op.name}'"

    def _need_argument(self, block: ir.Block, number: int) -> None:
        loop = block.owner
        self._shell(loop)
        if loop.name == "scf.for":
            if number:
                self._carry(loop, number - 1)
        elif block == loop.regions[0].blocks[0]:
            self._carry(loop, number)
        else:
            self._pass(loop, number)

    def _carry(self, op: ir.Operation, number: int) -> None:
        """Adds what a value follows from that a loop carries, or that a branch gives."""
        if op.name not in COUNTED or number in self._carried.setdefault(op, set()):
            return
        self._carried[op].add(number)
        if op.name != "scf.if":
            self._need(op.operands[number + (3 if op.name == "scf.for" else 0)])
        for region in list(op.regions)[-1:] if op.name == "scf.while" else op.regions:
            self._need(terminator(region.blocks[0]).operands[number])

    def _pass(self, loop: ir.Operation, number: int) -> None:
        """Adds what a value follows from that the condition of an scf.while passes on."""
        if number not in self._passed.setdefault(loop, set()):
            self._passed[loop].add(number)
            self._need(terminator(loop.regions[0].blocks[0]).operands[1 + number])

    def keep_carried(self, loop: ir.Operation) -> None:
        """Adds all that the values need which a loop (scf.for) carries."""
        self._shell(loop)
        for number in range(len(loop.results)):
            self._carry(loop, number)

    def clone(self) -> None:
        """Writes the slice at the current insertion point."""
        self._clone_block(self._function.regions[0].blocks[0], {})

    def clone_before(self, loop: ir.Operation) -> dict[ir.Value, ir.Value]:
        """Writes what stands in front of `loop`, an op of the function's own block; returns what
        became of each value."""
        mapped: dict[ir.Value, ir.Value] = {}
        self._clone_block(loop.block, mapped, before=loop)
        return mapped

    def clone_body(self, loop: ir.Operation, mapped: dict[ir.Value, ir.Value]) -> list[ir.Value]:
        """Writes one iteration of a loop whose carried values were kept; returns the next ones."""
        inner = dict(mapped)
        self._clone_block(loop.regions[0].blocks[0], inner)
        *_, last = loop.regions[0].blocks[0].operations
        return [inner.get(value, value) for value in last.operands]

    def _clone_block(
        self,
        block: ir.Block,
        mapped: dict[ir.Value, ir.Value],
        before: ir.Operation | None = None,
    ) -> None:
        for view in block.operations:
            op = view.operation
            if before is not None and op == before:
                return
            if op not in self._kept:
                continue
            if op.name in COUNTED:
                self._clone_control(op, mapped)
            else:
                copy = op.clone(ir.InsertionPoint.current).operation
                for number, operand in enumerate(op.operands):
                    copy.operands[number] = mapped.get(operand, operand)
                mapped.update(zip(op.results, copy.results, strict=True))

    def _clone_control(self, op: ir.Operation, mapped: dict[ir.Value, ir.Value]) -> None:
        """Writes a loop or branch with what the slice needs of the values that it carries."""
        carried, passed = sorted(self._carried[op]), sorted(self._passed[op])
        operands, results, blocks = _numbers(op.name, carried, passed)
        given = [op.operands[n] for n in operands]
        new = ir.Operation.create(
            op.name,
            results=[op.results[n].type for n in results],
            operands=[mapped.get(value, value) for value in given],
            regions=len(op.regions),
            loc=op.location,
        )
        for old, region, (taken, yielded) in zip(op.regions, new.regions, blocks, strict=True):
            if not old.blocks:
                continue
            block = old.blocks[0]
            arguments = [block.arguments[n] for n in taken]
            fresh = region.blocks.append(
                *(a.type for a in arguments), arg_locs=[op.location] * len(arguments)
            )
            inner = {**mapped, **dict(zip(arguments, fresh.arguments, strict=True))}
            with ir.InsertionPoint(fresh):
                self._clone_block(block, inner)
                last = terminator(block)
                values = [last.operands[n] for n in yielded]
                ir.Operation.create(last.name, operands=[inner.get(v, v) for v in values])
        mapped.update(zip([op.results[n] for n in results], new.results, strict=True))

    def carried_by(self, loop: ir.Operation) -> list[int]:
        """The numbers of the values that a loop carries in the slice."""
        return sorted(self._carried[loop])

    def clone_turn(
        self, loop: ir.Operation, values: list[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Writes the condition of an scf.while, and an iteration behind it, for `values` of what
        `carried_by` names; returns whether the loop goes on, and the next values."""
        before, body = (region.blocks[0] for region in loop.regions)
        numbers = self.carried_by(loop)
        mapped = dict(zip([before.arguments[n] for n in numbers], values, strict=True))
        self._clone_block(before, mapped)
        condition, *passed = terminator(before).operands
        inner = dict(mapped)
        inner.update({body.arguments[n]: mapped.get(v, v) for n, v in enumerate(passed)})
        self._clone_block(body, inner)
        following = [terminator(body).operands[n] for n in numbers]
        return mapped.get(condition, condition), [inner.get(v, v) for v in following]


_Numbers = tuple[list[int], list[int], list[tuple[list[int], list[int]]]]


def _numbers(name: str, carried: list[int], passed: list[int]) -> _Numbers:
    """Numbers of the operands and the results of a loop or branch, and of the arguments and yielded
    values of each of its blocks, that go with values it carries, and passes on."""
    if name == "scf.while":
        return carried, passed, [(carried, [0, *(1 + n for n in passed)]), (passed, carried)]
    if name == "scf.if":
        return [0], carried, [([], carried)] * 2
    return (
        [0, 1, 2, *(3 + n for n in carried)],
        carried,
        [([0, *(1 + n for n in carried)], carried)],
    )
