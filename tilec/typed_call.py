"""How a kernel is made and called, as type checkers see it; nothing of this exists at run time.

A `ParamSpec` has no room for `grid=` and `stream=`, which every call takes: a call that gives one
of them may give any arguments, all others must give the kernel's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, Protocol, TypedDict, overload

P = ParamSpec("P")


class TypedCall(Protocol[P]):
    """What `kernel[grid]` gives: a call with the kernel's arguments."""

    @overload
    def __call__(self, *arguments: P.args, **named: P.kwargs) -> None: ...
    @overload
    def __call__(self, *arguments: Any, stream: Any, **named: Any) -> None: ...


class Demands(TypedDict, total=False):
    """What `@tilec.kernel(...)` takes: see `tilec.jit.kernel`."""

    grid: Callable[..., Any] | tuple[Any, ...] | int | None
    num_warps: int | None
    persistent: bool | Literal["dynamic"] | None
    cluster: int | tuple[int, ...] | None
    consumers: Literal["pingpong", "cooperative"] | None
    order: Literal["grouped", "rows", "hilbert"] | tuple[str, int] | None
    settled: str | tuple[str, ...] | None
    device: Any
