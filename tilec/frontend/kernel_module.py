"""build_module: a Python kernel and its parameters become a verified module of the tile dialect."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlir import ir

from tilec.compile.mlir_errors import interruptible
from tilec.compile.row_walks import HeldAxis, one_turn_loops
from tilec.dialects.context import make_context
from tilec.dialects.op import class_of
from tilec.executable.held_axes import held_limit
from tilec.executable.kernel import Parameter
from tilec.frontend.builder import Builder
from tilec.frontend.demands import Attributes, kernel_attributes, parameter_attributes
from tilec.frontend.frame import Frame
from tilec.frontend.grid_rule import trace_grid
from tilec.frontend.habits import dtype_help
from tilec.frontend.names import constant_from_python
from tilec.frontend.rules import RULES
from tilec.frontend.source import FunctionSource, read_source
from tilec.frontend.tile_layouts import LayoutBuilder, complete_layouts
from tilec.frontend.values import Array, ArrayList, Mistake, Scalar, Undefined, describe
from tilec.hardware.any_layout import LAYOUTS
from tilec.messages.diagnostics import CompileError, InternalError, Location
from tilec.passes.checks.verify_ops import verify_ops
from tilec.passes.demands.kernels import FEW, HOLDS_ROWS, PROGRAMS_PER_SM, SIZE_LIMITS
from tilec.passes.rewriting.walk import all_ops
from tilec.passes.rows.held_rows import hold_rows
from tilec.terms.dtypes import BY_MLIR, DType
from tilec.terms.groups import Group

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tilec.terms.demands import Demands

_PURE_DIALECTS = ("arith", "math", "tensor")


LIMITED = "tile.limited"
"""Of a kernel built with probes: static assertions say which constants it can have."""


@interruptible()
def build_module(
    fn: Callable[..., Any],
    parameters: Sequence[Parameter],
    constants: Mapping[str, Any],
    *,
    grid: Any = None,
    index_bits: int = 32,
    auto: Mapping[str, str] | None = None,
    context: ir.Context | None = None,
    probes: bool = False,
    programs_per_sm: int = 0,
    holds_rows: bool = False,
    held: Sequence[HeldAxis] = (),
    few: int = 0,
    **demands: Unpack[Demands],
) -> ir.Module:
    """The tile-level module of one specialisation of the kernel function `fn`.

    `parameters`: the arrays and scalars in the kernel's order. `constants`: a value for each
    `tl.const`, defaults included. `grid`: the author's rule, a function or a tuple. `index_bits`:
    32 where all sizes and offsets fit. `auto`: why each constant the compiler chose has its value.
    `probes`: constants have values that only show what they are for: no static assertion fails, and
    the kernel is `LIMITED` if it has one. `programs_per_sm`: what a multiprocessor has in the
    launches that it is for, 0 for any; `holds_rows`: the constants that loops walk along rows by
    hold whole ones; `held`: axes that no launch brings longer than that, nor empty: loops along
    them in steps that hold them whole go round once, and every launch is checked. `few`: how many
    CTAs may work on a row, where launches have few programs.
    `demands`: the author's. CompileError where the kernel is wrong; the module belongs to `context`
    (a fresh one by default).
    """
    source, numbers = read_source(fn), {FEW: few, PROGRAMS_PER_SM: programs_per_sm}
    _check_parameters(source, parameters, constants)
    with context or make_context():
        location = source.location(source.node)
        place = ir.Location.file(location.file, location.line, location.column)
        with place:
            module, i32 = ir.Module.create(), ir.IntegerType.get_signless(32)
            arrays = [parameter.name for parameter in parameters if parameter.has_memory]
            demanded = parameter_attributes(demands, arrays, location)
            entry = _function(module, source, parameters, demanded, _groups_of(constants))
            function = entry.owner
            attributes = {
                **_attributes(index_bits, auto or {}),
                **({HOLDS_ROWS: ir.UnitAttr.get()} if holds_rows else {}),
                **{name: ir.IntegerAttr.get(i32, n) for name, n in numbers.items() if n},
                **_grid_attribute(grid, parameters, constants, location),
                "tile.constants": _constants_attribute(source, constants),
                **kernel_attributes(demands, location),
            }
            for name, attribute in attributes.items():
                function.attributes[name] = attribute
            num_warps = demands.get("num_warps")
            builder = _body(source, entry, parameters, constants, num_warps, probes)
        if probes and builder.asserts:
            function.attributes[LIMITED] = ir.UnitAttr.get()
        _hold_rows(function.operation, parameters, held)
        _drop_unused(function.operation)
        if builder.explicit:
            function.attributes["tile.explicit"] = ir.UnitAttr.get()
            assert num_warps is not None  # each op of the explicit level has asked
            complete_layouts(function.operation, num_warps)
        _verify(module)
        return module


def _hold_rows(
    function: ir.Operation, parameters: Sequence[Parameter], held: Sequence[HeldAxis]
) -> None:
    """Lets loops along these axes go round once, and writes how long they may be."""
    found = one_turn_loops(function, held)
    if not found:
        return
    hold_rows(function, [loop for loop, _, _ in found])
    limits = {}
    for _, walk, step in found:
        size = f"{parameters[walk.number].name}.shape[{walk.axis}]"
        limits[held_limit(size, step)] = step
    i64 = ir.IntegerType.get_signless(64)
    function.attributes[SIZE_LIMITS] = ir.ArrayAttr.get(
        [
            ir.ArrayAttr.get([ir.StringAttr.get(text), ir.IntegerAttr.get(i64, most)])
            for text, most in limits.items()
        ]
    )


def _attributes(index_bits: int, auto: Mapping[str, str]) -> dict[str, ir.Attribute]:
    """The attributes of a kernel's function, among them why its automatic constants have their
    values."""
    bits = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), index_bits)
    reasons = {name: ir.StringAttr.get(why) for name, why in auto.items()}
    always = {"tile.kernel": ir.UnitAttr.get(), "tile.index_bits": bits}
    return always | ({"tile.auto": ir.DictAttr.get(reasons)} if reasons else {})


def _grid_attribute(
    grid: Any, parameters: Sequence[Parameter], constants: Mapping[str, Any], location: Location
) -> dict[str, ir.Attribute]:
    """The author's rule for the grid, nothing without one."""
    if grid is None:
        return {}
    sizes = trace_grid(grid, parameters, constants, location)
    return {"tile.grid": ir.ArrayAttr.get([ir.StringAttr.get(size) for size in sizes])}


def _check_parameters(
    source: FunctionSource, parameters: Sequence[Parameter], constants: Mapping[str, Any]
) -> None:
    arguments = source.node.args
    for extra, star in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if extra is not None:
            raise CompileError(
                f"unsupported syntax: '{star}{extra.arg}' parameters", source.location(extra)
            )
    given = [parameter.name for parameter in parameters] + list(constants)
    declared = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in declared:
        if argument.arg not in given:
            raise CompileError(
                f"parameter '{argument.arg}' has no value",
                source.location(argument),
                ["help: give an argument, or a constant if it is a tl.const"],
            )
    known = {argument.arg for argument in declared}.union(_groups_of(constants))
    for name in given:
        if name not in known:
            raise CompileError(
                f"the kernel has no parameter '{name}'", source.location(source.node)
            )


def _groups_of(constants: Mapping[str, Any]) -> dict[str, str]:
    """By name of a part of a group, the parameter of the kernel's that the group is."""
    groups = {name: value for name, value in constants.items() if isinstance(value, Group)}
    return {leaf.name: name for name, group in groups.items() for leaf in group.leaves()}


def _function(
    module: ir.Module,
    source: FunctionSource,
    parameters: Sequence[Parameter],
    demanded: Mapping[str, Attributes],
    groups: Mapping[str, str],
) -> ir.Block:
    """An empty `func.func` with the kernel's arguments; gives its entry block.

    `demanded`: attributes of arrays, by their name. `groups`: see `_groups_of`.
    """
    types = [_parameter_type(parameter) for parameter in parameters]
    kind = ir.FunctionType.get(types, [])
    with ir.InsertionPoint(module.body):
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(source.fn.__name__),
                "function_type": ir.TypeAttr.get(kind),
                "arg_attrs": ir.ArrayAttr.get(
                    [_argument_attributes(p, demanded.get(p.name, {})) for p in parameters]
                ),
            },
            regions=1,
        )
    arguments = source.node.args
    nodes = {a.arg: a for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    places = []
    for parameter in parameters:
        at = source.location(nodes[groups.get(parameter.name, parameter.name)])
        places.append(ir.Location.file(at.file, at.line, at.column))
    return function.regions[0].blocks.append(*types, arg_locs=places)


def _parameter_type(parameter: Parameter) -> ir.Type:
    if parameter.dtype not in BY_MLIR:
        raise CompileError(
            f"argument '{parameter.name}' has the unsupported dtype {parameter.dtype}"
        )
    element = ir.Type.parse(BY_MLIR[parameter.dtype].in_ir)
    if parameter.kind == "scalar":
        return element
    dynamic = ir.ShapedType.get_dynamic_size()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    sizes = [dynamic if size is None else size for size in parameter.sizes]
    strides = [unknown if stride is None else stride for stride in parameter.strides]
    array = ir.MemRefType.get(sizes, element, layout=ir.StridedLayoutAttr.get(0, strides))
    return ir.MemRefType.get([dynamic], array) if parameter.is_list else array


def _argument_attributes(parameter: Parameter, demanded: Attributes) -> ir.Attribute:
    attributes = {"tile.name": ir.StringAttr.get(parameter.name), **demanded}
    if BY_MLIR[parameter.dtype].in_ir != parameter.dtype:
        attributes["tile.dtype"] = ir.StringAttr.get(parameter.dtype)
    if parameter.kind == "flat_arrays":
        attributes["tile.flat"] = ir.BoolAttr.get(True)
    if parameter.has_memory:
        facts = parameter.facts
        ones = (1,) * parameter.rank
        attributes["tile.facts"] = ir.DictAttr.get(
            {
                "align": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), facts.align),
                "sizes": ir.DenseI32ArrayAttr.get(list(facts.sizes or ones)),
                "strides": ir.DenseI32ArrayAttr.get(list(facts.strides or ones)),
            }
        )
    return ir.DictAttr.get(attributes)


def _constants_attribute(source: FunctionSource, constants: Mapping[str, Any]) -> ir.Attribute:
    return ir.DictAttr.get(
        {name: _constant_attribute(source, name, value) for name, value in constants.items()}
    )


def _constant_attribute(source: FunctionSource, name: str, value: Any) -> ir.Attribute:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, int) and 0 <= value < 1 << 64:  # u64's, which MLIR's binding only parses
        return ir.Attribute.parse(f"{value} : ui64")
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if value is None or isinstance(value, (DType, Group, *LAYOUTS)):
        return ir.StringAttr.get(str(value))
    if isinstance(value, tuple):
        return ir.ArrayAttr.get([_constant_attribute(source, name, part) for part in value])
    if callable(value):
        return ir.StringAttr.get(getattr(value, "__qualname__", type(value).__name__))
    raise CompileError(
        f"constant '{name}' is {describe(value)}; "
        "expected a number, string, tuple, dtype, layout or function",
        source.location(source.node),
        dtype_help(value),
    )


def _body(
    source: FunctionSource,
    entry: ir.Block,
    parameters: Sequence[Parameter],
    constants: Mapping[str, Any],
    num_warps: int | None,
    probes: bool,
) -> Builder:
    """Compiles the statements into the entry block. CompileError, or InternalError for our bugs."""
    frame = Frame(source, LayoutBuilder(entry, num_warps), RULES)
    frame.builder.probes = probes
    try:
        frame.names.update(_values(entry, parameters, constants))
        with ir.InsertionPoint(entry):
            completion = frame.execute(source.node.body, frozenset())
            if completion.value is not None:
                raise _returned(frame, completion.value)
            frame.builder.op("func.return")
        return frame.builder
    except Mistake as mistake:
        raise frame.error(source.node, mistake.message, *mistake.notes) from None
    except RecursionError:
        raise frame.error(source.node, "the kernel is nested too deeply") from None
    except CompileError:
        raise
    except Exception as error:
        place = source.location(source.node)
        text = f"{type(error).__name__} in the frontend, kernel at {place}: {error}"
        raise InternalError(text) from error


def _values(
    entry: ir.Block, parameters: Sequence[Parameter], constants: Mapping[str, Any]
) -> dict[str, Any]:
    """What the names of the kernel's parameters stand for. Mistake for what is no constant."""
    found: dict[str, Any] = {}
    for parameter, argument in zip(parameters, entry.arguments, strict=True):
        dtype = BY_MLIR[parameter.dtype]
        found[parameter.name] = (
            Scalar(argument, dtype)
            if parameter.kind == "scalar"
            else (ArrayList if parameter.is_list else Array)(
                argument, parameter.name, dtype, parameter.sizes
            )
        )
    groups = {name: value for name, value in constants.items() if isinstance(value, Group)}
    for name in constants.keys() - groups.keys():
        found[name] = constant_from_python(constants[name], name)
    filled = {name: group.filled(found) for name, group in groups.items()}
    parts = _groups_of(constants)
    return {name: value for name, value in found.items() if name not in parts} | filled


def _returned(frame: Frame, value: Any) -> CompileError:
    node = next(
        (n for n in ast.walk(frame.source.node) if isinstance(n, ast.Return) and n.value),
        frame.source.node,
    )
    if isinstance(value, Undefined):
        return frame.error(node, value.message, *value.notes)
    return frame.error(
        node, "a kernel returns nothing", "help: write results to an array with tl.store"
    )


def _drop_unused(function: ir.Operation) -> None:
    """Removes pure ops without uses (broadcasts that were composed, sizes that were not needed)."""
    for op in reversed(all_ops(function)):
        if _is_pure(op) and not any(True for result in op.results for _ in result.uses):
            op.erase()


def _is_pure(op: ir.Operation) -> bool:
    kind = class_of(op)
    if kind is not None:
        return kind.PURE
    return op.name.split(".")[0] in _PURE_DIALECTS or op.name == "memref.dim"


def _verify(module: ir.Module) -> None:
    """The frontend's own promise; a violation is our bug, since it checks before it builds."""
    try:
        module.operation.verify()
        verify_ops(module)
    except ir.MLIRError as error:
        raise InternalError(f"the frontend built invalid IR: {error}") from error
