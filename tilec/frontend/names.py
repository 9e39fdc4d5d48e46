"""What a name not assigned in the kernel stands for, and which Python values may enter."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tilec.language as tl
from tilec.frontend.frame import Frame
from tilec.frontend.habits import function_help
from tilec.frontend.values import Mistake
from tilec.hardware.any_layout import LAYOUTS
from tilec.language.builtin import Function
from tilec.messages.names import did_you_mean
from tilec.terms.dtypes import DType

PYTHON_NAMES = {
    "range": tl.range,
    "print": tl.print,
    "abs": tl.abs,
    "round": tl.round,
    "len": len,
    "min": min,
    "max": max,
    "int": int,
    "float": float,
    "bool": bool,
    "tuple": tuple,
    "enumerate": enumerate,
    "zip": zip,
}
"""Python's builtins a kernel may use, and what they mean there."""


def lookup(frame: Frame, name: str) -> Any:
    """The value of a name: local, then global, then one of `PYTHON_NAMES`."""
    if name in frame.names:
        return frame.names[name]
    source = frame.source
    if name in source.locals:
        raise Mistake(f"'{name}' is used before it is assigned")
    found, value = outer_value(source.fn, name)
    if found:
        return constant_from_python(value, name)
    if name in PYTHON_NAMES:
        return PYTHON_NAMES[name]
    if hasattr(builtins, name):
        notes = function_help(getattr(builtins, name))
        raise Mistake(f"Python's '{name}' is not available in a kernel", *notes)
    known = [*frame.names, *source.fn.__globals__, *PYTHON_NAMES]
    raise Mistake(f"unknown name '{name}'", *did_you_mean(name, known))


def outer_value(fn: Callable[..., Any], name: str) -> tuple[bool, Any]:
    """Whether a closure cell or global of that name exists, and its value."""
    if name in fn.__code__.co_freevars and fn.__closure__ is not None:
        cell = fn.__closure__[fn.__code__.co_freevars.index(name)]
        try:
            return True, cell.cell_contents
        except ValueError:
            raise Mistake(f"'{name}' of the enclosing function has no value yet") from None
    if name in fn.__globals__:
        return True, fn.__globals__[name]
    return False, None


_CONSTANTS = (bool, float, str, DType, ModuleType, Function, *LAYOUTS)


def constant_from_python(value: Any, name: str) -> Any:
    """A Python object as a compile-time constant. Mistake for objects kernels cannot use."""
    if value is None or isinstance(value, _CONSTANTS):
        return value
    if isinstance(value, int):
        return int(value)  # an IntEnum member is its number
    if isinstance(value, tuple):
        return tuple(constant_from_python(part, name) for part in value)
    if callable(value):
        return value
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return constant_from_python(value.item(), name)
    raise Mistake(
        f"'{name}' is a {type(value).__name__}, which is no compile-time constant",
        "help: constants are numbers, strings, tuples, dtypes, layouts and functions; arrays are "
        "passed as arguments",
    )
