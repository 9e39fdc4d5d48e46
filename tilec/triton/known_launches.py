"""Launches like one before: what a GPU launch does again when only pointers, fractions and streams
are new.

Which kernel runs, and how its arrays lie from the pointers on, follows from whole numbers, grid,
and of each tensor its dtype, device and address within 16 bytes. Which arrays are one follows from
how far pointers are apart: each launch known says what has to be so. Where all of that is, a launch
packs pointers and numbers, and starts.
Known are tensors of torch; other arrays are described anew at each launch.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tilec.executable.kernel import Grid
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.runtime.cuda.plan import Plan, start_plan

MOST_KNOWN = 1024
"""Launches that are remembered, of all kernels' numbers and shapes that a process has seen; then
they are forgotten at once."""
_MOST_ALIKE = 8
"""Of one key: in place and not, near each other and far."""


class Lying(NamedTuple):
    """How two pointers lie in memory, by their numbers: `second - first` is `low`, if that is
    `high`, else no number between the two."""

    first: int
    second: int
    low: int
    high: int

    def holds(self, starts: Sequence[int]) -> bool:
        """Whether it is so."""
        first, second, low, high = self
        apart = starts[second] - starts[first]
        return apart == low if low == high else not low < apart < high


@dataclass(frozen=True)
class Known:
    """A launch: `plan`, this thread's; of each array the number of its pointer and how many bytes
    behind it it begins; of each number its value, and its place among the arguments where it is
    a fraction, which any launch may have another of. `lying`: how pointers have to lie; `memories`:
    of a pointer, by its place among the arguments, how far in front of it its memory begins, and
    how many bytes that has."""

    plan: Plan
    grid: Grid
    arrays: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[Any, int | None], ...]
    lying: tuple[Lying, ...] = ()
    memories: tuple[tuple[int, int, int], ...] = ()

    def fits(self, starts: Sequence[int], arguments: Sequence[Any]) -> bool:
        """Whether other arguments of the same key are launched so."""
        for pair in self.lying:
            if not pair.holds(starts):
                return False
        return all(
            storage_of(arguments[place]) == (front, bytes_)
            for place, front, bytes_ in self.memories
        )

    def start(self, starts: Sequence[int], arguments: Sequence[Any], stream: int) -> None:
        """Launches with other pointers and fractions."""
        plan = self.plan
        plan.pack(
            plan.block,
            0,
            *[starts[number] + bytes_ for number, bytes_ in self.arrays],
            *[value if place is None else arguments[place] for value, place in self.numbers],
        )
        start_plan(plan, self.grid, stream)

    def seen_from(self, pointers: Sequence[int], places: Sequence[int | None]) -> Known:
        """The same for arguments that stand elsewhere: `pointers` gives the new numbers of
        pointers, `places` the new places of arguments, none of those that are the same always."""
        return replace(
            self,
            arrays=tuple((pointers[number], bytes_) for number, bytes_ in self.arrays),
            numbers=tuple((v, at if at is None else places[at]) for v, at in self.numbers),
            lying=tuple(
                pair._replace(first=pointers[pair.first], second=pointers[pair.second])
                for pair in self.lying
            ),
            memories=tuple((places[place] or 0, *rest) for place, *rest in self.memories),
        )


Reader = Callable[[Sequence[Any], Any], tuple[Any, tuple[int, ...]]]
"""Of arguments, and what is told apart beside them: a key, none where one needs a look, and the
addresses of the pointers."""


class KnownLaunches:
    """What is known of launches of one kernel, or of one function of Python. `kinds`: classes of
    arguments, beside those of numbers, that are equal where launches do not tell them apart."""

    def __init__(self, kinds: Iterable[type] = ()) -> None:
        self._kinds = frozenset((int, bool, str, type(None), *kinds))
        self._known: dict[Any, list[tuple[Known, Any]]] = {}

    def reader(self, arguments: Iterable[Any]) -> Reader | None:
        """What reads keys of arguments of these classes; None where one is of another class than
        those that are known."""
        return _reader(tuple(map(type, arguments)), tensor_classes(), self._kinds)

    def key(self, arguments: Sequence[Any], grid: Grid) -> tuple[Any, tuple[int, ...]]:
        """What launches alike have alike, and the pointers' addresses; no key where an argument is
        of another class, or needs a look."""
        read = self.reader(arguments)
        return (None, ()) if read is None else read(arguments, grid)

    def find(
        self, key: Any, starts: Sequence[int], arguments: Sequence[Any]
    ) -> tuple[Known, Any] | None:
        """A launch that these arguments fit, and what was kept with it."""
        for known in self._known.get(key, ()):
            if known[0].fits(starts, arguments):
                return known
        return None

    def remember(self, key: Any, known: Known, beside: Any = None) -> None:
        """Keeps a launch, and something beside it."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        alike = self._known.setdefault(key, [])
        if len(alike) >= _MOST_ALIKE:
            alike.clear()
        alike.append((known, beside))


_READER = """
def read(arguments, beside):
    {names}, = arguments
    {pointers}
    {refuse}
    return (of, ident(), beside, {values}), ({starts})
"""


@functools.lru_cache(1024)
def _reader(
    classes: tuple[type, ...], tensors: frozenset[type], kinds: frozenset[type]
) -> Reader | None:
    """A function for arguments of these classes: it asks each what launches alike have alike, with
    no loop and no question after a class. Its text has numbers alone."""
    if not all(kind in tensors or kind in kinds or kind is float for kind in classes):
        return None
    pointers = [n for n, kind in enumerate(classes) if kind in tensors]
    values = [f"a{n}" for n, kind in enumerate(classes) if kind in kinds]
    bits = " | ".join(f"p{n}" for n in pointers)
    negated = " or ".join(f"a{n}.is_neg()" for n in pointers)
    starts = "".join(f"p{n}, " for n in pointers)
    low = "".join(f"p{n} % {VECTOR_BYTES}, " for n in pointers)
    text = _READER.format(
        names=", ".join(f"a{n}" for n in range(len(classes))) or "_",
        pointers="; ".join(f"p{n} = a{n}.data_ptr()" for n in pointers) or "pass",
        refuse=f"if {negated}: return None, ()" if pointers else "",
        values=", ".join([
            *(f"a{n}.dtype, a{n}.get_device()" for n in pointers), *values,
            f"({bits}) % {VECTOR_BYTES} and ({low})" if pointers else "0",
        ]),
        starts=starts,
    )  # fmt: skip
    # The classes themselves tell 1 and True apart.
    names: dict[str, Any] = {"ident": threading.get_ident, "of": classes}
    exec(compile(text, "<key of a launch>", "exec"), names)
    return names["read"]


@functools.cache
def _classes(torch: Any) -> frozenset[type]:
    return frozenset((torch.Tensor, torch.nn.Parameter))


def tensor_classes() -> frozenset[type]:
    """The classes of torch that are known; none before it is imported."""
    torch = sys.modules.get("torch")
    return frozenset() if torch is None else _classes(torch)


def storage_of(tensor: Any) -> tuple[int, int]:
    """How far in front of a tensor its storage begins, and the storage's bytes."""
    storage = tensor.untyped_storage()
    return tensor.data_ptr() - storage.data_ptr(), storage.nbytes()


def lying_of(
    spans: Sequence[tuple[int, int]], merged: Sequence[int], written: Container[int],
    pointers: Sequence[int], starts: Sequence[int],
) -> tuple[Lying, ...]:  # fmt: skip
    """How pointers lie that arrays of a launch come from. `spans`: each array's first byte and the
    one past its last; `merged`: which parameter it is; `pointers`: which pointer it comes from."""
    found = []
    for one, two in itertools.combinations(range(len(spans)), 2):
        first, second = pointers[one], pointers[two]
        if first == second:
            continue
        apart = starts[second] - starts[first]
        if merged[one] == merged[two]:
            found.append(Lying(first, second, apart, apart))
        elif one in written or two in written:
            (low, high), (other_low, other_high) = spans[one], spans[two]
            least, most = apart + low - other_high, apart + high - other_low
            if least < most:  # else both are empty
                found.append(Lying(first, second, least, most))
    return tuple(dict.fromkeys(found))


def lying_as(groups: Iterable[Sequence[int]], starts: Sequence[int]) -> list[Lying]:
    """That pointers in a group lie as they do; by their numbers."""
    pairs = [(first, other) for first, *others in groups for other in others]
    apart = [starts[other] - starts[first] for first, other in pairs]
    return [Lying(*pair, bytes_, bytes_) for pair, bytes_ in zip(pairs, apart, strict=True)]
