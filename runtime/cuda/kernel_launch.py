"""One kernel's launches by one thread: the driver's cuLaunchKernelEx with everything made ready.

What changes (grid, stream) is packed into the driver's structure, and only when it does: setting
its fields through cuda-python costs as much as a launch, and cuLaunchKernel converts eleven
arguments each time where this converts four.

Kernels that wait by themselves (PTX `griddepcontrol.wait`) are launched with the attribute that
lets them start before the launch in front of them in the stream has ended: CUDA C++ Programming
Guide, "Programmatic Dependent Launch and Synchronization". Long launches do without: see `overlap`.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any

from tilec.executable.grid import Grid
from tilec.runtime.cuda.driver import check
from tilec.runtime.cuda.module import LoadedKernel

FIRST_EARLY_DRIVER = 12030
"""The first version whose graphs take up launches that start early (CUDA 12.3 release notes)."""

_PLACE = struct.Struct("7IP")
"""CUlaunchConfig as far as it changes (cuda.h): three sizes of the grid, three of the CTA, bytes of
shared memory, stream."""
CONFIG_STREAM = 32
"""The byte of the stream in it."""
CONFIG_BYTES = 56
"""Of the whole, with its attributes' address and number."""


NO_STREAM = -1
"""No stream's handle."""


class KernelLaunch:
    """`run()` launches where `place` said; it gives the driver's result, in a tuple.

    `arguments`: the address that the driver reads the arguments' addresses from. `config`: the
    driver's configuration. `grid`, `stream`: what `place` was told last; no grid before that, and
    no stream where each launch has to be placed. `programs`: of a persistent kernel, the grid that
    stands among its arguments, and what to launch for it.
    """

    __slots__ = (
        "_early",
        "_is_early",
        "_kernel",
        "_memory",
        "_threads",
        "_workspaces",
        "arguments",
        "config",
        "grid",
        "programs",
        "run",
        "stream",
    )

    def __init__(
        self,
        loaded: LoadedKernel,
        arguments: int,
        workspaces: Callable[[Grid, int], None] | None = None,
    ) -> None:
        """`workspaces`: writes the addresses of memory for a launch of so many CTAs on a stream
        among the arguments, for a kernel that has any."""
        self.config = config = _config(loaded)
        self._is_early = bool(config.numAttrs)
        self._early = config if self._is_early else None
        self._kernel = loaded.kernel
        self.arguments = arguments
        place = (ctypes.c_char * _PLACE.size).from_address(int(config.getPtr()))
        self._memory = memoryview(place).cast("B")
        self.grid: Grid | None = None
        self.programs: tuple[Grid, Grid] | None = None
        self.stream = 0
        self._threads = loaded.kernel.threads
        self._workspaces = workspaces
        launch = loaded.context.driver.cuLaunchKernelEx
        self.run = functools.partial(launch, config, loaded.function, arguments, 0)

    def place(self, grid: Grid, stream: int) -> None:
        """Makes the next launches have this grid, on this stream."""
        shared_bytes = self._kernel.shared_bytes
        _PLACE.pack_into(self._memory, 0, *grid, self._threads, 1, 1, shared_bytes, stream)
        self.grid, self.stream = grid, stream
        if self._workspaces is not None:
            self._workspaces(grid, stream)
            self.stream = NO_STREAM  # whether it is captured may change

    def have_threads(self, threads: int) -> None:
        """Makes the CTAs of the next launches have so many threads."""
        if threads != self._threads:
            self._threads, self.grid = threads, None  # to be placed anew

    def overlap(self, wanted: bool) -> None:
        """Whether the next launches start early, of a kernel that can: `wanted` where they are
        short.

        CTAs that come early wait on multiprocessors which have run out of programs, and are dealt
        to them in another order than to an idle GPU. On an H200 bf16 and fp8 products of 8192 cubed
        took 0.5 to 1 % longer so, back to back for a second, and no less in bursts.
        """
        if self._early is not None and wanted != self._is_early:
            self._early.numAttrs = int(wanted)
            self._is_early = wanted


def _config(loaded: LoadedKernel) -> Any:
    """The driver's configuration of a kernel's launches, but for what `place` says."""
    driver = loaded.context.driver
    config = driver.CUlaunchConfig()
    if loaded.kernel.starts_early and _takes_early_launches(driver):
        attribute = driver.CUlaunchAttribute()
        ids = driver.CUlaunchAttributeID
        attribute.id = ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        config.attrs = [attribute]
        config.numAttrs = 1
    return config


def _takes_early_launches(driver: Any) -> bool:
    version = check(driver.cuDriverGetVersion(), "asking for the driver's version")
    return version >= FIRST_EARLY_DRIVER
