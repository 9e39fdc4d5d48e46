"""Which compiled kernel a call needs: the part of its arguments that the code depends on."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from tilec.call.call_class import CallClass
from tilec.call.declaration import DeclaredParameter
from tilec.call.signature import parse_spec
from tilec.call.spec_groups import bind_specs
from tilec.executable.kernel import LISTS, Parameter
from tilec.language.parameters import auto
from tilec.messages.mistakes import mistake
from tilec.records import dataclass
from tilec.runtime.array_list import ArrayList
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import index_bits, observe_list, observe_parameter
from tilec.runtime.launch_argument import REQUIRED
from tilec.terms.dtypes import DTYPES, DType, f32, i1
from tilec.terms.groups import Group

_KINDS: Mapping[type, str] = {int: "int", float: "float", bool: "bool"}
_DTYPES_OF: Mapping[type | None, tuple[str, ...]] = {
    python: tuple(d.mlir for d in DTYPES if d.kind == kind and d.packed and not d.is_narrow)
    for python, kind in _KINDS.items()
}
"""Dtypes that a spec may give a parameter with an annotation of Python's."""
_USUAL: Mapping[type | None, DType] = {float: f32, bool: i1}
"""What a call gives it; a whole number is `i32` where it fits."""


@dataclass(frozen=True)
class Specialization:
    """Array and scalar parameters in the kernel's order, constants by name, width of indices.

    `call`: the class of sizes that tiles are chosen for; None where there is nothing to choose, or
    nothing known of sizes. `programs_per_sm`: of the calls, below 0 how many multiprocessors each
    program has, 0 for any number.
    """

    parameters: tuple[Parameter, ...]
    constants: tuple[tuple[str, Any], ...]
    index_bits: int
    call: CallClass | None = None
    programs_per_sm: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that is equal where one compiled kernel serves both (1, 1.0 and True are different
        constants)."""
        constants = tuple((name, _typed(value)) for name, value in self.constants)
        return (self.parameters, constants, self.index_bits, self.call, self.programs_per_sm)

    @property
    def is_open(self) -> bool:
        """Whether constants are left to the compiler."""
        return any(value is auto for _, value in self.constants)


def _typed(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_typed, value))
    return (type(value), repr(value) if isinstance(value, float) else value)


def specialize(declared: Sequence[DeclaredParameter], bound: Mapping[str, Any]) -> Specialization:
    """The specialisation for described arguments: an ArrayView, a scalar or a constant a name."""
    parameters = []
    constants = []
    for parameter in declared:
        value = bound[parameter.name]
        if parameter.kind == "const":
            constants.append((parameter.name, plain_number(value)))
        elif isinstance(value, Group):
            constants.append((parameter.name, value))
            for leaf in value.leaves():
                if leaf.is_constant:
                    constants.append((leaf.name, plain_number(bound[leaf.name])))
                else:
                    part = DeclaredParameter(leaf.name, "any")
                    parameters.append(_observed(part, bound[leaf.name]))
        elif value is None and parameter.may_be_missing:
            constants.append((parameter.name, None))
        else:
            parameters.append(_observed(parameter, value))
    arrays = [value for value in bound.values() if isinstance(value, ArrayView)]
    return Specialization(tuple(parameters), tuple(constants), index_bits(arrays))


def _observed(declared: DeclaredParameter, value: Any) -> Parameter:
    """The parameter for an argument that is an array or a number."""
    if isinstance(value, ArrayList):
        return observe_list(declared.name, declared.kind, value)
    if isinstance(value, ArrayView):
        return observe_parameter(declared.name, value)
    return _scalar(declared, value)


def plain_number(value: Any) -> Any:
    """A constant as kernels know it: a scalar of NumPy's as Python's."""
    is_numpy = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if is_numpy else value


def _scalar(declared: DeclaredParameter, value: Any) -> Parameter:
    """A scalar parameter: its annotation's dtype, else the value's (int: i32 if it fits)."""
    if declared.dtype is not None:
        dtype = declared.dtype.mlir
    elif declared.python in _USUAL:
        dtype = _USUAL[declared.python].mlir
    elif declared.python is None and isinstance(plain_number(value), bool):
        dtype = i1.mlir
    else:
        dtype = _dtype_of_number(declared, value)
    return Parameter(declared.name, "scalar", dtype)


def _dtype_of_number(declared: DeclaredParameter, value: Any) -> str:
    try:
        return "i32" if -(1 << 31) <= operator.index(value) < 1 << 31 else "i64"
    except TypeError:
        if declared.python is int:
            raise _not_a(declared, "an integer", value) from None
    try:
        float(value)
    except (TypeError, ValueError):
        raise _not_a(declared, "an array or a number", value) from None
    return "f32"


def _not_a(declared: DeclaredParameter, expected: str, value: Any) -> ArgumentError:
    found = type(value).__name__
    return ArgumentError(f"argument {declared.name!r}: expected {expected}, found {found}")


def specialize_for(
    declared: Sequence[DeclaredParameter],
    specs: Sequence[str | Parameter],
    constants: Mapping[str, Any],
    bits: int,
) -> Specialization:
    """The specialisation that argument specs describe (see `tilec.call.signature`).

    ValueError names what is missing or unknown. A scalar annotated with a dtype needs no spec.
    """
    try:
        return _specialize_for(declared, specs, constants, bits)
    except ValueError as error:
        raise mistake(error) from None


def _specialize_for(
    declared: Sequence[DeclaredParameter],
    specs: Sequence[str | Parameter],
    constants: Mapping[str, Any],
    bits: int,
) -> Specialization:
    given = {}
    for spec in specs:
        parameter = parse_spec(spec) if isinstance(spec, str) else spec
        if parameter.name in given:
            raise ValueError(f"argument {parameter.name!r} is given twice")
        given[parameter.name] = parameter
    form, parts = bind_specs(declared, {**given, **constants})
    by_name = {parameter.name: parameter for parameter in declared}
    parameters = []
    chosen: list[tuple[str, Any]] = list(form.given.items())
    for argument in form.arguments:
        name = argument.name
        if argument.kind == "const":
            value = parts.get(name, argument.default)
            if value is REQUIRED:
                raise ValueError(f"constant {name!r} has no value")
            chosen.append((name, value))
        else:
            own = by_name.get(name, DeclaredParameter(name, "any"))
            parameters.append(_declared_spec(own, parts.get(name)))
    for name in [*given, *constants]:
        if re.split(r"[.\[]", name)[0] not in by_name:
            known = ", ".join(by_name)
            what = "argument" if name in given else "constant"
            raise ValueError(f"the kernel has no {what} {name!r}; its parameters: {known}")
    return Specialization(tuple(parameters), tuple(chosen), bits)


def _declared_spec(declared: DeclaredParameter, spec: Parameter | None) -> Parameter:
    dtype: DType | None = declared.dtype
    if spec is None:
        if dtype is None:
            raise ValueError(
                f"argument {declared.name!r} has no spec; expected e.g. {declared.name}:bf16[?,?]"
            )
        return Parameter(declared.name, "scalar", dtype.mlir)
    if not isinstance(spec, Parameter):
        raise ValueError(f"argument {declared.name!r} is no constant; describe it with a spec")
    if declared.kind in LISTS:
        return _list_spec(declared, spec)
    if spec.is_list:
        text = f"argument {declared.name!r} is a list of any length; its annotation does not say so"
        raise ValueError(f"{text} (tl.arrays, tl.flat_arrays)")
    expected = {"array": "array", "scalar": "scalar", "typed": "scalar"}.get(declared.kind)
    if expected is not None and spec.kind != expected:
        one = {"array": "an array, e.g. {}:{}[?,?]", "scalar": "a number, e.g. {}:{}"}[expected]
        wanted = one.format(declared.name, spec.dtype)
        raise ValueError(f"argument {declared.name!r}: {spec.kind} found, expected {wanted}")
    if dtype is not None and spec.dtype != dtype.mlir:
        raise ValueError(f"argument {declared.name!r} is {spec.dtype}; expected {dtype.mlir}")
    if declared.python is not None and spec.dtype not in _DTYPES_OF[declared.python]:
        known = ", ".join(_DTYPES_OF[declared.python])
        raise ValueError(f"argument {declared.name!r} is {spec.dtype}; expected one of {known}")
    return replace(spec, name=declared.name)


def _list_spec(declared: DeclaredParameter, spec: Parameter) -> Parameter:
    """The spec of a list as its parameter. ValueError where it describes something else."""
    if not spec.is_list:
        example = f"{declared.name}[]:f32[?]"
        raise ValueError(f"argument {declared.name!r} is a list; expected e.g. {example}")
    if declared.kind == "flat_arrays" and (spec.rank != 1 or spec.strides != (1,)):
        found = f"sizes {spec.sizes}, strides {spec.strides}"
        raise ValueError(f"argument {declared.name!r}: flat arrays are rows, found {found}")
    return replace(spec, name=declared.name, kind=declared.kind)


def constant_text(value: Any) -> str:
    """A constant's type and value, the same in every process; functions by name."""
    if isinstance(value, Group):
        return f"group {value}"
    if isinstance(value, tuple):
        parts = cast("tuple[Any, ...]", value)
        return f"({', '.join(map(constant_text, parts))})"
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{type(value).__name__} {value!r}"
