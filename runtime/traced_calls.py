"""Calls inside functions that torch traces: `torch.compile` and `torch.export` record them.

What a launch looks at (addresses, plans, the driver) is not for Dynamo to see. A class marked
`@traceable` has `run`, which is what a call of one of its objects is. Once Dynamo, which traces, is
imported, calls look first whether they are traced, and are then recorded as the operator of
`tilec.runtime.torch_operator`; without it a call is `run` and nothing else.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from tilec.messages.tracebacks import without_source
from tilec.runtime.traced_values import recordable
from tilec.runtime.when_imported import when_imported

DYNAMO = "torch._dynamo"

_classes: list[Any] = []

Kind = TypeVar("Kind", bound=type)


def traceable(kind: Kind) -> Kind:
    """Decorator of a class with `run` and `number` (see `new_number`): its objects can be called,
    and torch can trace that."""
    _classes.append(kind)
    _make_callable(kind, is_watched=DYNAMO in sys.modules)
    return kind


def watch() -> None:
    """Has calls of all traceable classes look whether they are traced, once Dynamo is imported."""
    when_imported(DYNAMO, _watch_all)


def _watch_all() -> None:
    for kind in _classes:
        _make_callable(kind, is_watched=True)


def _make_callable(kind: Any, *, is_watched: bool) -> None:
    run: Any = kind.__dict__["run"]

    def __call__(self: Any, *arguments: Any, **named: Any) -> None:
        __tracebackhide__ = True
        if sys.modules["torch"].compiler.is_compiling():
            # Needs torch, which is optional; and Dynamo follows a statement, not importlib.
            from tilec.runtime.torch_operator import launch_traced

            plain = [recordable(value) for value in arguments]
            launch_traced(self.number, *plain, **{n: recordable(v) for n, v in named.items()})
        else:
            run.__get__(self)(*arguments, **named)

    kind.__call__ = without_source(__call__) if is_watched else run


watch()
