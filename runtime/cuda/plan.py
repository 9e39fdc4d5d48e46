"""Launch plans: everything of a launch that stays the same while shapes and strides do.

A plan belongs to one thread: the driver reads its argument block while no lock is held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any, NamedTuple

from tilec.executable.grid import Grid
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.driver import cuda_error
from tilec.runtime.cuda.kernel_launch import KernelLaunch
from tilec.runtime.cuda.module import LoadedKernel
from tilec.runtime.cuda.tensor_map import packing_maps
from tilec.runtime.cuda.workspaces import workspaces_of

GridOfScalars = Callable[[Sequence[Any]], Grid]

SHORT_ROUNDS = 4
"""Programs each CTA of a persistent kernel takes, at most, for its launch to start early: products
of more rounds were no faster so in bursts on an H200, and 0.5 to 1 % slower over seconds."""


class Plan(NamedTuple):
    """What a launch needs besides pointers and scalars.

    `grid`: the CTAs to launch; a persistent kernel reads its grid of programs from the block.
    `pack(block, 0, *pointers, *scalars)` writes the changing arguments. `grid_of_scalars`: gives
    the grid where it depends on scalars, else None.
    """

    launch: KernelLaunch
    grid: Grid
    block: memoryview
    pack: Callable[..., None]
    device_index: int
    grid_of_scalars: GridOfScalars | None
    loaded: LoadedKernel


def make_plan(
    loaded: LoadedKernel,
    arguments: Sequence[Any],
    grid: Grid,
    grid_of_scalars: GridOfScalars | None = None,
) -> Plan:
    """A plan for arrays of these shapes. `arguments`: an ArrayView or a number a parameter."""
    block = loaded.layout.make_block(arguments)
    pack = loaded.layout.pack
    if loaded.kernel.tensor_maps:
        pack = packing_maps(pack, loaded.context, loaded.kernel, arguments, block.maps_start)
    launch = KernelLaunch(loaded, block.address, _workspace_writer(loaded, block.memory))
    return Plan(
        launch,
        place_grid(loaded, launch, block.memory, grid),
        block.memory,
        pack,
        loaded.context.index,
        grid_of_scalars,
        loaded,
    )


def _workspace_writer(
    loaded: LoadedKernel, memory: memoryview
) -> Callable[[Grid, int], None] | None:
    """What writes the addresses of a kernel's workspaces into a block; None of one without."""
    if not loaded.kernel.workspaces:
        return None

    context, written = loaded.context, (None, (True, 0))
    memories = workspaces_of(context)

    def write(launched: Grid, stream: int) -> None:
        # What the stream had before it has still, if memory grew meanwhile, too.
        nonlocal written
        with context.entered() if context.has_others else nullcontext():
            found = (launched, stream), memories.identity(stream)
            if found != written or found[1][0]:
                pointers = memories.pointers(loaded.kernel, launched, stream)
                loaded.layout.write_workspaces(memory, pointers)
                written = found

    return write


def place_programs(plan: Plan, programs: Grid) -> Grid | None:
    """What to launch for a grid that only this call knows; None where its plan cannot tell: indices
    of the kernel that do not reach so far, a persistent kernel whose calls mostly have the grid
    that its plan keeps among the arguments."""
    kernel = plan.loaded.kernel
    if kernel.counts(programs) > kernel.most_programs:
        return None
    if not kernel.persistent:
        return programs if kernel.stripes == 1 else kernel.launched(programs, 0)
    if plan.grid_of_scalars is None:
        return None
    return place_grid(plan.loaded, plan.launch, plan.block, programs)


def place_grid(loaded: LoadedKernel, launch: KernelLaunch, memory: Any, grid: Grid) -> Grid:
    """What to launch for `grid`: the CTAs of its programs, of a persistent kernel as many as run
    side by side, with the grid as an argument."""
    if not loaded.kernel.persistent:
        return loaded.kernel.launched(grid, 0)
    if launch.programs is not None and launch.programs[0] == grid:
        return launch.programs[1]
    loaded.layout.write_grid(memory, grid)
    kernel, multiprocessors = loaded.kernel, loaded.context.multiprocessors
    launched = kernel.launched(grid, loaded.resident_ctas, multiprocessors)
    launch.overlap(prod(grid) <= SHORT_ROUNDS * prod(launched))
    launch.have_threads(kernel.threads_of(grid, launched))
    launch.programs = grid, launched
    return launched


def changing_values(arguments: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """The pointers and the scalars of `arguments`, in order: what `Plan.pack` takes."""
    pointers = [value.pointer for value in arguments if isinstance(value, ArrayView)]
    scalars = [value for value in arguments if not isinstance(value, ArrayView)]
    return pointers, scalars


def start_plan(plan: Plan, grid: Grid, stream: int) -> None:
    """Launches a packed plan for a grid of programs, in its own context."""
    if all(grid):
        launched = place_grid(plan.loaded, plan.launch, plan.block, grid)
        run_in_context(plan, launched, stream)


def launch_plan(plan: Plan, values: Sequence[Any], stream: int) -> None:
    """Launches a plan whose grid is fixed, on other pointers and scalars: what the fast path does
    where it is not told a grid."""
    plan.pack(plan.block, 0, *values)
    if 0 in plan.grid:
        return
    if plan.launch.grid is not plan.grid or plan.launch.stream != stream:
        plan.launch.place(plan.grid, stream)
    context = plan.loaded.context
    if (context.has_others and not context.is_current()) or plan.launch.run()[0]:
        run_in_context(plan, plan.grid, stream)


def run_in_context(plan: Plan, launched: Grid, stream: int) -> None:
    """Launches so many CTAs of a packed plan in its own context. CudaError says what and how."""
    context = plan.loaded.context
    plan.launch.place(launched, stream)
    with context.entered():
        (result,) = plan.launch.run()
    if result:
        kernel = plan.loaded.kernel
        raise cuda_error(
            result,
            f"launching {kernel.name} on cuda:{context.index}, grid {launched}, "
            f"{kernel.threads} threads, {kernel.shared_bytes} bytes of shared memory",
        )
