"""Binds a call's arguments to parameters, and says what is wrong as Python does for its own."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from tilec.messages.names import did_you_mean


def bound(
    signature: inspect.Signature, given: Sequence[Any], named: Mapping[str, Any]
) -> inspect.BoundArguments:
    """`signature.bind(*given, **named)`. TypeError, whose notes stand behind its text, names an
    argument that there is not before one that is missing: what is called otherwise is both."""
    try:
        return signature.bind(*given, **named)
    except TypeError:
        unknown = next((name for name in named if name not in signature.parameters), None)
        if unknown is None:
            raise
        text = f"got an unexpected keyword argument '{unknown}'"
        notes = did_you_mean(unknown, signature.parameters)
        raise TypeError("\n".join([text, *notes])) from None
