"""Block pointers and descriptors: what the author says an array is, and where in it a tile lies.

    %p = tt.make_tensor_ptr %x, [%M, %N], [%stride, 1], [%m, %n]     ->  sizes, strides, offsets
    %q = tt.advance %p, [0, 64]                                      ->  offsets + (0, 64)

In a loop that advances one by the same every time the offsets are inductions. A descriptor is the
same without offsets, which its loads and stores bring.
"""

from __future__ import annotations

from dataclasses import replace

from tilec.records import dataclass
from tilec.triton.forms import Forms
from tilec.triton.polynomial import ZERO, Polynomial
from tilec.triton.program import Op, Value

MADE = ("tt.make_tensor_ptr", "tt.make_tensor_descriptor")


@dataclass(frozen=True)
class Block:
    """`root`: the pointer argument; `base`: elements from there; `sizes`, `strides` and `offsets` a
    number a dimension; `made`: the op that says so."""

    root: Value
    base: Polynomial
    sizes: tuple[Polynomial, ...]
    strides: tuple[Polynomial, ...]
    offsets: tuple[Polynomial, ...]
    made: Op

    def moved(self, by: tuple[Polynomial, ...]) -> Block:
        """With other offsets."""
        pairs = zip(self.offsets, by, strict=True)
        return replace(self, offsets=tuple(one + two for one, two in pairs))


def block_of(value: Value, forms: Forms) -> Block | None:
    """What a block pointer or descriptor points to; None where it is not followed, through
    branches or from arguments."""
    if not isinstance(value.owner, Op):
        return _carried(value, forms)
    op = value.owner
    if op.name in MADE:
        return _made(op, forms)
    if op.name == "tt.advance":
        before, by = block_of(op.operands[0], forms), _forms(op.operands[1:], forms)
        return None if before is None or by is None else before.moved(by)
    return None


def _forms(values: list[Value], forms: Forms) -> tuple[Polynomial, ...] | None:
    found = [forms.integer(value) for value in values]
    known = tuple(form for form in found if form is not None)
    return known if len(known) == len(found) else None


def _made(op: Op, forms: Forms) -> Block | None:
    pointer, *numbers = op.operands
    rooted = forms.pointer(pointer)
    found = _forms(numbers, forms)
    if rooted is None or rooted.offset is None or found is None:
        return None
    rank = len(numbers) // (3 if op.name == "tt.make_tensor_ptr" else 2)
    offsets = found[2 * rank :] or (ZERO,) * rank
    return Block(rooted.root, rooted.offset, found[:rank], found[rank : 2 * rank], offsets, op)


def _carried(value: Value, forms: Forms) -> Block | None:
    """Describes a block pointer that a for loop carries, where each iteration advances it by one
    distance, or not at all; None for others."""
    loop = value.owner.parent if not isinstance(value.owner, Op) else None
    if loop is None or loop.name != "scf.for":
        return None
    init = block_of(loop.operands[2 + value.number], forms)
    if init is None:
        return None
    after = loop.regions[0].terminator.operands[value.number - 1]
    step = (ZERO,) * len(init.offsets)
    while after is not value:
        if not isinstance(after.owner, Op) or after.owner.name != "tt.advance":
            return None
        by = _forms(after.owner.operands[1:], forms)
        if by is None or any(forms.varies(s, loop) for form in by for s in form.symbols):
            return None
        step = tuple(one + two for one, two in zip(step, by, strict=True))
        after = after.owner.operands[0]
    trip = Polynomial.of(forms.symbol("trip", loop.regions[0].arguments[0]))
    return init.moved(tuple(trip * one for one in step))
