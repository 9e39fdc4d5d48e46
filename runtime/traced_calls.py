"""Calls inside functions that torch traces: `torch.compile` and `torch.export` record them.

What a launch looks at (addresses, plans, the driver) is not for Dynamo to see. A class marked
`@traceable` has `run`, which is what a call of one of its objects is. Once Dynamo, which traces, is
imported, calls look first whether they are traced, and are then recorded as the operator of
`tilec.runtime.torch_operator`; without it a call is `run` and nothing else.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial
from typing import Any, TypeVar

from tilec.messages.tracebacks import without_source
from tilec.runtime.traced_values import recordable
from tilec.runtime.when_imported import when_imported

DYNAMO = "torch._dynamo"
LOADERS = ("torch.export.pt2_archive", "torch._export.serde.serialize", "torch._inductor.package")
"""What reads programs of `torch.export` and packages of AOTInductor, one release or another."""

_classes: list[Any] = []

Kind = TypeVar("Kind", bound=type)


def traceable(kind: Kind) -> Kind:
    """Decorator of a class with `run` and `number` (see `new_number`): its objects can be called,
    and torch can trace that."""
    _classes.append(kind)
    _make_callable(kind, is_watched=DYNAMO in sys.modules)
    return kind


def call_traced(number: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Records a call of the object with that number."""
    # Needs torch, which is optional; and Dynamo follows a statement, not importlib.
    from tilec.runtime.torch_operator import launch_traced

    plain = [recordable(value) for value in arguments]
    launch_traced(number, *plain, **{name: recordable(value) for name, value in named.items()})


class TracedVariant:
    """A kernel under other demands in a traced function, which knows its number alone."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, *arguments: Any, **named: Any) -> None:
        call_traced(self.number, arguments, named)

    def __getitem__(self, grid: Any) -> Any:
        return partial(self, grid=grid)


def is_traced_call() -> bool:
    """Whether Dynamo traces the caller, which it answers itself."""
    return "torch" in sys.modules and sys.modules["torch"].compiler.is_compiling()


def watch() -> None:
    """Has calls of all traceable classes look whether they are traced, once Dynamo is imported; and
    the operator be there for programs that another process saved, once torch can load them."""
    when_imported(DYNAMO, _watch_all)
    when_programs_load("tilec.runtime.torch_operator")


def when_programs_load(operators: str) -> None:
    """Imports a module that registers operators once torch's loaders of programs are imported.
    Sooner would cost every process the seconds of Dynamo's import."""
    for loader in LOADERS:
        when_imported(loader, partial(importlib.import_module, operators))


def _watch_all() -> None:
    for kind in _classes:
        _make_callable(kind, is_watched=True)


def _make_callable(kind: Any, *, is_watched: bool) -> None:
    run: Any = kind.__dict__["run"]

    def __call__(self: Any, *arguments: Any, **named: Any) -> None:
        __tracebackhide__ = True
        if sys.modules["torch"].compiler.is_compiling():
            call_traced(self.number, arguments, named)
        else:
            run.__get__(self)(*arguments, **named)

    kind.__call__ = without_source(__call__) if is_watched else run


watch()
