"""The rule for inline assembly: PTX run once per element, or per so many elements.

Before:   %y = tt.elementwise_inline_asm "..." {constraints = "=r,r", packed_element = 4} %x
              : tensor<512xi8> -> tensor<512xi8>
After:    tiles of every fourth element, four of them in a word of 32 bits each; tile.inline_ptx on
          tiles of 128 words; and back

Elements narrower than 32 bits stand in one register, as many as it holds, the first in its low
bits; what an operand's registers hold comes in order, operand after operand. An operand with the
constraint "n" is a constant, and stands in the text as its number.
"""

from __future__ import annotations

import re
from typing import Any

from mlir import ir

from tilec.dialects.tile import InlinePtxOp, JoinOp, ReshapeOp, SplitOp
from tilec.terms.dtypes import BY_MLIR
from tilec.triton.build import Builder
from tilec.triton.elementwise import Rule
from tilec.triton.live import constant_behind
from tilec.triton.op_facts import constant_integer
from tilec.triton.program import Op, Type, Value

_REGISTER_BITS = 32
"""What a register of PTX that holds packed elements has (`.b32`)."""
_PLACE = re.compile(r"(?<!\$)\$(\d+)")
"""Where a text names an operand or a result."""
_ESCAPE = re.compile(r'\\([0-9A-Fa-f]{2}|["\\nt])')


def _run(builder: Builder, op: Op, build: Any) -> None:
    pack = op.number("packed_element")
    kinds = [value.type for value in (*op.operands, *op.results)]
    tiles = {kind.shape for kind in kinds if kind.shape is not None}
    if any(kind.pointee for kind in kinds):
        raise op.error("pointers as operands")
    if pack == 1 or not tiles:
        given, text, constraints = _without_numbers(op)
        operands = [builder.get(operand) for operand in given]
        results = [builder.type(value.type) for value in op.results]
        builder.set(op, *_ptx(op, operands, results, text, constraints))
        return
    sizes = _parted(op, tiles, pack)
    registers = [
        register
        for operand in op.operands
        for register in _packed(builder, builder.get(operand), operand.type, sizes)
    ]
    wanted = [_register(builder, value.type, sizes) for value in op.results]
    made = [kind for kinds in wanted for kind in kinds]
    found = _ptx(op, registers, made, _text(op), _constraints(op))
    values = []
    for value, kinds in zip(op.results, wanted, strict=True):
        own, found = found[: len(kinds)], found[len(kinds) :]
        values.append(_unpacked(builder, own, value.type, sizes))
    builder.set(op, *values)


def _without_numbers(op: Op) -> tuple[list[Value], str, str]:
    """The operands that are in registers, the text with the others' numbers in it, and the
    constraints of what is left. CompileError for a number that is not known."""
    letters, outputs = _constraints(op).split(","), len(op.results)
    numbers, given = {}, []
    for place, value in enumerate(op.operands, outputs):
        if place >= len(letters) or letters[place] not in ("n", "i"):
            given.append(value)
            continue
        constant = constant_behind(value)
        numbers[place] = None if constant is None else constant_integer(constant)
        if numbers[place] is None:
            raise op.error(
                f"operand ${place}, of the constraint '{letters[place]}', is no constant"
            )

    def renamed(match: re.Match[str]) -> str:
        place = int(match[1])
        if place in numbers:
            return str(numbers[place])
        return f"${place - sum(one < place for one in numbers)}"

    text = _PLACE.sub(renamed, _text(op)) if numbers else _text(op)
    return given, text, ",".join(c for place, c in enumerate(letters) if place not in numbers)


def _constraints(op: Op) -> str:
    return op.attributes["constraints"].strip('"').replace(" ", "")


def _ptx(
    op: Op, operands: list[ir.Value], results: list[ir.Type], text: str, constraints: str
) -> list[ir.Value]:
    limits = InlinePtxOp.inputs.each, InlinePtxOp.outputs.each
    if len(operands) > limits[0] or len(results) > limits[1]:
        raise op.error(f"more than {limits[0]} registers in, or {limits[1]} out")
    made: list[ir.Value] = InlinePtxOp.build(
        operands,
        results=results,
        text=text,
        constraints=constraints,
        pure=op.attributes.get("pure", "true") == "true",
    )
    if wrong := made[0].owner.opview.check():
        raise op.error(wrong)
    return made


def _text(op: Op) -> str:
    """The assembly, without MLIR's escapes."""
    quoted = re.search(r'"((?:[^"\\]|\\.)*)"', op.text)
    assert quoted is not None
    plain = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
    return _ESCAPE.sub(
        lambda match: plain.get(match[1]) or chr(int(match[1], 16)), quoted[1]
    )  # fmt: skip


def _parted(op: Op, tiles: set[Any], pack: int) -> tuple[int, ...]:
    """The shape of a tile whose last axis is what runs together."""
    (sizes,) = tiles if len(tiles) == 1 else (None,)
    if sizes is None or any(value.type.shape is None for value in op.operands):
        raise op.error("packed tiles of several shapes")
    count = 1
    for size in sizes:
        count *= size
    if sizes[-1] % pack == 0:
        return (*sizes[:-1], sizes[-1] // pack, pack)
    if count % pack:
        raise op.error(f"{count} elements, which are no whole number of {pack}")
    return (count // pack, pack)


def _together(kind: Type, pack: int) -> int:
    """Elements in a register."""
    return min(pack, max(1, _REGISTER_BITS // BY_MLIR[kind.element].bits))


def _register(builder: Builder, kind: Type, sizes: tuple[int, ...]) -> list[ir.Type]:
    """The types of the registers that `sizes[-1]` elements take."""
    pack, together = sizes[-1], _together(kind, sizes[-1])
    bits = BY_MLIR[kind.element].bits * together
    element = kind.element if together == 1 else f"i{bits}"
    return [builder.typed(element, sizes[:-1])] * (pack // together)


def _bits(builder: Builder, kind: Type) -> str:
    return f"i{BY_MLIR[kind.element].bits}"


def _packed(builder: Builder, tile: ir.Value, kind: Type, sizes: tuple[int, ...]) -> list[ir.Value]:
    """The registers of an operand."""
    *outer, pack = sizes
    wide = ReshapeOp.build(tile, results=[builder.typed(kind.element, sizes)])
    single = builder.typed(kind.element, (*outer, 1))
    split = SplitOp.build(wide, results=[single] * pack, axis=len(outer))
    parts = [ReshapeOp.build(one, results=[builder.typed(kind.element, outer)]) for one in split]
    together = _together(kind, pack)
    if together == 1:
        return parts
    own, (word, *_) = _bits(builder, kind), _register(builder, kind, sizes)
    width = BY_MLIR[kind.element].bits
    registers = []
    for first in range(0, pack, together):
        total: ir.Value | None = None
        for number, part in enumerate(parts[first : first + together]):
            if kind.element != own:
                part = builder.op("arith.bitcast", builder.typed(own, outer), part)
            one = builder.op("arith.extui", word, part)
            if number:
                by = builder.constant(number * width, word)
                one = builder.op("arith.shli", word, one, by)
            total = one if total is None else builder.op("arith.ori", word, total, one)
        assert total is not None
        registers.append(total)
    return registers


def _unpacked(
    builder: Builder, registers: list[ir.Value], kind: Type, sizes: tuple[int, ...]
) -> ir.Value:
    """The tile that a result's registers hold."""
    *outer, pack = sizes
    together, width = _together(kind, pack), BY_MLIR[kind.element].bits
    own, parts = builder.typed(_bits(builder, kind), outer), []
    for register in registers:
        for number in range(together):
            part = register
            if together > 1:
                by = builder.constant(number * width, register.type)
                part = builder.op("arith.shrui", register.type, register, by) if number else part
                part = builder.op("arith.trunci", own, part)
                if kind.element != _bits(builder, kind):
                    part = builder.op("arith.bitcast", builder.typed(kind.element, outer), part)
            parts.append(ReshapeOp.build(part, results=[builder.typed(kind.element, (*outer, 1))]))
    wide = JoinOp.build(parts, axis=len(outer))
    return ReshapeOp.build(wide, results=[builder.type(kind)])


RULES: dict[str, Rule] = {"tt.elementwise_inline_asm": _run}
