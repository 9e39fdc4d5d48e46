"""`@tilec.kernel`: a Python function as a kernel that compiles for the arguments it is called with.

The one module that sees both sides, compiler and runtime. The compiler, and with it MLIR, is
imported when something must be compiled: not by importing this, nor by launching from the cache.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, overload

from tilec.call.call_class import class_of, class_of_specs
from tilec.call.call_form import CallForm, Kind, kinds_of
from tilec.call.crowds import better_suited, better_suited_usual, suited
from tilec.call.declaration import declared_parameters
from tilec.call.dependencies import disk_key, outside_values
from tilec.call.device_target import given_device, ptx_version_for, target_of
from tilec.call.shared_code import SharedCode
from tilec.call.signature import add_promises
from tilec.call.specialization import Specialization, specialize, specialize_for
from tilec.call.tile_programs import TilePrograms
from tilec.call.variants import demanded, variant
from tilec.compile.dump_folder import DUMP, next_dump
from tilec.costs.machine import machine_of, usual_machine
from tilec.executable.kernel import LISTS, CompiledKernel, Grid, Parameter
from tilec.hardware.target import TARGETS, Target, find_target, why_not_its_own
from tilec.language.builtin import function
from tilec.messages.report import Report, announce, show_report
from tilec.messages.tracebacks import short_traceback
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.cache import default_cache
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import reaches
from tilec.runtime.launch_argument import RESERVED, bind, with_defaults
from tilec.runtime.launcher import Launcher, listed_as, located
from tilec.runtime.outside import Outside, is_same
from tilec.terms.demands import NO_DEMANDS, Demands, check_names, explained

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tilec.call.typed_call import TypedCall
    from tilec.runtime.cuda.plan import Plan

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
        self._reports: dict[Any, Mapping[str, Any]] = {}
        self._code = SharedCode()
        self._programs = TilePrograms(fn, grid, self._demands)
        self._plain = tuple("array" if p.kind == "any" else p.kind for p in self.parameters)
        self._variants: dict[tuple[Kind, ...], tuple[CallForm, Launcher]] = {}
        arguments = [parameter.launch_argument("array") for parameter in self.parameters]
        where = given_device(device)
        super().__init__(fn.__name__, arguments, self.resolve, where)
        update_wrapper(self, fn, updated=())

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def __reduce__(self) -> str:
        """By its global name, as functions: a copy of what holds a kernel holds the same one."""
        return self.fn.__qualname__

    def _launch_memory(self, values: tuple[Any, ...], grid: Any, stream: Any) -> None:
        """Launches as `Launcher` does, but an argument that is an array's may also be None or a
        group, and one without annotation a number."""
        kinds = kinds_of(self.parameters, values)
        if kinds == self._plain:
            super()._launch_memory(values, grid, stream)
        else:
            form, launcher = self._variant(kinds)
            launcher.run(*form.flat(values), grid=grid, stream=stream)

    def known_plan(self, *arguments: Any, **named: Any) -> Plan | None:
        """As `Launcher` does, also where arguments are None or groups."""
        given = bind(self.name, self.arguments, arguments, named)
        launcher, bound = self.taken_apart(given)
        return Launcher.known_plan(launcher, **bound)

    def _variant(self, kinds: tuple[Kind, ...]) -> tuple[CallForm, Launcher]:
        """How arguments of these kinds are taken apart, and what launches the parts."""
        found = self._variants.get(kinds)
        if found is None:
            form = CallForm(self.parameters, kinds)
            if kinds == self._plain:
                return form, self

            def resolve(
                device: Any, bound: Mapping[str, Any], grid: Grid | None = None
            ) -> CompiledKernel:
                return self.resolve(device, {**form.given, **bound}, grid)

            launcher = Launcher(self.name, form.arguments, resolve, self.device)
            launcher.outside = self.outside
            found = self._variants[kinds] = form, launcher
        return found

    def on(self, device: Any) -> Kernel[P]:
        """The same kernel, to run on `device` ("emulator:check", "cuda:1", or a device)."""
        return Kernel(self.fn, self.grid, device=device, **self.demands())

    def demands(self) -> Demands:
        """What the decorator was asked for beside the grid and the device, by name."""
        return {**self._demands}

    def demanding(self, **demands: Unpack[Demands]) -> Kernel[P]:
        """The same kernel with other demands, as `num_warps=8`; what is not named stays.

        The same object for the same demands. ValueError for a name that no demand has.
        """
        return variant(self, demands)

    demanded = demanded

    @short_traceback
    def check(self, *arguments: Any, **named: Any) -> None:
        """Runs on the CPU emulator in its check mode, on host arrays.

        Raises `FindingsError` where there are races, missing waits or accesses out of bounds.
        """
        self.on("emulator:check")(*arguments, **named)

    @short_traceback
    def compiled(self, *arguments: Any, **named: Any) -> CompiledKernel:
        """The compiled kernel these arguments would launch; compiles it if it is new."""
        return self.resolve(*self._placed(arguments, named))

    def _placed(
        self, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Says where a call of these arguments runs; gives them as `described`, too."""
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
        """Arguments by name, each array among them as an `ArrayView`; a group and, beside it, its
        parts."""
        given = [values[parameter.name] for parameter in self.parameters]
        form = CallForm(self.parameters, kinds_of(self.parameters, given))
        bound: dict[str, Any] = dict(form.given)
        for argument, value in zip(form.arguments, form.flat(given), strict=True):
            if argument.kind == "array":
                value = located(describe(value, argument.name))
            elif argument.kind in LISTS:
                value = listed_as(argument.kind, value, argument.name)
            bound[argument.name] = value
        return bound

    def taken_apart(self, values: Mapping[str, Any]) -> tuple[Launcher, dict[str, Any]]:
        """What launches arguments like these, and its own arguments by name, in order: defaults
        among them, groups as their parts."""
        whole = with_defaults(self.arguments, values)
        given = [whole[parameter.name] for parameter in self.parameters]
        form, launcher = self._variant(kinds_of(self.parameters, given))
        names = (argument.name for argument in form.arguments)
        return launcher, dict(zip(names, form.flat(given), strict=True))

    def tile_module(self, device: Any, bound: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """The tile-level `mlir.ir.Module` for described arguments on a device, while entered."""
        target = target_of(device)
        return self._programs.lent(self._wanted(device, target, bound), target)

    @short_traceback
    def report(self, *arguments: Any, **named: Any) -> str:
        """What the compiler decided for these arguments, and why, as text."""
        device, bound = self._placed(arguments, named)
        wanted, kernel = self._resolved(device, bound)
        target = target_of(device)
        told = self._reports[target.name, ptx_version_for(device, target), wanted.key]
        word = None
        if device.compute_capability is not None:
            word = why_not_its_own(find_target(kernel.target), device.compute_capability)
        heading = f"{device.name}: target: {kernel.target} ({word})\n" if word else ""
        return Report(heading + show_report(told))

    @short_traceback
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
        return self.other_module(specs, constants, 0, target=target, index_bits=index_bits)

    def other_module(
        self,
        specs: Sequence[ArgumentSpec],
        constants: Mapping[str, Any] | None,
        number: int,
        *,
        target: str | None = None,
        index_bits: int = 32,
    ) -> Any:
        """Builds the module with the compiler's choice of that number of `tl.auto` constants, where
        `source_module` has the first; None past the last."""
        found = find_target(target) if target else next(iter(TARGETS.values()))
        wanted = self._for(specs, constants, index_bits, found)
        return self._programs.module(wanted, found, number)

    def _for(
        self,
        specs: Sequence[ArgumentSpec],
        constants: Mapping[str, Any] | None,
        index_bits: int,
        target: Target,
        sizes: Mapping[str, Any] | None = None,
        *,
        is_most: bool = False,
    ) -> Specialization:
        """The specialisation for specs, and the class of sizes where those are known."""
        found = specialize_for(self.parameters, specs, constants or {}, index_bits)
        if not found.is_open:
            return found
        call = class_of_specs(found.parameters, sizes or {}, usual_machine(target), is_most=is_most)
        return replace(found, call=call)

    @short_traceback
    def compile(
        self,
        specs: Sequence[ArgumentSpec],
        constants: Mapping[str, Any] | None = None,
        *,
        target: str,
        index_bits: int = 32,
        sizes: Mapping[str, Any] | None = None,
        at_most: bool = False,
        ptx_version: int | None = None,
        dump_dir: str | None = None,
    ) -> CompiledKernel:
        """Compiles ahead of time, for specs (see `source_module`) and a target; needs no GPU.

        `sizes`: usual ones, a shape an array and a whole number by name, for which `tl.auto` tiles,
        and how many lanes run a program, are chosen where specs leave sizes open; the code takes
        any. `at_most`: no launch brings larger sizes, as for calls that are compiled for where they
        are made: tiles may hold whole rows, and longer rows are an ArgumentError.
        `ptx_version`: of the PTX, times ten; None for the lowest that the code needs, of the best
        code. CompileError where an instruction needs a later one.
        """
        found = find_target(target)
        wanted = self._for(specs, constants, index_bits, found, sizes, is_most=at_most)
        with importlib.import_module("tilec.compile.compiler_start").compiling_inside():
            compiled = partial(
                self._compile, target=found, ptx_version=ptx_version, dump_dir=dump_dir
            )
            better = partial(better_suited_usual, usual=sizes or {}, target=found, at_most=at_most)
            _, kernel = suited(wanted, compiled(wanted), compiled, better)
        add_promises(kernel)
        announce(kernel.report)
        return kernel

    def resolve(
        self, device: Any, bound: Mapping[str, Any], grid: Grid | None = None
    ) -> CompiledKernel:
        """The compiled kernel for described arguments on a device: known, on disk, or new.

        Its indices have 64 bits where those of the arrays, the kernel's limits or `grid`, if that
        is known, ask for it.
        """
        return self._resolved(device, bound, grid)[1]

    def _resolved(
        self, device: Any, bound: Mapping[str, Any], grid: Grid | None = None
    ) -> tuple[Specialization, CompiledKernel]:
        """The same, and the specialisation that it is of."""
        target = target_of(device)
        version = ptx_version_for(device, target)
        if not is_same(self.outside):
            self._forget()
        wanted = self._wanted(device, target, bound)
        known = partial(self._known, target=target, version=version)
        found = known(wanted)
        if not reaches(found, bound, grid):
            wanted = replace(wanted, index_bits=64)
            found = known(wanted)
        machine = machine_of(device, target)
        return suited(wanted, found, known, lambda one: better_suited(one, bound, machine, grid))

    def _wanted(self, device: Any, target: Target, bound: Mapping[str, Any]) -> Specialization:
        """The specialisation for described arguments on a device."""
        found = specialize(self.parameters, bound)
        if not found.is_open:
            return found
        call = class_of(found.parameters, bound, machine_of(device, target))
        return replace(found, call=call)

    def _known(self, wanted: Specialization, target: Target, version: int | None) -> CompiledKernel:
        key = (target.name, version, wanted.key)
        found = self._compiled.get(key)
        if found is None:
            self._watch(outside_values(self.fn, self.grid))
            loaded = self._load(wanted, target, version)
            announce(loaded.report)
            found = self._compiled[key] = self._code.one_of(loaded)
            self._reports[key] = loaded.report
        return found

    def _watch(self, outside: tuple[Outside, ...]) -> None:
        """Launches compare these from now on, before they use what was compiled."""
        for launcher in (self, *(found[1] for found in self._variants.values())):
            launcher.outside = outside

    def _forget(self) -> None:
        """A global or a function that the kernel reads is another one: all is compiled anew."""
        self._compiled, self._reports, self._code = {}, {}, SharedCode()
        self._programs = TilePrograms(self.fn, self.grid, self._demands)
        self._watch(())
        for launcher in (self, *(found[1] for found in self._variants.values())):
            launcher.forget()

    def _load(self, wanted: Specialization, target: Target, version: int | None) -> CompiledKernel:
        """Takes a compiled kernel from the disk cache, or compiles it and puts it there."""
        cache = default_cache()
        if cache is None:
            return self._shared(wanted, target, version)
        key = disk_key(self.fn, self.grid, self.demands(), wanted, (target.name, version))
        found = None if os.environ.get(DUMP) else cache.get(key)
        if found is not None:
            return found
        with cache.making(key):
            found = None if os.environ.get(DUMP) else cache.get(key)
            if found is None:
                found = self._shared(wanted, target, version)
                cache.put(key, found)
        return found

    def _shared(
        self, wanted: Specialization, target: Target, version: int | None
    ) -> CompiledKernel:
        """Compiles a kernel, unless another class of sizes has the same tiles."""
        with importlib.import_module("tilec.compile.compiler_start").compiling_inside():
            compiled = partial(self._compile, wanted, target, version)
            if wanted.call is None or os.environ.get(DUMP):
                return compiled()
            key = (target.name, version, replace(wanted, call=None).key)
            order = self._programs.choices(wanted, target).order(wanted.call)
            return self._code.find(key, order, compiled)

    def _compile(
        self,
        wanted: Specialization,
        target: Target,
        ptx_version: int | None = None,
        dump_dir: str | None = None,
    ) -> CompiledKernel:
        compiler = importlib.import_module("tilec.compile.compiler")
        dump_dir = dump_dir or next_dump(f"{self.name}.{target.name}")
        with self._programs.lent(wanted, target) as module:
            other = partial(self._programs.module, wanted, target, context=module.context)
            return compiler.compile_module(
                module, target, other=other, ptx_version=ptx_version, dump_dir=dump_dir
            )


@overload
def kernel(
    fn: Callable[P, Any], *, grid: GridRule = None, device: Any = None, **demands: Unpack[Demands]
) -> Kernel[P]: ...
@overload
def kernel(
    *, grid: GridRule = None, device: Any = None, **demands: Unpack[Demands]
) -> Callable[[Callable[P, Any]], Kernel[P]]: ...
@short_traceback
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

    @short_traceback
    def decorate(found: Callable[..., Any]) -> Kernel[...]:
        return Kernel(found, grid, device, **demands)

    return decorate if fn is None else decorate(fn)


kernel.__doc__ = f"{inspect.getdoc(kernel)}\n\nDemands, which are met or an error:\n{explained()}"

__all__ = ["Kernel", "function", "kernel"]
