"""What may still be going on at a place of a kernel: the accesses that a later one may have to be
ordered behind, as insert-barriers collects them in program order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import NamedTuple

from mlir import ir

from tilec.dialects.effects import ends, until
from tilec.dialects.gpu_tile import TmaCommitOp
from tilec.dialects.traits import Until
from tilec.passes.analysis.array_accesses import ArrayAccess
from tilec.passes.analysis.async_readers import reads_for_products
from tilec.passes.analysis.shared_accesses import Access

Group = frozenset[Access | ArrayAccess]
MOST_GROUPS = 8
"""Groups told apart; older ones count as the last, which costs a barrier too many at worst."""


class Pending(NamedTuple):
    """The accesses that a later one may have to be ordered behind. `seen`: those since the last
    sync. `in_flight`: asynchronous writes that may not be finished. `multiplying`, `storing`: reads
    of tensor cores and of tensor stores that may not be, by group, newest first; the first group of
    `storing` is not closed yet."""

    seen: Group = frozenset()
    in_flight: Group = frozenset()
    multiplying: tuple[Group, ...] = ()
    storing: tuple[Group, ...] = ()

    def __or__(self, other: Pending) -> Pending:
        def join(ours: tuple[Group, ...], theirs: tuple[Group, ...]) -> tuple[Group, ...]:
            pairs = zip_longest(ours, theirs, fillvalue=frozenset())
            return tuple(first | second for first, second in pairs)

        return Pending(
            self.seen | other.seen,
            self.in_flight | other.in_flight,
            join(self.multiplying, other.multiplying),
            join(self.storing, other.storing),
        )

    def map(self, move: Callable[[Access | ArrayAccess], Access | ArrayAccess]) -> Pending:
        """The same with `move` applied to every access. Sets know the hashes of those that stay as
        they are."""

        def moved(group: Group) -> Group:
            after = {each: new for each in group if (new := move(each)) is not each}
            return (group - after.keys()).union(after.values()) if after else group

        return Pending(
            moved(self.seen),
            moved(self.in_flight),
            tuple(map(moved, self.multiplying)),
            tuple(map(moved, self.storing)),
        )

    def synced(self) -> Pending:
        """What is pending behind a sync of all threads: only what is asynchronous."""
        return self._replace(seen=frozenset())

    def saw(self, accesses: Iterable[Access | ArrayAccess]) -> Pending:
        """The same with `accesses` seen, too."""
        seen = self.seen.union(accesses)
        return self if len(seen) == len(self.seen) else self._replace(seen=seen)

    @property
    def stored(self) -> Group:
        """The accesses by which tensor stores may still read memory."""
        return frozenset().union(*self.storing)

    @property
    def multiplied(self) -> Group:
        """The accesses by which tensor cores may still read memory."""
        return frozenset().union(*self.multiplying)

    @property
    def reading(self) -> Group:
        """The accesses by which memory may still be read asynchronously."""
        return self.stored | self.multiplied


def seen(view: ir.OpView, accesses: Group, pending: Pending) -> Pending:
    """Adds the accesses of an op to what is pending, either as made at once or as lasting until
    something ends them."""
    end = until(view)
    if end is Until.COPIES_WAITED:
        return pending._replace(in_flight=pending.in_flight.union(accesses))
    if reads_for_products(view):
        # Products into one accumulator keep their order; what they read is read until awaited.
        reads = [access for access in accesses if not access.writes]
        return pending._replace(multiplying=_first(reads, pending.multiplying))
    if end is Until.STORES_WAITED:
        opened = pending.storing or (frozenset(),)
        return pending._replace(storing=(opened[0].union(accesses), *opened[1:]))
    return pending if end is Until.BYTES_COUNTED else pending.saw(accesses)


def waited(view: ir.OpView, pending: Pending) -> Pending:
    """A wait turns what it surely ends into accesses made; a commit opens the next group."""
    if isinstance(view, TmaCommitOp):
        closed = pending.storing or (frozenset(),)
        return pending._replace(storing=_first((), closed))
    if ends(view) is Until.COPIES_WAITED:
        left = pending.in_flight if view.pending else frozenset()
        return pending.saw(pending.in_flight)._replace(in_flight=left)
    if ends(view) is Until.PRODUCTS_WAITED:
        left, done = pending.multiplying[: view.pending], pending.multiplying[view.pending :]
        return pending.saw(frozenset().union(*done))._replace(multiplying=left)
    kept = 1 + view.pending
    left, done = pending.storing[:kept], pending.storing[kept:]
    return pending.saw(frozenset().union(*done))._replace(storing=left)


def _first(
    accesses: Iterable[Access | ArrayAccess], groups: tuple[Group, ...]
) -> tuple[Group, ...]:
    """Puts a group of accesses in front of the others; the oldest beyond `MOST_GROUPS` become
    one."""
    last = frozenset().union(*groups[MOST_GROUPS - 1 :])
    kept = groups[: MOST_GROUPS - 1]
    return (frozenset(accesses), *kept, *([last] if last else []))
