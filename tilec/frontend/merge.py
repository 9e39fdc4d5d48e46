"""What one name becomes where two paths meet: after a branch, or around a loop.

A spec says how a value crosses the edge: `Leaf` as one SSA value, `Keep` as the same compile-time
value on both sides, a tuple part by part, `Undefined` not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any, TypeGuard

from mlir import ir

from tilec.frontend.builder import Builder, constant_dtype
from tilec.frontend.conversion import materialize, wrap
from tilec.frontend.promotion import join
from tilec.frontend.tile_layouts import lay_out
from tilec.frontend.values import (
    Mistake,
    Resource,
    Scalar,
    Tile,
    Undefined,
    describe,
    is_number,
)
from tilec.hardware.any_layout import LAYOUTS
from tilec.records import dataclass
from tilec.terms.dtypes import DType


@dataclass(frozen=True)
class Leaf:
    """One SSA value: a tile of `shape`, or a scalar where that is None."""

    dtype: DType
    shape: tuple[int, ...] | None
    layout: ir.Attribute | None = field(default=None, compare=False)

    def type(self, builder: Builder) -> ir.Type:
        """Its MLIR type."""
        return builder.type(self.dtype, self.shape, self.layout)


@dataclass(frozen=True)
class Held:
    """A tile that the tensor cores still write, as one SSA value."""

    resource: Resource

    def type(self, builder: Builder) -> ir.Type:
        """Its MLIR type."""
        return self.resource.value.type


@dataclass(frozen=True)
class Keep:
    """The same compile-time value on every path."""

    value: Any


Spec = Leaf | Held | Keep | tuple[Any, ...] | Undefined


def spec_of(value: Any) -> Spec:
    """Says how a value crosses when nothing else is known: numbers as scalars of their default
    dtype."""
    if isinstance(value, tuple):
        return tuple(spec_of(part) for part in value)
    if is_number(value):
        return Leaf(constant_dtype(value), None)
    if isinstance(value, (Scalar, Tile)):
        return Leaf(value.dtype, _leaf_shape(value), _leaf_layout(value))
    if is_pending(value):
        return Held(value)
    return value if isinstance(value, Undefined) else Keep(value)


def _leaf_shape(value: Scalar | Tile) -> tuple[int, ...] | None:
    # Rank 0 crosses as a scalar, so that `m = tl.max(x)` and `m = 0.0` agree.
    return value.shape or None if isinstance(value, Tile) else None


def _leaf_layout(value: Scalar | Tile) -> ir.Attribute | None:
    return value.value.type.encoding if _leaf_shape(value) is not None else None


def is_pending(value: Any) -> TypeGuard[Resource]:
    """Whether this is a tile that the tensor cores still write; of resources, none else ever
    changes."""
    return isinstance(value, Resource) and value.kind == "pending"


def same_constant(a: Any, b: Any) -> bool:
    """Whether two compile-time values are interchangeable (1 and True are not)."""
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_constant, a, b))
    if type(a) is type(b) and isinstance(a, LAYOUTS):
        return a == b
    if type(a) is not type(b) or not isinstance(a, (bool, int, float, str)):
        return False
    return a == b and repr(a) == repr(b)  # 0.0 and -0.0 differ


def join_values(a: Any, b: Any) -> Spec:
    """The spec two paths agree on. Mistake saying what each has where they do not."""
    if same_constant(a, b):
        return Keep(a)
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(join_values(x, y) for x, y in zip(a, b, strict=True))
    if is_number(a) and is_number(b):
        return _number_leaf(a, b)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, (Scalar, Tile)):
            spec = spec_of(x)
            assert isinstance(spec, Leaf)
            if fits(spec, y):
                return spec
    wider = _wider_integer(spec_of(a), spec_of(b))
    if wider is not None:
        return wider
    if is_pending(a) and is_pending(b) and a.value.type == b.value.type:
        return Held(a)
    raise Mistake(f"{describe(a)} on one path, {describe(b)} on the other")


def fits(leaf: Leaf, value: Any) -> bool:
    """Whether a value can cross as `leaf` without changing what it is."""
    if is_number(value):
        return leaf.shape is None and _representable(value, leaf.dtype)
    if isinstance(value, (Scalar, Tile)):
        if value.dtype != leaf.dtype or _leaf_shape(value) != leaf.shape:
            return False
        found = _leaf_layout(value)
        # One without a layout is made again in the other's, or `lay_out` says why it cannot.
        return found is None or (leaf.layout is not None and found == leaf.layout)
    return False


def _number_leaf(a: Any, b: Any) -> Leaf:
    return Leaf(join(constant_dtype(a), constant_dtype(b)), None)


def _wider_integer(a: Spec, b: Spec) -> Leaf | None:
    """Gives the wider of two integer scalars' dtypes, in which they meet: nothing is lost."""
    for spec in (a, b):
        if not isinstance(spec, Leaf) or spec.shape is not None or not spec.dtype.is_integer:
            return None
    assert isinstance(a, Leaf)
    assert isinstance(b, Leaf)
    return Leaf(join(a.dtype, b.dtype), None)


def _representable(number: bool | int | float, dtype: DType) -> bool:
    if dtype.is_float:
        return not isinstance(number, bool)
    if dtype.is_bool:
        return isinstance(number, bool)
    least, most = dtype.limits
    return isinstance(number, int) and least <= number <= most


def widen(spec: Spec, start: Any, value: Any) -> Spec:
    """The spec of a loop-carried name that was `start` before the loop and `value` after one turn.

    Equal to `spec` when the loop is consistent. A start that is a compile-time number adapts its
    dtype to what the loop computes. Mistake where no spec fits both.
    """
    if isinstance(spec, tuple) and isinstance(value, tuple) and len(spec) == len(value):
        return tuple(map(widen, spec, start, value))
    if isinstance(spec, Undefined) or _continues(spec, value):
        return spec
    if isinstance(spec, Leaf):
        if fits(spec, value):
            return spec
        found = spec_of(value)
        if isinstance(found, Leaf) and is_number(start) and found.shape is None:
            wider = Leaf(join(spec.dtype, found.dtype), None)
            if wider != spec and _representable(start, wider.dtype):
                return wider
        integers = _wider_integer(spec, found)
        if integers is not None:
            return integers
    raise Mistake(f"{describe(start)} before the loop, {describe(value)} after an iteration")


def _continues(spec: Spec, value: Any) -> bool:
    """Whether a constant or a pending tile is after an iteration what it was before."""
    if isinstance(spec, Keep):
        return same_constant(spec.value, value)
    if isinstance(spec, Held) and is_pending(value):
        return value.value.type == spec.resource.value.type
    return False


def leaves(spec: Spec) -> Iterator[Leaf | Held]:
    """The SSA values of a spec, in order."""
    if isinstance(spec, (Leaf, Held)):
        yield spec
    elif isinstance(spec, tuple):
        for part in spec:
            yield from leaves(part)


def convert(builder: Builder, spec: Spec, value: Any) -> list[ir.Value]:
    """The SSA values by which `value` crosses, made at the current insertion point."""
    if isinstance(spec, Leaf):
        made = materialize(builder, value, spec.dtype, spec.shape)
        return [made if spec.layout is None else lay_out(builder, made, spec.layout)]
    if isinstance(spec, Held):
        return [value.value]
    if isinstance(spec, tuple):
        return [v for s, part in zip(spec, value, strict=True) for v in convert(builder, s, part)]
    return []


def rebuild(spec: Spec, values: Iterator[ir.Value]) -> Any:
    """The inverse of `convert` on the other side."""
    if isinstance(spec, Leaf):
        return wrap(next(values), spec.dtype, spec.shape)
    if isinstance(spec, Held):
        return replace(spec.resource, value=next(values))
    if isinstance(spec, tuple):
        return tuple(rebuild(part, values) for part in spec)
    return spec.value if isinstance(spec, Keep) else spec
