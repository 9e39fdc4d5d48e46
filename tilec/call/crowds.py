"""Whether a launch has so many programs that another kernel is faster (`CompiledKernel.crowd`)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from tilec.call.call_class import class_of_specs
from tilec.costs.machine import Machine
from tilec.executable.grid import compile_grid
from tilec.executable.kernel import CompiledKernel, Grid
from tilec.runtime.arrays import ArrayView


def is_crowded(
    kernel: CompiledKernel,
    arguments: Mapping[str, Any],
    multiprocessors: int,
    grid: Grid | None = None,
) -> bool:
    """Whether a call has more programs than the kernel is made for: those of `grid`, or of the
    kernel's rule for these arguments, arrays described. False where nothing says how many."""
    if not kernel.crowd:
        return False
    if grid is None:
        if kernel.grid is None:
            return False
        rule = compile_grid(kernel.grid, kernel.parameters)
        values = (arguments[parameter.name] for parameter in kernel.parameters)
        grid = rule([v.shape if isinstance(v, ArrayView) else v for v in values])
    return prod(grid) > kernel.crowd * multiprocessors


def is_crowded_by(kernel: CompiledKernel, usual: Mapping[str, Any], machine: Machine) -> bool:
    """The same of a call with `usual` shapes and whole numbers by name, where its parameters leave
    sizes open. ValueError for a name or a rank that no parameter has."""
    call = class_of_specs(kernel.parameters, usual, machine) if kernel.crowd else None
    if call is None:
        return False
    return is_crowded(kernel, call.arguments(kernel.parameters), machine.multiprocessors)
