"""What defines a value, and what uses it."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Any

from mlir import ir


def defining_op(value: ir.Value, *names: str) -> ir.Operation | None:
    """The op that defines a value, if it has one of these names, where some are given. None for
    another, and for a block's argument, which no op defines; MLIR compares no op with None."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    op = owner.operation
    return op if not names or op.name in names else None


def made_by(value: ir.Value, *kinds: type | UnionType) -> Any:
    """The op that defines a value, as a view, if it is of one of these classes; else None."""
    return value.owner if isinstance(value.owner, kinds) else None


def constant_attribute(value: ir.Value) -> Any:
    """The attribute that an arith.constant gives as a value; None for what is no constant."""
    op = defining_op(value, "arith.constant")
    return None if op is None else op.attributes["value"]


def constant_element(value: ir.Value) -> Any:
    """The attribute of the number that a constant is, or that all elements of a constant tile are;
    None for others."""
    known = constant_attribute(value)
    if not isinstance(known, ir.DenseElementsAttr):
        return known
    return known.get_splat_value() if known.is_splat else None


def only_use(value: ir.Value) -> Any:
    """The one use of a value; None where it has none, or several."""
    uses = list(value.uses)
    return uses[0] if len(uses) == 1 else None


def only_user(value: ir.Value, *kinds: type | UnionType) -> Any:
    """The op that alone uses a value, once, as a view; None where there is no such, of one of these
    classes where some are given."""
    found = users(value)
    return found[0] if len(found) == 1 and (not kinds or isinstance(found[0], kinds)) else None


def traced(value: ir.Value, *kinds: type | UnionType) -> tuple[list[Any], ir.Value]:
    """The ops of these classes that a value has come through, each the `src` of the one before it
    in the list, as views; and the value in front of all of them."""
    found = []
    while isinstance(value.owner, kinds):
        found.append(value.owner)
        value = value.owner.src
    return found, value


def users(value: ir.Value, *kinds: type | UnionType) -> list[Any]:
    """The ops that use a value, each as often as it does, as views; those of these classes, where
    some are given."""
    views = [use.owner.opview for use in value.uses]
    return of_kind(views, *kinds) if kinds else views


def of_kind(ops: Iterable[Any], *kinds: type | UnionType) -> list[Any]:
    """Those of `ops` that are of one of these classes, as views."""
    return [view for view in (op.opview for op in ops) if isinstance(view, kinds)]
