"""Launches a planned product: in one kernel, split along k in two, or tuned; of aligned copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property
from math import prod
from typing import Any

from tilec.call.device_target import target_of
from tilec.call.jit import Kernel
from tilec.costs.dot_work import Memory
from tilec.costs.machine import machine_of
from tilec.costs.work import ALONE
from tilec.hardware.powers import power_above
from tilec.hardware.sizes import MOST_RANK
from tilec.ops import matmul_kernel, vector_kernel
from tilec.ops.aligned_operands import aligned_copy, copied_order, operands_to_copy
from tilec.ops.batch_dimensions import with_dimensions
from tilec.ops.launch_steps import FACTOR, OwnArrays, Step
from tilec.ops.measured_tiles import measured_choice
from tilec.ops.multiply_plan import Plan, View
from tilec.ops.product_facts import product_of
from tilec.ops.tail_launch import SUMS, step_with_tail
from tilec.ops.tile_choice import (
    MOST_CTAS,
    MOST_SPLITS,
    TURN_WARPS,
    TileChoice,
    choose_tiles,
    wide_unit,
)
from tilec.ops.tile_names import words_of
from tilec.ops.tuned_tiles import tile_space
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import common_stream
from tilec.terms.dtypes import BY_MLIR
from tilec.tuning.tuned_kernel import TunedKernel, autotune

ORDER = ("a", "b", "out", "bias", "row_scale", "column_scale", "scale", FACTOR, "residual")
"""The kernel's arguments."""
TRANSPOSED = {"a": "b", "b": "a", "row_scale": "column_scale", "column_scale": "row_scale"}
"""The caller's argument that the kernel gets in place of another, for the transposed product."""
TRANSPOSED_PARTS = {"bias": "row_bias", "row_scale": "column_scale", "column_scale": "row_scale"}
MATRICES = ("a", "b", "out", "residual")
OF_DOTS = ("PRECISION", "KEPT")
"""Constants that say how tensor cores multiply and add up."""
COMBINED, COMBINED_COLUMNS = 1024, 256
"""Elements of a tile whose partial sums are added, and its columns at most: 16 bytes a thread of
256, and rows of whole lines."""


@dataclass
class Launch:
    """One product on one device. `stream`: the one the caller named, if any.

    `sources`: the copies that some operands are, `shared`: arrays that were made before, both where
    this is the product of copies. `given`: the tiles to take instead of the model's.
    """

    plan: Plan
    values: Mapping[str, Any]
    views: Mapping[str, ArrayView]
    factor: float
    device: Any
    stream: int | None
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    shared: OwnArrays | None = None
    given: TileChoice | None = None

    def run(self, tune: bool) -> None:
        """Launches the product with `tl.auto`'s tiles, or the model's where those are too few; or
        with those that tuning found, which it does at the first call."""
        if tune:
            kernel = tuned_product(self.plan.dtype.bits // 8, self.device, self.plan.settled)
            arguments = self.ordered(ORDER, transposed=False)
            kernel(*arguments, **self.plan.constants, stream=self._stream())
            return
        for step in self.steps:
            step.launch(self._stream())

    @cached_property
    def steps(self) -> list[Step]:
        """The launches, with the arrays that they have for themselves."""
        if self._copied:
            copies, product = self._of_copies
            return [*copies, *product.steps]
        if self._splits > 1:
            return self._multiply_parts()
        if self.choice is not None and self.choice.tail > 1:
            return [self._multiply_with_tail(self.choice)]
        return [Step(self.kernel, self._named(ORDER), self.constants)]

    @cached_property
    def own(self) -> OwnArrays:
        """Arrays of the product's own."""
        return self.shared or OwnArrays(self.values["a"], self.views["a"])

    @property
    def order(self) -> tuple[str, ...]:
        """The caller's arguments, in the kernel's order."""
        return tuple(TRANSPOSED.get(name, name) for name in ORDER) if self.is_transposed else ORDER

    @property
    def is_transposed(self) -> bool:
        """Whether the kernel computes the transposed product."""
        return self.choice is not None and self.choice.is_transposed

    def view_of(self, name: str) -> View | None:
        """Says how an argument is looked at, None where it is taken as it is."""
        wanted = self._wanted(name, self.is_transposed)
        return None if self._fits(name, wanted) else wanted

    @property
    def kernel(self) -> Kernel[...]:
        """The kernel where this launches."""
        choice, settled = self.choice, self.plan.settled
        if choice is None:
            return kernel_on("product", self.device, settled=settled)
        ways = choice.is_single, choice.cluster, choice.in_turn
        if choice.is_transposed:
            settled = tuple(TRANSPOSED[name] for name in settled)
        if choice.is_vector:
            return kernel_on("vector_product", self.device, settled=settled)
        return kernel_on("product", self.device, *ways, settled, choice.group, choice.parts)

    @property
    def constants(self) -> dict[str, Any]:
        """The kernel's constants."""
        choice, plan = self.choice, self._plan_constants
        if choice is not None and choice.is_vector:
            plan = {name: value for name, value in plan.items() if name not in OF_DOTS}
        return {**({} if choice is None else choice.constants), **plan}

    @property
    def _plan_constants(self) -> dict[str, Any]:
        constants = dict(self.plan.constants)
        if self.is_transposed:
            constants["PARTS"] = tuple(TRANSPOSED_PARTS.get(x, x) for x in constants["PARTS"])
        return constants

    @cached_property
    def _copied(self) -> dict[str, int]:
        # Copies, like partial sums, would be freed on another stream than a caller's own.
        if self.stream is not None:
            return {}
        machine = machine_of(self.device, target_of(self.device))
        return operands_to_copy(self.plan, self.views, wide_unit(machine.target), machine.rates)

    @cached_property
    def _of_copies(self) -> tuple[list[Step], Launch]:
        """The launches that copy operands, and the same product of those."""
        values, views, planned = dict(self.values), dict(self.views), dict(self.plan.views)
        steps: list[Step] = []
        sources: dict[str, str] = {}
        for name, along in self._copied.items():
            found, view, source = views[name], planned[name], f"copy of {name}"
            rows, pitch = copied_order(found, view, along)
            memory = self.own.new(source, (rows[0], pitch), BY_MLIR[found.dtype])
            copy = aligned_copy(name, memory, found, view, along)
            pair = [(name, copy.source), (source, copy.target)]
            steps.append(Step(kernel_on("copy_rows", self.device), pair, copy.constants))
            values[name], views[name], planned[name] = copy.made, copy.made, copy.view
            sources[name] = source
        # A copy is made by the very launch before.
        settled = tuple(name for name in self.plan.settled if name not in self._copied)
        plan = replace(self.plan, views=planned, settled=settled)
        changed = {"values": values, "views": views, "sources": sources, "shared": self.own}
        return steps, replace(self, plan=plan, **changed)

    @property
    def _splits(self) -> int:
        return 1 if self.choice is None else self.choice.splits

    @property
    def choice(self) -> TileChoice | None:
        """The tiles, None where `tl.auto` serves."""
        return self._chosen[0]

    @property
    def reason(self) -> str:
        """Says which tiles these are, and why."""
        if self._copied:
            names = " and ".join(self._copied)
            return f"copies of {names} in aligned rows, then {self._of_copies[1].reason}"
        return self._chosen[1]

    @cached_property
    def _chosen(self) -> tuple[TileChoice | None, str]:
        if self.given is not None:
            return self.given, "given"
        plan = self.plan
        machine = machine_of(self.device, target_of(self.device))
        # The partial sums of a caller's own stream would be freed on another.
        splits = 1 if self.stream is not None else MOST_SPLITS
        sizes = plan.m, plan.n, plan.k, prod(plan.lead)
        a, b, c = map(self._memory, ("a", "b", "out"))
        precision = "f32" if plan.constants["KEPT"] else plan.constants["PRECISION"]
        ctas = MOST_CTAS if self._has_tensor_maps else 1
        width = plan.out_dtype.bits // 8
        is_plain = not plan.constants["PARTS"] and plan.constants["ACTIVATION"] is None
        found = choose_tiles(
            *(*sizes, plan.dtype, precision, machine, splits, a, b, ctas, is_plain, c, width)
        )
        if found is None:
            return None, "tl.auto: see the kernel's own report"
        said = f"{words_of(found)}: the model's choice, {found.us:.1f} us by prediction"
        if not is_plain or (splits, ctas) != (MOST_SPLITS, MOST_CTAS):
            return found, said
        product = product_of(*sizes, plan.dtype, precision, a, b, c, width)
        return measured_choice(found, product, machine) or (found, said)

    @property
    def _has_tensor_maps(self) -> bool:
        """Whether nothing but alignment can keep the copy engine from the operands, and the sum is
        one that tensor memory holds for every type."""
        views = [self.plan.views[name] for name in ("a", "b")]
        plain = all(len(v.shape) <= MOST_RANK and min(v.strides) >= 0 for v in views)
        return plain and self.plan.constants["ACC"] is None

    def _memory(self, name: str) -> Memory:
        view = self.plan.views[name]
        found = self.views[name]
        return Memory.of(found.pointer, view.shape, view.strides, found.element_bytes)

    def _multiply_parts(self) -> list[Step]:
        """Sums over parts of k one by one, then adds them up and does the rest."""
        plan, choice = self.plan, self.choice
        assert choice is not None
        dtype = plan.constants["ACC"] or matmul_kernel.accumulator_of(plan.dtype)
        m, n = (plan.n, plan.m) if choice.is_transposed else (plan.m, plan.n)
        sums = SUMS, self.own.new(SUMS, (choice.splits, *plan.lead, m, n), dtype)
        kept = {name: plan.constants[name] for name in ("ACC", "PRECISION", "KEPT")}
        rest = {name: self._plan_constants[name] for name in ("PARTS", "ACTIVATION")}
        splits = {"SPLITS": choice.splits}
        a, b, *others = self._named(ORDER)
        no_epilogue = [("", value) for value in (0, 0, 0, 0, 1.0, 0)]
        combine = kernel_on("combine", self.device)
        return [
            Step(self.kernel, [a, b, sums, *no_epilogue], {**choice.constants, **kept, **splits}),
            Step(combine, [sums, *others], {**rest, **combine_tile(n), **splits}),
        ]

    def _multiply_with_tail(self, choice: TileChoice) -> Step:
        """Waits for partial sums inside the kernel."""
        return step_with_tail(
            self._named(ORDER),
            self.constants,
            choice,
            self.plan.constants["ACC"] or matmul_kernel.accumulator_of(self.plan.dtype),
            self.own,
            self.device,
            common_stream(list(self.values.values())),
            machine_of(self.device, target_of(self.device)).multiprocessors,
        )

    def _named(self, names: Sequence[str]) -> list[tuple[str, Any]]:
        """Gives `ordered`, each argument with its source."""
        return [
            (self._source(name), value)
            for name, value in zip(names, self.ordered(names), strict=True)
        ]

    def _source(self, name: str) -> str:
        name = TRANSPOSED.get(name, name) if self.is_transposed else name
        if name != FACTOR and name not in self.views:
            return ""
        return self.sources.get(name, name)

    def ordered(self, names: Sequence[str], *, transposed: bool | None = None) -> list[Any]:
        """The kernel's arguments `names`, 0 for what is not there. `transposed`: None for what the
        choice says."""
        is_transposed = self.is_transposed if transposed is None else transposed
        return [self._argument(name, is_transposed) for name in names]

    def _argument(self, name: str, is_transposed: bool) -> Any:
        """A kernel's argument as it wants it: as it is where it fits, because launches of
        frameworks' own arrays are the fastest."""
        name = TRANSPOSED.get(name, name) if is_transposed else name
        if name == FACTOR:
            return self.factor
        if name not in self.views:
            return 0
        view = self._wanted(name, is_transposed)
        if self._fits(name, view):
            return self.values[name]
        return with_dimensions(self.views[name], view.shape, view.strides)

    def _fits(self, name: str, view: View) -> bool:
        found = self.views[name]
        return (found.shape, found.strides) == (view.shape, view.strides)

    def _wanted(self, name: str, is_transposed: bool) -> View:
        if name == "scale":
            return View((1,), (1,))
        view = self.plan.views[name]
        if not is_transposed or name not in MATRICES:
            return view
        return View(*((*x[:-2], x[-1], x[-2]) for x in (view.shape, view.strides)))

    def _stream(self) -> int | None:
        """The stream to launch on; None where the launcher finds it by itself."""
        fits = all(self.view_of(name) is None for name in self.views)
        if self.stream is not None or (fits and not self.own.values):
            return self.stream
        return common_stream(list(self.values.values()))


def combine_tile(n: int) -> dict[str, int]:
    """Constants of the kernel that adds partial sums of `n` columns up."""
    columns = min(COMBINED_COLUMNS, max(8, power_above(n)))
    return {"BM": COMBINED // columns, "BN": columns}


def check_overlap(views: Mapping[str, ArrayView], written: str = "out") -> None:
    """Refuses an array `written` that is one of the others, which are still read meanwhile.

    A residual may be `out` itself: each of its elements is read just before it is written.
    """
    out = views[written]
    low, high = (out.pointer + byte for byte in out.extent())
    for name, view in views.items():
        start, end = (view.pointer + byte for byte in view.extent())
        is_out = view.pointer == out.pointer and is_like(view, out)
        if name == written or (name == "residual" and is_out):
            continue
        if start < high and low < end:
            raise ArgumentError(f"argument {written!r}: it overlaps {name!r} in memory")


def is_like(view: ArrayView | None, other: ArrayView) -> bool:
    """Whether two arrays, from the same address, are the same elements."""
    return view is not None and (view.shape, view.strides, view.dtype) == (
        *(other.shape, other.strides, other.dtype),
    )


@cache
def kernel_on(
    name: str,
    device: Any,
    is_single: bool = False,
    cluster: tuple[int, int] = ALONE,
    in_turn: bool = False,
    settled: tuple[str, ...] = (),
    group: int | None = None,
    parts: int = 1,
) -> Kernel[...]:
    """A kernel of `matmul_kernel`, to run on a device. `is_single`: no CTA stays for a second
    program. `cluster`: of programs along rows and columns. `in_turn`: sets of warps take them.
    `settled`: its arrays that no launch still under way writes. `group`: of rows of programs.
    `parts`: CTAs of a cluster that each sum a part of k."""
    demands: dict[str, Any] = {"settled": settled} if settled else {}
    if is_single:
        demands["persistent"] = False
    if cluster != ALONE:
        demands["cluster"] = cluster
    if parts > 1:
        demands["sum_parts"] = parts
    if group is not None:
        demands["order"] = ("grouped", group)
    if in_turn:
        demands |= {"consumers": "pingpong", "num_warps": TURN_WARPS, "persistent": True}
    kernels = vector_kernel if name == "vector_product" else matmul_kernel
    return getattr(kernels, name).on(device).demanding(**demands)


@cache
def tuned_product(
    element_bytes: int, device: Any, settled: tuple[str, ...] = ()
) -> TunedKernel[...]:
    """The product that tunes itself for inputs of so many bytes an element."""
    kernel = kernel_on("product", device, settled=settled)
    return autotune(search=tile_space(element_bytes))(kernel)
