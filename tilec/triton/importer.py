"""Triton's kernel, once planned (`plan.py`), to a module of the `tile` dialect: `build_module`.

    tt.func @k(%x: !tt.ptr<f16>, %n: i32)
    func.func @k(%x: memref<?xf16, strided<[1]>>, %n: i32)

The kernel's parameters are the plan's arrays, with the pointers gone, and the numbers. Ops are
built one by one, each by the rule of its name (`op_rules.py`). Positions stay the author's.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects.context import make_context
from tilec.dialects.tile import AssumeOp
from tilec.executable.kernel import Parameter
from tilec.messages.diagnostics import InternalError, Location
from tilec.passes.checks.verify_kernels import verify_kernels
from tilec.passes.checks.verify_ops import verify_ops
from tilec.passes.demands.kernels import PROGRAMS_PER_SM
from tilec.triton.array_rule import ArrayRule
from tilec.triton.build import Builder
from tilec.triton.op_rules import RULES
from tilec.triton.plan import Plan, divisors
from tilec.triton.program import Block


def build_module(
    plan: Plan,
    parameters: Sequence[Parameter],
    *,
    index_bits: int = 32,
    merged: Sequence[int] | None = None,
    programs_per_sm: int = 0,
    context: ir.Context | None = None,
) -> ir.Module:
    """The tile-level module of a planned kernel.

    `parameters`: one an array that is used, then one a number. `merged`: for each of the plan's
    arrays, the number of the parameter that it is (several may be one); None for each its own.
    `programs_per_sm`: what a multiprocessor has in the launches that it is for, 0 for any number.
    CompileError, at its line, for an op that has no rule.
    """
    merged = range(len(plan.arrays)) if merged is None else merged
    with context or make_context(), _place(plan.function.location):
        module = ir.Module.create()
        entry = _function(module, plan, parameters, merged, index_bits)
        if programs_per_sm:
            i32 = ir.IntegerType.get_signless(32)
            entry.owner.attributes[PROGRAMS_PER_SM] = ir.IntegerAttr.get(i32, programs_per_sm)
        with ir.InsertionPoint(entry):
            builder = Builder(plan, entry, merged, len(parameters) - len(plan.scalars), index_bits)
            _state_divisors(builder)
            build_block(builder, plan.function.blocks[0])
            ir.Operation.create("func.return")
        _verify(module)
        return module


def _state_divisors(builder: Builder) -> None:
    """States what numbers are multiples of, where Triton specialised the kernel for that: each
    launch is held to it."""
    known = divisors(builder.plan)
    for scalar in builder.plan.scalars:
        if known.get(scalar.name, 1) > 1:
            AssumeOp.build(builder.values[scalar], facts={"multiple_of": known[scalar.name]})


def build_block(builder: Builder, block: Block) -> None:
    """Builds the ops of a block by the rules of their names."""
    live = builder.plan.live
    for op in block.ops:
        if op not in live.ops and builder.combining is None:
            continue
        rule = RULES.get(op.name)
        if rule is None:
            raise op.error("tilec has no rule for it")
        with _place(op.location):
            rule(builder, op, build_block)


def _place(location: Location) -> ir.Location:
    return ir.Location.file(location.file, location.line, location.column)


def _function(
    module: ir.Module,
    plan: Plan,
    parameters: Sequence[Parameter],
    merged: Sequence[int],
    index_bits: int,
) -> ir.Block:
    """An empty `func.func` with the kernel's arguments; gives its entry block."""
    first = {number: plan.arrays[a] for a, number in reversed(list(enumerate(merged)))}
    types = [_type(parameter) for parameter in parameters]
    given = [
        ir.DictAttr.get(_attributes(parameter, first.get(number)))
        for number, parameter in enumerate(parameters)
    ]
    i32 = ir.IntegerType.get_signless(32)
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(plan.function.name),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                "arg_attrs": ir.ArrayAttr.get(given),
                "tile.kernel": ir.UnitAttr.get(),
                "tile.index_bits": ir.IntegerAttr.get(i32, index_bits),
            },
            regions=1,
        )
    return function.regions[0].blocks.append(*types)


def _type(parameter: Parameter) -> ir.Type:
    element = ir.Type.parse(parameter.dtype)
    if parameter.kind == "scalar":
        return element
    dynamic = ir.ShapedType.get_dynamic_size()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    sizes = [dynamic if size is None else size for size in parameter.sizes]
    strides = [unknown if stride is None else stride for stride in parameter.strides]
    return ir.MemRefType.get(sizes, element, layout=ir.StridedLayoutAttr.get(0, strides))


def _attributes(parameter: Parameter, rule: ArrayRule | None) -> dict[str, ir.Attribute]:
    attributes: dict[str, ir.Attribute] = {"tile.name": ir.StringAttr.get(parameter.name)}
    if parameter.kind == "scalar" or rule is None:
        return attributes
    facts, ones = parameter.facts, (1,) * parameter.rank
    attributes["tile.facts"] = ir.DictAttr.get(
        {
            "align": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), facts.align),
            "sizes": ir.DenseI32ArrayAttr.get(list(facts.sizes or ones)),
            "strides": ir.DenseI32ArrayAttr.get(list(facts.strides or ones)),
        }
    )
    if rule.unbounded:
        attributes["tile.unbounded"] = ir.DenseI32ArrayAttr.get(list(rule.unbounded))
    return attributes


def _verify(module: ir.Module) -> None:
    """The importer's own promise; a violation is our bug, since it checks before it builds."""
    try:
        module.operation.verify()
        verify_ops(module)
        verify_kernels(module)
    except ir.MLIRError as error:
        raise InternalError(f"the importer built invalid IR: {error}") from error
