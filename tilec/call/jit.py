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
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, overload

from tilec.call.declaration import declared_parameters
from tilec.call.dependencies import compiler_digest, outside_values, source_digest
from tilec.call.device_target import ptx_version_for, target_of
from tilec.call.signature import add_promises
from tilec.call.specialization import Specialization, constant_text, specialize, specialize_for
from tilec.compile.dump_folder import DUMP, next_dump
from tilec.executable.kernel import CompiledKernel, Grid, Parameter
from tilec.hardware.target import TARGETS, Target, find_target, why_not_its_own
from tilec.language.builtin import function
from tilec.language.parameters import auto
from tilec.messages.diagnostics import PerformanceWarning
from tilec.messages.report import show_report, slow
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.cache import default_cache
from tilec.runtime.device import device as find_device
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import reaches
from tilec.runtime.launch_argument import RESERVED
from tilec.runtime.launcher import Launcher, located
from tilec.runtime.outside import Outside, is_same
from tilec.terms.demands import NO_DEMANDS, Demands, check_names, explained

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tilec.call.typed_call import TypedCall

P = ParamSpec("P")
ArgumentSpec = str | Parameter
GridRule = Callable[..., Any] | tuple[Any, ...] | int | None


class Kernel(Launcher, Generic[P]):
    """A kernel: call it with its arguments, `kernel(...)`, or with a grid, `kernel[grid](...)`.

    `fn`: the Python function. `grid`: the rule given to the decorator. `device`: where to run, None
    for where the arrays are. `demands`: see `tilec.terms.demands`; None, or none, leaves one open.
    Calls take `grid=` and `stream=` besides the function's own arguments.
    """

    __tilec_kernel__ = True

    if TYPE_CHECKING:  # `Launcher` has them

        @overload
        def __call__(self, *arguments: P.args, **named: P.kwargs) -> None: ...
        @overload
        def __call__(
            self, *arguments: Any, grid: Any, stream: Any = None, **named: Any
        ) -> None: ...
        @overload
        def __call__(  # pyright: ignore[reportOverlappingOverload] - `named` holds no grid
            self, *arguments: Any, stream: Any, **named: Any
        ) -> None: ...
        def __call__(self, *arguments: Any, **named: Any) -> None: ...
        def __getitem__(self, grid: Any) -> TypedCall[P]: ...

    def __init__(
        self,
        fn: Callable[P, Any],
        grid: Any = None,
        device: Any = None,
        **demands: Unpack[Demands],
    ) -> None:
        check_names(demands)
        self.fn = fn
        self.grid = grid
        self._demands: Demands = {**NO_DEMANDS, **demands}
        self.parameters = declared_parameters(fn)
        self._compiled: dict[Any, CompiledKernel] = {}
        self._open = [i for i, p in enumerate(self.parameters) if p.kind == "any"]
        self._variants: dict[tuple[str, ...], Launcher] = {}
        arguments = [parameter.launch_argument("array") for parameter in self.parameters]
        where = _found(device)
        super().__init__(fn.__name__, arguments, self.resolve, where)
        functools.update_wrapper(self, fn, updated=())

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def _launch(self, values: tuple[Any, ...], grid: Any, stream: Any) -> None:
        """As `Launcher`, but an argument without annotation may also be a number."""
        launcher = self.launcher_of(values)
        if launcher is self:
            super()._launch(values, grid, stream)
        else:
            launcher(*values, grid=grid, stream=stream)

    def launcher_of(self, values: Sequence[Any]) -> Launcher:
        """What launches arguments like these, given in order: this kernel, or where some that
        have no annotation are numbers, its launcher for that."""
        kinds = tuple(_kind(values[i]) for i in self._open)
        if "typed" not in kinds:
            return self
        variant = self._variants.get(kinds)
        if variant is None:
            chosen = iter(kinds)
            arguments = [
                p.launch_argument(next(chosen) if p.kind == "any" else p.kind)
                for p in self.parameters
            ]
            variant = Launcher(self.name, arguments, self.resolve, self.device)
            variant.outside = self.outside
            self._variants[kinds] = variant
        return variant

    def on(self, device: Any) -> Kernel[P]:
        """The same kernel, to run on `device` ("emulator:check", "cuda:1", or a device)."""
        return Kernel(self.fn, self.grid, device=device, **self.demands())

    def demands(self) -> Demands:
        """What the decorator was asked for beside the grid and the device, by name."""
        return {**self._demands}

    def demanding(self, **demands: Unpack[Demands]) -> Kernel[P]:
        """The same kernel with other demands, as `num_warps=8`; what is not named stays.

        ValueError for a name that no demand has.
        """
        return Kernel(self.fn, self.grid, device=self.device, **{**self._demands, **demands})

    def check(self, *arguments: Any, **named: Any) -> None:
        """Runs on the CPU emulator in its check mode, on host arrays.

        Raises `FindingsError` where there are races, missing waits or accesses out of bounds.
        """
        self.on("emulator:check")(*arguments, **named)

    def compiled(self, *arguments: Any, **named: Any) -> CompiledKernel:
        """The compiled kernel these arguments would launch; compiles it if it is new."""
        return self.resolve(*self._placed(arguments, named))

    def _placed(
        self, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Where a call of these arguments runs, and they as `described`."""
        given = {name: value for name, value in named.items() if name not in RESERVED}
        try:
            call = inspect.signature(self.fn).bind(*arguments, **given)
        except TypeError as error:
            raise ArgumentError(f"{self.name}(): {error}") from None
        call.apply_defaults()
        bound = self.described(call.arguments)
        arrays = [(name, value) for name, value in bound.items() if isinstance(value, ArrayView)]
        return device_of(arrays, self.device), bound

    def described(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, each array among them as an `ArrayView`."""
        bound = dict(values)
        for parameter in self.parameters:
            value = bound[parameter.name]
            if "array" in (parameter.kind, parameter.kind == "any" and _kind(value)):
                bound[parameter.name] = located(describe(value, parameter.name))
        return bound

    def tile_module(self, device: Any, bound: Mapping[str, Any]) -> Any:
        """The tile-level `mlir.ir.Module` for described arguments on a device."""
        return self._module(specialize(self.parameters, bound), target_of(device))

    def report(self, *arguments: Any, **named: Any) -> str:
        """What the compiler decided for these arguments, and why, as text."""
        device, bound = self._placed(arguments, named)
        kernel = self.resolve(device, bound)
        word = None
        if device.compute_capability is not None:
            word = why_not_its_own(find_target(kernel.target), device.compute_capability)
        heading = f"{device.name}: target: {kernel.target} ({word})\n" if word else ""
        return heading + show_report(kernel.report)

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
        return self.smaller_module(specs, constants, 0, target=target, index_bits=index_bits)

    def smaller_module(
        self,
        specs: Sequence[ArgumentSpec],
        constants: Mapping[str, Any] | None,
        smaller: int,
        *,
        target: str | None = None,
        index_bits: int = 32,
    ) -> Any:
        """As `source_module`, for where that does not fit: a `tl.auto` constant is halved `smaller`
        times, the largest each time. None if none can be."""
        wanted = specialize_for(self.parameters, specs, constants or {}, index_bits)
        found = find_target(target) if target else next(iter(TARGETS.values()))
        return self._smaller_module(wanted, found, smaller)

    def compile(
        self,
        specs: Sequence[ArgumentSpec],
        constants: Mapping[str, Any] | None = None,
        *,
        target: str,
        index_bits: int = 32,
        ptx_version: int | None = None,
        dump_dir: str | None = None,
    ) -> CompiledKernel:
        """Compiles ahead of time, for specs (see `source_module`) and a target; needs no GPU.

        `ptx_version`: of the PTX, times ten; None for the lowest that the code needs, of the best
        code. CompileError where an instruction needs a later one.
        """
        wanted = specialize_for(self.parameters, specs, constants or {}, index_bits)
        kernel = self._compile(wanted, find_target(target), ptx_version, dump_dir)
        add_promises(kernel)
        return _announced(kernel)

    def resolve(
        self, device: Any, bound: Mapping[str, Any], grid: Grid | None = None
    ) -> CompiledKernel:
        """The compiled kernel for described arguments on a device: known, on disk, or new.

        Its indices have 64 bits where those of the arrays, the kernel's limits or `grid`, if that
        is known, ask for it.
        """
        target = target_of(device)
        version = ptx_version_for(device, target)
        if not is_same(self.outside):
            self._forget()
        wanted = specialize(self.parameters, bound)
        found = self._known(wanted, target, version)
        if not reaches(found, bound, grid):
            found = self._known(replace(wanted, index_bits=64), target, version)
        return found

    def _known(self, wanted: Specialization, target: Target, version: int | None) -> CompiledKernel:
        key = (target.name, version, wanted.key)
        found = self._compiled.get(key)
        if found is None:
            self._watch(outside_values(self.fn, self.grid))
            found = self._compiled[key] = _announced(self._load(wanted, target, version))
        return found

    def _watch(self, outside: tuple[Outside, ...]) -> None:
        """Launches compare these from now on, before they use what was compiled."""
        for launcher in (self, *self._variants.values()):
            launcher.outside = outside

    def _forget(self) -> None:
        """A global or a function that the kernel reads is another one: all is compiled anew."""
        self._compiled = {}
        self._watch(())
        for launcher in (self, *self._variants.values()):
            launcher.forget()

    def _load(self, wanted: Specialization, target: Target, version: int | None) -> CompiledKernel:
        """From the disk cache, or compiled and put there."""
        cache = default_cache()
        if cache is None:
            return self._compile(wanted, target, version)
        key = self._disk_key(wanted, target, version)
        found = None if os.environ.get(DUMP) else cache.get(key)
        if found is None:
            found = self._compile(wanted, target, version)
            cache.put(key, found)
        return found

    def _disk_key(
        self, wanted: Specialization, target: Target, version: int | None
    ) -> dict[str, Any]:
        """Everything the compiled code depends on."""
        values = [value for _, value in wanted.constants]
        return {
            "compiler": compiler_digest(),
            "source": source_digest(self.fn, self.grid, *values),
            "parameters": list(map(repr, wanted.parameters)),
            "constants": [(name, constant_text(value)) for name, value in wanted.constants],
            "index_bits": wanted.index_bits,
            "demands": self.demands(),
            "target": target.name,
            "ptx_version": version,
        }

    def _compile(
        self,
        wanted: Specialization,
        target: Target,
        ptx_version: int | None = None,
        dump_dir: str | None = None,
    ) -> CompiledKernel:
        importlib.import_module("tilec.compile.compiler_start").start_inside()
        compiler = importlib.import_module("tilec.compile.compiler")
        return compiler.compile_module(
            self._module(wanted, target),
            target,
            smaller=functools.partial(self._smaller_module, wanted, target),
            ptx_version=ptx_version,
            dump_dir=dump_dir or next_dump(f"{self.name}.{target.name}"),
        )

    def _module(self, wanted: Specialization, target: Target) -> Any:
        """The tile-level module, with the compiler's first choice of `tl.auto` constants."""
        return self._smaller_module(wanted, target, 0)

    def _smaller_module(self, wanted: Specialization, target: Target, smaller: int) -> Any:
        """The same where a `tl.auto` constant is halved `smaller` times; None if none can be."""
        constants, reasons = dict(wanted.constants), {}
        if smaller or any(value is auto for value in constants.values()):
            chooser = importlib.import_module("tilec.call.auto_constants")
            chosen = chooser.choose_auto_constants(
                self.fn, wanted.parameters, constants, target, smaller
            )
            if chosen is None:
                return None
            constants, reasons = chosen
        return importlib.import_module("tilec.frontend").build_module(
            self.fn,
            wanted.parameters,
            constants,
            grid=self.grid,
            index_bits=wanted.index_bits,
            **self.demands(),
            auto=reasons,
        )


def _found(device: Any) -> Any:
    """The device of a name; a device as it is, and None. TypeError for anything else."""
    if device is None or hasattr(device, "launch"):
        return device
    if isinstance(device, str):
        return find_device(device)
    raise TypeError(f"device: expected a name such as 'cuda:1' or a device, found {device!r}")


_ANNOUNCED: dict[Any, Any] = {}
"""What `warnings` has shown, so that it shows it once."""


def _announced(kernel: CompiledKernel) -> CompiledKernel:
    """The same, with a PerformanceWarning for each thing that surely makes it slow."""
    for at, text in slow(kernel.report):
        path, line, _ = at.rsplit(":", 2)
        warnings.warn_explicit(
            f"{at}: {text}", PerformanceWarning, path, int(line), registry=_ANNOUNCED
        )
    return kernel


def _kind(value: Any) -> str:
    """What an argument without annotation is."""
    return "typed" if isinstance(value, numbers.Number) else "array"


@overload
def kernel(
    fn: Callable[P, Any], *, grid: GridRule = None, device: Any = None, **demands: Unpack[Demands]
) -> Kernel[P]: ...
@overload
def kernel(
    *, grid: GridRule = None, device: Any = None, **demands: Unpack[Demands]
) -> Callable[[Callable[P, Any]], Kernel[P]]: ...
def kernel(
    fn: Callable[..., Any] | None = None,
    *,
    grid: Any = None,
    device: Any = None,
    **demands: Unpack[Demands],
) -> Any:
    """Decorator: makes a Python function a `Kernel`.

    `grid`: the launch grid as a function of the kernel's parameters, by name, or a tuple; without
    it every call gives one. `device`: where to run; None for where the arrays are. ValueError for a
    name that no demand has; whether demands can be met, is said when the kernel is compiled.
    """
    check_names(demands)

    def decorate(found: Callable[..., Any]) -> Kernel[...]:
        return Kernel(found, grid, device, **demands)

    return decorate if fn is None else decorate(fn)


kernel.__doc__ = f"{inspect.getdoc(kernel)}\n\nDemands, which are met or an error:\n{explained()}"

__all__ = ["Kernel", "function", "kernel"]
