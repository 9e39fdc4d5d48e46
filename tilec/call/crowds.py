"""How many programs a multiprocessor has in a launch, where a kernel for so many is faster than one
for any number (`CompiledKernel.suits`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, TypeVar

from tilec.call.call_class import class_of_specs
from tilec.costs.machine import Machine, usual_machine
from tilec.executable.grid import compile_grid
from tilec.executable.kernel import CompiledKernel, Grid
from tilec.hardware.powers import power_below
from tilec.hardware.sizes import PORTABLE_CTAS
from tilec.hardware.target import Target
from tilec.runtime.arrays import ArrayView

W = TypeVar("W", bound=Any)
"""What a kernel is compiled for, with its `programs_per_sm`."""


def suited(
    wanted: W,
    kernel: CompiledKernel,
    compiled: Callable[[W], CompiledKernel],
    better: Callable[[CompiledKernel], int],
) -> tuple[W, CompiledKernel]:
    """The specialisation that suits a call, and its kernel: those given, for any number of
    programs, or what is `compiled` for as many as `better` says that a kernel should be for. One
    for more than the first was for may have another limit, which is higher."""
    programs = 0
    while (number := better(kernel)) and (number > programs or not programs):
        programs, wanted = number, replace(wanted, programs_per_sm=number)
        kernel = compiled(wanted)
    return wanted, kernel


def better_suited(
    kernel: CompiledKernel, arguments: Mapping[str, Any], machine: Machine, grid: Grid | None = None
) -> int:
    """The programs a multiprocessor that a kernel should be compiled for to suit a call better,
    below 0 the multiprocessors a program, where it had better be spread over them: of `grid`, or of
    the kernel's rule for these arguments, arrays described. 0 where it suits the call, or nothing
    says how many programs there are.

    Few programs count on devices that say themselves how many multiprocessors they have: the
    emulator runs of small arrays what a GPU runs of large ones.
    """
    fewest, most = kernel.suits
    fewest = 0 if "multiprocessors" in machine.assumed else fewest
    if grid is None and kernel.grid is not None and (fewest or most):
        rule = compile_grid(kernel.grid, kernel.parameters)
        values = (arguments[parameter.name] for parameter in kernel.parameters)
        grid = rule([v.shape if isinstance(v, ArrayView) else v for v in values])
    if grid is None:
        return 0
    ctas, all_of_them = max(1, prod(grid) * kernel.stripes), machine.multiprocessors
    each = -(-ctas // all_of_them)
    if most and each > most:
        return most + 1
    if each >= fewest:
        return 0
    if kernel.has_roles:
        return each  # of them share a multiprocessor
    spare = min(PORTABLE_CTAS, power_below(max(1, all_of_them // ctas)))
    if spare == 1:
        return fewest - 1
    return -spare if kernel.spreads_few else 1


def better_suited_usual(
    kernel: CompiledKernel, usual: Mapping[str, Any], target: Target, *, at_most: bool = False
) -> int:
    """The same of a call with `usual` shapes and whole numbers by name, where its parameters leave
    sizes open, on the usual device of a target, which `at_most`, no larger sizes, are meant for.
    ValueError for a name or a rank that no parameter has."""
    machine = usual_machine(target)
    call = class_of_specs(kernel.parameters, usual, machine) if any(kernel.suits) else None
    if call is None:
        return 0
    machine = replace(machine, assumed=()) if at_most else machine
    return better_suited(kernel, call.arguments(kernel.parameters), machine)
