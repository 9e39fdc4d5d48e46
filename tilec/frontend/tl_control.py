"""`tl` functions about the program itself, and Python's builtins in a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir import ir

import tilec.language as tl
from tilec.dialects.tile import AssumeOp, InlinePtxOp, NumProgramsOp, PrintOp, ProgramIdOp
from tilec.frontend import conversion
from tilec.frontend.arrays import as_tuple, list_length
from tilec.frontend.branches import as_condition
from tilec.frontend.conversion import as_runtime, check_numeric, common_shape, materialize, wrap
from tilec.frontend.demands import checked_loop_demands
from tilec.frontend.frame import Frame
from tilec.frontend.statements import refuse_effects
from tilec.frontend.tl_arithmetic import maximum, minimum
from tilec.frontend.tl_shape import as_dtype
from tilec.frontend.values import (
    Array,
    ArrayList,
    ArrayShape,
    Mistake,
    Range,
    Scalar,
    Text,
    Tile,
    describe,
    is_number,
    is_runtime,
)
from tilec.terms.dtypes import DType, f32, i1, i32, index

_INT_LIMIT = (1 << 31) - 1
"""The largest i32, in which a promise is kept: two's complement."""


def program_id(frame: Frame, axis: Any) -> Scalar:
    """`tl.program_id`."""
    refuse_effects(frame, "program_id")
    return Scalar(ProgramIdOp.build(axis=_grid_axis(axis)), index)


def num_programs(frame: Frame, axis: Any) -> Scalar:
    """`tl.num_programs`."""
    refuse_effects(frame, "num_programs")
    return Scalar(NumProgramsOp.build(axis=_grid_axis(axis)), index)


def _grid_axis(axis: Any) -> int:
    if isinstance(axis, bool) or axis not in (0, 1, 2):
        raise Mistake(f"axis must be 0, 1 or 2, found {describe(axis)}", argument="axis")
    return int(axis)


def range_of(frame: Frame, start: Any, stop: Any, step: Any, **demands: Any) -> Range:
    """`tl.range` and Python's `range`."""
    return Range(*_bounds(start, stop), step, demands=checked_loop_demands(demands))


def static_range(frame: Frame, start: Any, stop: Any, step: Any) -> Range:
    """`tl.static_range`."""
    return Range(*_bounds(start, stop), step, static=True)


def _bounds(start: Any, stop: Any) -> tuple[Any, Any]:
    return (0, start) if stop is None else (start, stop)


def assume(frame: Frame, x: Any, multiple_of: Any, min: Any, max: Any) -> Any:
    """`tl.assume`."""
    refuse_effects(frame, "assume")
    facts = {"multiple_of": multiple_of, "min": min, "max": max}
    given = {name: fact for name, fact in facts.items() if fact is not None}
    if not given:
        raise Mistake("assume needs multiple_of, min or max")
    for name, fact in given.items():
        if isinstance(fact, bool) or not isinstance(fact, int) or not abs(fact) <= _INT_LIMIT:
            raise Mistake(
                f"{name} must be a constant 32-bit integer, found {describe(fact)}", argument=name
            )
    if given.get("multiple_of", 1) < 1:
        raise Mistake(f"multiple_of must be positive, found {multiple_of}", argument="multiple_of")
    if "min" in given and "max" in given and given["min"] > given["max"]:
        raise Mistake(f"min {min} is above max {max}", argument="min")
    check_numeric(x, "x")
    if is_number(x):
        return x
    value = conversion.to_scalar(frame.builder, x)
    if not value.dtype.is_integer:
        raise Mistake(f"assume is about an integer scalar, found {describe(x)}", argument="x")
    if value.dtype.is_unsigned:
        _check_unsigned_facts(value.dtype, given)
    AssumeOp.build(value.value, facts=given)
    return value


def _check_unsigned_facts(dtype: DType, given: dict[str, int]) -> None:
    """Refuses facts of an unsigned number that IR, which reads its bits as a signed one, could not
    keep: they are true of it if that has no sign, too."""
    most = dtype.limits[1] >> 1
    if not 0 <= given.get("max", -1) <= most or given.get("min", 0) < 0:
        raise Mistake(
            f"of {dtype} assume needs a max from 0 to {most}, and no negative min",
            "help: say what is known of a signed number, as in tl.assume(x.to(tl.i64), ...)",
            argument="max",
        )


def static_assert(frame: Frame, condition: Any, message: Any) -> None:
    """`tl.static_assert`; nothing is asked of probes (`call/auto_constants.py`)."""
    if is_runtime(condition):
        raise Mistake(
            f"static_assert needs a compile-time constant, found {describe(condition)}",
            "help: use assert for a check on the GPU",
            argument="condition",
        )
    frame.builder.asserts = True
    if not as_condition(frame, condition) and not frame.builder.probes:
        raise Mistake(f"static assertion failed{f': {message}' if message else ''}")


def print_values(frame: Frame, *values: Any, sep: Any) -> None:
    """`print`."""
    refuse_effects(frame, "print")
    if not isinstance(sep, str):
        raise Mistake("sep must be a string", argument="sep")
    text: list[str] = []
    operands: list[Scalar | Tile] = []
    for value in values:
        piece = ""
        for part in value.parts if isinstance(value, Text) else (value,):
            if isinstance(part, ArrayShape):
                part = as_tuple(frame.builder, part)
            piece += _printed(part, operands)
        text.append(piece)
    PrintOp.build(_print_operands(frame, operands), format=sep.join(text))


def _print_operands(frame: Frame, operands: list[Scalar | Tile]) -> list[ir.Value]:
    """The printed values; with tiles all are tiles of one shape."""
    shapes = {v.shape for v in operands if isinstance(v, Tile) and v.shape}
    if len(shapes) > 1:
        raise Mistake(f"all printed tiles must have one shape, found {', '.join(map(str, shapes))}")
    if len(operands) > PrintOp.values.each:
        most = PrintOp.values.each
        raise Mistake(f"one print shows at most {most} values, found {len(operands)}")
    shape = next(iter(shapes), None)
    return [materialize(frame.builder, value, value.dtype, shape) for value in operands]


def _printed(part: Any, operands: list[Scalar | Tile]) -> str:
    """The format text of one value; run-time values are added to `operands`."""
    if is_runtime(part):
        operands.append(part)
        return "{u}" if part.dtype.is_unsigned else "{}"
    if isinstance(part, tuple):
        return f"({', '.join(_printed(p, operands) for p in part)})"
    if part is not None and not is_number(part) and not isinstance(part, (str, DType)):
        raise Mistake(f"cannot print {describe(part)}")
    text = str(part)
    if "{" in text or "}" in text:
        raise Mistake("braces cannot be printed")
    return text


def inline_ptx(
    frame: Frame, text: Any, constraints: Any, inputs: Any, outputs: Any, pure: Any
) -> Any:
    """`tl.inline_ptx`."""
    if not isinstance(text, str) or not isinstance(constraints, str):
        raise Mistake("the PTX text and its constraints must be constant strings")
    if not isinstance(pure, bool):
        raise Mistake("pure must be True or False", argument="pure")
    refuse_effects(frame, "inline_ptx")
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    dtypes = [
        as_dtype(d, "outputs") for d in (outputs if isinstance(outputs, tuple) else (outputs,))
    ]
    values = [as_runtime(frame.builder, value) for value in given]
    _check_constraints(constraints, dtypes, values)
    shape = common_shape(values)
    for name, group, field in (
        ("inputs", values, InlinePtxOp.inputs),
        ("outputs", dtypes, InlinePtxOp.outputs),
    ):
        if len(group) > field.each:
            raise Mistake(
                f"inline_ptx takes at most {field.each} {name}, found {len(group)}", argument=name
            )
    operands = [materialize(frame.builder, value, value.dtype, shape) for value in values]
    kinds = [frame.builder.type(dtype, shape) for dtype in dtypes]
    operands, kinds = frame.builder.agree(operands, kinds)
    results = InlinePtxOp.build(
        list(operands), results=kinds, text=text, constraints=constraints, pure=pure
    )
    wrapped = tuple(wrap(v, d, shape) for v, d in zip(results, dtypes, strict=True))
    return wrapped if isinstance(outputs, tuple) else wrapped[0]


_LETTER_BITS = {"h": (16,), "r": (32,), "l": (64,), "f": (32,), "d": (64,)}


def _check_constraints(constraints: str, outputs: list[DType], values: list[Scalar | Tile]) -> None:
    letters = [letter.strip() for letter in constraints.split(",")] if constraints.strip() else []
    marks = [letter.startswith("=") for letter in letters]
    if marks != [True] * len(outputs) + [False] * len(values):
        raise Mistake(
            f"{len(outputs)} outputs and {len(values)} inputs need as many constraints, outputs "
            f"first and with '='; found {constraints!r}",
            argument="constraints",
        )
    dtypes = [*outputs, *(value.dtype for value in values)]
    for letter, dtype in zip(letters, dtypes, strict=True):
        kind = re.fullmatch(r"=?&?([hrlfd])", letter)
        if kind is None:
            raise Mistake(
                f"unknown constraint {letter!r}; expected h, r, l, f or d", argument="constraints"
            )
        floating = kind[1] in "fd"
        if dtype.bits not in _LETTER_BITS[kind[1]] or (floating and not dtype.is_float):
            raise Mistake(f"constraint {letter!r} does not hold {dtype}", argument="constraints")


def length(frame: Frame, *values: Any) -> int | Scalar:
    """Gives `len` of a tuple, a string, a shape, a tile's first dimension, or a list of arrays."""
    if len(values) != 1:
        raise Mistake("len() takes one value")
    (value,) = values
    if isinstance(value, ArrayShape):
        return value.array.rank
    if isinstance(value, (tuple, str)):
        return len(value)
    if isinstance(value, Tile) and value.shape:
        return value.shape[0]
    if isinstance(value, ArrayList):
        return list_length(frame.builder, value)
    notes = ("help: use x.shape[0]",) if isinstance(value, Array) else ()
    raise Mistake(f"{describe(value)} has no length", *notes)


def _several(function: Callable[[Frame, Any, Any], Any], name: str) -> Callable[..., Any]:
    def implementation(frame: Frame, *values: Any) -> Any:
        parts = values
        if len(values) == 1:
            parts = as_tuple(frame.builder, values[0]) or ()
            if isinstance(values[0], Tile):
                raise Mistake(f"{name}() of one tile", f"help: use tl.{name} to reduce a tile")
        if not parts:
            raise Mistake(f"{name}() needs at least one number")
        result = parts[0]
        for value in parts[1:]:
            result = function(frame, result, value)
        return result

    return implementation


def _converting(dtype: DType, convert: Callable[[Any], Any]) -> Callable[..., Any]:
    def implementation(frame: Frame, *values: Any) -> Any:
        if len(values) != 1:
            raise Mistake("expected one value")
        (value,) = values
        if is_runtime(value):
            return conversion.cast(frame.builder, value, dtype)
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise Mistake(str(error)) from None

    return implementation


def make_tuple(frame: Frame, *values: Any) -> tuple[Any, ...]:
    """Makes `tuple(...)` of a tuple or a shape."""
    return _parts(frame, "tuple", values)


def _parts(frame: Frame, name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    parts = as_tuple(frame.builder, values[0]) if len(values) == 1 else None
    if parts is None:
        found = "" if len(values) != 1 else f", found {describe(values[0])}"
        raise Mistake(f"{name}() needs a tuple or an array's shape{found}")
    return parts


def enumerated(frame: Frame, *values: Any) -> tuple[Any, ...]:
    """Gives `enumerate` of a tuple."""
    return tuple(enumerate(_parts(frame, "enumerate", values)))


def zipped(frame: Frame, *values: Any) -> tuple[Any, ...]:
    """Gives `zip` of tuples of one length."""
    parts = [_parts(frame, "zip", [value]) for value in values]
    if len({len(part) for part in parts}) > 1:
        raise Mistake("zip() needs tuples of one length")
    return tuple(zip(*parts, strict=True))


BUILTINS: Mapping[Any, Callable[..., Any]] = {
    tl.program_id: program_id,
    tl.num_programs: num_programs,
    tl.range: range_of,
    tl.static_range: static_range,
    tl.assume: assume,
    tl.static_assert: static_assert,
    tl.print: print_values,
    tl.inline_ptx: inline_ptx,
    len: length,
    min: _several(minimum, "min"),
    max: _several(maximum, "max"),
    int: _converting(i32, int),
    float: _converting(f32, float),
    bool: _converting(i1, bool),
    tuple: make_tuple,
    enumerate: enumerated,
    zip: zipped,
}
