"""Tracebacks that end at the author's line: what is below it is of no use to who made the mistake.

A mistake is an error whose class says `is_mistake`; all others keep everything.
`TILEC_TRACEBACK=full` shows all, for who works on tilec.

The frame that raises is always in a traceback. Ours has no source to show, and is left out by
IPython, for which a mistake has a way of its own to be shown.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from tilec.messages.names import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Any)

VARIABLE = "TILEC_TRACEBACK"
CALL = "<call of"
"""How the file of a function without source begins."""


def short_traceback(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of what authors call: their mistakes leave it without the frames inside."""

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except Exception as error:
            if not is_shortened(error):
                raise
            __tracebackhide__ = True  # what IPython and pytest ask a frame for
            raise shortened(error) from None

    return without_source(call, function.__name__)


def returned_mistake(function: Callable[P, None]) -> Callable[P, list[Exception] | None]:
    """Decorator of what is called for an author by a function that is written when it is made.

    That raises the mistake in the list, and takes it out, so that no frame of the mistake's
    traceback holds the mistake: such a cycle would keep the author's arrays for long.
    """

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> list[Exception] | None:
        try:
            function(*arguments, **named)
        except Exception as error:
            if not is_shortened(error):
                raise
            return [shortened(error)]
        return None

    return call


def without_source(function: F, name: str | None = None) -> F:
    """Decorator of a function that authors call: tracebacks show it by its name alone. `name`:
    another one. It costs nothing at a call, where `short_traceback` costs up to 0.5 us."""
    code, name = function.__code__, name or function.__name__
    function.__code__ = code.replace(co_name=name, co_filename=f"{CALL} {name}>")
    return function


def is_shortened(error: Exception) -> bool:
    """Whether an error leaves us without the frames that it has come through."""
    return getattr(error, "is_mistake", False) and os.environ.get(VARIABLE) != "full"


def shortened(error: Exception) -> Exception:
    """The error without the frames that it has come through."""
    error._render_traceback_ = _in_notebook  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    return error.with_traceback(None)


def _in_notebook() -> list[str]:
    """What IPython shows of a mistake, which it notes first (`sys.last_value`): of each of the
    author's frames the line, then the message, and what a misspelt name was meant to be, as Python
    guesses. IPython's own way has five lines of each, ours among them where it raises, no guess."""
    error: Any = sys.last_value
    shell: Any = sys.modules["IPython"].get_ipython()
    frames = _of_author(error.__traceback__)
    shown = shell.InteractiveTB.structured_traceback(type(error), error, frames, context=1)
    if not isinstance(error, AttributeError) or error.name is None:
        return shown
    return [*shown, *did_you_mean(error.name, dir(error.obj))]


def _of_author(found: TracebackType | None) -> TracebackType | None:
    """A traceback without our frames."""
    if found is None:
        return None
    rest = _of_author(found.tb_next)
    frame = found.tb_frame
    is_ours = frame.f_code.co_filename.startswith(CALL)
    if is_ours or frame.f_locals.get("__tracebackhide__") is True:
        return rest
    return TracebackType(rest, found.tb_frame, found.tb_lasti, found.tb_lineno)
