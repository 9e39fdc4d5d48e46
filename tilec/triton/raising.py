"""An access through pointers becomes one to an array, where that is the same.

    address   A + (pid*64 + i0)*lda + (k*32 + i1)     ->  A: sizes [M, K], strides [lda, 1]
    mask      i1 < K - k*32, pid*64 + i0 < M               at (pid*64, k*32)

1. Each axis of the tile has a stride: what its coordinate is multiplied by, known at launch.
2. A term of the mask that bounds an axis says what the array's coordinate is, so that the bound is
   known at launch; what of the address belongs to the axis follows. An axis without such a term is
   unbounded, and takes of the address what its stride divides.
3. What is left of the address are further dimensions, one a stride, of which the tile has one
   index; uniform terms of the mask may bound those. What arguments alone decide moves the base.

Where there is a bound, no coordinate may be negative, or the mask has to say so: arrays have no
elements there. What is left of the mask has to be looked at element by element: such an access is
a gather. A coordinate
that wraps is one that does not, if nobody needs what is past the edge (`demanded.py`).
"""

from __future__ import annotations

import re
from dataclasses import field

from tilec.hardware.sizes import MOST_RANK
from tilec.records import dataclass
from tilec.triton.array_rule import ArrayRule
from tilec.triton.blocks import block_of
from tilec.triton.demanded import Demands
from tilec.triton.forms import Forms, Pointer, without_size_one
from tilec.triton.guards import Guards
from tilec.triton.masks import terms_of
from tilec.triton.polynomial import ONE, ZERO, Monomial, Polynomial, Symbol
from tilec.triton.program import Op, Type, Value
from tilec.triton.signs import Signs
from tilec.triton.stride_groups import Parts, along, groups_of, join_groups


class NotRaised(Exception):
    """Why an access stays a gather or scatter."""


@dataclass(frozen=True)
class Raised:
    """`offsets`: a coordinate per dimension of the array; `dims`: that of each of `axes`, which are
    the tile's axes that the address moves along (a load repeats its tile along the others).
    `negative`: per dimension whether coordinates may be negative: without bounds, or where the mask
    is false."""

    rule: ArrayRule
    offsets: tuple[Polynomial, ...]
    dims: tuple[int, ...]
    axes: tuple[int, ...]
    negative: tuple[bool, ...]


@dataclass
class _Dimension:
    stride: Polynomial
    axis: int | None
    offset: Polynomial = ZERO
    size: Polynomial | None = None
    checked_low: bool = False


@dataclass
class _Work:
    """What of an access is not placed yet."""

    shape: tuple[int, ...]
    rest: Polynomial
    uppers: list[Polynomial]
    dimensions: list[_Dimension] = field(default_factory=list)


class Raising:
    """Raises accesses of one kernel."""

    def __init__(self, forms: Forms, signs: Signs) -> None:
        self.forms, self.signs = forms, signs
        self.demands = Demands(forms, signs)
        self.guards = Guards(forms, signs)

    def access(self, op: Op, mask: Value | None) -> Raised:
        """The array and the place of a load or store. NotRaised says why there is none."""
        pointer = self.forms.pointer(op.operands[0])
        offset = None if pointer is None else self.forms.usable(pointer.offset)
        if pointer is None or offset is None:
            raise NotRaised("the address is no polynomial of coordinates, program ids and loops")
        terms = [term.positive for term in terms_of(mask, self.forms, self.signs)]
        positive = [term for term in terms if term is not None]
        if len(positive) < len(terms):
            raise NotRaised("a part of the mask compares no coordinates")
        shape = op.operands[0].type.shape or ()
        positive = [p for t in positive for p in self.guards.without_minima(op, t, shape)]
        offset, wrapped = self._unwrapped(op, offset, positive)
        work = _Work(
            shape,
            without_size_one(offset, shape),
            [without_size_one(term, shape) for term in (*positive, *wrapped)],
        )
        self._axes(work)
        self._others(work)
        if work.uppers:
            raise NotRaised("a part of the mask bounds no coordinate")
        return self._result(op, pointer, work)

    def block(self, op: Op, tile: Type) -> Raised:
        """The array and the place of a load or store of a `tile` by block pointer or descriptor.
        An error at the op where it has none."""
        block = block_of(op.operands[0], self.forms)
        if block is None:
            raise op.error("where the tile lies is not followed through branches or arguments")
        offsets, checked = block.offsets, _checked_dims(op, len(block.offsets))
        if op.name not in ("tt.load", "tt.store"):
            found = [self.forms.integer(v) for v in op.operands[1 : 1 + len(offsets)]]
            offsets = tuple(form for form in found if form is not None)
        shape = tile.shape or ()
        work = _Work(shape, block.base, [])
        for dim, (size, stride, offset) in enumerate(
            zip(block.sizes, block.strides, offsets, strict=True)
        ):
            if not stride.is_known or (dim in checked and not size.is_known):
                raise op.error("the sizes or strides of its array are not known at launch")
            axis = dim - len(offsets) + len(shape)
            along = axis if axis >= 0 and shape[axis] > 1 else None
            bounded = dim in checked
            size_or_none = size if bounded else None
            work.dimensions.append(_Dimension(stride, along, offset, size_or_none, bounded))
        self._others(work)
        try:
            return self._result(op, Pointer(block.root, None), work)
        except NotRaised as why:
            raise op.error(str(why)) from None

    def _unwrapped(
        self, op: Op, offset: Polynomial, positive: list[Polynomial]
    ) -> tuple[Polynomial, list[Polynomial]]:
        """An address without wraps, and the bounds that they stand for. A coordinate that the mask
        keeps below the limit does not wrap where anything is accessed."""
        new: dict[Symbol, Polynomial] = {}
        bounds = []
        for symbol in offset.symbols:
            if symbol.kind != "wrapped":
                continue
            wrap = self.forms.wraps[symbol]
            inside, new[symbol] = wrap.limit - wrap.exact, wrap.exact
            if inside in positive and self.signs.of(wrap.exact):
                continue
            if op.name != "tt.load" or not self.demands.needs_only(op.result, symbol.axis, wrap):
                raise NotRaised("a coordinate wraps or is clamped, and its elements are needed")
            bounds.append(inside)
        return offset.replaced(new), bounds

    def _axes(self, work: _Work) -> None:
        """A dimension for each axis that the address moves along, larger strides first."""
        found = []
        for axis in range(len(work.shape)):
            symbol = self.forms.coordinate(axis)
            stride = work.rest.factor_of(symbol)
            if stride is None or stride.has("coordinate"):
                raise NotRaised("the address is no sum of coordinates times strides")
            if not stride.terms:
                continue
            if not stride.is_known:
                raise NotRaised("a stride is not known at launch")
            found.append(_Dimension(stride, axis))
            work.rest = work.rest - stride * Polynomial.of(symbol)
        for dimension in found:
            self._bounded(work, dimension)
        for dimension in sorted(found, key=_is_plain):
            if dimension.size is None and not dimension.checked_low:
                self._take(work, dimension)
        work.dimensions += found

    def _bounded(self, work: _Work, dimension: _Dimension) -> None:
        """Bounds of an axis: an upper one, `limit - coordinate > 0`, says what its index is."""
        coordinate = Polynomial.of(self.forms.coordinate(dimension.axis or 0))
        upper = next((t for t in work.uppers if _is_alone(t + coordinate, t)), None)
        if upper is None:
            return
        limit = upper + coordinate
        dimension.offset = -limit.part(lambda m: not all(s.is_known for s in m))
        lower = next((t for t in work.uppers if _is_alone(t - coordinate, t)), None)
        if lower is not None and (limit + lower - coordinate).is_known:
            dimension.offset = lower - coordinate - ONE  # "coordinate + offset is not negative"
            dimension.checked_low = True
            work.uppers.remove(lower)
        else:
            dimension.offset = self._from_zero(dimension.offset)
        dimension.size = limit + dimension.offset
        work.uppers.remove(upper)
        work.rest = work.rest - dimension.offset * dimension.stride

    def _from_zero(self, offset: Polynomial) -> Polynomial:
        """An offset along a bounded dimension, which may begin anywhere that a launch knows: where
        a loop walks from the end, `-64 * trip`, at what its last trip comes to, since in front of
        that there may be no memory."""
        return offset - self.signs.least(offset).part(lambda m: all(s.is_known for s in m))

    def _take(self, work: _Work, dimension: _Dimension) -> None:
        """What of the address an unbounded axis takes: all that its stride divides and that the
        launch does not know. Of what arguments are multiplied into, an axis whose stride is a
        number takes nothing: `head * stride_h` is a dimension of its own, whose stride may be known
        to be a multiple of 16 bytes."""
        for monomial, n in work.rest.terms.items():
            known = [symbol.is_known for symbol in monomial]
            if all(known) or (_is_plain(dimension) and any(known)):
                continue
            quotient = Polynomial({monomial: n}).divided(dimension.stride)
            if quotient is not None:
                dimension.offset = dimension.offset + quotient
        work.rest = work.rest - dimension.offset * dimension.stride

    def _others(self, work: _Work) -> None:
        """Dimensions for what is left of the address: the same known factors, one stride."""
        groups = groups_of(work.rest)
        for known, parts in list(groups.items()):
            _, index = along(parts)
            if any((t + index).is_known for t in work.uppers):
                self._other(work, known, groups.pop(known))
        join_groups(groups, MOST_RANK - len(work.dimensions))
        for known, parts in groups.items():
            self._other(work, known, parts)

    def _other(self, work: _Work, known: Monomial, parts: Parts) -> None:
        """A dimension of which the tile has one index."""
        step, index = along(parts)
        dimension = _Dimension(Polynomial({known: step}), None, index)
        upper = next((t for t in work.uppers if (t + index).is_known), None)
        if upper is not None:
            lower = next((t for t in work.uppers if (t - index).is_known), None)
            if lower is not None:  # as of block pointers, whose masks look at both ends
                dimension.offset, dimension.checked_low = lower - ONE, True
                work.uppers.remove(lower)
            else:
                dimension.offset = self._from_zero(index)
            dimension.size = upper + dimension.offset
            work.uppers.remove(upper)
        work.rest = work.rest - dimension.offset * dimension.stride
        work.dimensions.insert(0, dimension)

    def _result(self, op: Op, pointer: Pointer, work: _Work) -> Raised:
        if any(symbol.kind == "coordinate" for symbol in work.rest.symbols):
            raise NotRaised("the address is no sum of coordinates times strides")
        proven = {id(d): self.signs.of(d.offset) for d in work.dimensions}
        for dimension in work.dimensions:
            clips = dimension.size is not None and not dimension.checked_low
            if clips and not proven[id(dimension)]:
                raise NotRaised(f"the index {dimension.offset} may be negative, for all one knows")
        dimensions = [d for d in work.dimensions if d.axis is None or work.shape[d.axis] > 1]
        if not dimensions:
            dimensions = [_Dimension(ONE, None)]
        axes = [(d.axis, number) for number, d in enumerate(dimensions) if d.axis is not None]
        axes.sort()
        if not op.results and len(axes) < sum(size > 1 for size in work.shape):
            raise NotRaised("several elements of the tile go to one address")
        rule = ArrayRule(
            pointer.root.name,
            element_of(op),
            work.rest,
            tuple(d.size for d in dimensions),
            tuple(d.stride for d in dimensions),
        )
        return Raised(
            rule,
            tuple(d.offset for d in dimensions),
            tuple(number for _, number in axes),
            tuple(axis for axis, _ in axes if axis is not None),
            tuple(not proven.get(id(d), True) for d in dimensions),
        )


def _checked_dims(op: Op, rank: int) -> tuple[int, ...]:
    """The dimensions along which an access by block pointer looks at the bounds; by descriptor it
    is all."""
    if op.name not in ("tt.load", "tt.store"):
        return tuple(range(rank))
    text = op.attributes.get("boundaryCheck", "")
    return tuple(int(n) for n in re.findall(r"\d+", text.partition(":")[2]))


def is_volatile(op: Op) -> bool:
    """Whether a load has to look at memory each time: others write there meanwhile."""
    return op.attributes.get("isVolatile", "false") != "false"


def stored(op: Op) -> Value:
    """What a store writes: the value behind its pointer, or behind a descriptor's offsets."""
    return op.operands[1] if op.name == "tt.store" else op.operands[-1]


def element_of(op: Op) -> str:
    """The elements that an access moves, by the name that the array has for them."""
    if op.results:
        return op.results[0].type.element
    return stored(op).type.element


def _is_plain(dimension: _Dimension) -> bool:
    """Whether a stride is a mere number, which divides nearly anything."""
    return dimension.stride.constant is not None


def _is_alone(rest: Polynomial, term: Polynomial) -> bool:
    """Whether a term without one coordinate has none left, and had it."""
    return not rest.has("coordinate") and term.has("coordinate")
