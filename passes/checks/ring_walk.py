"""Walks through a kernel as far as scalars and control flow go; the rest is for who walks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile import CountedCopy, RingOp
from tilec.passes.checks.ring_scalars import Scalars, needed_scalars
from tilec.passes.checks.ring_state import Turn
from tilec.passes.rewriting.loops import terminator
from tilec.passes.rewriting.walk import all_ops

_CONTROL = ("scf.for", "scf.if", "scf.while")


class Code:
    """A kernel's blocks as what is played of them: ops of the kinds `played`, control flow, and the
    scalars that decide on either."""

    def __init__(self, function: ir.Operation, played: tuple[type, ...]) -> None:
        self._played = played
        self._scalars = needed_scalars(_deciding(function))
        self._blocks: dict[ir.Block, list[tuple[ir.Operation, str]]] = {}
        self._yields: dict[ir.Block, list[ir.Value]] = {}

    def ops(self, block: ir.Block) -> list[tuple[ir.Operation, str]]:
        """Lists the ops of a block that are played, each with how that is done."""
        found = self._blocks.get(block)
        if found is None:
            kinds = [(view.operation, self._kind(view)) for view in block.operations]
            found = [(op, kind) for op, kind in kinds if kind is not None]
            self._blocks[block] = found
        return found

    def yields(self, block: ir.Block) -> list[ir.Value]:
        """The operands of a block's terminator."""
        if block not in self._yields:
            self._yields[block] = list(terminator(block).operands)
        return self._yields[block]

    def _kind(self, view: ir.OpView) -> str | None:
        op = view.operation
        if op.name in _CONTROL:
            return op.name
        if isinstance(view, self._played):
            return "played"
        return "scalar" if op in self._scalars else None


def _deciding(function: ir.Operation) -> list[ir.Value]:
    """The values that decide what is played: bounds, conditions, and turns of rings."""
    found: list[ir.Value] = []

    for op in all_ops(function):
        view = op.opview
        if op.name == "scf.for":
            found.extend(list(op.operands)[:3])
        elif op.name in ("scf.if", "scf.condition"):
            found.append(op.operands[0])
        elif isinstance(view, RingOp):
            found.extend(op.operands)
        elif isinstance(view, gpu_tile.SlotOp):
            found.append(view.index)
        elif isinstance(view, CountedCopy):
            found.extend([view.slot] + ([] if view.mask is None else [view.mask]))
    return found


class Walk:
    """One way through a kernel, block by block. `values`: what its scalars and slots are known to
    be."""

    def __init__(self, code: Code, scalars: Scalars, values: dict[ir.Value, Any]) -> None:
        self.code, self.scalars, self.values = code, scalars, values

    def play(self, op: ir.Operation) -> Iterator[ir.Operation]:
        """Plays an op that is no scalar; yields it as long as it has to wait for others."""
        raise NotImplementedError

    def count(self) -> None:
        """Notes that another iteration begins; raises where enough have been played."""
        raise NotImplementedError

    def block(self, block: ir.Block) -> Iterator[ir.Operation]:
        """Runs a block; yields an op where it has to wait for others."""
        for op, kind in self.code.ops(block):
            if kind == "scf.for":
                yield from self._for(op)
            elif kind == "scf.if":
                yield from self._if(op)
            elif kind == "scf.while":
                yield from self._while(op)
            elif kind == "played":
                yield from self.play(op)
            elif kind == "scalar":
                operands = [self.number(value) for value in op.operands]
                self.values.update(self.scalars.compute(op, operands))

    def number(self, value: ir.Value) -> Any:
        """The integer that a scalar is, as a turn is the number of its slot; None where it is not
        followed."""
        found = self.values.get(value)
        return found.slot if isinstance(found, Turn) else found

    def _for(self, op: ir.Operation) -> Iterator[ir.Operation]:
        lower, upper, step = map(self.number, op.operands[:3])
        lower, upper, step = lower or 0, upper or 0, step or 1  # what is no integer is not followed
        inits = [self.values.get(value) for value in op.operands[3:]]
        body = op.regions[0].blocks[0]
        induction, *carried = body.arguments
        at = lower
        while at < upper:
            self.count()
            self.values[induction] = at
            self.values.update(zip(carried, inits, strict=True))
            yield from self.block(body)
            inits = self._yielded(body)
            at += max(1, step)  # a step that is made up may be 0
        self.values.update(zip(op.results, inits, strict=True))

    def _if(self, op: ir.Operation) -> Iterator[ir.Operation]:
        region = op.regions[0 if self.number(op.operands[0]) else 1]
        if region.blocks:
            yield from self.block(region.blocks[0])
            self.values.update(zip(op.results, self._yielded(region.blocks[0]), strict=False))

    def _while(self, op: ir.Operation) -> Iterator[ir.Operation]:
        before, after = (region.blocks[0] for region in op.regions)
        given = [self.values.get(value) for value in op.operands]
        while True:
            self.count()
            self.values.update(zip(before.arguments, given, strict=True))
            yield from self.block(before)
            goes_on, *passed = self._yielded(before)
            if not goes_on:
                self.values.update(zip(op.results, passed, strict=True))
                return
            self.values.update(zip(after.arguments, passed, strict=True))
            yield from self.block(after)
            given = self._yielded(after)

    def _yielded(self, block: ir.Block) -> list[Any]:
        return [self.values.get(value) for value in self.code.yields(block)]
