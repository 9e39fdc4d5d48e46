"""Launches a planned product: in one kernel, split along k in two, or tuned; of aligned copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import prod
from typing import Any

from tilec.jit import Kernel, target_of
from tilec.ops import matmul_kernel
from tilec.ops.aligned_operands import aligned_copy, unaligned_operands
from tilec.ops.batch_dimensions import with_dimensions
from tilec.ops.multiply_plan import Plan, View
from tilec.ops.new_arrays import new_array
from tilec.ops.tile_choice import MOST_SPLITS, TileChoice, choose_tiles, tile_space
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import common_stream
from tilec.tuning.machine import machine_of
from tilec.tuning.tuned_kernel import TunedKernel, autotune

ORDER = ("a", "b", "out", "bias", "row_scale", "column_scale", "scale", "factor", "residual")
"""The kernel's arguments."""


@dataclass
class Launch:
    """One product on one device. `stream`: the one the caller named, if any."""

    plan: Plan
    values: Mapping[str, Any]
    views: Mapping[str, ArrayView]
    factor: float
    device: Any
    stream: int | None

    def run(self, tune: bool) -> None:
        """With `tl.auto`'s tiles, or the model's where those are too few; or with those that tuning
        found, which it does at the first call."""
        if self._unaligned and not tune:
            self._with_copies().run(tune)
        elif tune:
            kernel = tuned_product(self.plan.dtype.bits // 8, self.device)
            kernel(*self.ordered(ORDER), **self.plan.constants, stream=self._stream())
        elif self._splits > 1:
            self._run_split()
        else:
            self.kernel(*self.ordered(ORDER), **self.constants, stream=self._stream())

    @property
    def is_single(self) -> bool:
        """Whether it is one launch."""
        return self._splits == 1 and not self._unaligned

    def view_of(self, name: str) -> View | None:
        """How an argument is looked at, None where it is taken as it is."""
        return None if self._fits(name) else self._wanted(name)

    @property
    def kernel(self) -> Kernel:
        """The kernel where this launches."""
        return kernel_on("product", self.device)

    @property
    def constants(self) -> dict[str, Any]:
        """The kernel's constants."""
        choice = self._choice
        return {**({} if choice is None else choice.constants), **self.plan.constants}

    @cached_property
    def _unaligned(self) -> tuple[str, ...]:
        # Copies, like partial sums, would be freed on another stream than a caller's own.
        return () if self.stream is not None else unaligned_operands(self.plan, self.views)

    def _with_copies(self) -> Launch:
        """The same product of aligned copies."""
        values, views, planned = dict(self.values), dict(self.views), dict(self.plan.views)
        kernel = kernel_on("copy_rows", self.device)
        for name in self._unaligned:
            made, view = aligned_copy(name, self.values, views[name], planned[name], kernel)
            values[name], views[name], planned[name] = made, made, view
        return replace(self, plan=replace(self.plan, views=planned), values=values, views=views)

    @property
    def _splits(self) -> int:
        return 1 if self._choice is None else self._choice.splits

    @cached_property
    def _choice(self) -> TileChoice | None:
        plan = self.plan
        machine = machine_of(self.device, target_of(self.device))
        # The partial sums of a caller's own stream would be freed on another.
        splits = 1 if self.stream is not None else MOST_SPLITS
        sizes = plan.m, plan.n, plan.k, prod(plan.lead)
        return choose_tiles(*sizes, plan.dtype, plan.constants["PRECISION"], machine, splits)

    def _run_split(self) -> None:
        """Sums parts of k one by one, then adds them up and does the rest."""
        plan, choice = self.plan, self._choice
        assert choice is not None
        dtype = plan.constants["ACC"] or matmul_kernel.accumulator_of(plan.dtype)
        shape = (choice.splits, *plan.lead, plan.m, plan.n)
        sums = new_array(self.values["a"], self.views["a"], shape, dtype)
        kept = {name: plan.constants[name] for name in ("ACC", "PRECISION")}
        a, b = self._argument("a"), self._argument("b")
        kernel_on("product", self.device)(
            *(a, b, sums, 0, 0, 0, 0, 1.0, 0),
            **choice.constants,
            **kept,
            SPLITS=choice.splits,
            stream=self._stream(),
        )
        rest = {name: plan.constants[name] for name in ("PARTS", "ACTIVATION")}
        kernel_on("combine", self.device)(
            *(sums, *self.ordered(ORDER[2:])),
            **rest,
            SPLITS=choice.splits,
            stream=self._stream(),
        )

    def ordered(self, names: Sequence[str]) -> list[Any]:
        """The kernel's arguments in order, 0 for what is not there."""
        return [
            self.factor if name == "factor" else self._argument(name) if name in self.views else 0
            for name in names
        ]

    def _argument(self, name: str) -> Any:
        """An argument as the kernel wants it: as it is where it fits, because launches of
        frameworks' own arrays are the fastest."""
        if self._fits(name):
            return self.values[name]
        view = self._wanted(name)
        return with_dimensions(self.views[name], view.shape, view.strides)

    def _fits(self, name: str) -> bool:
        found, view = self.views[name], self._wanted(name)
        return (found.shape, found.strides) == (view.shape, view.strides)

    def _wanted(self, name: str) -> View:
        return View((1,), (1,)) if name == "scale" else self.plan.views[name]

    def _stream(self) -> int | None:
        """The stream to launch on; None where the launcher finds it by itself."""
        if self.stream is not None or all(map(self._fits, self.views)):
            return self.stream
        return common_stream(list(self.values.values()))


def check_overlap(views: Mapping[str, ArrayView]) -> None:
    """`out` is written while inputs are still read, so it must not be one of them.

    A residual may be `out` itself: each of its elements is read just before it is written.
    """
    out = views["out"]
    low, high = (out.pointer + byte for byte in out.extent())
    for name, view in views.items():
        start, end = (view.pointer + byte for byte in view.extent())
        is_out = view.pointer == out.pointer and is_like(view, out)
        if name == "out" or (name == "residual" and is_out):
            continue
        if start < high and low < end:
            raise ArgumentError(f"argument 'out': it overlaps {name!r} in memory")


def is_like(view: ArrayView | None, other: ArrayView) -> bool:
    """Whether two arrays, from the same address, are the same elements."""
    return view is not None and (view.shape, view.strides, view.dtype) == (
        *(other.shape, other.strides, other.dtype),
    )


@cache
def kernel_on(name: str, device: Any) -> Kernel:
    """A kernel of `matmul_kernel`, to run on a device."""
    return getattr(matmul_kernel, name).on(device)


@cache
def tuned_product(element_bytes: int, device: Any) -> TunedKernel:
    """The product that tunes itself for inputs of so many bytes an element."""
    return autotune(search=tile_space(element_bytes))(kernel_on("product", device))
