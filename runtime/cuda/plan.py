"""Launch plans: everything of a launch that stays the same while shapes and strides do.

A plan belongs to one thread: the driver reads its argument block while no lock is held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tilec.grid import Grid
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.driver import cuda_error
from tilec.runtime.cuda.early_launch import launch_of
from tilec.runtime.cuda.module import LoadedKernel
from tilec.runtime.cuda.tensor_map import packing_maps

GridOfScalars = Callable[[Sequence[Any]], Grid]


class Plan(NamedTuple):
    """What a launch needs besides pointers and scalars, in the order the fast path unpacks it.

    `launch`: the driver's cuLaunchKernel, or what takes the same arguments.

    `pack(block, 0, *pointers, *scalars)` writes the changing arguments; `arguments` is the address
    given to the driver. `function` is cuda-python's object: it converts faster than a number.
    `x`, `y`, `z`: what is launched; a persistent kernel reads its grid from the block.
    `grid_of_scalars`: gives the grid where it depends on scalars, else None.
    """

    launch: Callable[..., Any]
    function: Any
    x: int
    y: int
    z: int
    threads: int
    shared_bytes: int
    block: Any
    pack: Callable[..., None]
    arguments: int
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
    return Plan(
        launch_of(loaded),
        loaded.function,
        *place_grid(loaded, block.memory, grid),
        loaded.kernel.threads,
        loaded.kernel.shared_bytes,
        block.memory,
        pack,
        block.address,
        loaded.context.index,
        grid_of_scalars,
        loaded,
    )


def place_grid(loaded: LoadedKernel, memory: Any, grid: Grid) -> Grid:
    """What to launch for `grid`: of a persistent kernel as many CTAs as run side by side, with the
    grid as an argument."""
    if not loaded.kernel.persistent:
        return grid
    loaded.layout.write_grid(memory, grid)
    return loaded.kernel.launched(grid, loaded.resident_ctas)


def changing_values(arguments: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """The pointers and the scalars of `arguments`, in order: what `Plan.pack` takes."""
    pointers = [value.pointer for value in arguments if isinstance(value, ArrayView)]
    scalars = [value for value in arguments if not isinstance(value, ArrayView)]
    return pointers, scalars


def start_plan(plan: Plan, grid: Grid, stream: int) -> None:
    """Launches a packed plan in its own context. CudaError says what and how it was launched."""
    if not all(grid):
        return
    context = plan.loaded.context
    launched = place_grid(plan.loaded, plan.block, grid)
    with context.entered():
        (result,) = plan.launch(
            plan.function,
            *launched,
            plan.threads,
            1,
            1,
            plan.shared_bytes,
            stream,
            plan.arguments,
            0,
        )
    if result:
        kernel = plan.loaded.kernel
        raise cuda_error(
            result,
            f"launching {kernel.name} on cuda:{context.index}, grid {grid}, "
            f"{plan.threads} threads, {plan.shared_bytes} bytes of shared memory",
        )
