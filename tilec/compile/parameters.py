"""The parameters of a kernel as the runtime needs them: the author's, and memory of launches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from tilec.dialects.types import byte_width, element, is_list, shape
from tilec.executable.kernel import Facts, Parameter, Workspace
from tilec.passes.analysis.divisibility import static_sizes, static_strides
from tilec.passes.analysis.written_arrays import numbers_of_written
from tilec.passes.demands.kernels import FLAGS, WORKSPACE, workspaces_of
from tilec.passes.rewriting.locations import error_at


def signature_of(function: ir.Operation) -> tuple[Parameter, ...]:
    """The author's parameters."""
    arguments = list(function.regions[0].blocks[0].arguments)
    given = function.attributes.get("arg_attrs", [])
    written = list(given) or [ir.DictAttr.get({})] * len(arguments)
    return tuple(
        _parameter(number, argument, attributes, function)
        for number, (argument, attributes) in enumerate(zip(arguments, written, strict=True))
        if WORKSPACE not in attributes
    )


def written_of(function: ir.Operation, signature: Sequence[Parameter]) -> list[Parameter]:
    """Those of the author's parameters whose arrays a kernel may write."""
    numbers = numbers_of_written(function)
    return [parameter for number, parameter in enumerate(signature) if number in numbers]


def launch_memory(function: ir.Operation) -> tuple[Workspace, ...]:
    """What a launch itself gives, behind those: how much each CTA of a program needs, or each of a
    cluster."""
    return tuple(
        Workspace(prod(shape(array)[1:]) * byte_width(element(array)), is_zero=use == FLAGS)
        for array, use in workspaces_of(function).items()
    )


def _parameter(
    number: int, argument: ir.Value, attributes: ir.DictAttr, function: ir.Operation
) -> Parameter:
    name = attributes["tile.name"].value if "tile.name" in attributes else f"arg{number}"
    dtype = attributes["tile.dtype"].value if "tile.dtype" in attributes else None
    type_ = argument.type
    if not isinstance(type_, ir.MemRefType):
        if not isinstance(type_, (ir.IntegerType, ir.IndexType, ir.FloatType)):
            raise error_at(
                function, f"parameter '{name}' must be an array or a scalar, found {type_}"
            )
        return Parameter(name, "scalar", dtype or str(type_))
    facts = Facts()
    if "tile.facts" in attributes:
        known = attributes["tile.facts"]
        facts = Facts(
            known["align"].value if "align" in known else 1,
            tuple(known["sizes"]) if "sizes" in known else (),
            tuple(known["strides"]) if "strides" in known else (),
        )
    kind = "array"
    if is_list(type_):
        kind, type_ = "flat_arrays" if "tile.flat" in attributes else "arrays", type_.element_type
    return Parameter(
        name,
        kind,
        dtype or str(type_.element_type),
        tuple(static_sizes(type_)),
        tuple(static_strides(type_)),
        facts,
    )
