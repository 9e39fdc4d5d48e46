"""Triton's kernels, launched: `kernel(text)` makes an object that is called as Triton's are.

    add = tilec.triton.kernel(Path("add.ttir").read_text())
    add[n // 1024 + 1](x, y, out, n)           # torch tensors on a GPU, NumPy on the emulator
    add.on("emulator:check")[3](x, y, out, n)  # with races looked for

At a launch the array rules are evaluated; what comes of them, and which numbers are negative, and
which arrays share memory, decides which specialisation runs. It is imported and compiled when it is
needed first, and kept in tilec's cache on disk.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilec.call.crowds import better_suited, suited
from tilec.call.dependencies import compiler_digest
from tilec.call.device_target import ptx_version_for, target_of
from tilec.compile.collection import collecting_seldom
from tilec.compile.compiler import compile_module
from tilec.compile.dump_folder import DUMP, next_dump
from tilec.costs.machine import machine_of
from tilec.dialects.context import lent_context
from tilec.executable.grid import check_grid
from tilec.executable.kernel import CompiledKernel, Grid, Parameter
from tilec.messages.report import Report, show_report
from tilec.records import dataclass
from tilec.runtime.arrays import CUDA, ArrayView
from tilec.runtime.cache import default_cache
from tilec.runtime.cuda.plan import Plan as LaunchPlan
from tilec.runtime.device import device as find_device
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import check, check_programs, index_bits, observe_parameter, reaches
from tilec.runtime.launcher import common_stream
from tilec.runtime.scalars import check_scalar
from tilec.runtime.streams import stream_number
from tilec.terms.dtypes import ELEMENT_BYTES
from tilec.triton.descriptor_arguments import (
    check_strides,
    described,
    element_of_descriptor,
    with_numbers,
)
from tilec.triton.grid_axes import asked_axes, axes_alone
from tilec.triton.importer import build_module
from tilec.triton.joined_pointers import Group
from tilec.triton.known_launches import Known, KnownLaunches, lying_as, lying_of, storage_of
from tilec.triton.launch_keys import MULTIPLE, Form
from tilec.triton.memory_of import pointed_at, with_one_device
from tilec.triton.plan import Plan, divisors, plan_kernel, present
from tilec.triton.program import Value, copied
from tilec.triton.program_numbers import never_negative
from tilec.triton.reader import read_kernel
from tilec.triton.shared_memory import Sharing, shared


@dataclass(frozen=True)
class Wanted:
    """What one specialisation is compiled for. `trusts`, `settles`: what the launch has looked at
    (`plan_kernel`); `nan`: descriptors that are padded with NaN; `programs_per_sm`: of
    the launches, 0 for any number; `alone`: axes of their grids with one program."""

    parameters: tuple[Parameter, ...]
    nonnegative: frozenset[str]
    trusts: bool
    settles: frozenset[int]
    sharing: Sharing
    index_bits: int
    nan: frozenset[str] = frozenset()
    programs_per_sm: int = 0
    alone: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Bound:
    """A launch's arguments as the compiled kernel takes them: an array or a number a parameter.
    `roots`: of each array which of the pointers it comes from. `spans`, `pointers`: of each array
    of the plan, several of which may be one, the bytes that it may touch, and its pointer."""

    wanted: Wanted
    values: tuple[Any, ...]
    roots: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    pointers: tuple[int, ...]


class TritonKernel:
    """A kernel of Triton's. Index it with a grid and call it: `kernel[grid](*arguments)`.

    `text`: its TTIR; `name`: of the text, in messages; `kernel`: which function, if there are
    several; `device`: where to run, None for where the arrays are. Arguments are the function's, in
    its order: arrays for pointers, of which the first element's address counts, and numbers; a
    descriptor brings the numbers that follow it. `latest`: what a launch that was like none before
    it ran last.
    """

    def __init__(
        self, text: str, name: str = "<ttir>", kernel: str | None = None, device: Any = None
    ) -> None:
        self.text, self.source, self.device = text, name, device
        if isinstance(device, str):
            self.device = find_device(device)
        self.function = read_kernel(text, name, kernel)
        self.name = self.function.name
        self._descriptors = described(self.function)
        self._axes = asked_axes(self.function)
        self._plans: dict[Any, Plan] = {}
        self._compiled: dict[Any, CompiledKernel] = {}
        self.latest: CompiledKernel | None = None
        self._known = KnownLaunches()

    def __repr__(self) -> str:
        return f"<Triton's kernel {self.name}>"

    def __getitem__(self, grid: Any) -> functools.partial[None]:
        return functools.partial(self, grid=grid)

    def on(self, device: Any) -> TritonKernel:
        """The same kernel, to run on `device` ("emulator:check", "cuda:1", or a device)."""
        return TritonKernel(self.text, self.source, self.name, device)

    def __call__(self, *arguments: Any, grid: Any, stream: Any = None) -> None:
        """Launches. ArgumentError for wrong arguments, CompileError for what is not imported."""
        given, nan = with_numbers(self.function, self._descriptors, arguments)
        number = common_stream(given) if stream is None else stream_number(stream)
        self._start(given, nan, check_grid(grid), number)

    def launch(self, arguments: Sequence[Any], grid: Grid, stream: int) -> Known | None:
        """The same, for a checked grid; gives what is known of the launch now: `Known` by the
        arguments' places, where none of them is a descriptor."""
        given, nan = with_numbers(self.function, self._descriptors, arguments)
        known = self._start(given, nan, grid, stream)
        return known if given is arguments else None

    def _start(
        self, arguments: Sequence[Any], nan: frozenset[str], grid: Grid, stream: int
    ) -> Known | None:
        """Launches. `arguments`: descriptors among them as an array and its numbers; `nan`: the
        names of those that are padded with NaN."""
        key, starts = (None, []) if nan else self._known.key(arguments, grid)
        found = self._known.find(key, starts, arguments)
        if found is not None:
            found[0].start(starts, arguments, stream)
            return found[0]
        device, bound = self._bound(arguments, grid, nan)
        kernel = self.latest = self._launched(device, bound, grid)
        loaded = device.load(kernel)
        if device.kind != CUDA:
            device.launch(loaded, bound.values, grid)
            return None
        named = zip(kernel.parameters, bound.values, strict=True)
        check(kernel, {parameter.name: value for parameter, value in named})
        check_programs(kernel, grid)
        plan = device.plan(loaded, bound.values, grid)
        device.start(plan, bound.values, grid, stream)
        if key is None or not all(grid):
            return None
        known = self._now_known(plan, bound, arguments, starts)
        self._known.remember(Form(tuple(map(type, arguments))), arguments, grid, known)
        return known

    def _now_known(
        self, plan: LaunchPlan, bound: Bound, arguments: Sequence[Any], starts: Sequence[int]
    ) -> Known:
        """What a launch was, by the places of its arguments."""
        places = {a.name: place for place, a in enumerate(self.function.arguments)}
        wanted = bound.wanted
        made = self._planned(wanted)
        arrays = [value for value in bound.values if isinstance(value, ArrayView)]
        numbers = zip(made.scalars, bound.values[len(arrays) :], strict=True)
        open_roots = dict.fromkeys(rule.root for rule in made.arrays if rule.unbounded)
        pointers = [a.name for a in self.function.arguments if _is_pointer(a)]
        groups = [list(map(pointers.index, names)) for names in wanted.sharing.joined]
        lying = lying_of(bound.spans, wanted.sharing.merged, made.written, bound.pointers, starts)
        free = self._free_numbers()
        return Known(
            plan,
            tuple((r, v.pointer - starts[r]) for r, v in zip(bound.roots, arrays, strict=True)),
            tuple(
                (n, places[s.name] if isinstance(n, float) or s.name in free else None)
                for s, n in numbers
            ),
            frozenset(places[name] for name in free),
            (*lying, *lying_as(groups, starts)),
            tuple((places[root], *storage_of(arguments[places[root]])) for root in open_roots),
        )

    def _free_numbers(self) -> set[str]:
        """The whole numbers that decide nothing about a launch but what their class says."""
        plans = list(self._plans.values())
        deciding = frozenset[str]().union(*(plan.deciding for plan in plans))
        by = divisors(plans[0])
        return {
            a.name
            for a in self.function.arguments
            if a.type.element in ("i32", "i64") and a.name not in deciding
            and by.get(a.name, 1) in (1, MULTIPLE)
        }  # fmt: skip

    def compiled(self, *arguments: Any, grid: Any) -> CompiledKernel:
        """The compiled kernel this launch would run; compiles it if it is new."""
        sizes = check_grid(grid)
        given, nan = with_numbers(self.function, self._descriptors, arguments)
        device, bound = self._bound(given, sizes, nan)
        return self._launched(device, bound, sizes)

    def report(self, *arguments: Any, grid: Any) -> str:
        """What became of the pointers for this launch, what the compiler decided, and why."""
        sizes = check_grid(grid)
        given, nan = with_numbers(self.function, self._descriptors, arguments)
        device, bound = self._bound(given, sizes, nan)
        kernel = self._launched(device, bound, sizes)
        wanted = bound.wanted
        plan = self._planned(wanted)
        return Report(f"{plan_text(plan)}\n{show_report(kernel.report)}")

    def plan(
        self,
        nonnegative: frozenset[str] | None = None,
        flat: frozenset[str] = frozenset(),
        *,
        groups: tuple[Group, ...] = (),
        trusts: bool = True,
        settles: frozenset[int] = frozenset(),
        nan: frozenset[str] = frozenset(),
        alone: frozenset[str] = frozenset(),
    ) -> Plan:
        """What becomes of the pointers (`plan_kernel`)."""
        if nonnegative is None:  # as most launches have it
            whole = (a for a in self.function.arguments if a.type.is_integer)
            nonnegative = frozenset(argument.name for argument in whole)
        key = (nonnegative, flat, groups, trusts, settles, nan, alone)
        if key not in self._plans:
            self._plans[key] = plan_kernel(
                copied(self.function),
                nonnegative,
                flat,
                groups=groups,
                trusts=trusts,
                settles=settles,
                nan=nan,
                alone=alone,
            )
        return self._plans[key]

    def _planned(self, wanted: Wanted) -> Plan:
        sharing = wanted.sharing
        return self.plan(
            wanted.nonnegative,
            sharing.flat,
            groups=sharing.joined,
            trusts=wanted.trusts,
            settles=wanted.settles,
            nan=wanted.nan,
            alone=wanted.alone,
        )

    def _bound(
        self, arguments: Sequence[Any], grid: Grid, nan: frozenset[str]
    ) -> tuple[Any, Bound]:
        """The device and what it is given."""
        named = self.function.arguments
        if len(arguments) != len(named):
            names = ", ".join(argument.name for argument in named)
            raise ArgumentError(
                f"{self.name} takes {len(named)} arguments ({names}), found {len(arguments)}"
            )
        pointers: dict[str, ArrayView] = {}
        numbers: dict[str, Any] = {}
        for argument, value in zip(named, arguments, strict=True):
            if not _is_pointer(argument):
                numbers[argument.name] = check_scalar(argument.name, argument.type.element, value)
            else:
                pointers[argument.name] = _pointer(argument, value)
        pointers = with_one_device(pointers)
        device = device_of(list(pointers.items()), self.device)
        check_strides(self.function, self._descriptors, arguments)
        self._check_divisors(pointers, numbers)
        bound = self._arrays(pointers, numbers, grid)
        return device, replace(bound, wanted=replace(bound.wanted, nan=nan)) if nan else bound

    def _check_divisors(
        self, pointers: Mapping[str, ArrayView], numbers: Mapping[str, Any]
    ) -> None:
        """What Triton specialised the kernel for has to be so at every launch."""
        for argument, by in divisors(self.plan()).items():
            value = pointers[argument].pointer if argument in pointers else numbers[argument]
            if value % by:
                raise ArgumentError(
                    f"argument {argument!r}: expected a multiple of {by} (tt.divisibility), "
                    f"found {value}"
                )
        for argument in present(self.plan()):
            if not pointers[argument].pointer:
                raise ArgumentError(
                    f"argument {argument!r}: an array without memory, where the kernel asks "
                    "whether there is one; pass None"
                )

    def _arrays(
        self, pointers: Mapping[str, ArrayView], numbers: Mapping[str, Any], grid: Grid
    ) -> Bound:
        signs = {n for n, value in numbers.items() if isinstance(value, int) and value >= 0}
        nonnegative = frozenset(signs)
        alone = axes_alone(self._axes, grid)
        settles = self._settles(nonnegative, numbers, grid, alone)
        plan = self.plan(nonnegative, settles=settles, alone=alone)
        trusts = not plan.asked or never_negative(plan.asked, numbers, grid)
        found = shared(
            lambda flat, groups: self.plan(
                nonnegative, flat, groups=groups, trusts=trusts, settles=settles, alone=alone
            ),
            pointers,
            numbers,
        )
        plan, views, merged = found.plan, found.views, found.sharing.merged
        first = [merged.index(number) for number in sorted(set(merged))]
        arrays = [(plan.names[n], views[n]) for n in first]
        parameters = [observe_parameter(name, view) for name, view in arrays]
        scalars = [Parameter(s.name, "scalar", s.type.element) for s in plan.scalars]
        bits = index_bits(view for _, view in arrays)
        wanted = Wanted(
            (*parameters, *scalars), nonnegative, trusts, settles, found.sharing, bits, alone=alone
        )
        values = (*(view for _, view in arrays), *(found.numbers[s.name] for s in plan.scalars))
        names = list(pointers)
        of = tuple(names.index(rule.root) for rule in plan.arrays)
        roots = tuple(of[number] for number in first)
        return Bound(wanted, values, roots, tuple(found.spans), of)

    def _settles(
        self,
        nonnegative: frozenset[str],
        numbers: Mapping[str, Any],
        grid: Grid,
        alone: frozenset[str],
    ) -> frozenset[int]:
        """Without which of its minima and wraps the kernel is imported: those that change nothing
        in this launch, where more of its accesses are rectangles then."""
        plan = self.plan(nonnegative, alone=alone)
        if not plan.open or not plan.kept:
            return frozenset()
        held = frozenset(n for n, one in enumerate(plan.open) if one.holds(numbers, grid))
        if not held:
            return held
        settled = self.plan(nonnegative, settles=held, alone=alone)
        return held if len(settled.kept) < len(plan.kept) else frozenset()

    def _launched(self, device: Any, bound: Bound, grid: Grid) -> CompiledKernel:
        """The compiled kernel for bound arguments, with 64-bit indices where those of 32 do not
        reach, and for few programs where that is faster."""
        wanted, kernel = bound.wanted, self._resolve(device, bound.wanted)
        named = dict(zip((p.name for p in kernel.parameters), bound.values, strict=True))
        if not reaches(kernel, named, grid):
            wanted = replace(wanted, index_bits=64)
            kernel = self._resolve(device, wanted)
        machine = machine_of(device, target_of(device))
        _, kernel = suited(
            wanted,
            kernel,
            lambda other: self._resolve(device, other),
            lambda kernel: better_suited(kernel, named, machine, grid),
        )
        return kernel

    def _resolve(self, device: Any, wanted: Wanted) -> CompiledKernel:
        target = target_of(device)
        version = ptx_version_for(device, target)
        key = (target.name, version, wanted)
        if key not in self._compiled:
            self._compiled[key] = self._load(wanted, target, version)
        return self._compiled[key]

    def _load(self, wanted: Wanted, target: Any, version: int | None) -> CompiledKernel:
        """From the disk cache, or compiled and put there."""
        cache = default_cache()
        if cache is None or os.environ.get(DUMP):
            return self._compile(wanted, target, version)
        key = {
            "compiler": compiler_digest(),
            "ttir": self.text,
            "source": self.source,
            "kernel": self.name,
            "parameters": list(map(repr, wanted.parameters)),
            "nonnegative": sorted(wanted.nonnegative),
            "trusts": wanted.trusts,
            "settles": sorted(wanted.settles),
            "sharing": [
                sorted(wanted.sharing.flat),
                list(wanted.sharing.merged),
                list(map(list, wanted.sharing.joined)),
            ],
            "index_bits": wanted.index_bits,
            "nan": sorted(wanted.nan),
            "programs_per_sm": wanted.programs_per_sm,
            "alone": sorted(wanted.alone),
            "target": target.name,
            "ptx_version": version,
        }
        found = cache.get(key)
        if found is None:
            found = self._compile(wanted, target, version)
            cache.put(key, found)
        return found

    def _compile(self, wanted: Wanted, target: Any, version: int | None) -> CompiledKernel:
        plan = self._planned(wanted)
        dump = next_dump(f"{self.name}.{target.name}")
        with collecting_seldom, lent_context() as context:
            module = build_module(
                plan,
                wanted.parameters,
                index_bits=wanted.index_bits,
                merged=wanted.sharing.merged,
                programs_per_sm=wanted.programs_per_sm,
                context=context,
            )
            return compile_module(module, target, ptx_version=version, dump_dir=dump)


def _is_pointer(argument: Value) -> bool:
    """Whether an argument is a pointer, or a descriptor, of whose array the launch takes one."""
    return argument.type.pointee is not None or argument.type.block is not None


def _pointer(argument: Value, value: Any) -> ArrayView:
    # As Triton, which does not ask whether gradients are recorded.
    plain = value.detach() if getattr(value, "requires_grad", False) else value
    view = pointed_at(plain, argument.name)
    wanted = argument.type.pointee or element_of_descriptor(argument.type)
    if view.element_bytes != ELEMENT_BYTES.get(wanted):
        raise ArgumentError(f"argument {argument.name!r}: expected {wanted}, found {view.dtype}")
    return view


def plan_text(plan: Plan) -> str:
    """What became of the pointers: arrays, and accesses that stay gathers, with the reason; and of
    loops that are two in one."""
    lines = [f"{name}: {rule}" for name, rule in zip(plan.names, plan.arrays, strict=True)]
    lines += [f"{place}: loop: {note}" for place, note in plan.function.notes]
    lines += [f"{place}: gather or scatter ({why})" for place, why in plan.kept]
    return "\n".join(lines)
