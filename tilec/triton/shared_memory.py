"""Arrays that overlap: Triton's may, tilec's do not.

    softmax(x, x): both rules give one array         ->  one parameter, read and written in order
    a[i] = a[i + 1]: two arrays, one of them written ->  one flat array, gathers and scatters
    x[i * s + j] written and read, rows overlap      ->  the same
    f(x, x[1:]) where x is written                   ->  an error: no array covers both

What the compiler orders it orders by arrays, so that two which overlap, one of them written, have
to become one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.triton.array_rule import ArrayRule
from tilec.triton.plan import Plan


@dataclass(frozen=True)
class Sharing:
    """`merged`: of each array of the plan, the number of its parameter; `flat`: pointers all of
    whose accesses go through one flat array."""

    merged: tuple[int, ...]
    flat: frozenset[str] = frozenset()

    def again(
        self, plan: Plan, views: Sequence[ArrayView], pointers: Mapping[str, ArrayView]
    ) -> Sharing:
        """For the plan with those flat arrays. ArgumentError where that does not help."""
        found = sharing(plan, views, pointers)
        if found.flat:
            names = " and ".join(sorted(found.flat))
            raise ArgumentError(
                f"{plan.function.name}: {names} overlap in memory, and the kernel writes there; "
                "that is imported where they have one address and one dtype"
            )
        return Sharing(found.merged, self.flat)


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
    groups: list[list[int]] = []
    for number in range(len(views)):
        twins = [g for g in groups if same[g[0]] == same[number] and _touch(spans, g[0], number)]
        if twins:
            twins[0].append(number)
        else:
            groups.append([number])
    flat: set[str] = set()
    for at, group in enumerate(groups):
        if not plan.written.isdisjoint(group):
            others = [other for other in groups if _touch(spans, group[0], other[0])]
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
    taken to end with the argument."""
    rule = plan.arrays[number]
    if not rule.unbounded:
        low, high = ArrayView(0, view.shape, view.strides, view.dtype, view.device).extent()
        return view.pointer + low, view.pointer + high
    given = pointers[rule.root]
    low, high = ArrayView(0, given.shape, given.strides, given.dtype, given.device).extent()
    start, end = given.pointer + low, given.pointer + high
    return min(start, view.pointer), max(end, view.pointer)
