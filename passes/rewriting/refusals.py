"""How a plan says why it cannot be made, in the words of the report: it raises a `Refusal`.

What only asks whether something is possible, and makes nothing, gives its reason or None; by
convention its name begins with `why_no`. `refuse` turns such an answer into a refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

Asked = ParamSpec("Asked")
Made = TypeVar("Made")


class Refusal(Exception):
    """The reason for which there is no such plan."""


def attempt(
    plan: Callable[Asked, Made], *args: Asked.args, **options: Asked.kwargs
) -> tuple[Made | None, str]:
    """Gives what `plan` makes and "", or None and the reason for which it refuses."""
    try:
        return plan(*args, **options), ""
    except Refusal as refusal:
        return None, str(refusal)


def refuse(reason: str | None) -> None:
    """Raises a reason, where there is one."""
    if reason is not None:
        raise Refusal(reason)
