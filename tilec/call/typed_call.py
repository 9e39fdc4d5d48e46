"""How a kernel is called, as type checkers see it; nothing of this exists at run time.

A `ParamSpec` has no room for `grid=` and `stream=`, which every call takes: a call that gives one
of them may give any arguments, all others must give the kernel's.
"""

from __future__ import annotations

from typing import Any, ParamSpec, Protocol, overload

P = ParamSpec("P")


class TypedCall(Protocol[P]):
    """What `kernel[grid]` gives: a call with the kernel's arguments."""

    @overload
    def __call__(self, *arguments: P.args, **named: P.kwargs) -> None: ...
    @overload
    def __call__(self, *arguments: Any, stream: Any, **named: Any) -> None: ...
