"""`@tilec.kernel`: a Python function as a kernel that compiles for the arguments it is called with.

The one module that sees both sides, compiler and runtime. The compiler, and with it MLIR, is
imported when something must be compiled: not by importing this, nor by launching from the cache.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilec.declaration import declared_parameters
from tilec.kernel import CompiledKernel, Parameter
from tilec.language.builtin import function
from tilec.language.parameters import auto
from tilec.report import show_report
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.device import device as find_device
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError, DeviceError
from tilec.runtime.launch_argument import RESERVED
from tilec.runtime.launcher import Launcher
from tilec.specialization import Specialization, specialize, specialize_for
from tilec.target import TARGETS, Target, find_target, target_for_device

ArgumentSpec = str | Parameter


class Kernel:
    """A kernel: call it with its arguments, `kernel(...)`, or with a grid, `kernel[grid](...)`.

    `fn`: the Python function. `grid`: the rule given to the decorator. `num_warps`: warps per
    program, None for the compiler's choice. `device`: where to run, None for where the arrays are.
    Calls take `grid=` and `stream=` besides the function's own arguments.
    """

    __tilec_kernel__ = True

    def __init__(
        self,
        fn: Callable[..., Any],
        grid: Any = None,
        num_warps: int | None = None,
        device: Any = None,
    ) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.name = fn.__name__
        self.grid = grid
        self.num_warps = num_warps
        self.device = find_device(device) if isinstance(device, str) else device
        self.parameters = declared_parameters(fn)
        self._compiled: dict[Any, CompiledKernel] = {}
        self._open = [p.name for p in self.parameters if p.kind == "any"]
        self._launchers: dict[tuple[bool, ...], Launcher] = {}
        self._only = None if self._open else self._launcher_of(())

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Compiles if these arguments are new, and launches."""
        launcher = self._only or self._launcher_for(arguments, named)
        launcher.call(*arguments, **named)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """`kernel[grid](...)`: a launch with this grid instead of the rule's."""
        return functools.partial(self, grid=grid)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def on(self, device: Any) -> Kernel:
        """The same kernel, to run on `device` ("emulator:check", "cuda:1", or a device)."""
        return Kernel(self.fn, self.grid, self.num_warps, device)

    def check(self, *arguments: Any, **named: Any) -> None:
        """Runs on the CPU emulator in its check mode, on host arrays.

        Raises `FindingsError` where there are races, missing waits or accesses out of bounds.
        """
        self.on("emulator:check")(*arguments, **named)

    def compiled(self, *arguments: Any, **named: Any) -> CompiledKernel:
        """The compiled kernel these arguments would launch; compiles it if it is new."""
        bound = self._bind(arguments, named)
        for name, value in bound.items():
            if self._kind(name, value) == "array":
                bound[name] = describe(value, name)
        arrays = [(name, value) for name, value in bound.items() if isinstance(value, ArrayView)]
        return self._resolve(device_of(arrays, self.device), bound)

    def report(self, *arguments: Any, **named: Any) -> str:
        """What the compiler decided for these arguments, and why, as text."""
        return show_report(self.compiled(*arguments, **named).report)

    def source_module(
        self,
        specs: Sequence[ArgumentSpec],
        constants: Mapping[str, Any] | None = None,
        *,
        target: str | None = None,
        index_bits: int = 32,
    ) -> Any:
        """The tile-level `mlir.ir.Module` for argument specs such as "a:bf16[?,?]".

        `constants`: values of `tl.const` parameters, defaults for the others; `tl.auto` is resolved
        for `target`. `index_bits=32` is checked at every launch. ValueError for wrong specs.
        """
        wanted = specialize_for(self.parameters, specs, constants or {}, index_bits)
        return self._module(wanted, find_target(target) if target else next(iter(TARGETS.values())))

    def compile(
        self,
        specs: Sequence[ArgumentSpec],
        constants: Mapping[str, Any] | None = None,
        *,
        target: str,
        index_bits: int = 32,
        ptx_version: int = 90,
        dump_dir: str | None = None,
    ) -> CompiledKernel:
        """Compiles ahead of time, for specs (see `source_module`) and a target; needs no GPU."""
        wanted = specialize_for(self.parameters, specs, constants or {}, index_bits)
        return self._compile(wanted, find_target(target), ptx_version, dump_dir)

    def _bind(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Name -> argument, defaults included, for everything but `grid` and `stream`."""
        given = {name: value for name, value in named.items() if name not in RESERVED}
        try:
            bound = inspect.signature(self.fn).bind(*arguments, **given)
        except TypeError as error:
            raise ArgumentError(f"{self.name}(): {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _kind(self, name: str, value: Any) -> str:
        """ "array" or "scalar" (or "const" ...) for a parameter given `value`."""
        declared = next(p for p in self.parameters if p.name == name)
        if declared.kind != "any":
            return declared.kind
        return "typed" if isinstance(value, numbers.Number) else "array"

    def _launcher_for(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> Launcher:
        """The launcher for arguments of which only the call shows whether they are arrays."""
        bound = self._bind(arguments, named)
        return self._launcher_of(tuple(self._kind(n, bound[n]) for n in self._open))

    def _launcher_of(self, kinds: tuple[str, ...]) -> Launcher:
        launcher = self._launchers.get(kinds)
        if launcher is None:
            resolved = dict(zip(self._open, kinds, strict=True))
            arguments = [p.launch_argument(resolved.get(p.name, p.kind)) for p in self.parameters]
            launcher = Launcher(self.name, arguments, self._resolve, self.device)
            self._launchers[kinds] = launcher
        return launcher

    def _resolve(self, device: Any, bound: Mapping[str, Any]) -> CompiledKernel:
        """The compiled kernel for described arguments on a device: from memory, or new."""
        target = _target_of(device)
        wanted = specialize(self.parameters, bound)
        key = (target.name, wanted.key)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._compile(wanted, target)
        return found

    def _compile(
        self,
        wanted: Specialization,
        target: Target,
        ptx_version: int = 90,
        dump_dir: str | None = None,
    ) -> CompiledKernel:
        module = self._module(wanted, target)
        compiler = importlib.import_module("tilec.compiler")
        return compiler.compile_module(module, target, ptx_version=ptx_version, dump_dir=dump_dir)

    def _module(self, wanted: Specialization, target: Target) -> Any:
        constants, reasons = dict(wanted.constants), {}
        if any(value is auto for value in constants.values()):
            chooser = importlib.import_module("tilec.auto_constants")
            constants, reasons = chooser.choose_auto_constants(
                self.fn, wanted.parameters, constants, target
            )
        return importlib.import_module("tilec.frontend").build_module(
            self.fn,
            wanted.parameters,
            constants,
            grid=self.grid,
            index_bits=wanted.index_bits,
            num_warps=self.num_warps,
            auto=reasons,
        )


def _target_of(device: Any) -> Target:
    """The target to compile for: TILEC_TARGET, else the device's; the emulator runs any."""
    named = os.environ.get("TILEC_TARGET")
    if named:
        return find_target(named)
    if device.compute_capability is None:
        return next(iter(TARGETS.values()))
    found = target_for_device(device.compute_capability)
    if found is None:
        major, minor = device.compute_capability
        raise DeviceError(
            f"{device.name} has compute capability {major}.{minor}, for which there is no target; "
            f"known targets: {', '.join(TARGETS)}"
        )
    return found


def kernel(
    fn: Callable[..., Any] | None = None,
    *,
    grid: Any = None,
    num_warps: int | None = None,
    device: Any = None,
) -> Any:
    """Decorator: makes a Python function a `Kernel`.

    `grid`: the launch grid as a function of the kernel's parameters, by name, or a tuple; without
    it every call gives one. `num_warps`: a demand. `device`: where to run.
    """
    if fn is None:
        return lambda found: Kernel(found, grid, num_warps, device)
    return Kernel(fn, grid, num_warps, device)


__all__ = ["Kernel", "function", "kernel"]
