"""Quotients and remainders of 64-bit numbers that fit 32 bits wherever anybody needs them.

    %x = addi (splat %at), %range : tensor<512xi64>      (0 or more)
    %inside = cmpi slt, %x, (splat (extsi %n))           (%n an i32)
    %row = arith.divsi %x, (splat (extsi %m)) {tilec.narrow}
    ... tt.load %p + %row * %stride, %inside

Whatever is divided beside that mask is less than an i32: `elementwise.py` divides its lower 31
bits, and what masks leave out is some number. So it does without signs, where the divisor is no
negative one (`choose_unsigned`, which a launch's numbers decide). No GPU divides integers: of 64
bits ptxas makes a branch for each quotient, which asks whether both fit 32, so that nothing of one
serves another by the same divisor. Libraries that generate kernels for tensors of any size
(FlagGems) have such tiles: `repeat`, three quotients an element, has 480 instructions for eight
elements where it had 704 for four.

Followed from the quotient on through what computes element by element: all that comes of it has to
be an operand of an access with that mask. Does not handle scalars, and axes that are added or moved
in between.
"""

from __future__ import annotations

from tilec.triton.forms import Forms
from tilec.triton.op_facts import constant_integer
from tilec.triton.program import Block, Function, Op, Value, defining, walk
from tilec.triton.signs import Signs

NARROW, UNSIGNED = "tilec.narrow", "unsigned"
_DIVISIONS = ("arith.divsi", "arith.remsi")
_ELEMENTWISE = ("arith.", "math.", "tt.addptr", "tt.bitcast", "tt.fp_to_fp")
_MASK_OF = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}
"""The operand that is an access's mask."""


def mark_narrow_quotients(function: Function) -> None:
    """Gives those of a function of one block the attribute NARROW."""
    found = _Narrow(function)
    for block in function.blocks:
        for op in walk(block):
            if op.name in _DIVISIONS and op.result.type.element == "i64" and found.fits(op):
                op.attributes[NARROW] = "signed"


def choose_unsigned(function: Function, signs: Signs) -> None:
    """Marks those whose divisor is not negative."""
    for block in function.blocks:
        for op in walk(block):
            divisor = signs.forms.integer(op.operands[1]) if NARROW in op.attributes else None
            if divisor is not None and signs.of(divisor):
                op.attributes[NARROW] = UNSIGNED


class _Narrow:
    """The uses of a kernel's values, and what is known of its numbers."""

    def __init__(self, function: Function) -> None:
        self.signs = Signs(Forms(function), frozenset(), trusts=False)
        self.uses: dict[Value, list[tuple[Op, int]]] = {}
        for block in function.blocks:
            self._note(block)

    def _note(self, block: Block) -> None:
        for op in walk(block):
            for number, operand in enumerate(op.operands):
                self.uses.setdefault(operand, []).append((op, number))

    def fits(self, op: Op) -> bool:
        """Whether a quotient or a remainder may be one of 32 bits."""
        dividend, divisor = op.operands
        if op.result.type.shape is None or not _is_small(divisor):
            return False
        while (inner := defining(dividend, *_DIVISIONS, "arith.shrsi")) is not None:
            dividend = inner.operands[0]  # which is no less
        form = self.signs.forms.integer(dividend)
        if form is None or not self.signs.of(form):
            return False
        return self._is_needed_below(op.result, dividend)

    def _is_needed_below(self, value: Value, number: Value) -> bool:
        """Whether all that comes of `value` is masked by an i32 that `number` is less than."""
        seen, todo = {value}, [value]
        while todo:
            for op, place in self.uses.get(todo.pop(), ()):
                if op.name in _MASK_OF:
                    if not _is_masked(op, number):
                        return False
                    if op.name != "tt.load" or place != 2:
                        continue
                elif not op.name.startswith(_ELEMENTWISE) or op.regions:
                    return False
                todo += [result for result in op.results if result not in seen]
                seen.update(op.results)
        return True


def _is_masked(access: Op, number: Value) -> bool:
    place = _MASK_OF[access.name]
    return len(access.operands) > place and _bounds(access.operands[place], number)


def _bounds(mask: Value, number: Value) -> bool:
    """Whether where a mask is true `number` is less than an i32."""
    both = defining(mask, "arith.andi")
    if both is not None:
        return any(_bounds(part, number) for part in both.operands)
    compared = defining(mask, "arith.cmpi")
    if compared is None or "slt" not in compared.words:
        return False
    return compared.operands[0] is number and _is_small(compared.operands[1])


def _is_small(value: Value) -> bool:
    """Whether an i64, or each element of a splat, is an i32."""
    while (move := defining(value, "tt.splat", "arith.shrsi")) is not None:
        value = move.operands[0]
    constant = defining(value, "arith.constant")
    if constant is not None:
        number = constant_integer(constant)
        return number is not None and -(1 << 31) <= number < 1 << 31
    wide = defining(value, "arith.extsi")
    return wide is not None and wide.operands[0].type.element in ("i8", "i16", "i32")
