"""verify-kernels: what a kernel says of itself and its parameters, in `tile.` attributes.

MLIR takes any attribute on any function, so a wrong one would be dropped or break a pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mlir import ir

from tilec.dialects.attributes import BOOL, INT, INTS, STRING, AttributeKind, one_of, options
from tilec.dialects.demands import OF_PARAMETERS, value_of
from tilec.dialects.gpu_tile.role import total_warps
from tilec.dialects.types import element, is_array, is_index, is_list
from tilec.executable.grid import compile_grid, compile_sizes
from tilec.executable.kernel import Parameter
from tilec.hardware.sizes import WARP_SIZE
from tilec.messages.diagnostics import CompileError
from tilec.passes.analysis.divisibility import static_sizes, static_strides
from tilec.passes.demands.kernels import (
    FLAGS,
    LANES,
    LEAST_LANES,
    MOST_PER_CTA,
    MOST_STRIPES,
    PARTS,
    PROGRAMS_PER_CTA,
    STRIPES,
    SUMS,
    WORKSPACE,
    ctas_of,
    is_in_line,
    is_persistent,
    lanes_of,
    programs_per_cta,
    stripes_of,
)
from tilec.passes.rewriting.locations import error_at, source_location
from tilec.terms.demands import NUM_WARPS
from tilec.terms.dtypes import BY_ARRAY

MOST_ELEMENTS = 1 << 48
"""Of a stride: a process has no more addresses (47 or 48 bits, x86-64 and aarch64), and what tiles
multiply it by stays within 64 bits."""
_ELEMENTS = tuple(dtype.mlir for dtype in BY_ARRAY.values() if not dtype.element)
_OTHERS = {dtype.mlir: dtype for dtype in BY_ARRAY.values() if dtype.element}
_FACTS = options(align=INT, sizes=INTS, strides=INTS)
_PARAMETER_ATTRIBUTES: dict[str, AttributeKind] = {
    "tile.name": STRING,
    "tile.facts": _FACTS,
    "tile.dtype": one_of(*_OTHERS),
    "tile.flat": BOOL,
    "tile.unbounded": INTS,
    WORKSPACE: one_of(FLAGS, SUMS),
    **dict.fromkeys(OF_PARAMETERS, BOOL),
}
_NUMBERS = (
    "tile.ctas_per_sm",
    "tile.index_bits",
    "tile.most_programs",
    PROGRAMS_PER_CTA,
    PARTS,
    STRIPES,
    "tile.shared_bytes",
    "tile.total_warps",
)
_UP_TO_32 = {
    "tile.ctas_per_sm": ("multiprocessor", "CTAs"),
    "tile.total_warps": ("CTA", "warps"),
}
_DICTIONARIES = ("tile.auto", "tile.constants")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,255}", re.ASCII)


def verify_kernels(module: ir.Module) -> None:
    """CompileError carrying one error per kernel whose attributes are wrong."""
    errors = []
    with module.context, ir.Location.unknown():
        for kernel in _kernels(module):
            wrong = _wrong_attribute(kernel) or _wrong_grid(kernel) or _wrong_limits(kernel)
            wrong = wrong or _wrong_stripes(kernel) or _wrong_packing(kernel)
            if wrong:
                errors.append(error_at(kernel, f"kernel {kernel.attributes['sym_name']} {wrong}"))
            else:
                errors += _wrong_parameters(kernel)
    if errors:
        raise CompileError.group(errors)


def verify_signatures(module: ir.Module) -> None:
    """CompileError for kernels that no launch can call: body, results and parameter types."""
    errors = []
    with module.context, ir.Location.unknown():
        for kernel in _kernels(module):
            wrong = _wrong_signature(kernel)
            if wrong:
                errors.append(error_at(kernel, f"kernel {kernel.attributes['sym_name']} {wrong}"))
            for number, (argument, given) in enumerate(_parameters(kernel)):
                wrong = _wrong_type(argument)
                if wrong:
                    errors.append(_at_parameter(argument, number, given, wrong))
    if errors:
        raise CompileError.group(errors)


def _kernels(module: ir.Module) -> Iterator[ir.Operation]:
    for op in module.body.operations:
        if op.operation.name == "func.func" and "tile.kernel" in op.operation.attributes:
            yield op.operation


def _wrong_attribute(function: ir.Operation) -> str | None:
    attributes = function.attributes
    if not _IDENTIFIER.fullmatch(attributes["sym_name"].value):
        return "needs a name of letters, digits and underscores"
    for name in _NUMBERS:
        wrong = INT.check(attributes[name]) if name in attributes else None
        if wrong:
            return f"attribute '{name}' {wrong}"
    if wrong := next(filter(None, (_wrong_number(attributes, name) for name in _UP_TO_32)), None):
        return wrong
    for name in _DICTIONARIES:
        if name in attributes and not isinstance(attributes[name], ir.DictAttr):
            return f"attribute '{name}' must be a dictionary, found {attributes[name]}"
    if not isinstance(attributes.get("tile.explicit", ir.UnitAttr.get()), ir.UnitAttr):
        return f"attribute 'tile.explicit' has no value, found {attributes['tile.explicit']}"
    for entry in attributes.get("tile.auto", ()):
        if not isinstance(entry.attr, ir.StringAttr):
            return f"attribute 'tile.auto' must hold strings, found {entry.attr}"
    return None


def _wrong_number(attributes: ir.OpAttributeMap, name: str) -> str | None:
    if name not in attributes or 1 <= attributes[name].value <= 32:
        return None
    what, kind = _UP_TO_32[name]
    return f"a {what} has 1 to 32 {kind}, found {attributes[name]}"


def _wrong_parameters(function: ir.Operation) -> Iterator[CompileError]:
    names: set[str] = set()
    for number, (argument, given) in enumerate(_parameters(function)):
        wrong = _wrong_parameter_attribute(given)
        if not wrong:
            name = _name(number, given)
            repeated = f"has the name '{name}' of another parameter" if name in names else None
            wrong = repeated or _wrong_facts(argument, given) or _wrong_dtype(argument, given)
            wrong = wrong or _wrong_unbounded(argument, given) or _wrong_demand(argument, given)
            wrong = wrong or _wrong_flat(argument, given) or _wrong_workspace(argument, given)
            names.add(name)
        if wrong:
            yield _at_parameter(argument, number, given, wrong)


def _at_parameter(
    argument: ir.Value, number: int, given: dict[str, ir.Attribute], wrong: str
) -> CompileError:
    return CompileError(
        f"parameter '{_name(number, given)}' {wrong}", source_location(argument.location)
    )


def _wrong_parameter_attribute(given: dict[str, ir.Attribute]) -> str | None:
    for name in given:
        if not name.startswith("tile."):
            continue
        kind = _PARAMETER_ATTRIBUTES.get(name)
        if kind is None:
            return f"has the unknown attribute '{name}'; known: {', '.join(_PARAMETER_ATTRIBUTES)}"
        wrong = kind.check(given[name])
        if wrong:
            return f"attribute '{name}' {wrong}"
    if "tile.name" in given and not _IDENTIFIER.fullmatch(given["tile.name"].value):
        return "needs a name of letters, digits and underscores"
    return None


def _parameters(function: ir.Operation) -> Iterator[tuple[ir.Value, dict[str, ir.Attribute]]]:
    blocks = function.regions[0].blocks
    arguments = list(blocks[0].arguments) if len(blocks) else []
    written = list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []
    for number, argument in enumerate(arguments):
        given = written[number] if number < len(written) else ()
        yield argument, {entry.name: entry.attr for entry in given}


def _name(number: int, given: dict[str, ir.Attribute]) -> str:
    name = given.get("tile.name")
    if name is None or not isinstance(name, ir.StringAttr):
        return f"arg{number}"
    return name.value


def _wrong_dtype(argument: ir.Value, given: dict[str, ir.Attribute]) -> str | None:
    """Says what is wrong with a parameter's dtype, where that is one that IR has as another type:
    the parameter must be of that type, and no scalar is of a code."""
    if "tile.dtype" not in given:
        return None
    kind, dtype = _of_one(argument), _OTHERS[given["tile.dtype"].value]
    if str(element(kind) if is_array(kind) else kind) != dtype.in_ir:
        return f"is {kind}, but 'tile.dtype' is {dtype.mlir}, which is {dtype.in_ir} here"
    if not is_array(kind) and dtype.is_code:
        return f"is a scalar of {dtype.mlir}, which comes in arrays only"
    return None


def _wrong_demand(argument: ir.Value, given: dict[str, ir.Attribute]) -> str | None:
    demands = [name for name in given if name in OF_PARAMETERS]
    if not demands or is_array(argument):
        return None
    return f"has '{demands[0]}', which is about arrays, but is {argument.type}"


def _wrong_workspace(argument: ir.Value, given: dict[str, ir.Attribute]) -> str | None:
    """Of memory that the launch gives, which nobody describes to the kernel."""
    if WORKSPACE not in given:
        return None
    if not is_array(argument) or is_list(argument):
        return f"is memory of the launch's, an array, but is {argument.type}"
    if None in (*static_sizes(argument), *static_strides(argument)):
        return f"is memory of the launch's, of known sizes, but is {argument.type}"
    return None


def _wrong_unbounded(argument: ir.Value, given: dict[str, ir.Attribute]) -> str | None:
    """Of the dimensions whose size nobody compares an index with."""
    if "tile.unbounded" not in given:
        return None
    if not is_array(argument):
        return f"has unbounded dimensions, which are an array's, but is {argument.type}"
    dims = list(given["tile.unbounded"])
    rank = _of_one(argument).rank
    if len(set(dims)) < len(dims) or any(not 0 <= dim < rank for dim in dims):
        return f"has the unbounded dimensions {dims}; expected distinct ones below {rank}"
    return None


def _wrong_facts(argument: ir.Value, given: dict[str, ir.Attribute]) -> str | None:
    if "tile.facts" not in given:
        return None
    if not is_array(argument):
        return f"has facts, which are about arrays, but is {argument.type}"
    facts = _FACTS.read(given["tile.facts"])
    align = facts.get("align", 1)
    if align < 1 or align & (align - 1):
        return f"has a wrong fact: align must be a power of two, found {align}"
    for key in ("sizes", "strides"):
        divisors = facts.get(key)
        if divisors is None:
            continue
        rank = _of_one(argument).rank
        if len(divisors) != rank:
            return f"has a wrong fact: {key} must name one divisor per dimension ({rank})"
        if any(divisor < 1 for divisor in divisors):
            return f"has a wrong fact: {key} must be positive, found {list(divisors)}"
    return None


def _wrong_grid(function: ir.Operation) -> str | None:
    if "tile.grid" not in function.attributes:
        return None
    rules = function.attributes["tile.grid"]
    texts = list(rules) if isinstance(rules, ir.ArrayAttr) else []
    if not 1 <= len(texts) <= 3 or not all(isinstance(text, ir.StringAttr) for text in texts):
        return f"attribute 'tile.grid' must be one to three strings, found {rules}"
    try:
        compile_grid([*(text.value for text in texts), "1", "1"][:3], _grid_parameters(function))
    except ValueError as error:
        return f"has a wrong {error}"
    return None


def _wrong_stripes(function: ir.Operation) -> str | None:
    """Says what is wrong with the number of CTAs that run a program."""
    stripes = stripes_of(function)
    if not 1 <= stripes <= MOST_STRIPES:
        return f"attribute '{STRIPES}' must be from 1 to {MOST_STRIPES}, found {stripes}"
    if stripes > 1 and is_in_line(function):
        return f"attribute '{STRIPES}': CTAs or clusters share the programs already"
    parts = ctas_of(function)
    if not 1 <= parts <= MOST_STRIPES or parts % stripes:
        return f"attribute '{PARTS}' must be a multiple of {STRIPES}, found {parts} of {stripes}"
    if parts > 1 and is_in_line(function):
        return f"attribute '{PARTS}': CTAs or clusters share the programs already"
    return None


def _wrong_packing(function: ir.Operation) -> str | None:
    """Of programs that a CTA runs side by side."""
    programs, lanes = programs_per_cta(function), lanes_of(function)
    if lanes & (lanes - 1) or not LEAST_LANES <= lanes <= WARP_SIZE:
        expected = f"a power of two from {LEAST_LANES} to {WARP_SIZE}"
        return f"attribute '{LANES}' must be {expected}, found {lanes}"
    if lanes < WARP_SIZE and total_warps(function, _written_warps(function)) > 1:
        return f"attribute '{LANES}': only programs of one warp share it"
    most = MOST_PER_CTA * LEAST_LANES // lanes
    if not 1 <= programs <= most:
        return f"attribute '{PROGRAMS_PER_CTA}' must be from 1 to {most}, found {programs}"
    if programs == 1:
        return None
    if not is_persistent(function):
        return f"attribute '{PROGRAMS_PER_CTA}': only CTAs that share the programs run several"
    if total_warps(function, _written_warps(function)) > 1:
        return f"attribute '{PROGRAMS_PER_CTA}': only programs of one warp share a CTA"
    return None


def _written_warps(function: ir.Operation) -> int:
    written = function.attributes.get(NUM_WARPS.attribute)
    return 1 if written is None else value_of(written)


def _wrong_limits(function: ir.Operation) -> str | None:
    """Says what is wrong with the limits that the launcher compares with, for indices of 32
    bits."""
    most = function.attributes.get("tile.most_programs")
    if most is not None and most.value < 1:
        return f"attribute 'tile.most_programs' must be positive, found {most.value}"
    limits = function.attributes.get("tile.limits")
    if limits is None:
        return None
    pairs = limits if isinstance(limits, ir.ArrayAttr) else (None,)
    sizes = tuple(map(_limited_size, pairs))
    if None in sizes:
        return f"attribute 'tile.limits' must hold pairs of a string and a number, found {limits}"
    try:
        compile_sizes(sizes, tuple(_grid_parameters(function)))
    except ValueError as error:
        return f"has a wrong limit: {error}"
    return None


def _limited_size(pair: Any) -> Any:
    """The text of the size that a pair limits; None if it is no pair of a text and a number."""
    if not isinstance(pair, ir.ArrayAttr) or len(pair) != 2:
        return None
    text, number = pair
    right = isinstance(text, ir.StringAttr) and isinstance(number, ir.IntegerAttr)
    return text.value if right else None


def _grid_parameters(function: ir.Operation) -> list[Parameter]:
    return [
        _grid_parameter(_name(number, given), argument.type)
        for number, (argument, given) in enumerate(_parameters(function))
    ]


def _grid_parameter(name: str, kind: ir.Type) -> Parameter:
    """A parameter as far as a grid rule sees it: an array's rank, or a scalar."""
    if is_list(kind):
        return Parameter(name, "arrays", str(kind.element_type.element_type))
    if is_array(kind):
        unknown = (None,) * kind.rank
        return Parameter(name, "array", str(kind.element_type), unknown, unknown)
    return Parameter(name, "scalar", str(kind))


def _wrong_signature(function: ir.Operation) -> str | None:
    kind = function.attributes["function_type"].value
    if len(function.regions[0].blocks) == 0:
        return "has no body"
    if kind.results:
        return f"must return nothing, found {', '.join(map(str, kind.results))}"
    return None


def _of_one(argument: ir.Value) -> Any:
    """The type of a parameter, or of each array where it is a list."""
    kind = argument.type
    return kind.element_type if is_list(kind) else kind


def _wrong_flat(argument: ir.Value, given: dict[str, ir.Attribute]) -> str | None:
    """Of the mark of a list whose arrays are seen as rows of all their elements."""
    if "tile.flat" not in given:
        return None
    one = _of_one(argument)
    if not is_list(argument.type) or one.rank != 1 or static_strides(one) != [1]:
        return f"is flat, which lists of dense arrays of one dimension are, but is {argument.type}"
    return None


def _wrong_type(argument: ir.Value) -> str | None:
    kind = argument.type
    if is_list(kind):
        if kind.rank != 1 or static_sizes(kind) != [None] or static_strides(kind) != [1]:
            return f"must be a list of any length, memref<?xmemref<...>>, found {kind}"
        return _wrong_place(kind) or _wrong_array(kind.element_type)
    if not is_array(kind):
        known = is_index(kind) or str(kind) in _ELEMENTS
        return None if known else f"must be an array or a number, found {kind}"
    return _wrong_array(kind)


def _wrong_place(kind: Any) -> str | None:
    space = kind.memory_space
    return None if space is None else f"must lie in global memory, found memory space {space}"


def _wrong_array(kind: Any) -> str | None:
    if str(kind.element_type) not in _ELEMENTS:
        return f"must have elements of {', '.join(_ELEMENTS)}, found {kind.element_type}"
    if wrong := _wrong_place(kind):
        return wrong
    try:
        strides = static_strides(kind)
        _, offset = kind.get_strides_and_offset()
    except RuntimeError:
        return f"must have a stride per dimension, found {kind}"
    if offset != 0:
        return f"must begin at its pointer, found an offset in {kind}"
    if any(size is not None and size < 0 for size in static_sizes(kind)):
        return f"has a negative size: {kind}"
    if any(stride is not None and abs(stride) > MOST_ELEMENTS for stride in strides):
        return f"has a stride beyond {MOST_ELEMENTS} elements: {kind}"
    return None
