"""Pointers cast to larger elements: through them go so many of the memory's own elements.

Before:   %w = tt.bitcast %p : tensor<64x!tt.ptr<i8>> -> tensor<64x!tt.ptr<f32>>
          %x = tt.load %w
After:    %q = %p and the three bytes behind each : tensor<64x4x!tt.ptr<i8>>
          %b = tt.load %q ; %x = the four of a row, shifted to their places and or-ed, as f32

So an array has elements of one type whatever a kernel takes it for, and accesses of unlike types
(scales between bytes of a cache) are in order. A cast pointer may be advanced and spread over
tiles; through loops and branches it is not followed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.terms.dtypes import BY_MLIR
from tilec.triton.program import Block, Function, Op, Type, Value, defining

_SPREAD = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape")


def split_casts(function: Function) -> None:
    """Replaces such casts in a function of one block. CompileError, at the op, for one that is
    not followed."""
    narrow: dict[Value, Value] = {}
    for block in function.blocks:
        _block(block, narrow, {})


def _block(block: Block, narrow: dict[Value, Value], found: dict[Value, Value]) -> None:
    """`narrow`: the pointers that stand for cast ones; `found`: values in the place of others."""
    ops: list[Op] = []
    for op in block.ops:
        op.operands = [found.get(value, value) for value in op.operands]
        for region in op.regions:
            _block(region, narrow, found)
        made = _Made(op, block)
        if _widens(op):
            narrow[op.result] = narrow.get(op.operands[0], op.operands[0])
        elif op.name == "tt.bitcast" and op.operands[0] in narrow:
            narrow[op.result] = narrow[op.operands[0]]
        elif not any(value in narrow for value in op.operands):
            made.ops.append(op)
        elif op.name in _SPREAD:
            narrow[op.result] = made.like(op, narrow[op.operands[0]])
        elif op.name == "tt.addptr":
            narrow[op.result] = made.advanced(narrow[op.operands[0]])
        elif op.name == "tt.load":
            found[op.result] = made.loaded(narrow[op.operands[0]])
        elif op.name == "tt.store":
            made.stored(narrow[op.operands[0]])
        else:
            raise op.error("a pointer cast to larger elements is loaded and stored through alone")
        ops += made.ops
    block.ops = ops


def _widens(op: Op) -> bool:
    """Whether it is such a cast; not of an argument as it is, which makes all of its memory an
    array of the larger elements."""
    kinds = [value.type.pointee for value in (*op.operands, *op.results)]
    if op.name != "tt.bitcast" or not all(kinds):
        return False
    splat = defining(op.operands[0], "tt.splat")
    is_argument = isinstance((splat or op).operands[0].owner, Block)
    before, after = (_bits(kind or "") for kind in kinds)
    return 0 < before < after and not is_argument


def _bits(element: str) -> int:
    """Of a number; 0 of what is none, or of part of a byte."""
    known = BY_MLIR.get(element)
    return known.bits if known is not None and known.bits >= 8 else 0


class _Made:
    """What stands for one op."""

    def __init__(self, op: Op, block: Block) -> None:
        self.op, self.block, self.ops = op, block, list[Op]()
        pointee = op.operands[0].type.pointee if op.operands else None
        self.wide = pointee or ""

    def add(
        self, name: str, operands: Sequence[Value], kind: Type, text: str = "",
        attributes: dict[str, str] | None = None,
    ) -> Value:  # fmt: skip
        """One more op, with one result."""
        made = Op(name, list(operands), self.op.location, {}, attributes or {}, text=text)
        made.block = self.block
        made.results = [Value("part", kind, made, 0)]
        self.ops.append(made)
        return made.results[0]

    def like(self, op: Op, pointer: Value) -> Value:
        """The same for another pointer."""
        kind = Type(pointer.type.element, op.result.type.shape)
        return self.add(op.name, [pointer], kind, attributes=dict(op.attributes))

    def advanced(self, pointer: Value) -> Value:
        """By as many elements of the memory, counted in 64 bits."""
        offset = self.op.operands[1]
        kind = offset.type.with_element("i64")
        if offset.type != kind:
            offset = self.add("arith.extsi", [offset], kind)
        count = self.constant(self.count(pointer), kind)
        offset = self.add("arith.muli", [offset, count], kind)
        return self.add("tt.addptr", [pointer, offset], pointer.type)

    def count(self, pointer: Value) -> int:
        """The memory's elements in one of the larger."""
        return _bits(self.wide) // _bits(pointer.type.pointee or "")

    def loaded(self, pointer: Value) -> Value:
        """The parts, put together; where a mask is false, what the load says, or 0."""
        mask, other = (*self.op.operands[1:], None, None)[:2]
        parts, shape = self.parts(pointer)
        given = [parts] if mask is None else [parts, self.spread(mask, shape)]
        load = self.add("tt.load", given, Type(pointer.type.pointee or "", shape))
        load.owner.words = dict(self.op.words)  # type: ignore[union-attr]
        own, word = self.integers(load.type), Type(f"i{_bits(self.wide)}", shape)
        bits = self.add("arith.extui", [self.cast(load, own)], word)
        bits = self.add("arith.shli", [bits, self.places(pointer, word)], word)
        whole = self.cast(self.joined(bits), self.op.result.type)
        if mask is None or other is None:
            return whole
        return self.add("arith.select", [mask, whole, other], whole.type)

    def stored(self, pointer: Value) -> None:
        """Each part to its place."""
        _, value, *mask = self.op.operands
        parts, shape = self.parts(pointer)
        word = Type(f"i{_bits(self.wide)}", shape)
        bits = self.spread(self.cast(value, self.integers(value.type)), shape)
        bits = self.add("arith.shrui", [bits, self.places(pointer, word)], word)
        kind = Type(pointer.type.pointee or "", shape)
        bits = self.cast(self.add("arith.trunci", [bits], self.integers(kind)), kind)
        masks = [self.spread(one, shape) for one in mask]
        store = Op("tt.store", [parts, bits, *masks], self.op.location, dict(self.op.words))
        store.block = self.block
        self.ops.append(store)

    def parts(self, pointer: Value) -> tuple[Value, tuple[int, ...]]:
        """Pointers to all parts, along one axis more, and their shape."""
        count = self.count(pointer)
        shape = (*(pointer.type.shape or ()), count)
        number = self.numbers(shape, "i32")
        wide = self.spread(pointer, shape)
        return self.add("tt.addptr", [wide, number], wide.type), shape

    def numbers(self, shape: tuple[int, ...], element: str) -> Value:
        """0, 1, ... along the last axis."""
        attributes = {"start": "0 : i32", "end": f"{shape[-1]} : i32"}
        found = self.add("tt.make_range", [], Type("i32", shape[-1:]), attributes=attributes)
        if element != "i32":
            name = "arith.extsi" if _bits(element) > 32 else "arith.trunci"
            found = self.add(name, [found], Type(element, shape[-1:]))
        for _ in shape[1:]:
            kind = Type(element, (1, *(found.type.shape or ())))
            found = self.add("tt.expand_dims", [found], kind, attributes={"axis": "0 : i32"})
        return self.add("tt.broadcast", [found], Type(element, shape))

    def places(self, pointer: Value, word: Type) -> Value:
        """By how many bits each part is shifted: the first has the lowest."""
        number = self.numbers(word.shape or (), word.element)
        width = self.constant(_bits(pointer.type.pointee or ""), word)
        return self.add("arith.muli", [number, width], word)

    def spread(self, value: Value, shape: tuple[int, ...]) -> Value:
        """The same for all parts of an element."""
        kind = Type(value.type.element, shape)
        if value.type.shape is None:
            return self.add("tt.splat", [value], kind)
        axis = {"axis": f"{len(shape) - 1} : i32"}
        single = Type(value.type.element, (*shape[:-1], 1))
        value = self.add("tt.expand_dims", [value], single, attributes=axis)
        return self.add("tt.broadcast", [value], kind)

    def joined(self, bits: Value) -> Value:
        """The bits of each row in one number: a reduction along the last axis."""
        outer = (bits.type.shape or ())[:-1]
        kind = Type(bits.type.element, outer or None)
        axis = {"axis": f"{len(outer)} : i32"}
        result = self.add("tt.reduce", [bits], kind, attributes=axis)
        reduction, single = self.ops[-1], Type(bits.type.element)
        body = Block("^bb0", reduction)
        body.arguments = [Value(name, single, body, n) for n, name in enumerate("ab")]
        either = Op("arith.ori", list(body.arguments), self.op.location)
        either.results = [Value("either", single, either, 0)]
        body.ops = [either, Op("tt.reduce.return", [either.result], self.op.location)]
        either.block = body.ops[-1].block = body
        reduction.regions = [body]
        return result

    def integers(self, kind: Type) -> Type:
        """Integers of as many bits."""
        return kind.with_element(f"i{_bits(kind.element)}")

    def cast(self, value: Value, kind: Type) -> Value:
        """The same bits as another type."""
        return value if value.type == kind else self.add("tt.bitcast", [value], kind)

    def constant(self, number: int, kind: Type) -> Value:
        """A number everywhere."""
        text = f"{number} : {kind}" if kind.shape is None else f"dense<{number}> : {kind}"
        return self.add("arith.constant", [], kind, text=text)
