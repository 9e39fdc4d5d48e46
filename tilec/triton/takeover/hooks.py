"""Puts tilec's backend and driver between Triton and its users, once, and says who compiles.

`triton.backends.backends` and `triton.runtime.driver.set_active` are Triton's own places for that;
`JITFunction.run` is replaced for its cost alone.
"""

from __future__ import annotations

import copy
import functools
import importlib
from collections import defaultdict
from typing import Any

from tilec.triton.takeover.backend import HOST, backend_class, host_backend_class
from tilec.triton.takeover.calls import Calls
from tilec.triton.takeover.driver import driver_class, host_driver_class
from tilec.triton.takeover.inductor import tell_inductor
from tilec.triton.takeover.wish import ERROR, Wish, wish, wish_of_all, wished

_NVIDIA = "nvidia"
_CALLS = "_tilec_calls"
"""Where a function of Triton's keeps what is known of its launches."""


def enable(otherwise: str = ERROR, device: str | None = None) -> None:
    """From now on tilec compiles and launches every kernel of Triton's in this process.

    `otherwise`: what becomes of a kernel that tilec does not import: "error", or "triton", which
    warns (`FallbackWarning`) and has Triton compile it. `device`: "emulator" or
    "emulator:check" launches on the CPU, on arrays in host memory; None on Triton's GPU. ValueError
    for others.
    """
    found = Wish(otherwise, device)
    install()
    wish_of_all(found)
    tell_inductor()


def disable() -> None:
    """From now on Triton compiles and launches its kernels again; those of `kernel` stay ours.

    What torch.compile has compiled keeps its launchers: `torch._dynamo.reset()` forgets it."""
    wish_of_all(None)
    tell_inductor()


def taken(function: Any, wanted: Wish) -> Any:
    """A twin of a `@triton.jit` function, or of one that is autotuned or has heuristics, whose
    launches tilec compiles."""
    theirs = install()
    twin = copy.copy(function)
    if hasattr(function, "device_caches"):
        twin.device_caches = defaultdict(twin.create_binder)
        twin.run = Calls(twin, functools.partial(_run_as, wanted, theirs, twin), wanted).run
        return twin
    if not hasattr(function, "fn"):
        raise TypeError(f"expected a @triton.jit function, found {type(function).__name__}")
    twin.fn = taken(function.fn, wanted)
    if hasattr(twin, "cache"):
        twin.cache = {}  # of best configurations: timed with the other compiler
    return twin


def _run_as(wanted: Wish, run: Any, *arguments: Any, **named: Any) -> Any:
    with wished(wanted):
        return run(*arguments, **named)


@functools.cache
def install() -> Any:
    """Puts our backend, driver and `JITFunction.run` in place of Triton's, all of which ask who
    compiles; gives Triton's `run`. ImportError without Triton."""
    backends = importlib.import_module("triton.backends").backends
    row = backends[_NVIDIA]
    backend, driver = backend_class(row.compiler), driver_class(row.driver)
    backends[_NVIDIA] = type(row)(backend, driver)
    if HOST not in backends:
        backends[HOST] = type(row)(host_backend_class(backend), host_driver_class(driver))
    drivers = importlib.import_module("triton.runtime.driver").driver
    own = getattr(drivers, "_active", None)
    drivers.set_active(driver() if own is None else driver(lambda: own))
    function = importlib.import_module("triton.runtime.jit").JITFunction
    theirs = function.run
    function.run = _running(theirs)
    return theirs


def _running(theirs: Any) -> Any:
    """What stands in the place of `JITFunction.run`."""

    @functools.wraps(theirs)
    def run(self: Any, *arguments: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        now = wish()
        if now is None:
            return theirs(self, *arguments, grid=grid, warmup=warmup, **named)
        calls = self.__dict__.get(_CALLS)
        if calls is None or calls.wish is not now:
            calls = self.__dict__[_CALLS] = Calls(self, functools.partial(theirs, self), now)
        return calls.run(*arguments, grid=grid, warmup=warmup, **named)

    return run
