"""Traces a grid rule: the author's function runs once on symbols and leaves expressions.

`lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), ...)` with BM = 128 gives "cdiv(c.shape[0], 128)", in
the language of `tilec.executable.grid`, which the runtime evaluates at every launch.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import tilec.language as tl
from tilec.executable.grid import compile_grid
from tilec.executable.kernel import Parameter
from tilec.messages.diagnostics import CompileError, Location
from tilec.terms.dtypes import BY_MLIR
from tilec.terms.groups import Group

Grid = tuple[str, str, str]


class Expression:
    """A symbolic integer. `text` is its expression; operators make longer ones."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __bool__(self) -> bool:
        raise TypeError("a grid rule cannot branch on a run-time value; use min and max")

    def __index__(self) -> int:
        raise TypeError("a grid rule cannot use a run-time value as a Python integer")

    def __hash__(self) -> int:
        return hash(self.text)

    def _compare(self, _other: Any) -> bool:
        raise TypeError("a grid rule cannot compare run-time values; use min and max")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compare  # type: ignore[assignment]

    def __neg__(self) -> Expression:
        return Expression(f"-({self.text})")

    def __truediv__(self, _other: Any) -> Expression:
        raise TypeError("a grid size is an integer: use // or tl.cdiv instead of /")

    __rtruediv__ = __truediv__


def _operator(symbol: str, swapped: bool) -> Callable[[Expression, Any], Expression]:
    def apply(self: Expression, other: Any) -> Expression:
        lhs, rhs = (other, self) if swapped else (self, other)
        return Expression(f"({_text(lhs)} {symbol} {_text(rhs)})")

    return apply


for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("mod", "%")):
    setattr(Expression, f"__{_name}__", _operator(_symbol, False))
    setattr(Expression, f"__r{_name}__", _operator(_symbol, True))


class _Scalar(Expression):
    """A scalar parameter."""


class _Array:
    """An array parameter: its shape, rank and dtype."""

    def __init__(self, parameter: Parameter) -> None:
        self.name = parameter.name
        self.shape = tuple(
            Expression(f"{parameter.name}.shape[{axis}]") if size is None else size
            for axis, size in enumerate(parameter.sizes)
        )
        self.ndim = parameter.rank
        self.dtype = BY_MLIR[parameter.dtype]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"an array in a grid rule has shape, ndim and dtype, not {name!r}")


class _List:
    """A list of arrays: how many there are, and how many parts they make."""

    def __init__(self, parameter: Parameter) -> None:
        self.name = parameter.name
        self.ndim = parameter.rank
        self.dtype = BY_MLIR[parameter.dtype]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a list of arrays in a grid rule has ndim and dtype, not {name!r}; "
            f"len({self.name}) and tl.parts({self.name}, B) are numbers"
        )


def _parts(arrays: Any, elements: Any) -> Expression:
    if not isinstance(arrays, _List):
        found = f"the array '{arrays.name}'" if isinstance(arrays, _Array) else repr(arrays)
        raise TypeError(f"tl.parts takes a list of arrays (tl.arrays), found {found}")
    if arrays.ndim != 1:
        raise TypeError(
            f"tl.parts takes a list of rows, '{arrays.name}' has arrays of {arrays.ndim} "
            "dimensions; tl.flat_arrays sees each as a row"
        )
    return Expression(f"parts({arrays.name}, {_text(elements)})")


def _length(value: Any) -> Any:
    return Expression(f"len({value.name})") if isinstance(value, _List) else len(value)


def _text(value: Any) -> str:
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, _List):
        raise TypeError(
            f"a grid size is an integer, found the list '{value.name}'; "
            f"len({value.name}) and tl.parts({value.name}, B) are integers"
        )
    if isinstance(value, _Array):
        raise TypeError(
            f"a grid size is an integer, found the array '{value.name}'; "
            f"its sizes are {value.name}.shape[0], ..."
        )
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a grid size is an integer, found {value!r}")
    return str(value)


def _function(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*values: Any) -> Any:
        given = tuple(values[0]) if len(values) == 1 and name != "cdiv" else values
        if not any(isinstance(value, Expression) for value in given):
            return original(*values)
        return Expression(f"{name}({', '.join(map(_text, given))})")

    return apply


class _Language:
    """`tl` inside a grid rule: constants and dtypes as they are, cdiv, parts, min/max symbolic."""

    parts = staticmethod(_parts)
    cdiv = staticmethod(_function("cdiv", tl.cdiv))
    minimum = min = staticmethod(_function("min", builtins.min))
    maximum = max = staticmethod(_function("max", builtins.max))

    def __getattr__(self, name: str) -> Any:
        return getattr(tl, name)


_SYMBOLIC = {
    "len": _length,
    "min": _function("min", builtins.min),
    "max": _function("max", builtins.max),
}


def trace_grid(
    rule: Any,
    parameters: Sequence[Parameter],
    constants: Mapping[str, Any],
    location: Location,
) -> Grid:
    """The three grid expressions of `rule`, a function or a tuple of integers.

    CompileError at the kernel where the rule is wrong.
    """
    value = _call(rule, parameters, constants, location) if callable(rule) else rule
    sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(sizes) <= 3:
        raise CompileError(f"the grid rule gives {len(sizes)} sizes; expected 1 to 3", location)
    try:
        x, y, z = (*map(_text, sizes), "1", "1")[:3]
        compile_grid((x, y, z), parameters)
    except (TypeError, ValueError) as error:
        raise CompileError(f"wrong grid rule: {error}", location) from None
    return x, y, z


def _call(
    rule: Callable[..., Any],
    parameters: Sequence[Parameter],
    constants: Mapping[str, Any],
    location: Location,
) -> Any:
    known: dict[str, Any] = dict(constants)
    for parameter in parameters:
        known[parameter.name] = (
            _Scalar(parameter.name)
            if parameter.kind == "scalar"
            else (_List if parameter.is_list else _Array)(parameter)
        )
    groups = {name: value for name, value in constants.items() if isinstance(value, Group)}
    known |= {name: group.filled(known) for name, group in groups.items()}
    try:
        names = list(inspect.signature(rule).parameters)
    except (TypeError, ValueError):
        raise CompileError("the grid rule must be a Python function", location) from None
    for name in names:
        if name not in known:
            raise CompileError(
                f"the grid rule takes '{name}', which is no parameter of the kernel",
                location,
                [f"the kernel has {', '.join(known)}"],
            )
    try:
        return _symbolic(rule)(*(known[name] for name in names))
    except Exception as error:  # the author's code: whatever it raises is the author's mistake
        missing = [f"'{name}' is None in this call" for name in names if known[name] is None]
        text = f"the grid rule failed: {type(error).__name__}: {error}"
        raise CompileError(text, location, missing) from None


def _symbolic(rule: Any) -> Callable[..., Any]:
    """`rule` with `tl.cdiv`, `min` and `max` that accept symbols."""
    if not isinstance(rule, FunctionType):
        return rule
    names = {
        name: _Language() if value is tl else value for name, value in rule.__globals__.items()
    }
    for original, symbolic in ((tl.cdiv, _Language.cdiv), (tl.parts, _Language.parts)):
        names = {name: symbolic if value is original else value for name, value in names.items()}
    made = FunctionType(
        rule.__code__,
        {**names, **{k: v for k, v in _SYMBOLIC.items() if k not in rule.__globals__}},
        rule.__name__,
        rule.__defaults__,
        rule.__closure__,
    )
    made.__kwdefaults__ = rule.__kwdefaults__
    return made
