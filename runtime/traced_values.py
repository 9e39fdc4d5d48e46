"""What torch traces of a launch: tensors without memory, kernels by number, constants by name."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

from tilec.runtime.errors import ArgumentError
from tilec.terms.dtypes import BY_MLIR, DType
from tilec.terms.groups import DEEPEST_GROUP

_DTYPE, _FUNCTION, _OBJECT = "tilec.dtype", "tilec.function", "tilec.object"
"""What stands in front of a name that stands for such a value."""

_numbers = itertools.count()
_known: WeakValueDictionary[int, Any] = WeakValueDictionary()


def new_number(target: Any) -> int:
    """A number for a callable object, by which a traced call finds it again: Dynamo compares it
    before it runs what it has compiled."""
    number = next(_numbers)
    _known[number] = target
    return number


def numbered(number: int) -> Any:
    """The object of a number; None where it is gone."""
    return _known.get(number)


def is_traced(value: Any) -> bool:
    """Whether a value is a tensor of torch's without memory of its own: fake, functional, or one
    that vmap and grad hand around."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return False
    return type(value).__module__.startswith("torch._subclasses.") or (
        torch._C._functorch.is_functorch_wrapped_tensor(value)
    )


def any_traced(values: Iterable[Any], depth: int = 0) -> bool:
    """Whether there is such a tensor among values, or in groups of them."""
    for value in values:
        names = _fields(value)
        parts = value if names is None else [getattr(value, name) for name in names]
        if isinstance(parts, (tuple, list)):
            if depth < DEEPEST_GROUP and any_traced(parts, depth + 1):
                return True
        elif is_traced(value):
            return True
    return False


def recordable(value: Any) -> Any:
    """An argument as a graph can hold it: dtypes of ours, functions and classes by name, tensors,
    numbers and texts as they are. Dynamo follows this."""
    if isinstance(value, DType):
        return (_DTYPE, value.mlir)
    names = _fields(value)
    if names is not None:
        kind = type(value)
        parts = [recordable(getattr(value, name)) for name in names]
        return (_OBJECT, kind.__module__, kind.__name__, *parts)
    if isinstance(value, list):
        return [recordable(part) for part in value]
    if isinstance(value, tuple):
        return tuple([recordable(part) for part in value])
    if callable(value):
        # Dynamo knows no `__qualname__`; the line tells a local function from a global one.
        return (_FUNCTION, value.__module__, value.__name__, _code_of(value).co_firstlineno)
    return value


def recorded(value: Any) -> Any:
    """The inverse of `recordable`. ArgumentError for what is not found by its name."""
    if isinstance(value, list):
        return [recorded(part) for part in value]
    if not isinstance(value, tuple) or not value:
        return value
    kind, *parts = value
    if not isinstance(kind, str) or kind not in _INVERSE:
        return tuple(recorded(part) for part in value)
    return _INVERSE[kind](*parts)


def _function(module: str, name: str, line: int) -> Any:
    found = found_by_name(module, name)
    if not callable(found) or _code_of(found).co_firstlineno != line:
        raise ArgumentError(
            f"{module}.{name}: another function than torch recorded; constants of traced launches "
            "are global functions"
        )
    return found


def _object(module: str, name: str, *parts: Any) -> Any:
    """A named tuple or a dataclass's object again, whatever its constructor takes."""
    found = found_by_name(module, name)
    values = [recorded(part) for part in parts]
    if issubclass(found, tuple):
        return found(*values)
    made = object.__new__(found)
    for field, value in zip(found.__dataclass_fields__, values, strict=True):
        object.__setattr__(made, field, value)
    return made


_INVERSE = {_DTYPE: lambda name: BY_MLIR[name], _FUNCTION: _function, _OBJECT: _object}


def _fields(value: Any) -> Any:
    """The names of the parts of a dataclass's object or a named tuple; None for other values."""
    if isinstance(value, tuple):
        return getattr(value, "_fields", None)
    fields = getattr(type(value), "__dataclass_fields__", None)
    return None if fields is None else list(fields)


def _code_of(function: Any) -> Any:
    return getattr(function, "fn", function).__code__


def found_by_name(module: str, name: str) -> Any:
    """What a loaded module has under a dotted name. ArgumentError where there is nothing: a name
    that a file brought imports nothing."""
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise ArgumentError(
            f"{module}.{name}: recorded by torch, not found now; import {module}, where it must be "
            "a global name"
        )
    return found
