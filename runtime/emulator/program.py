"""Loading PTX and running an entry of it: the public face of the emulator."""

from __future__ import annotations

import functools
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from tqdm import tqdm

from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.execution.blocks import BlockCompiler, BoundBlocks
from tilec.runtime.emulator.execution.launch import Launch, Result
from tilec.runtime.emulator.execution.machine import Machine
from tilec.runtime.emulator.execution.scheduler import Scheduler
from tilec.runtime.emulator.reading.instruction import Module
from tilec.runtime.emulator.reading.parser import parse_module

MODES = ("eager", "late", "check")
_LANES_PER_BATCH = 4096
_SHARED_PER_BATCH = 64 << 20
_TENSOR_MEMORIES_PER_BATCH = 16
_SHADOW_PER_BATCH = 96 << 20
_SILENT_S = 2.0  # a shorter run shows no progress
_KEPT_PROGRAMS = 32  # a megabyte and 5,000 Python objects each
STEPS = 20_000_000  # some minutes
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
"""CTAs along x, y, z: CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability"."""
_TURNS = 4  # batches, at least, where CTAs may take over what has not started
Dimensions = int | tuple[int, ...]


class Program:
    """A PTX module ready to run; instructions are decoded, unsupported ones were refused."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._compilers = {name: BlockCompiler(entry) for name, entry in module.entries.items()}
        self._checking: dict[str, BlockCompiler] = {}

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(self.module.entries)

    def _compiler(self, name: str, mode: str) -> BlockCompiler:
        if mode != "check":
            return self._compilers[name]
        if name not in self._checking:
            self._checking[name] = BlockCompiler(self.module.entries[name], self._compilers[name])
        return self._checking[name]

    def run(
        self,
        entry: str,
        grid: Dimensions,
        block: Dimensions,
        args: Sequence[Any],
        shared_bytes: int = 0,
        cluster: Dimensions = (1, 1, 1),
        mode: str = "eager",
        progress: bool = False,
        tensor_fences: bool = True,
        registers: int | None = None,
        steps: int | None = None,
        seed: int | None = None,
    ) -> Result:
        """Execute `entry` over the grid; arrays among `args` receive what the kernel stores.

        args are in parameter order: a NumPy array is a pointer to its first element, `Pointer`
        one into the middle of an array, everything else is a value of the parameter's size.
        `progress` shows a bar on standard error once a run takes seconds; `tensor_fences`: whether
        check mode asks for tcgen05.fence, which some compilers leave out; `registers`: those of
        a thread at launch, which setmaxnreg moves, where not the entry's directives say it.
        `steps`: how many instructions may run until the CTAs that run side by side have ended,
        those that lanes run together counted once; beyond that a loop is taken to be endless.
        None: what TILEC_EMULATOR_STEPS says, else `STEPS`.
        `seed`: in late mode asynchronous work ends at random times and in any order, not as late
        as possible.
        Raises EmulatorError for what would crash a GPU, ValueError/TypeError for wrong arguments.
        """
        launch = self.prepare(
            entry,
            grid,
            block,
            args,
            shared_bytes,
            cluster,
            mode,
            tensor_fences,
            registers,
            steps,
            seed,
        )
        return self.execute(launch, progress)

    def prepare(
        self,
        entry: str,
        grid: Dimensions,
        block: Dimensions,
        args: Sequence[Any],
        *options: Any,
        **named: Any,
    ) -> Launch:
        """What `run` does before anything is executed: ValueError/TypeError for wrong arguments."""
        launch = self.launch(entry, grid, block, *options, **named)
        launch.place(args)
        return launch

    def execute(self, launch: Launch, progress: bool = False) -> Result:
        """Execute what `prepare` gave, once. Raises EmulatorError."""
        with np.errstate(all="ignore"):
            for _ in self.advance(launch, progress):
                pass
        launch.memory.copy_back()
        return Result("".join(launch.printed), launch.findings, launch.statistics)

    def launch(
        self,
        entry: str,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int = 0,
        cluster: Dimensions = (1, 1, 1),
        mode: str = "eager",
        tensor_fences: bool = True,
        registers: int | None = None,
        steps: int | None = None,
        seed: int | None = None,
    ) -> Launch:
        """A launch, checked, whose arguments have no place yet; see `run`."""
        if entry not in self.module.entries:
            raise ValueError(f"no entry {entry!r}; the module has {', '.join(self.entries)}")
        if mode not in MODES:
            raise ValueError(f"mode {mode!r} is not one of {', '.join(MODES)}")
        launch = Launch(
            self.module,
            self.module.entries[entry],
            dimensions(grid, "grid"),
            dimensions(block, "block"),
            dimensions(cluster, "cluster"),
            mode,
            shared_bytes,
            tensor_fences,
            registers,
            step_limit(steps),
            seed,
        )
        check_dimensions(launch)
        return launch

    def advance(self, launch: Launch, progress: bool = False) -> Iterator[None]:
        """Runs a launch whose arguments have their places, a little between two items."""
        compiler = self._compiler(launch.entry.name, launch.mode)
        total = launch.grid[0] * launch.grid[1] * launch.grid[2]
        size = batch_size(launch, total)
        machine: Machine | None = None
        blocks: BoundBlocks | None = None
        with (
            ExitStack() as ended,
            tqdm(
                total=total,
                unit="CTA",
                disable=not progress,
                desc=launch.entry.name,
                delay=_SILENT_S,
            ) as bar,
        ):
            while launch.started_end < launch.unstarted_end:  # CTAs may take others over
                first = launch.started_end
                count = min(size, launch.unstarted_end - first)
                launch.started_end += count
                if machine is None or blocks is None or machine.cta_count != count:
                    ended.close()  # the last batch is shorter
                    machine = Machine(launch, launch.entry, count)
                    blocks = BoundBlocks(compiler, machine)
                    ended.callback(blocks.end)
                machine.reset(first)
                if not (yield from _run_batch(launch, Scheduler(compiler, machine, blocks))):
                    break
                bar.update(count)
        launch.end()


def step_limit(steps: int | None) -> int:
    """The limit that was asked for, by argument or environment. ValueError if it is none."""
    if steps is None:
        text = os.environ.get("TILEC_EMULATOR_STEPS") or str(STEPS)
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(f"TILEC_EMULATOR_STEPS is {text!r}; expected a positive number")
        return int(text)
    if steps < 1:
        raise ValueError(f"steps is {steps}; expected a positive number")
    return steps


def _run_batch(launch: Launch, scheduler: Scheduler) -> Generator[None, None, bool]:
    """Run one batch; in check mode an error becomes a finding and ends the launch."""
    try:
        yield from scheduler.run()
    except EmulatorError as error:
        launch.memory.copy_back()
        if launch.mode != "check":
            raise
        launch.reports.add(error.finding())
        return False
    return True


def batch_size(launch: Launch, total: int) -> int:
    """CTAs to run side by side: enough lanes to be worth a NumPy call, whole clusters."""
    threads = -(-launch.threads // 32) * 32
    size = min(total, max(1, _LANES_PER_BATCH // threads))
    size = min(size, max(1, _SHARED_PER_BATCH // (launch.shared_size + 1)))
    if any(instruction.opcode == "tcgen05" for instruction in launch.entry.instructions):
        size = min(size, _TENSOR_MEMORIES_PER_BATCH)
    if any(i.opcode == "clusterlaunchcontrol" for i in launch.entry.instructions):
        size = min(size, -(-total // _TURNS))
    if launch.mode == "check":
        shadow = launch.shared_size * 6 * (threads // 32) * launch.cluster_size + 1
        size = min(size, max(1, _SHADOW_PER_BATCH // shadow))
    return max(size // launch.cluster_size, 1) * launch.cluster_size


def dimensions(value: Dimensions, what: str) -> tuple[int, int, int]:
    """An int or up to three of them as (x, y, z)."""
    parts = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    if not 1 <= len(parts) <= 3 or any(int(part) < 1 for part in parts):
        raise ValueError(f"{what} {value!r}: expected one to three positive numbers")
    x, y, z = (*map(int, parts), 1, 1)[:3]
    if any(size > most for size, most in zip((x, y, z), _GRID_LIMITS, strict=True)):
        raise ValueError(f"{what} {value!r}: the limits are {', '.join(map(str, _GRID_LIMITS))}")
    return x, y, z


def check_dimensions(launch: Launch) -> None:
    """The launch must fit the limits of CUDA and what the entry requires."""
    if launch.threads > 1024:
        raise ValueError(f"block has {launch.threads} threads; the limit is 1024")
    for name, exact in (("reqntid", True), ("maxntid", False)):
        wanted = launch.entry.directives.get(name)
        if not wanted:
            continue
        threads = int(np.prod(wanted))
        if launch.threads > threads or (exact and launch.threads != threads):
            raise ValueError(f"block has {launch.threads} threads; .{name} says {wanted}")
    for size, part in zip(launch.grid, launch.cluster, strict=True):
        if size % part:
            raise ValueError(f"grid {launch.grid} is not a multiple of cluster {launch.cluster}")


@functools.lru_cache(maxsize=_KEPT_PROGRAMS)
def load(ptx_text: str) -> Program:
    """Parse and decode PTX; what was loaded lately, in whatever mode it runs, is there already.

    Raises PtxError (a ValueError), UnsupportedInstruction included.
    """
    return Program(parse_module(ptx_text))


__all__ = ["MODES", "STEPS", "Program", "load"]
