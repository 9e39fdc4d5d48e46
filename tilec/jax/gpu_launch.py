"""A prepared launch on a GPU, taken apart into what machine code needs of it."""

from __future__ import annotations

import ctypes
from typing import Any

from tilec.jax.launch_code import DeviceLaunch, MapCode
from tilec.runtime.arrays import ArrayView
from tilec.runtime.cuda.context import CudaContext
from tilec.runtime.cuda.device import CudaDevice
from tilec.runtime.cuda.kernel_launch import CONFIG_BYTES
from tilec.runtime.cuda.plan import Plan, changing_values
from tilec.runtime.cuda.workspaces import workspaces_of
from tilec.runtime.launcher import Prepared
from tilec.runtime.tensor_maps import HardwareMap, encoding, kernel_map


def plan_of(device: CudaDevice, prepared: Prepared) -> Plan:
    """A plan whose launch and argument block are as a call would leave them, but for addresses and
    tensor maps. DeviceError where the driver refuses the kernel."""
    loaded = device.load(prepared.kernel)
    plan = device.plan(loaded, prepared.parameters, prepared.grid)
    arrays, scalars = changing_values(prepared.parameters)
    loaded.layout.pack(plan.block, 0, *[0] * len(arrays), *scalars)
    plan.launch.place(plan.grid, 0)
    if prepared.kernel.workspaces:  # of its own: XLA launches it on one stream, nobody says which
        own = workspaces_of(loaded.context).own_pointers(prepared.kernel, plan.grid)
        loaded.layout.write_workspaces(plan.block, own)
    return plan


def device_launch(prepared: Prepared, plan: Plan) -> DeviceLaunch:
    """What the launch of a plan is made of. Its memory is the plan's, which must live as long."""
    kernel, parameters, _ = prepared
    layout, context = plan.loaded.layout, plan.loaded.context
    arrays = [n for n, value in enumerate(parameters) if isinstance(value, ArrayView)]
    maps = []
    for recipe in kernel.tensor_maps:
        made = kernel_map(kernel, recipe, parameters)
        maps.append(_map_code(context, made, arrays.index(recipe.parameter)))
    return DeviceLaunch(
        context.index,
        context.number,
        int(plan.loaded.function),
        ctypes.string_at(int(plan.launch.config.getPtr()), CONFIG_BYTES),
        bytes(plan.block[: layout.table_start]),
        tuple(8 * n for n in range(len(arrays))),
        layout.places,
        tuple(maps),
    )


def _map_code(context: CudaContext, made: HardwareMap, array: int) -> MapCode:
    found, driver = encoding(made), context.driver
    modes: tuple[Any, ...] = (
        getattr(driver.CUtensorMapInterleave, found.interleave),
        getattr(driver.CUtensorMapSwizzle, found.swizzle),
        getattr(driver.CUtensorMapL2promotion, found.promotion),
        getattr(driver.CUtensorMapFloatOOBfill, found.fill),
    )
    return MapCode(
        array,
        context.zeros if made.is_empty else None,
        int(getattr(driver.CUtensorMapDataType, found.dtype)),
        found.sizes,
        found.strides,
        found.box,
        found.steps,
        tuple(map(int, modes)),
        found.lower,
        found.upper,
    )
