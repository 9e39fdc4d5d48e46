"""Arrays that overlap: Triton's may, tilec's do not.

    softmax(x, x): both rules give one array         ->  one parameter, read and written in order
    a[i] = a[i + 1]: two arrays, one of them written ->  one flat array, gathers and scatters
    x[i * s + j] written and read, rows overlap      ->  the same
    f(x, x[1:]) where x is written                   ->  the same, of both (joined_pointers.py)
    the halves of each row: x[:, :n], x[:, n:]       ->  two arrays: they interleave

What the compiler orders it orders by arrays, so that two which overlap, one of them written, have
to become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.triton.array_rule import ArrayRule
from tilec.triton.joined_pointers import Group, can_join, joined_views
from tilec.triton.memory_of import memory_behind, span_of
from tilec.triton.plan import Plan
from tilec.triton.program import Function


@dataclass(frozen=True)
class Sharing:
    """`merged`: of each array of the plan, the number of its parameter; `flat`: pointers all of
    whose accesses go through one flat array; `joined`: those of them that share one, in groups."""

    merged: tuple[int, ...]
    flat: frozenset[str] = frozenset()
    joined: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Shared:
    """What a launch comes to: its plan, the array of each of its rules, the bytes that each may
    touch, its numbers, and which arrays are one."""

    plan: Plan
    views: Sequence[ArrayView]
    spans: Sequence[tuple[int, int]]
    numbers: Mapping[str, Any]
    sharing: Sharing


def shared(
    planned: Callable[[frozenset[str], tuple[Group, ...]], Plan],
    pointers: Mapping[str, ArrayView],
    numbers: Mapping[str, Any],
) -> Shared:
    """A launch without arrays that overlap, one of them written. `planned`: the kernel's plan for
    pointers that are flat and groups that are joined. ArgumentError where pointers overlap that
    cannot be joined."""
    function = planned(frozenset(), ()).function
    flat: frozenset[str] = frozenset()
    groups: tuple[Group, ...] = ()
    while True:
        views, distances = joined_views(function, pointers, groups)
        found = _shared(planned(flat, groups), views, {**numbers, **distances})
        overlap = found.sharing.flat
        if not overlap:
            return replace(found, sharing=Sharing(found.sharing.merged, flat, groups))
        if overlap <= flat:
            before, groups = groups, _grown(found, groups, function, pointers)
            if groups == before:
                raise _overlap(function, overlap)
        flat |= overlap


def _shared(plan: Plan, pointers: Mapping[str, ArrayView], numbers: Mapping[str, Any]) -> Shared:
    try:
        views = [rule.view(pointers[rule.root], numbers) for rule in plan.arrays]
    except ZeroDivisionError:
        raise ArgumentError(f"{plan.function.name}: division by zero in a size or stride") from None
    spans = spans_of(plan, views, pointers)
    return Shared(plan, views, spans, numbers, sharing(plan, views, pointers))


def _grown(
    found: Shared, groups: Sequence[Group], function: Function, pointers: Mapping[str, ArrayView]
) -> tuple[Group, ...]:
    """Adds to groups of pointers those that overlap them, and makes groups of others that overlap
    each other. ArgumentError where such pointers cannot be joined."""
    flat = [n for n, rule in enumerate(found.plan.arrays) if rule.root in found.sharing.flat]
    grown: list[set[str]] = list(map(set, groups))
    for number in flat:
        names = {found.plan.arrays[n].root for n in flat if _touch(found.spans, number, n)}
        near = [group for group in grown if not group.isdisjoint(names)]
        grown = [group for group in grown if group not in near] + [names.union(*near)]
    order = [argument.name for argument in function.arguments]
    rows = tuple(tuple(sorted(group, key=order.index)) for group in grown if len(group) > 1)
    for row in rows:
        if not can_join(function, pointers, row):
            raise _overlap(function, row)
    return rows


def _overlap(function: Function, names: Iterable[str]) -> ArgumentError:
    return ArgumentError(
        f"{function.name}: {' and '.join(sorted(names))} overlap in memory, and the kernel writes "
        "there; that is imported where they are pointers to one type, whole elements apart"
    )


def alone(plan: Plan) -> Sharing:
    """For a kernel whose pointers are into memory of their own, and rows do not overlap: what
    several accesses by one pointer need."""
    roots = [rule.root for rule in plan.arrays]
    flat = {
        rule.root
        for number, rule in enumerate(plan.arrays)
        if number in plan.written
        and (roots.count(rule.root) > 1 or (_accesses(plan, [number]) > 1 and _may_fold(rule)))
    }
    return Sharing(tuple(range(len(roots))), frozenset(flat))


def sharing(plan: Plan, views: Sequence[ArrayView], pointers: Mapping[str, ArrayView]) -> Sharing:
    """Which arrays of a launch are one, and which pointers have to be flat."""
    spans = spans_of(plan, views, pointers)
    same = [(v.pointer, v.shape, v.strides, v.dtype) for v in views]

    def touch(one: int, two: int) -> bool:
        return _touch(spans, one, two) and not interleave(views[one], views[two])

    groups: list[list[int]] = []
    for number in range(len(views)):
        twins = [g for g in groups if same[g[0]] == same[number] and touch(g[0], number)]
        if twins:
            twins[0].append(number)
        else:
            groups.append([number])
    flat: set[str] = set()
    for at, group in enumerate(groups):
        if not plan.written.isdisjoint(group):
            others = [other for other in groups if touch(group[0], other[0])]
            several = _accesses(plan, group) > 1 and _folds(views[group[0]])
            if len(others) > 1 or several:
                flat |= {plan.arrays[n].root for other in [groups[at], *others] for n in other}
    merged = {number: at for at, group in enumerate(groups) for number in group}
    return Sharing(tuple(merged[number] for number in range(len(views))), frozenset(flat))


def _accesses(plan: Plan, arrays: Sequence[int]) -> int:
    """How many ops touch one of several arrays."""
    return sum(number in arrays for number in plan.of.values())


def _folds(view: ArrayView) -> bool:
    """Whether two places of an array may be one element: accesses that lie apart along a dimension
    would not be apart in memory."""
    reach = 1
    for stride, size in sorted(zip(map(abs, view.strides), view.shape, strict=True)):
        if size <= 1:
            continue
        if stride < reach:
            return True
        reach += (size - 1) * stride
    return False


def _may_fold(rule: ArrayRule) -> bool:
    """The same before a launch: only a dimension with the largest stride may be unbounded."""
    constants = [stride.constant for stride in rule.strides]
    if not rule.unbounded or len(constants) == 1:
        return False
    (axis, *more) = rule.unbounded
    others = [n for other, n in enumerate(constants) if other != axis]
    if more or None in others:
        return True
    largest = constants[axis]
    return largest is not None and any(largest <= n for n in others if n is not None)


def interleave(one: ArrayView, two: ArrayView) -> bool:
    """Whether arrays have no byte in common because rows of one lie between rows of the other, as
    far as a stride of both says: bytes apart, modulo that stride."""
    strides = {abs(stride) * view.element_bytes for view in (one, two) for stride in view.strides}
    for every in strides - {0}:
        (low, bytes_), (other_low, other_bytes) = _row(one, every), _row(two, every)
        between = (other_low - low) % every
        if bytes_ <= between <= every - other_bytes:
            return True
    return False


def _row(view: ArrayView, every: int) -> tuple[int, int]:
    """The first byte of what dimensions span whose strides are no multiples of `every` bytes, and
    how many it has: all of the array is there, and so many times `every` bytes further."""
    strides = zip(view.shape, view.strides, strict=True)
    inner = [(n, s) for n, s in strides if s * view.element_bytes % every]
    sizes, steps = tuple(n for n, _ in inner), tuple(s for _, s in inner)
    low, high = ArrayView(0, sizes, steps, view.dtype, view.device).extent()
    return view.pointer + low, high - low


def _touch(spans: Sequence[tuple[int, int]], one: int, two: int) -> bool:
    """Whether two arrays have a byte in common, as far as their ends say."""
    (low, high), (other_low, other_high) = spans[one], spans[two]
    return low < other_high and other_low < high


def spans_of(
    plan: Plan, views: Sequence[ArrayView], pointers: Mapping[str, ArrayView]
) -> list[tuple[int, int]]:
    """Of each array of a plan, the first byte and the one past the last."""
    return [_span(plan, number, view, pointers) for number, view in enumerate(views)]


def _span(
    plan: Plan, number: int, view: ArrayView, pointers: Mapping[str, ArrayView]
) -> tuple[int, int]:
    """The first byte of an array and the one past the last. Along an unbounded dimension it is
    taken to end with the argument. Where its first element lies in front of all memory behind the
    pointer, as row -1 of `x[min(i + 1, n) - 1]`, none is accessed there: what lies there is no
    matter of this launch's, but of what was allocated before."""
    rule = plan.arrays[number]
    if not rule.unbounded:
        return span_of(view)
    pointer = pointers[rule.root]
    start, end = span_of(pointer)
    first = max(view.pointer, memory_behind(pointer)[0])
    return min(start, first), max(end, view.pointer)
