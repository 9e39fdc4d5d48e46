"""Devices: what runs a compiled kernel, and how to get one."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Protocol

from tilec.executable.kernel import CompiledKernel
from tilec.messages.mistakes import mistake
from tilec.runtime.arrays import CUDA, HOST, ArrayView
from tilec.runtime.cuda.device import cuda_device
from tilec.runtime.cuda.driver import no_device_reason
from tilec.runtime.errors import ArgumentError

EMULATOR = "emulator"


class Device(Protocol):
    """What every device can do.

    `kind` is "cuda" or "emulator", `name` what `device` takes. `compute_capability` is None where a
    device runs the code of every target, `shared_bytes` (the most one CTA may ask for) where it has
    as many as any, `newest_ptx` (PTX version times ten) where it takes any.
    """

    kind: str
    name: str
    compute_capability: tuple[int, int] | None
    shared_bytes: int | None
    newest_ptx: int | None

    def load(self, kernel: CompiledKernel) -> Any:
        """Makes `kernel` ready to launch, once."""
        ...

    def launch(self, loaded: Any, arguments: Sequence[Any], grid: Any, stream: Any = None) -> None:
        """Launches what `load` gave on an array or a number a parameter; they are checked here."""
        ...

    def synchronize(self) -> None:
        """Waits for all launches; raises what went wrong in them."""
        ...


def device(name: str | None = None) -> Any:
    """The device "cuda", "cuda:N", "emulator", or "emulator:late|check" (see its `MODES`).

    None takes the environment's TILEC_DEVICE, else the first GPU, else the emulator, which it says
    on standard error, once. ValueError for another name, TypeError for what is none, DeviceError if
    there is no such GPU.
    """
    _check_name(name)
    name = name or os.environ.get("TILEC_DEVICE") or _default_name()
    if match := re.fullmatch(r"emulator(?::(\w+))?", name):
        return _emulator(match[1] or "eager")
    if match := re.fullmatch(r"cuda(?::(\d{1,4}))?", name):
        return cuda_device(int(match[1] or 0))
    text = f"unknown device {name!r}; expected cuda, cuda:N or emulator[:mode], which is the CPU"
    raise mistake(ValueError(text))


def _check_name(name: Any) -> None:
    if name is None or isinstance(name, str):
        return
    # A device of torch's has a name of ours.
    instead = f"; write {str(name)!r}" if type(name).__module__ == "torch" else ""
    text = "device: expected a name such as 'cuda:1' or a device of tilec's"
    raise mistake(TypeError(f"{text}, found {name!r}{instead}"))


def device_of(arrays: Sequence[tuple[str, ArrayView]], wanted: Any = None) -> Any:
    """The device that the named arguments lie on; `wanted`: the one the caller asked for, or None.

    Host arrays go to the emulator, and only there. ArgumentError when arguments lie apart or
    elsewhere than wanted.
    """
    if not arrays:
        return wanted or device()
    first_name, first = arrays[0]
    for name, array in arrays:
        if array.device != first.device:
            raise ArgumentError(
                f"argument {name!r}: expected an array on {_place(first)} like {first_name!r}, "
                f"found one on {_place(array)}"
            )
    if first.device[0] == CUDA:
        there = cuda_device(first.device[1])
        if wanted is not None and wanted is not there:
            raise ArgumentError(
                f"argument {first_name!r}: expected an array on {wanted.name}, "
                f"found one on {there.name}"
            )
        return there
    here = wanted or device()
    if here.kind != EMULATOR:
        raise ArgumentError(
            f"argument {first_name!r}: expected an array on {here.name}, found one in host memory; "
            f"copy it with tilec.device({here.name!r}).array(...), or run on the emulator with "
            "device='emulator' or TILEC_DEVICE=emulator"
        )
    return here


def _place(array: ArrayView) -> str:
    kind, index = array.device
    return "the host" if kind == HOST else f"{kind}:{index}"


@cache
def _default_name() -> str:
    reason = no_device_reason()
    if reason is None:
        return "cuda:0"
    short = reason.partition(" (")[0]  # `tilec doctor` shows the rest
    with suppress(OSError):  # a full disk is no reason not to run
        print(f"tilec: no GPU ({short}); running on the CPU emulator", file=sys.stderr)
    return EMULATOR


@cache
def _emulator(mode: str) -> Any:
    # By name, so that a process that runs on a GPU loads neither NumPy nor the emulator.
    return importlib.import_module("tilec.runtime.emulator_device").EmulatorDevice(mode)
