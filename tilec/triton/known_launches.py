"""Launches like one before: what a GPU launch does again when only pointers, numbers that no array
is made of, and streams are new.

Which kernel runs, and how its arrays lie from the pointers on, follows from what a launch's key has
(`launch_keys.py`). Which arrays are one follows from how far pointers are apart: each launch known
says what has to be so. Where all of that is, a launch packs pointers and numbers, and starts.
Known are tensors of torch; other arrays are described anew at each launch.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tilec.executable.kernel import Grid
from tilec.records import dataclass
from tilec.runtime.cuda.plan import Plan, launch_plan
from tilec.triton.launch_keys import Form, Reader, reader

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


@dataclass(frozen=True)
class Known:
    """A launch: `plan`, this thread's; of each array the number of its pointer and how many bytes
    behind it it begins; of each number its value, and its place among the arguments where any
    launch of the same key may have another. `free`: the places of those that are whole numbers, and
    of others of which their class says all. `lying`: how pointers have to lie; `memories`: of a
    pointer, by its place among the arguments, how far in front of it its memory begins, and how
    many bytes that has."""

    plan: Plan
    arrays: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[Any, int | None], ...]
    free: frozenset[int] = frozenset()
    lying: tuple[Lying, ...] = ()
    memories: tuple[tuple[int, int, int], ...] = ()

    @functools.cached_property
    def fits(self) -> Callable[[Sequence[int], Sequence[Any]], bool]:
        """Whether other arguments of the same key, whose pointers these are, are launched so."""
        texts, values = [], []
        for first, second, low, high in self.lying:
            apart, (one, two) = f"s[{second}] - s[{first}]", _constants(values, low, high)
            texts.append(f"{apart} == {one}" if low == high else f"not {one} < {apart} < {two}")
        for place, *memory in self.memories:
            (ends,) = _constants(values, tuple(memory))
            texts.append(f"storage_of(a[{place}]) == {ends}")
        return _function(" and ".join(texts) or "True", len(values))(*values)

    @functools.cached_property
    def values(self) -> Callable[[Sequence[int], Sequence[Any]], tuple[Any, ...]]:
        """The pointers and numbers of a launch with these arguments, as its plan packs them."""
        values: list[Any] = []
        texts = [f"s[{n}] + {_constants(values, by)[0]}" for n, by in self.arrays]
        texts += [
            _constants(values, value)[0] if place is None else f"a[{place}]"
            for value, place in self.numbers
        ]
        return _function(f"({', '.join(texts)}{',' * bool(texts)})", len(values))(*values)

    def start(self, starts: Sequence[int], arguments: Sequence[Any], stream: int) -> None:
        """Launches with other pointers and numbers."""
        launch_plan(self.plan, self.values(starts, arguments), stream)

    def seen_from(self, pointers: Sequence[int], places: Sequence[int | None]) -> Known:
        """The same for arguments that stand elsewhere: `pointers` gives the new numbers of
        pointers, `places` the new places of arguments, none of those that are the same always."""
        free = {places[place] for place in self.free}
        return replace(
            self,
            arrays=tuple((pointers[number], bytes_) for number, bytes_ in self.arrays),
            numbers=tuple((v, at if at is None else places[at]) for v, at in self.numbers),
            free=frozenset(place for place in free if place is not None),
            lying=tuple(
                pair._replace(first=pointers[pair.first], second=pointers[pair.second])
                for pair in self.lying
            ),
            memories=tuple((places[place] or 0, *rest) for place, *rest in self.memories),
        )


def _constants(values: list[Any], *new: Any) -> list[str]:
    """Names of further constants of a text."""
    first = len(values)
    values += new
    return [f"c{number}" for number in range(first, len(values))]


@functools.lru_cache(1024)
def _function(text: str, constants: int) -> Callable[..., Any]:
    """A function of constants that gives one of pointers and arguments; equal texts are compiled
    once. A text has names and numbers of places alone."""
    names = ", ".join(f"c{number}" for number in range(constants))
    whole = compile(f"lambda {names}: lambda s, a: {text}", "<a known launch>", "eval")
    return eval(whole, {"storage_of": storage_of})


class KnownLaunches:
    """What is known of launches of one kernel, or of one function of Python. `kinds`: classes of
    arguments, beside those of numbers, that are equal where launches do not tell them apart."""

    def __init__(self, kinds: Iterable[type] = ()) -> None:
        self._kinds = frozenset((int, bool, str, type(None), *kinds))
        self._known: dict[Any, list[tuple[Known, Any]]] = {}
        self._free: dict[Form, frozenset[int]] = {}

    def reader(self, form: Form) -> Reader | None:
        """What reads keys of arguments of such calls; None where one is of another class than those
        that are known."""
        return reader(form, self._kinds, self._free.get(form, frozenset()))

    def key(self, arguments: Sequence[Any], grid: Grid) -> tuple[Any, tuple[int, ...]]:
        """What launches alike have alike, and the pointers' addresses; no key where an argument is
        of another class, or needs a look."""
        read = self.reader(Form(tuple(map(type, arguments))))
        return (None, ()) if read is None else read(arguments, grid)

    def find(
        self, key: Any, starts: Sequence[int], arguments: Sequence[Any]
    ) -> tuple[Known, Any] | None:
        """A launch that these arguments fit, and what was kept with it."""
        for known in self._known.get(key, ()):
            if known[0].fits(starts, arguments):
                return known
        return None

    def remember(
        self, form: Form, arguments: Sequence[Any], grid: Any, known: Known, beside: Any = None
    ) -> None:
        """Keeps a launch, and something beside it. Whole numbers are told apart by their class
        alone where that was so of all launches of their form."""
        self._free[form] = self._free.get(form, known.free) & known.free
        read = self.reader(form)
        key = None if read is None else read(arguments, grid)[0]
        if key is None:
            return
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        alike = self._known.setdefault(key, [])
        if len(alike) >= _MOST_ALIKE:
            alike.clear()
        alike.append((known, beside))


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
            if least < apart < most:  # they interleave
                found.append(Lying(first, second, apart, apart))
            elif least < most:  # else both are empty
                found.append(Lying(first, second, least, most))
    return tuple(dict.fromkeys(found))


def lying_as(groups: Iterable[Sequence[int]], starts: Sequence[int]) -> list[Lying]:
    """That pointers in a group lie as they do; by their numbers."""
    pairs = [(first, other) for first, *others in groups for other in others]
    apart = [starts[other] - starts[first] for first, other in pairs]
    return [Lying(*pair, bytes_, bytes_) for pair, bytes_ in zip(pairs, apart, strict=True)]
