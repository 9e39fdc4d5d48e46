"""`@tilec.autotune`: a kernel that chooses constants and demands for the arguments it gets."""

# Authors are told what is wrong, with a type checker or without.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import importlib
import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, ParamSpec, overload

from tilec.call.device_target import target_of
from tilec.call.jit import Kernel
from tilec.costs.machine import machine_of
from tilec.executable.kernel import LISTS, CompiledKernel
from tilec.messages.tracebacks import short_traceback, without_source
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launch_argument import RESERVED
from tilec.runtime.launcher import Launcher
from tilec.runtime.streams import DEFAULT_STREAM, current_stream_of, stream_number
from tilec.runtime.traced_calls import traceable
from tilec.runtime.traced_values import new_number
from tilec.tuning.call_key import quick_key, tuning_key
from tilec.tuning.candidates import DEFAULT, Candidate, Space, Values, candidates_of
from tilec.tuning.outcome import Outcome
from tilec.tuning.store import WinnerFile, default_file

P = ParamSpec("P")

MOST_KNOWN_CALLS = 4096
"""Calls whose choice is remembered in memory; then it is looked up anew."""

MODES = ("1", "0", "again")
"""TILEC_TUNE: tune what is new; never measure; tune everything anew."""


class _Choice(NamedTuple):
    kernel: Kernel[...]
    constants: Values
    outcome: Outcome


@traceable
class TunedKernel(Generic[P]):
    """A kernel whose calls run the best of several candidates; made by `tilec.autotune`.

    Called like the kernel it wraps. The first call of each class of arguments (see
    `tuning_key`) chooses, all others look the choice up. `kernel`: the kernel it wraps; ValueError
    for one with lists of arrays.
    """

    __tilec_kernel__ = True

    def __init__(
        self,
        kernel: Kernel[P],
        candidates: Sequence[Candidate],
        *,
        file: Path | None,
        most: int,
        tolerance: float | None,
        progress: bool | None,
    ) -> None:
        for argument in kernel.arguments:
            if argument.kind in LISTS:
                listed = f"argument {argument.name!r} is a list of arrays"
                raise ValueError(f"{kernel.name}: {listed}; such kernels are not tuned")
        self.kernel = kernel
        self.candidates = tuple(candidates)
        self.name = kernel.name
        self.__doc__ = kernel.__doc__
        self._file = file
        self._options: dict[str, Any] = {"most": most, "tolerance": tolerance, "progress": progress}
        self._signature = inspect.signature(kernel.fn)
        self._choices: dict[Any, _Choice] = {}
        self._variants: dict[Any, Kernel[...]] = {}
        self._lock = threading.RLock()
        self.arguments = kernel.arguments
        self.number = new_number(self)
        self.__module__, self.__qualname__ = kernel.fn.__module__, kernel.fn.__qualname__

    @property
    def file(self) -> Path | None:
        """Where winners are kept; None for nowhere."""
        return self._file or default_file()

    def __repr__(self) -> str:
        return f"<tuned kernel {self.name}, {len(self.candidates)} candidates>"

    def __reduce__(self) -> str:
        """By its global name, as functions: a copy of what holds a kernel holds the same one."""
        return self.kernel.fn.__qualname__

    if TYPE_CHECKING:  # constants that are searched for may be left out

        @overload
        def __call__(self, *arguments: P.args, **named: P.kwargs) -> None: ...
        @overload
        def __call__(
            self, *arguments: Any, grid: Any = None, stream: Any = None, **named: Any
        ) -> None: ...
        def __call__(self, *arguments: Any, **named: Any) -> None: ...

    @without_source
    def run(self, *arguments: Any, grid: Any = None, stream: Any = None, **named: Any) -> None:
        """A call that torch does not trace."""
        __tracebackhide__ = True
        choice = self._choice(arguments, named, grid, stream)
        constants = {**named, **choice.constants}
        choice.kernel.run(*arguments, **constants, grid=grid, stream=stream)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """`tuned[grid](...)`: a call with that grid, for every candidate the same."""
        return partial(self, grid=grid)

    def on(self, device: Any) -> TunedKernel[P]:
        """The same, to run on `device` ("emulator", "cuda:1", or a device)."""
        return TunedKernel(
            self.kernel.on(device), self.candidates, file=self._file, **self._options
        )

    @short_traceback
    def outcome(
        self, *arguments: Any, grid: Any = None, stream: Any = None, **named: Any
    ) -> Outcome:
        """What these arguments' choice is and why; chooses if that is still to do.

        `print(kernel.outcome(a, b, c).report())` shows every candidate.
        """
        return self._choice(arguments, named, grid, stream).outcome

    @short_traceback
    def compiled(self, *arguments: Any, **named: Any) -> CompiledKernel:
        """The compiled kernel these arguments would launch."""
        given = {name: value for name, value in named.items() if name not in RESERVED}
        choice = self._choice(arguments, given, named.get("grid"), named.get("stream"))
        return choice.kernel.compiled(*arguments, **{**given, **choice.constants})

    @short_traceback
    def report(self, *arguments: Any, **named: Any) -> str:
        """What the compiler decided for the chosen candidate, and why, as text."""
        given = {name: value for name, value in named.items() if name not in RESERVED}
        choice = self._choice(arguments, given, named.get("grid"), named.get("stream"))
        return choice.kernel.report(*arguments, **{**given, **choice.constants})

    @short_traceback
    def _choice(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], grid: Any, stream: Any
    ) -> _Choice:
        key: Any = (*map(quick_key, arguments), grid)
        if named:
            key = (key, *((name, quick_key(value)) for name, value in named.items()))
        choice = self._choices.get(key)
        if choice is None:
            if len(self._choices) >= MOST_KNOWN_CALLS:
                self._choices.clear()
            with self._lock:
                choice = self._choose(arguments, named, grid, stream)
            if choice.outcome.source != "default":
                self._choices[key] = choice
        return choice

    def traced_arguments(
        self, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The arguments that a call gives, by name, where torch traces it."""
        values, given = self._bind(tuple(arguments), named)
        constants = {a.name for a in self.arguments if a.kind == "const"}
        return {**{n: v for n, v in values.items() if n not in constants}, **given}

    def taken_apart(self, values: Mapping[str, Any]) -> tuple[Launcher, dict[str, Any]]:
        """What launches arguments like these, and its own arguments by name: of the first candidate
        that has their constants."""
        constants = {a.name for a in self.arguments if a.kind == "const"}
        chosen = self._matching({n: v for n, v in values.items() if n in constants})[0]
        return self._variant(chosen).taken_apart({**values, **chosen.constants})

    def _choose(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], grid: Any, stream: Any
    ) -> _Choice:
        """Chooses from the file, or by the model and the clock."""
        values, given = self._bind(arguments, named)
        bound = self.kernel.described(values)
        arrays = [(name, value) for name, value in bound.items() if isinstance(value, ArrayView)]
        device = device_of(arrays, self.kernel.device)
        machine = machine_of(device, target_of(device))
        key = tuning_key(self.kernel, bound, given, machine, grid)
        candidates = self._matching(given)
        mode = _mode()
        path = self.file
        keeper = None if path is None else WinnerFile(path)
        found = keeper.find(key, candidates) if keeper and mode != "again" else None
        if found is None and (mode == "0" or len(candidates) == 1):
            why = "TILEC_TUNE=0" if mode == "0" else "the call's constants leave no other"
            found = Outcome(self.name, machine.name, candidates[0], "default", why)
        if found is None:
            found = self._tuned(device, machine, values, bound, candidates, grid, stream)
            if keeper and found.source == "measured":
                keeper.keep(key, found)
        return _Choice(self._variant(found.winner), found.winner.constants, found)

    def _tuned(
        self,
        device: Any,
        machine: Any,
        values: Mapping[str, Any],
        bound: Mapping[str, Any],
        candidates: Sequence[Candidate],
        grid: Any,
        stream: Any,
    ) -> Outcome:
        # MLIR is behind this import: a program whose choices are all known does without it.
        tuning = importlib.import_module("tilec.tuning.tune")
        number = _stream_of(values.values()) if stream is None else stream_number(stream)
        call = tuning.Call(self.kernel, self._variant, device, machine, values, bound, grid, number)
        outcome = tuning.tune(call, candidates, tuning.Settings(**self._options))
        if outcome.source == "measured":
            print(f"tilec: {outcome.summary()}; {outcome.seconds:.1f} s", file=sys.stderr)
        elif device.kind == CUDA:
            print(
                f"tilec: {self.name}: a stream under capture cannot be timed; "
                f"{outcome.winner.label} by the model until a call outside a capture",
                file=sys.stderr,
            )
            return Outcome(self.name, machine.name, outcome.winner, "default", outcome.why)
        else:
            _say_that_nothing_is_timed()
        return outcome

    def _bind(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Binds all arguments by name, defaults filled in; and the constants that the caller gave.

        A constant without default that candidates choose may be missing: it is None here.
        """
        try:
            call = self._signature.bind_partial(*arguments, **named)
        except TypeError as error:
            raise ArgumentError(f"{self.name}(): {error}") from None
        given = {
            p.name: call.arguments[p.name]
            for p in self.kernel.parameters
            if p.kind == "const" and p.name in call.arguments
        }
        call.apply_defaults()
        values = dict(call.arguments)
        for parameter in self.kernel.parameters:
            if parameter.name not in values:
                if parameter.kind != "const":
                    raise ArgumentError(f"{self.name}(): argument {parameter.name!r} is missing")
                values[parameter.name] = None
        return values, given

    def _matching(self, given: Values) -> tuple[Candidate, ...]:
        """The candidates that leave the caller's constants as they are."""
        matching = [
            candidate
            for candidate in self.candidates
            if all(candidate.constants.get(name, value) == value for name, value in given.items())
        ]
        needed = {p.name for p in self.kernel.parameters if p.kind == "const"}
        defaults = {
            name for name, p in self._signature.parameters.items() if p.default is not p.empty
        }
        open_ = needed - defaults - set(given)
        return tuple(c for c in matching if open_ <= set(c.constants)) or (DEFAULT,)

    def _variant(self, candidate: Candidate) -> Kernel[...]:
        if not candidate.demands:
            return self.kernel
        key = tuple(sorted(candidate.demands.items()))
        if key not in self._variants:
            self._variants[key] = self.kernel.demanding(**candidate.demands)
        return self._variants[key]


def _mode() -> str:
    mode = os.environ.get("TILEC_TUNE", "") or "1"
    if mode not in MODES:
        raise ValueError(f"TILEC_TUNE: expected {', '.join(MODES)}, found {mode!r}")
    return mode


def _stream_of(values: Any) -> int:
    streams = (current_stream_of(value) for value in values)
    return next((stream for stream in streams if stream is not None), DEFAULT_STREAM)


@cache
def _say_that_nothing_is_timed() -> None:
    print(
        "tilec: autotune: the emulator's time says nothing of a GPU's; the model alone chooses",
        file=sys.stderr,
    )


_ELSEWHERE = {
    "key": "calls are told apart by their dtypes, strides and classes of sizes, without a key",
    "prune_configs_by": "a model chooses what is timed; where=lambda BM, BN: ... leaves points out",
    **dict.fromkeys(
        ("restore_value", "reset_to_zero", "pre_hook", "post_hook"),
        "tuning works on copies of what the kernel writes, and leaves your arrays alone",
    ),
    **dict.fromkeys(
        ("warmup", "rep", "use_cuda_graph", "do_bench"),
        "candidates are timed until the best is clear",
    ),
    "cache_results": "winners are kept; file= says where",
}
"""What others' autotuners take, and how it is here."""


def autotune(
    configs: Sequence[Values] | None = None,
    *,
    search: Space | Sequence[Space] | None = None,
    where: Callable[..., bool] | None = None,
    most: int = 12,
    file: str | os.PathLike[str] | None = None,
    tolerance: float | None = None,
    progress: bool | None = None,
    **others: NoReturn,
) -> Callable[[Kernel[P]], TunedKernel[P]]:
    """Decorator over `@tilec.kernel`: each call runs the candidate that is best for its arguments.

    `configs`: a list of dictionaries, each with constants of the kernel and demands of its
    decorator (`{"BM": 128, "BN": 256, "num_warps": 8}`). `search`: a dictionary of lists, each
    combination of which is a candidate, or several such; `where`: a predicate over names of the
    space that leaves points out. The kernel as it stands is always candidate 0. `most`: how many
    of those that the model finds best are compiled and timed. `file`: where winners are kept (see
    `store.default_file`). `tolerance`: of the comparison of results, relative to the largest
    value. `progress`: whether to show bars, with the time left, of what takes more than 2 s; None
    for where standard error is a terminal.

    ValueError or TypeError at once for names the kernel does not have, empty or huge spaces.
    """
    if isinstance(configs, Kernel):
        raise TypeError(
            "autotune is told what to try: @tilec.autotune(search={'BM': [64, 128]}), or "
            "configs=[{'BM': 64}, {'BM': 128}]"
        )
    for name in others:
        note = f"\nhelp: {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
        raise TypeError(f"autotune() got an unexpected keyword argument '{name}'{note}")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ValueError(f"most: expected a positive number of candidates, found {most!r}")

    def decorate(kernel: Kernel[P]) -> TunedKernel[P]:
        if not isinstance(kernel, Kernel):
            raise TypeError(
                "autotune decorates a @tilec.kernel function: write it above @tilec.kernel; "
                f"found {type(kernel).__name__}"
            )
        constants = [p.name for p in kernel.parameters if p.kind == "const"]
        candidates = candidates_of(kernel.name, constants, kernel.demands(), configs, search, where)
        return TunedKernel(
            kernel,
            candidates,
            file=None if file is None else Path(file),
            most=most,
            tolerance=tolerance,
            progress=progress,
        )

    return decorate
