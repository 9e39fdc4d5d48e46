"""Tunes a kernel ahead of time, for arguments of given sizes.

FILE.py[:NAME] names a kernel under @tilec.autotune. Each --arg describes an argument of it:

  --arg a:bf16[4096,4096]                       an array of random numbers
  --arg b:bf16[4096,4096],strides=1x4096        one whose columns lie together
  --arg m:i32[4096],fill=range                  what it holds (or a number, @FILE.npy)
  --arg n:i32=64   --arg scale:f32=0.5          numbers
  --const bias=None                             an array that calls leave out

On a GPU the best candidates are compiled and timed, and the winner is kept where calls look for it
(tilec/tuning/README.md): for arguments of these dtypes and classes of sizes, on such a GPU. The
emulator's time says nothing of a GPU's: there the candidates are ranked by the model, for
TILEC_TARGET, and nothing is kept.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

from tilec.call.kernel_file import kernels_of, load_file, picked
from tilec.cli.arguments import add_constants, add_dimensions, split_name, usage
from tilec.cli.drawn_arguments import DrawnArgument, parse_drawn
from tilec.cli.parser import DONE
from tilec.cli.streams import write_out
from tilec.executable.grid import check_grid
from tilec.messages.diagnostics import CompileError
from tilec.messages.names import did_you_mean
from tilec.runtime.arrays import CUDA
from tilec.runtime.device import device as find_device
from tilec.runtime.errors import ArgumentError, DeviceError
from tilec.tuning.outcome import Outcome
from tilec.tuning.tuned_kernel import TunedKernel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec tune`."""
    parser.add_argument("input", metavar="FILE.py[:NAME]", help="the tuned kernel")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        type=usage(_parse),
        metavar="SPEC",
        help="an argument by name, see above; repeated",
    )
    add_constants(parser)
    add_dimensions(parser, "grid", "programs; default: the kernel's own rule")
    parser.add_argument("--device", metavar="NAME", help="cuda, cuda:N or emulator")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers; default: 0")
    parser.add_argument("--again", action="store_true", help="measure what is known already, too")


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec tune`; the exit code."""
    kernel = _kernel(*split_name(arguments.input))
    constants = dict(arguments.const)
    arrays = {a.name for a in kernel.arguments if a.kind != "const"}
    none = [name for name, value in arguments.const if value is None and name in arrays]
    numbers = [name for name, _ in arguments.const if name not in none]
    _check_names(kernel, [*(a.name for a in arguments.arg), *none], numbers)
    os.environ["TILEC_TUNE"] = "again" if arguments.again else "1"
    try:
        device = kernel.kernel.device if arguments.device is None else None
        device = device or find_device(arguments.device)
        random = np.random.default_rng(arguments.seed)
        values = {argument.name: _value(argument, device, random) for argument in arguments.arg}
        grid = None if arguments.grid is None else check_grid(arguments.grid)
    except (ValueError, DeviceError, OSError) as error:
        raise CompileError(str(error)) from None
    try:
        outcome = kernel.on(device).outcome(grid=grid, **values, **constants)
    except (ArgumentError, DeviceError) as error:
        raise CompileError(str(error)) from None
    write_out(f"{outcome.report()}\n{_kept(kernel, outcome)}\n")
    return DONE


def _kernel(path: str, name: str | None) -> TunedKernel[...]:
    """The tuned kernel of a file. CompileError where it has none of that name."""
    every = kernels_of(load_file(path), path)
    tuned = {key: kernel for key, kernel in every.items() if isinstance(kernel, TunedKernel)}
    untuned = [key for key in every if key not in tuned]
    if name in untuned or (name is None and untuned and not tuned):
        raise CompileError(
            f"{name or untuned[0]} has no candidates to choose from: write @tilec.autotune(...) "
            "above its @tilec.kernel; of tl.auto the compiler chooses without measuring"
        )
    return picked(tuned, path, name)


def _check_names(kernel: TunedKernel[...], arguments: list[str], constants: list[str]) -> None:
    """CompileError for a name that the kernel does not have, or one that is given twice."""
    for what, names, is_constant in (
        ("argument", arguments, False),
        ("constant", constants, True),
    ):
        known = [a.name for a in kernel.arguments if (a.kind == "const") == is_constant]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise CompileError(f"{what} {name!r} is given twice")
            if name not in known:
                raise CompileError(
                    f"{kernel.name} has no {what} {name!r}; it has {', '.join(known) or 'none'}",
                    None,
                    did_you_mean(name, known),
                )


def _parse(text: str) -> DrawnArgument:
    found = parse_drawn(text)
    if not found.name or found.dtype is None or found.box:
        raise ValueError(f"argument {text!r}: expected a name and an array, or a number")
    return found


def _value(argument: DrawnArgument, device: Any, random: np.random.Generator) -> Any:
    """An argument of a call. On the emulator nothing is launched, so that arrays hold nothing."""
    if argument.value is not None:
        return argument.value.item()
    if device.kind == CUDA:
        return device.array(argument.draw(random))
    return argument.blank()


def _kept(kernel: TunedKernel[...], outcome: Outcome) -> str:
    """Says where calls find the choice."""
    if outcome.source == "model":
        return "nothing was measured, and nothing is kept"
    if outcome.source == "default":
        return "there was nothing to choose from"
    where = kernel.file
    return "kept nowhere: TILEC_CACHE=0" if where is None else f"kept in {where}"
