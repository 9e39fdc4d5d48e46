"""`x.name`: members of modules, arrays, tiles and dtypes."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any

import tilec.language as tl
from tilec.frontend.frame import Frame
from tilec.frontend.habits import (
    NO_LISTS,
    READ_AN_ARRAY,
    array_member_help,
    member_help,
    module_help,
)
from tilec.frontend.names import constant_from_python
from tilec.frontend.tl_gpu import METHODS_OF, properties_of
from tilec.frontend.values import (
    Array,
    ArrayList,
    ArrayShape,
    Method,
    Mistake,
    Resource,
    Scalar,
    Tile,
    describe,
    is_runtime,
)
from tilec.messages.names import did_you_mean
from tilec.terms.dtypes import DType
from tilec.terms.groups import Record

METHODS = (
    "to",
    "reshape",
    "permute",
    "transpose",
    "bitcast",
    "broadcast_to",
    "expand_dims",
    "sum",
    "max",
    "min",
    "prod",
    "any",
    "all",
    "argmax",
    "argmin",
)
"""Methods of tiles and scalars: `x.f(...)` is `tl.f(x, ...)`, `x.to` is `tl.cast`."""


OF_CONSTANTS: dict[type, tuple[str, ...]] = {
    int: ("bit_length", "bit_count"),
    float: ("is_integer",),
    str: ("startswith", "endswith", "lower", "upper", "count"),
    tuple: ("index", "count"),
}
"""Methods of constants that are Python's own: they change nothing, and give numbers or strings."""

_OF_A_DTYPE = ("name", "bits", "is_float", "is_integer", "is_unsigned", "is_bool")


def _is_own_file(owner: ModuleType, name: str) -> bool:
    """Whether a name of the language is that of one of its files, `tl.matmul`, and no more."""
    return owner is tl and isinstance(getattr(tl, name), ModuleType) and name not in dir(tl)


def evaluate_attribute(frame: Frame, node: ast.Attribute) -> Any:
    """Evaluates `x.shape`, `tl.f32`, ..."""
    owner = frame.evaluate(node.value)
    name = node.attr
    if isinstance(owner, ModuleType):
        return _module_attribute(owner, name)
    if isinstance(owner, ArrayList):
        return _list_attribute(owner, name)
    if isinstance(owner, Array):
        return _array_attribute(owner, name)
    if is_runtime(owner):
        return _tile_attribute(frame, owner, name)
    if isinstance(owner, Resource):
        return _resource_attribute(owner, name)
    if isinstance(owner, Record) and owner.fields:
        if name not in owner.fields:
            raise Mistake(f"the object has no '{name}'", *did_you_mean(name, owner.fields))
        return getattr(owner, name)
    if isinstance(owner, DType) and name in _OF_A_DTYPE:
        return getattr(owner, name)
    return _method_of_constant(owner, name)


def _method_of_constant(owner: Any, name: str) -> Any:
    methods = next((OF_CONSTANTS[t] for t in OF_CONSTANTS if isinstance(owner, t)), ())
    if name in methods:
        return getattr(owner, name)
    notes = (NO_LISTS,) if isinstance(owner, tuple) else did_you_mean(name, methods)
    raise Mistake(f"{describe(owner)} has no '{name}'", *notes)


def _module_attribute(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name) or _is_own_file(module, name):
        raise Mistake(f"module '{module.__name__}' has no '{name}'", *module_help(module, name))
    return constant_from_python(getattr(module, name), f"{module.__name__}.{name}")


def _list_attribute(arrays: ArrayList, name: str) -> Any:
    if name == "dtype":
        return arrays.dtype
    if name == "ndim":
        return arrays.rank
    raise Mistake(
        f"a list of arrays has no attribute '{name}', it has dtype and ndim, of each of them",
        f"help: {arrays.name}[i] is an array, len({arrays.name}) how many there are",
    )


def _array_attribute(array: Array, name: str) -> Any:
    known = {"shape": ArrayShape(array), "dtype": array.dtype, "ndim": array.rank}
    if name not in known:
        notes = array_member_help(name) or ((READ_AN_ARRAY,) if name in METHODS else ())
        raise Mistake(f"an array has no '{name}'; it has shape, dtype and ndim", *notes)
    return known[name]


def _resource_attribute(value: Resource, name: str) -> Any:
    if name in METHODS_OF[value.kind]:
        return Method(value, name)
    known = properties_of(value)
    if name not in known:
        names = [*METHODS_OF[value.kind], *known]
        raise Mistake(f"{describe(value)} has no '{name}'", *did_you_mean(name, names))
    return known[name]


def _tile_attribute(frame: Frame, value: Scalar | Tile, name: str) -> Any:
    shape = value.shape if isinstance(value, Tile) else ()
    if name == "shape":
        return shape
    if name == "dtype":
        return value.dtype
    if name == "ndim":
        return len(shape)
    if name == "T":
        if len(shape) != 2:
            raise Mistake(
                f".T is for two dimensions, found {describe(value)}", "help: use tl.permute"
            )
        return frame.rules.builtins[tl.permute](frame, value, (1, 0))
    if name in METHODS:
        return Method(value, name)
    notes = member_help(name) or did_you_mean(name, [*METHODS, "shape", "dtype", "ndim", "T"])
    raise Mistake(f"{describe(value)} has no '{name}'", *notes)
