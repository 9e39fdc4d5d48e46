"""What of a kernel is built: what memory or control flow ends up needing.

Pointers and masks that became arrays are not, nor what was computed for them alone; nor what a loop
carries as an induction, which is written with the loop's trips where somebody reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilec.triton.effects import STORES, has_effect
from tilec.triton.forms import Form, Forms
from tilec.triton.program import Block, Op, Value, defining, walk
from tilec.triton.raising import Raised, stored

_COMBINING = ("tt.reduce", "tt.scan", "tt.map_elementwise")


class Live:
    """`values`: those that are built; `ops`: those that are."""

    def __init__(self, block: Block, forms: Forms, raised: Mapping[Op, Raised]) -> None:
        self.forms, self.raised = forms, raised
        self.values: set[Value] = set()
        self.ops: set[Op] = set()
        self.inductions: dict[Value, Form] = {}
        self._todo: list[Value] = []
        for op in walk(block):
            if has_effect(op):
                self._op(op)
        self._run()
        self._check_loops(block)

    def _run(self) -> None:
        while self._todo:
            value = self._todo.pop()
            if value in self.values:
                continue
            self.values.add(value)
            if isinstance(value.owner, Op):
                self._result(value.owner, value)
            else:
                self._argument(value.owner, value)

    def _check_loops(self, block: Block) -> None:
        """An induction that is read behind its loop, too, is carried after all."""
        for op in walk(block):
            for number, result in enumerate(op.results if op.name == "scf.for" else ()):
                argument = op.regions[0].arguments[1 + number]
                if result in self.values and argument in self.inductions:
                    del self.inductions[argument]
                    self._carried(op, number)
                    self._run()

    def _need(self, values: Iterable[Value]) -> None:
        self._todo += values

    def _op(self, op: Op) -> None:
        """An op that is built, and what is around it."""
        if op in self.ops:
            return
        self.ops.add(op)
        self._need(self._operands(op))
        around = op.block.parent if op.block else None
        if around is not None and around.name not in _COMBINING:
            self._op(around)

    def _operands(self, op: Op) -> list[Value]:
        """What an op itself reads, not what its regions pass on."""
        if op.name == "scf.for":
            return op.operands[:3]
        if op.name == "scf.while":
            ends = [region.terminator for region in op.regions]
            return [*op.operands, *(value for end in ends for value in end.operands)]
        if op not in self.raised:
            return op.operands
        needed = [s.value for offset in self.raised[op].offsets for s in offset.symbols]
        steps = [loop_of(v).operands[:3] for v in needed if not isinstance(v.owner, Op)
                 and v.owner.parent is not None]  # fmt: skip
        values = op.operands[1:]
        if op.name in STORES:
            values = [stored(op)]
        elif op.name != "tt.load" or len(values) < 2 or constant_behind(values[1]) is not None:
            values = []
        return [*needed, *(value for step in steps for value in step), *values]

    def _result(self, op: Op, value: Value) -> None:
        self._op(op)
        if op.name == "scf.for":
            self._carried(op, value.number)
        elif op.name == "scf.if":
            self._need(region.terminator.operands[value.number] for region in op.regions)

    def _carried(self, loop: Op, number: int) -> None:
        argument = loop.regions[0].arguments[1 + number]
        self._need([loop.operands[3 + number], loop.regions[0].terminator.operands[number]])
        self._need([argument])

    def _argument(self, block: Block, value: Value) -> None:
        loop = block.parent
        if loop is None or loop.name in _COMBINING:
            return
        self._op(loop)
        if loop.name != "scf.for" or value.number == 0:
            return
        form = self._induction(value)
        if form is None:
            self._carried(loop, value.number - 1)
            return
        self.inductions[value] = form
        self._need(s.value for s in form.symbols if s.value is not None)

    def _induction(self, value: Value) -> Form:
        """The form of what a loop carries, where it can be written with the loop's trips."""
        if value.type.pointee:
            pointer = self.forms.pointer(value)
            form = None if pointer is None else pointer.offset
        else:
            form = self.forms.integer(value) if value.type.is_integer else None
        form = self.forms.usable(form)
        own = form is not None and any(
            s.value is value or s.kind == "wrapped" for s in form.symbols
        )
        return None if own else form


def constant_behind(value: Value) -> Op | None:
    """The arith.constant that a value, or what it is a splat of, comes from."""
    splat = defining(value, "tt.splat")
    return defining(splat.operands[0] if splat else value, "arith.constant")


def loop_of(variable: Value) -> Op:
    """The loop of a variable."""
    loop = getattr(variable.owner, "parent", None)
    assert isinstance(loop, Op)
    return loop
