"""Tracebacks that end at the author's line: what is below it is of no use to who made the mistake.

`TILEC_TRACEBACK=full` shows all, for who works on tilec.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

VARIABLE = "TILEC_TRACEBACK"


def short_traceback(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of what authors call: their mistakes leave it without the frames inside.

    A mistake is an error whose class says `is_mistake`; all others keep everything.
    """

    @functools.wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except Exception as error:
            if not getattr(error, "is_mistake", False) or os.environ.get(VARIABLE) == "full":
                raise
            __tracebackhide__ = True  # what IPython and pytest ask a frame for
            raise error.with_traceback(None) from None

    return call
