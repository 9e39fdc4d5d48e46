"""Calls that were made before: the checks and choices of the first serve all like it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple

from tilec.ops.launch_steps import FACTOR, Made, Step
from tilec.ops.new_arrays import array_maker
from tilec.records import dataclass
from tilec.runtime.cuda.plan import Plan, launch_plan, start_plan
from tilec.runtime.cuda.reader import reader_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.streams import current_stream_in
from tilec.runtime.traced_values import is_traced

MOST_KNOWN_CALLS = 1024
"""Kinds of calls kept: a model has tens of layers; one with ever new shapes starts over rather than
growing."""

Span = tuple[str, int, int, int]
"""An array's name, its place among those of a call, its first byte and the one behind its last."""

Read = Callable[[Any], tuple[int, Any]]
"""Gives an array's address, and all else of it that a plan depends on."""


def look(values: Sequence[Any], asked: Any) -> tuple[Any, list[int]] | None:
    """Finds what tells calls with different plans apart, and the address of each array.

    `values`: the arrays of a call, None for those that are not there: their address is 0. `asked`:
    everything else that the plan depends on. None where an array must be described anew, or is one
    to complain of.
    """
    seen: list[Any] = [asked]
    pointers: list[int] = []
    bits = 0
    for value in values:
        if value is None:
            pointers.append(0)
            seen.append(None)
            continue
        try:
            pointer, kind = (_reads.get(value.__class__) or _read_of(value))(value)
        except Exception:  # the whole way says what is wrong
            return None
        pointers.append(pointer)
        seen.append(kind)
        bits |= pointer
    seen.append(bits & 15 and tuple(pointer & 15 for pointer in pointers))
    return tuple(seen), pointers


_reads: dict[type, Read] = {}


def _read_of(value: Any) -> Read:
    """Finds how to read arrays of the class of `value`; kept for those that may be read so."""
    reader = reader_of(value)
    # The address of a fake tensor is 0, with a warning: it must not be like a call on memory.
    if reader is None or is_traced(value):
        raise TypeError(f"{type(value).__name__}: to be described at every call")
    if reader.framework == "torch":
        # The whole way refuses tensors that a gradient is wanted of, so none such is known.
        enabled = sys.modules["torch"].is_grad_enabled
        read = reader.function("{0}.requires_grad and enabled()", enabled=enabled)
    else:
        read = reader.function()
    _reads[type(value)] = read
    return read


def _address_of(array: Any) -> int:
    """The address of an array of a kind that has a reader."""
    read = _addresses.get(array.__class__)
    if read is None:
        reader = reader_of(array)
        assert reader is not None, type(array)
        read = _addresses[array.__class__] = reader.address()
    return read(array)


_addresses: dict[type, Callable[[Any], int]] = {}


class KnownCalls(threading.local):
    """The calls a thread has made: a plan is for one, as the driver reads it with no lock held.
    Each has `launch`, as `KnownCall`."""

    def __init__(self) -> None:
        self.calls: dict[Any, Any] = {}

    def find(self, key: Any) -> Any:
        """The call that was kept under a key like that; None for keys that cannot be looked up,
        because an option in them has no hash: a list, or what the whole way refuses."""
        try:
            return self.calls.get(key)
        except TypeError:
            return None

    def keep(self, key: Any, call: Any) -> None:
        """Keeps a call, if there is one and `find` would find it; forgets all others where there
        are ever new ones."""
        if len(self.calls) >= MOST_KNOWN_CALLS:
            self.calls.clear()
        if call is not None:
            with suppress(TypeError):
                self.calls[key] = call


class KnownStep(NamedTuple):
    """One launch of a known call. `arrays`: picks its addresses, in its order, from those of the
    call. `before`, `after`: scalars around the factor, which is not there if `after` is None."""

    plan: Plan
    arrays: Callable[[Sequence[int]], tuple[int, ...]]
    before: tuple[Any, ...]
    after: tuple[Any, ...] | None


@dataclass(frozen=True)
class KnownCall:
    """The launches of a call. `stream`: gives the current one of the device `device_index`. `make`:
    a new `out`, whose address `address` gives and which is array number `out`. `own`: what makes
    each array that the launches have for themselves, for a stream; allocators give memory that is
    aligned as the first was. `spans`: name and place of each array of the caller's, and the bytes
    that it has from its address on. `written`: those that are written, if the caller gives them.
    `may_update`: whether the residual may be `out` itself. Nothing here keeps an array of the
    caller's alive.
    """

    steps: tuple[KnownStep, ...]
    stream: Callable[[int], int]
    device_index: int
    make: Callable[[], Any]
    address: Callable[[Any], int]
    out: int
    own: tuple[Callable[[int], Any], ...]
    spans: tuple[Span, ...]
    written: tuple[Span, ...]
    may_update: bool

    @classmethod
    def of(cls, made: Made) -> KnownCall | None:
        """The launches that are like this call's; None where each needs more than plans: on the
        emulator, and where two frameworks must agree on the stream."""
        own, views, names = made.own.values, made.views, made.names
        known = (known_step(step, (*names, *own)) for step in made.steps)
        steps = tuple(step for step in known if step is not None)
        frameworks = {view.framework for view in views.values()} - {"tilec"}
        read = [reader_of(value) for value in (made.values[made.out], *own.values())]
        readers = [reader for reader in read if reader is not None]
        if len(steps) < len(made.steps) or len(readers) < len(read) or len(frameworks) > 1:
            return None
        spans = tuple((n, names.index(n), *view.extent()) for n, view in views.items())
        return cls(
            steps,
            current_stream_in(next(iter(frameworks), "")),
            steps[0].plan.device_index,
            array_maker(made.values[names[0]], views[names[0]], made.shape, made.dtype),
            readers[0].address(),
            names.index(made.out),
            tuple(made.own.makers.values()),
            spans,
            tuple(span for span in spans if span[0] in made.written),
            made.may_update,
        )

    def launch(self, out: Any, pointers: list[int], factor: float) -> Any:
        """Launches on other arrays of the same kinds; gives the result."""
        return self.launch_all(out, pointers, factor)[0]

    def launch_all(self, out: Any, pointers: list[int], factor: float) -> tuple[Any, list[Any]]:
        """The same; gives the launches' own arrays, too."""
        is_given = out is not None
        if not is_given:
            out = self.make()
            pointers[self.out] = self.address(out)
        if is_given or len(self.written) > 1:
            self._check_overlap(pointers)
        stream = self.stream(self.device_index)
        own = [make(stream) for make in self.own]  # alive until all is launched
        pointers += map(_address_of, own)
        for plan, arrays, before, after in self.steps:
            scalars = before if after is None else (*before, factor, *after)
            if plan.grid_of_scalars is None:
                launch_plan(plan, (*arrays(pointers), *scalars), stream)
            else:
                plan.pack(plan.block, 0, *arrays(pointers), *scalars)
                start_plan(plan, plan.grid_of_scalars(scalars), stream)
        return out, own

    def _check_overlap(self, pointers: Sequence[int]) -> None:
        for written, number, first, last in self.written:
            start, end = pointers[number] + first, pointers[number] + last
            for name, place, low, high in self.spans:
                found = pointers[place]
                if place == number or end <= found + low or found + high <= start:
                    continue
                if name == "residual" and self.may_update and found == pointers[number]:
                    continue
                raise ArgumentError(f"argument {written!r}: it overlaps {name!r} in memory")


def known_step(step: Step, places: Sequence[str]) -> KnownStep | None:
    """The launches that are like this one, which was just made, None where each needs more than a
    plan. `places`: the sources of a call's addresses, in their order."""
    plan = step.plan
    if plan is None:
        return None
    given = [(source, value) for source, value in step.arguments if value is not None]
    arrays = itemgetter(*(places.index(source) for source, _ in given if source in places))
    scalars = [(source, value) for source, value in given if source not in places]
    values = tuple(value for _, value in scalars)
    names = [source for source, _ in scalars]
    if FACTOR not in names:
        return KnownStep(plan, arrays, values, None)
    split = names.index(FACTOR)
    return KnownStep(plan, arrays, values[:split], values[split + 1 :])
