"""Lowers arith and math: each op becomes one scalar op per register; `index` becomes an integer."""

from __future__ import annotations

import functools

from mlir import ir

from tilec.dialects.gpu_tile import ScaleOp
from tilec.dialects.predicates import predicate_attribute
from tilec.dialects.types import bit_width, element, is_tile, number_type
from tilec.passes.analysis.coordinates import COORDINATE, clamped
from tilec.passes.lower_to_nvvm.access import call_intrinsic, elements_of, vector_of
from tilec.passes.lower_to_nvvm.state import Lowering
from tilec.passes.rewriting.control import either
from tilec.passes.rewriting.scalars import binary, constant, create


def lower_elementwise(op: ir.Operation, state: Lowering) -> None:
    """Lowers any op whose result element depends on the operands' elements at the same
    coordinates."""
    attributes = dict(op.attributes.items())
    columns = [state.registers(operand) for operand in op.operands]
    scalar = [number_type(r) for r in op.results]
    types = [state.scalar_type(t) for t in scalar]
    width = max(len(column) for column in columns)
    columns = [column * width if len(column) == 1 else column for column in columns]
    rows = [
        ir.Operation.create(
            op.name, results=types, operands=list(row), attributes=attributes
        ).results
        for row in zip(*columns, strict=True)
    ]
    for number, result in enumerate(op.results):
        registers = [row[number] for row in rows]
        state.values[result] = registers if is_tile(result) else registers[0]


def lower_scale(op: ScaleOp, state: Lowering) -> None:
    """Multiplies where a vote of the warp says so: it has one answer, as its branch wants."""
    sums, factors = state.registers(op.sums), state.registers(op.factors)
    one = constant(sums[0].type, 1.0)
    unlike = predicate_attribute("arith.cmpf", "une")
    distinct = dict.fromkeys(factors)
    others = [create("arith.cmpf", [x, one], state.i1, predicate=unlike) for x in distinct]
    own = functools.reduce(functools.partial(binary, "arith.ori"), others)
    lanes = state.i32_constant(-1)
    (grew,) = call_intrinsic("llvm.nvvm.vote.any.sync", [lanes, own], [state.i1])
    state.values[op.result] = either(
        grew,
        lambda: [binary("arith.mulf", *pair) for pair in zip(sums, factors, strict=True)],
        lambda: sums,
    )


def lower_constant(op: ir.Operation, state: Lowering) -> None:
    """A scalar, or a dense tile: splats share one constant, others index by coordinates."""
    result, attribute = op.results[0], op.attributes["value"]
    if not is_tile(result):
        state.values[result] = state.constant(state.scalar_type(result.type), attribute)
        return
    count = len(state.register_types(result))
    splat = state.constant(state.scalar_type(element(result)), attribute.get_splat_value())
    state.values[result] = [splat] * count


def lower_truncf(op: ir.Operation, state: Lowering) -> None:
    """Rounds f32 to f16 or bf16 by pairs, as the hardware rounds two at a time (PTX ISA 9.0, "cvt",
    .f16x2)."""
    source, result = op.operands[0], op.results[0]
    narrow = number_type(result)
    registers = state.registers(source)
    paired = isinstance(registers[0].type, ir.F32Type) and bit_width(narrow) == 16
    if not paired or len(registers) % 2:
        lower_elementwise(op, state)
        return
    attributes = dict(op.attributes.items())
    narrow_pair = ir.VectorType.get([2], narrow)
    rounded = []
    for first in range(0, len(registers), 2):
        pair = vector_of(registers[first : first + 2], state)
        pair = create("arith.truncf", [pair], narrow_pair, **attributes)
        halves = elements_of(pair, state)
        state.note_whole(halves, pair)
        rounded += halves
    state.values[result] = rounded


def lower_index_cast(op: ir.Operation, state: Lowering) -> None:
    """Casts between index and integers: with a fixed index width, an extension, a truncation or
    nothing."""
    source, result = op.operands[0], op.results[0]
    from_type = state.scalar_type(number_type(source))
    to_type = state.scalar_type(number_type(result))
    signed = op.name == "arith.index_cast"
    if bit_width(from_type) < bit_width(to_type):
        name = "arith.extsi" if signed else "arith.extui"
    else:
        name = "arith.trunci"
    registers = state.registers(source)
    if COORDINATE in op.attributes and bit_width(from_type) > bit_width(to_type):
        with op.location:
            registers = [clamped(r) for r in registers]
    if from_type != to_type:
        registers = [create(name, [r], to_type) for r in registers]
    state.values[result] = list(registers) if is_tile(result) else registers[0]


def lower_splat(op: ir.Operation, state: Lowering) -> None:
    """A scalar held by every register."""
    result = op.results[0]
    state.values[result] = state.registers(op.operands[0]) * len(state.register_types(result))


def lower_extract(op: ir.Operation, state: Lowering) -> None:
    """The scalar of a rank-0 tile, which every thread holds."""
    state.values[op.results[0]] = state.registers(op.operands[0])[0]


RULES = {
    ScaleOp: lower_scale,
    "arith.constant": lower_constant,
    "arith.truncf": lower_truncf,
    "arith.index_cast": lower_index_cast,
    "arith.index_castui": lower_index_cast,
    "tensor.splat": lower_splat,
    "tensor.extract": lower_extract,
}
