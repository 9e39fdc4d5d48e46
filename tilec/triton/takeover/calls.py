"""`JITFunction.run` while tilec compiles: launches like one before start at once.

Triton's own `run` binds arguments, asks what to specialise for, and looks the kernel up, which
costs more of the host than the launch itself. What follows from the arguments alone is remembered
here by them, as they stand in the call; everything else goes Triton's way, to `launcher.py`.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tilec.records import dataclass
from tilec.runtime.streams import current_stream_in
from tilec.triton.known_launches import Known, KnownLaunches
from tilec.triton.launch_keys import Form, Reader, tensor_classes
from tilec.triton.takeover.assembly import with_assembly
from tilec.triton.takeover.wish import Wish

_ABSENT = object()


@dataclass(frozen=True)
class Launched:
    """A launch that went Triton's way: `known` by the kernel's arguments, each of which is the
    function's parameter of the number that `parameters` gives."""

    known: Known
    parameters: tuple[int, ...]


class Alike(NamedTuple):
    """Calls alike: what reads their keys, none where an argument is of an unknown class; its form;
    what makes of arguments the dict that a grid is given."""

    read: Reader | None
    form: Form
    bound: Callable[..., dict[str, Any]]


class _Here(threading.local):
    last: Launched | None = None


_here = _Here()


def note(launched: Launched | None) -> None:
    """Said by a launcher: the last launch of this thread."""
    _here.last = launched


class Calls:
    """The calls of one `@triton.jit` function, under one wish. `run`: Triton's way."""

    def __init__(self, function: Any, run: Callable[..., Any], wish: Wish) -> None:
        self._function, self._run, self.wish = function, run, wish
        self._names: Sequence[str] = function.arg_names
        self._defaults = {
            name: parameter.default
            for name, parameter in function.signature.parameters.items()
            if parameter.default is not parameter.empty
        }
        self._constants = frozenset(p.name for p in function.params if p.is_constexpr)
        self._known = KnownLaunches(_kinds())
        self._alike: dict[Any, Alike] = {}
        self._runtime = importlib.import_module("triton.knobs").runtime
        self._stream: Callable[[int], int] = current_stream_in("torch")

    def run(self, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        """Launches, as `JITFunction.run` is called; gives Triton's compiled kernel."""
        if warmup or self._function.pre_run_hooks or self._has_hooks():
            return with_assembly(self._run(*arguments, grid=grid, warmup=warmup, **named))
        row = (*arguments, *named.values()) if named else arguments
        alike = self._alike.get((*map(type, row), *named)) or self._alike_to(row, named)
        if alike.read is None:
            return with_assembly(self._run(*arguments, grid=grid, warmup=warmup, **named))
        if callable(grid):
            grid = grid(alike.bound(*row))
        grid = tuple(grid)
        key, starts = alike.read(row, grid)
        if key is None:
            return with_assembly(self._run(*arguments, grid=grid, warmup=warmup, **named))
        found = self._known.find(key, starts, row)
        if found is None:
            return self._new(alike, row, arguments, grid, named)
        known, kernel = found
        if self._function.used_global_vals:
            self._check_globals()
        known.start(starts, row, self._stream(known.plan.device_index))
        return kernel

    def _alike_to(self, row: Sequence[Any], named: Mapping[str, Any]) -> Alike:
        """What calls with arguments of these classes, given so, have alike."""
        names = (*self._names[: len(row) - len(named)], *named)
        fractions = tuple(
            place
            for place, (name, value) in enumerate(zip(names, row, strict=False))
            if type(value) is float and (name in self._constants or name not in self._names)
        )
        form = Form(tuple(map(type, row)), tuple(named), fractions)
        left = {name: value for name, value in self._defaults.items() if name not in names}
        read = self._known.reader(form) if len(names) == len(row) else None
        found = Alike(read, form, _binding(names, left))
        self._alike[(*form.classes, *named)] = found
        return found

    def _has_hooks(self) -> bool:
        """Whether somebody wants to hear of launches."""
        enter, leave = self._runtime.launch_enter_hook, self._runtime.launch_exit_hook
        return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))

    def _check_globals(self) -> None:
        """As Triton's way does before every launch. RuntimeError where a global is another one."""
        for (name, _), (value, holder) in self._function.used_global_vals.items():
            if holder.get(name, _ABSENT) != value:
                raise RuntimeError(
                    f"Global variable {name} has changed since {self._function.__name__} was "
                    f"compiled, from {value} to {holder.get(name)}"
                )

    def _new(
        self, alike: Alike, row: Sequence[Any], arguments: Sequence[Any], grid: Any,
        named: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        """Triton's way; the launch is remembered where it can be."""
        note(None)
        kernel = with_assembly(self._run(*arguments, grid=grid, warmup=False, **named))
        last = _here.last
        if last is not None:
            tensors = [place for place, value in enumerate(row) if type(value) in tensor_classes()]
            of = {name: place for place, name in enumerate(self._names[: len(arguments)])}
            of |= {name: len(arguments) + number for number, name in enumerate(named)}
            places = [of.get(self._names[number]) for number in last.parameters]
            pointers = [tensors.index(place) for place in places if place in tensors]
            known = last.known.seen_from(pointers, places)
            gone = {of[name] for name in self._names if name in of and name not in self._constants}
            ones = {at for at in gone.difference(places) if type(row[at]) is int and row[at] == 1}
            known = replace(known, free=known.free | ones)
            self._known.remember(alike.form, row, grid, known, kernel)
            self._alike_to(row, named)
        return kernel


def _binding(names: Sequence[str], defaults: Mapping[str, Any]) -> Callable[..., dict[str, Any]]:
    """A function of arguments that gives them by these names, with the defaults."""
    of = ", ".join(f"a{number}" for number in range(len(names)))
    pairs = "".join(f"{name!r}: a{number}, " for number, name in enumerate(names))
    text = f"lambda {of}: {{{pairs}**defaults}}"
    return eval(compile(text, "<a launch's arguments>", "eval"), {"defaults": defaults})


def _kinds() -> list[type]:
    """Classes of constants that Triton's kernels take beside numbers."""
    language = importlib.import_module("triton.language")
    return [language.dtype, importlib.import_module("triton.runtime.jit").JITFunction]
