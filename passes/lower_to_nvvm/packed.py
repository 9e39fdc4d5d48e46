"""Elementwise work on several elements that lie in one word: f16 and bf16 by pairs, bytes by fours.

A tile of 2-byte floats has two elements a word where it was loaded, where tensor cores read it and
where it is stored; between these `add.rn.f16x2` and the like compute both (PTX ISA 9.0, "Half
precision floating point instructions"). Bytes are combined bit by bit, four at a time, and become
floats without instructions that convert, whose rate is a quarter of the others' (CUDA C++
Programming Guide, "Arithmetic instructions"), of a byte c (c7, its low 7 bits):

    f16:  0x6400 + c is 1024 + c; of i8 the sign is flipped first, which adds 128
    bf16: 0x4300 + c7 is 128 + c7, 0x4300 + 0x80 is 256: what the upper bit counts comes apart

8-bit floats become pairs of these by `convert-floats`, and stay pairs.

Only where a word is there already: elements that come one by one stay so, but for bytes that become
floats. To put four of these together takes three instructions, or one where they come by twos, and
nothing converts: a step of 128 x 128 x 64 with an lhs of i8 that two warpgroups multiply as bf16,
whose bytes come by twos, takes 151 instructions of PTX, 199 where twos are taken apart first. The
results are those of the elements one by one: each lane rounds for itself, and all these conversions
are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.def_use import defining_op
from tilec.dialects.gpu_tile.types import layout_of
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.hardware.target import Feature
from tilec.passes.analysis.divisibility import number_of
from tilec.passes.layouts.maps import register_permutation, run_first
from tilec.passes.layouts.runs import register_run
from tilec.passes.lower_to_nvvm.access import call_intrinsic, elements_of, vector_of
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.scalars import as_signed, binary, create

_FLOATS = (
    *("arith.addf", "arith.subf", "arith.mulf"),
    *("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"),
)
_BITS = ("arith.andi", "arith.ori", "arith.xori")
_SHIFTS = ("arith.shrsi", "arith.shrui", "arith.shli")
_CONVERSIONS = ("arith.sitofp", "arith.uitofp")
_FOUR = 0x01010101
"""Times which a byte is four of them."""
_SIGN, _BYTE = 0x80, 0xFF
"""Of a byte: its sign, and all of it."""
_UPPER = {"f16": 0x64, "bf16": 0x43}
"""The upper byte of 1024 in f16, of 128 in bf16, whose lowest bit counts 1."""
_HALVES = (0x5150, 0x5352)
"""Selectors of prmt: two bytes of its first operand, each below a byte of its second."""

Words = list[ir.Value]


def lower_packed(op: ir.Operation, state: Lowering) -> bool:
    """Lowers an op whose elements lie in words; False where they do not, or it has none of these
    ways."""
    if len(op.results) != 1 or not is_tile(op.results[0]):
        return False
    to, source = str(element(op.results[0])), op.operands[0]
    from_bytes = is_tile(source) and str(element(source)) == "i8"
    if op.name in _FLOATS and _has_pairs(to, state):
        return _by_pairs(op, state)
    if op.name == "arith.extf" and is_tile(source) and bit_width(element(source)) == 8:
        return to in _UPPER and _widen_pairs(op, state)
    if op.name in _BITS and from_bytes:
        return _combine_bytes(op, state)
    if op.name in _SHIFTS and from_bytes:
        return _shift_bytes(op, state)
    if op.name in _CONVERSIONS and from_bytes and _has_pairs(to, state):
        return _convert_bytes(op, to, state)
    return False


def _has_pairs(dtype: str, state: Lowering) -> bool:
    """Whether the target adds and multiplies two of these at a time."""
    paired = Feature.BF16_ARITHMETIC
    return dtype == "f16" or (dtype == "bf16" and state.context.target.supports(paired))


def _groups(registers: Sequence[ir.Value], size: int) -> list[tuple[ir.Value, ...]]:
    return [tuple(registers[at : at + size]) for at in range(0, len(registers), size)]


def _by_pairs(op: ir.Operation, state: Lowering) -> bool:
    columns = [state.registers(operand) for operand in op.operands]
    if len(columns[0]) != len(columns[1]) or len(columns[0]) % 2:
        return False
    every = _orders(op.results[0], len(columns[0]))
    orders = [order for order in every if _is_paired(columns, order, state)]
    if not orders:
        return False
    order = min(orders, key=lambda order: _packed(columns, order, state))
    type_ = ir.VectorType.get([2], element(op.results[0]))
    attributes = dict(op.attributes.items())
    found: dict[int, ir.Value] = {}
    for numbers in _twos_of(order):
        vectors = [_pair(_members(column, numbers), type_, state) for column in columns]
        whole = create(op.name, vectors, type_, **attributes)
        found.update(zip(numbers, apart(whole, type_, state), strict=True))
    state.values[op.results[0]] = [found[number] for number in range(len(order))]
    return True


def _orders(tile: ir.Value, count: int) -> list[Sequence[int]]:
    """The orders in which `count` registers of a thread may be paired: as they are, and, where they
    are the whole tile's, its neighbours along a dimension one behind the other, as they come out of
    words and go to buffers."""
    layout, sizes = layout_of(tile), shape(tile)
    found: list[Sequence[int]] = [range(count)]
    if count != layout.num_values:  # a large tile's, a few at a time
        return found
    for dim in range(len(sizes)):
        neighbours = run_first(layout, dim)
        if register_run(neighbours, dim) > 1 and neighbours != layout:
            order = register_permutation(layout, neighbours, sizes)
            found += [] if order is None or len(set(order)) < len(order) else [order]
    return found


def _is_paired(columns: Sequence[Words], order: Sequence[int], state: Lowering) -> bool:
    """Whether of each operation's pairs one is there already."""
    return all(
        any(_is_whole(_members(column, numbers), state) for column in columns)
        for numbers in _twos_of(order)
    )


def _packed(columns: Sequence[Words], order: Sequence[int], state: Lowering) -> int:
    """The words that have to be put together."""
    pairs = {_members(column, two) for column in columns for two in _twos_of(order)}
    return sum(state.whole(members) is None for members in pairs)


def _twos_of(order: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(order[::2], order[1::2], strict=True))


def _members(column: Words, numbers: tuple[int, int]) -> tuple[ir.Value, ...]:
    return tuple(column[number] for number in numbers)


def _is_whole(members: tuple[ir.Value, ...], state: Lowering) -> bool:
    """Whether a pair is a word, or one number, which is packed in front of loops."""
    return state.whole(members) is not None or members[0] == members[1]


def _widen_pairs(op: ir.Operation, state: Lowering) -> bool:
    """8-bit floats, which are converted by pairs (`convert-floats`): so they stay. bf16 comes by
    way of f32, which holds all of them."""
    registers = state.registers(op.operands[0])
    if len(registers) % 2:
        return False
    to = element(op.results[0])
    through = to if str(to) == "f16" else ir.F32Type.get()
    type_ = ir.VectorType.get([2], to)
    found = []
    for members in _groups(registers, 2):
        pair = vector_of([create(op.name, [m], through) for m in members], state)
        if through != to:
            pair = create("arith.truncf", [pair], type_)
        found += apart(pair, type_, state)
    state.values[op.results[0]] = found
    return True


def _pair(members: tuple[ir.Value, ...], type_: ir.Type, state: Lowering) -> ir.Value:
    whole = state.whole(members)
    if whole is None:
        return vector_of(members, state)
    return whole if whole.type == type_ else create("llvm.bitcast", [whole], type_)


def apart(whole: ir.Value, type_: ir.Type, state: Lowering) -> list[ir.Value]:
    """The elements of a word or vector, as which `type_` sees it."""
    vector = whole if whole.type == type_ else create("llvm.bitcast", [whole], type_)
    members = elements_of(vector, state)
    state.note_whole(members, whole)
    return members


def _set_bytes(op: ir.Operation, words: Words, state: Lowering) -> bool:
    type_ = ir.VectorType.get([4], ir.IntegerType.get_signless(8))
    state.values[op.results[0]] = [m for word in words for m in apart(word, type_, state)]
    return True


def _combine_bytes(op: ir.Operation, state: Lowering) -> bool:
    columns = [_words(operand, state) for operand in op.operands]
    one, other = (column or [] for column in columns)
    if not one or len(one) != len(other):
        return False
    words = [create(op.name, [a, b], state.i32) for a, b in zip(one, other, strict=True)]
    return _set_bytes(op, words, state)


def _words(value: ir.Value, state: Lowering) -> Words | None:
    """The bytes of a tile by fours; None where they are no words. A constant is as many as that."""
    known, registers = _splat(value), state.registers(value)
    if len(registers) % 4:
        return None
    if known is not None:
        return [state.i32_constant(as_signed(known * _FOUR, 32))] * (len(registers) // 4)
    found = [state.whole(members) for members in _groups(registers, 4)]
    words = [word for word in found if word is not None and word.type == state.i32]
    return words if len(words) == len(found) else None


def _gathered(value: ir.Value, state: Lowering) -> Words:
    """The bytes of a tile by fours, put together where threads hold them one by one, or by twos;
    none where there are no fours."""
    registers = state.registers(value)
    fours = _groups(registers, 4) if len(registers) % 4 == 0 else []
    parts = [_twos(four, state) or four for four in fours]
    return [create("llvm.bitcast", [vector_of(each, state)], state.i32) for each in parts]


def _twos(four: Sequence[ir.Value], state: Lowering) -> Words | None:
    """Four bytes as the two half words that they came out of; None where they did not."""
    found = [state.whole(two) for two in _groups(four, 2)]
    halves = [word for word in found if word is not None and bit_width(word.type) == 16]
    return halves if len(halves) == len(found) else None


def _splat(value: ir.Value) -> int | None:
    """The byte that all elements of a constant are; None for other tiles."""
    number = number_of(value)
    return None if number is None else number & _BYTE


def _shift_bytes(op: ir.Operation, state: Lowering) -> bool:
    by, words = _splat(op.operands[1]), _words(op.operands[0], state)
    if words is None or by is None or not 0 < by < 8:
        return False
    right = op.name != "arith.shli"
    kept = _BYTE >> by if right else (_BYTE << by) & _BYTE
    found = []
    for word in words:
        name = "arith.shrui" if right else "arith.shli"
        shifted = _masked(create(name, [word, state.i32_constant(by)], state.i32), kept, state)
        if op.name == "arith.shrsi" and not _is_masked(op.results[0], kept):
            shifted = _extended(shifted, _SIGN >> by, state)
        found.append(shifted)
    return _set_bytes(op, found, state)


def _is_masked(value: ir.Value, kept: int) -> bool:
    """Whether all that use a tile of bytes take these bits of it alone."""
    masks = [_mask(use.owner.operation) for use in value.uses]
    return all(mask is not None and not mask & ~kept for mask in masks)


def _extended(word: ir.Value, sign: int, state: Lowering) -> ir.Value:
    """Numbers of fewer bits, of which `sign` is the upper one, as bytes: (x ^ sign) - sign, where
    128 more keeps a borrow from the next byte."""
    for name, byte in (("arith.xori", sign), ("arith.addi", _SIGN - sign), ("arith.xori", _SIGN)):
        constant = state.i32_constant(as_signed(byte * _FOUR, 32))
        word = create(name, [word, constant], state.i32)
    return word


def _masked(word: ir.Value, byte: int, state: Lowering) -> ir.Value:
    return state.arith("andi", word, as_signed(byte * _FOUR, 32))


def _convert_bytes(op: ir.Operation, to: str, state: Lowering) -> bool:
    words = _words(op.operands[0], state) or _gathered(op.operands[0], state)
    if not words:
        return False
    type_ = ir.VectorType.get([2], element(op.results[0]))
    most = _most(op.operands[0])
    is_signed = op.name == "arith.sitofp" and most >= _SIGN
    found = []
    for word in words:
        if to == "f16":
            pairs = _to_f16(word, is_signed, type_, state)
        elif most < _SIGN:
            pairs = _minus(_numbers(word, to, type_, state), 128.0, type_, state)
        else:
            pairs = _to_bf16(word, is_signed, type_, state)
        for pair in pairs:
            found += apart(pair, type_, state)
    state.values[op.results[0]] = found
    return True


def _most(value: ir.Value) -> int:
    """What the bytes of a tile are at most, unsigned."""
    op = defining_op(value)
    mask = None if op is None else _mask(op)
    return _BYTE if mask is None else mask


def _mask(op: ir.Operation) -> int | None:
    """The constant that an op lets bits pass by; None for other ops."""
    operands = filter(is_tile, op.operands) if op.name == "arith.andi" else ()
    masks = map(_splat, operands)
    return next((mask for mask in masks if mask is not None), None)


def _to_f16(word: ir.Value, is_signed: bool, type_: ir.Type, state: Lowering) -> Words:
    if is_signed:
        word = state.arith("xori", word, as_signed(_SIGN * _FOUR, 32))
    base = 1024.0 + (_SIGN if is_signed else 0)
    return _minus(_numbers(word, "f16", type_, state), base, type_, state)


def _to_bf16(word: ir.Value, is_signed: bool, type_: ir.Type, state: Lowering) -> Words:
    low = _numbers(_masked(word, _SIGN - 1, state), "bf16", type_, state)
    # 128, and 256 where the upper bit is set, which makes i8 less by 128 and u8 more.
    upper = _numbers(_masked(word, _SIGN, state), "bf16", type_, state)
    if not is_signed:
        all_ = _both(256.0, type_, state)
        upper = [binary("arith.subf", all_, pair) for pair in upper]
    return [binary("arith.subf", a, b) for a, b in zip(low, upper, strict=True)]


def _minus(pairs: Words, number: float, type_: ir.Type, state: Lowering) -> Words:
    taken = _both(number, type_, state)
    return [binary("arith.subf", pair, taken) for pair in pairs]


def _numbers(word: ir.Value, to: str, type_: ir.Type, state: Lowering) -> Words:
    """Two pairs of floats whose lower bytes are those of a word."""
    upper = state.i32_constant(_UPPER[to] * _FOUR)
    for_each = [state.i32_constant(selector) for selector in _HALVES]
    words = [call_intrinsic("llvm.nvvm.prmt", [word, upper, s], [state.i32])[0] for s in for_each]
    return [create("llvm.bitcast", [each], type_) for each in words]


def _both(number: float, type_: ir.Type, state: Lowering) -> ir.Value:
    one = state.constant(type_.element_type, number)
    return vector_of((one, one), state)
