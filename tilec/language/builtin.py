"""Marks the functions that the frontend implements, and those written in the language itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


def builtin(stub: F) -> F:
    """A function the frontend turns into IR: `stub` gives its signature and documentation.

    Called outside a kernel it raises TypeError.
    """

    prefix = "gpu" if ".gpu." in stub.__module__ else "tl"

    def outside(*_args: Any, **_kwargs: Any) -> Any:
        raise TypeError(
            f"{prefix}.{stub.__name__} can only be called inside a @tilec.kernel function"
        )

    outside.__name__ = stub.__name__
    outside.__qualname__ = stub.__qualname__
    outside.__module__ = stub.__module__
    outside.__doc__ = stub.__doc__
    outside.__wrapped__ = stub  # type: ignore[attr-defined] # whose parameters help() shows
    outside.__tilec_builtin__ = stub  # type: ignore[attr-defined]
    return cast(F, outside)


class Function(Generic[P, R]):
    """A plain function that kernels may call, marked by `@tilec.function`.

    The mark is documentation (any plain function can be called); calling it outside a kernel runs
    the Python function itself.
    """

    def __init__(self, fn: Callable[P, R]) -> None:
        self.fn = fn
        self.__module__ = fn.__module__
        self.__name__, self.__qualname__ = fn.__name__, fn.__qualname__
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)


def function(fn: Callable[P, R]) -> Function[P, R]:
    """Decorator: `fn` is meant to be called from kernels, where it is inlined."""
    return Function(fn)
