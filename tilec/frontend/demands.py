"""What authors demand of a kernel and its loops, as attributes.

The form of each demand is checked here; whether it can be met, passes say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlir import ir

from tilec.dialects.demands import attribute_of
from tilec.frontend.values import Mistake, describe
from tilec.messages.diagnostics import CompileError, Location
from tilec.terms.demands import KERNEL_DEMANDS, LOOP_DEMANDS, OF_ARRAYS, check_names

Attributes = dict[str, ir.Attribute]


def kernel_attributes(demands: Mapping[str, Any], location: Location) -> Attributes:
    """The attributes of a kernel's function for demands by name.

    CompileError for a value that a demand does not take, ValueError for a name that none has.
    """
    check_names(demands)
    found: Attributes = {}
    for name, demanded in demands.items():
        row = KERNEL_DEMANDS[name]
        if demanded is row.default or row in OF_ARRAYS:
            continue
        value = row.in_ir(demanded)
        if not row.allows(value):
            text = f"{name} must be {row.takes}, found {describe(demanded)}"
            raise CompileError(text, location)
        found[row.attribute] = attribute_of(value)
    return found


def parameter_attributes(
    demands: Mapping[str, Any], arrays: Sequence[str], location: Location
) -> dict[str, Attributes]:
    """The attributes of each of a kernel's arrays for the demands that name arrays.

    CompileError for what names none.
    """
    found: dict[str, Attributes] = {name: {} for name in arrays}
    for row in OF_ARRAYS:
        demanded = demands.get(row.name, row.default)
        if demanded is row.default:
            continue
        names = row.in_ir(demanded)
        if not row.allows(names) or not set(names) <= found.keys():
            text = f"{row.name} must be {row.takes} ({', '.join(arrays)}), found "
            raise CompileError(f"{text}{describe(demanded)}", location)
        for name in names:
            found[name][row.attribute] = ir.BoolAttr.get(True)
    return found


def checked_loop_demands(demands: Mapping[str, Any]) -> dict[str, Any]:
    """Gives what is demanded of a loop, by name. Mistake for a value that a demand does not
    take."""
    found = {}
    for name, demanded in demands.items():
        row = LOOP_DEMANDS[name]
        if demanded is row.default:
            continue
        if not row.allows(demanded):
            text = f"{name} must be {row.takes}, found {describe(demanded)}"
            raise Mistake(text, argument=name)
        found[name] = demanded
    return found


def loop_attributes(demands: Mapping[str, Any]) -> Attributes:
    """The attributes of a loop for demands that are checked."""
    return {LOOP_DEMANDS[name].attribute: attribute_of(demands[name]) for name in demands}
