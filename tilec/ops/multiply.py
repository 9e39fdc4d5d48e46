"""`tilec.ops.matmul`: a product with a fused epilogue, for any layout, dtype and framework."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from tilec.jit import Kernel, target_of
from tilec.ops import matmul_kernel
from tilec.ops.batch_dimensions import with_dimensions
from tilec.ops.multiply_plan import Options, Plan, View, make_plan
from tilec.ops.new_arrays import new_array
from tilec.ops.tile_choice import MOST_SPLITS, TileChoice, choose_tiles, tile_space
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.device import device as find_device
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import common_stream, located
from tilec.runtime.streams import stream_number
from tilec.tuning.machine import machine_of
from tilec.tuning.tuned_kernel import TunedKernel, autotune

_ORDER = ("a", "b", "out", "bias", "row_scale", "column_scale", "scale", "factor", "residual")
_MOST_PLANS = 1024


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    bias: Any = None,
    activation: str | Callable[..., Any] | None = None,
    scale: Any = None,
    row_scale: Any = None,
    column_scale: Any = None,
    residual: Any = None,
    out_dtype: Any = None,
    acc_dtype: Any = None,
    precision: str = "ieee",
    tune: bool = False,
    device: Any = None,
    stream: Any = None,
) -> Any:
    """`activation((a @ b) * scale * row_scale[:, None] * column_scale + bias) + residual`.

    `a`: (..., M, K) or (K,), `b`: (..., K, N) or (K,), any strides; leading dimensions broadcast.
    One dtype of f64, f32, f16, bf16, i8, or any two fp8 formats. Gives `out`, or a new row-major
    array of (..., M, N) and `out_dtype`: without it the inputs' dtype, for fp8 bf16, for i8 i32
    (f32 where there is an epilogue). The epilogue is computed in f32 (f64 for f64); conversion to
    integers rounds to nearest even and saturates.

    `bias`, `column_scale`: (..., N); `row_scale`: (..., M); `scale`: a number or an array of one
    element; `residual`: anything that broadcasts to the result, `out` itself included.
    `activation`: "relu", "gelu", "gelu_tanh", "silu", or a function of the tile language.
    `acc_dtype`: f16 for f16 and fp8, where speed matters more than the last bits. `precision`:
    "tf32" puts f32 on tensor cores.
    `tune`: measure tile sizes at the first call of each size class (see `tilec.autotune`).
    `device`, `stream`: as in a launch. Runs where the arrays are, NumPy arrays on the emulator.

    ArgumentError (a TypeError) names the argument that is wrong. There is no gradient here:
    `tilec.ops.torch.matmul` has one.
    """
    given = {"bias": bias, "row_scale": row_scale, "column_scale": column_scale}
    given |= {"scale": scale, "residual": residual}
    factor = 1.0
    if isinstance(scale, numbers.Real):
        factor, given["scale"] = float(scale), None
    values = {"a": a, "b": b, **{name: v for name, v in given.items() if v is not None}}
    if out is not None:
        values["out"] = out
    for name, value in values.items():
        _refuse_gradients(name, value)
    number = None if stream is None else stream_number(stream)
    views = {name: located(describe(value, name, number)) for name, value in values.items()}
    options = Options(activation, scale is not None, out_dtype, acc_dtype, precision)
    plan = _plan_of(views, options)
    if out is None:
        out = values["out"] = new_array(a, views["a"], plan.out_shape, plan.out_dtype)
        views["out"] = located(describe(out, "out", number))
    if 0 in plan.out_shape:
        return out
    _check_overlap(views)
    where = find_device(device) if isinstance(device, str) else device
    found = device_of(list(views.items()), where)
    launch = _Launch(plan, values, views, factor, found, number)
    if tune:
        launch.run_tuned()
    else:
        launch.run()
    return out


@dataclass(frozen=True)
class _Launch:
    """One product on one device. `stream`: the one the caller named, if any."""

    plan: Plan
    values: Mapping[str, Any]
    views: Mapping[str, ArrayView]
    factor: float
    device: Any
    stream: int | None

    def run(self) -> None:
        """With `tl.auto`'s tiles, or the model's where those are too few."""
        choice = self._tiles()
        if choice is not None and choice.splits > 1:
            self._run_split(choice)
            return
        constants = {} if choice is None else choice.constants
        kernel = _kernel_on("product", self.device)
        kernel(*self._ordered(_ORDER), **constants, **self.plan.constants, stream=self._stream())

    def run_tuned(self) -> None:
        """With the tiles that tuning found; it tunes at the first call."""
        kernel = _tuned_kernel(self.plan.dtype.bits // 8, self.device)
        kernel(*self._ordered(_ORDER), **self.plan.constants, stream=self._stream())

    def _tiles(self) -> TileChoice | None:
        plan = self.plan
        machine = machine_of(self.device, target_of(self.device))
        # The partial sums of a caller's own stream would be freed on another.
        splits = 1 if self.stream is not None else MOST_SPLITS
        sizes = plan.m, plan.n, plan.k, prod(plan.lead)
        return choose_tiles(*sizes, plan.dtype, plan.constants["PRECISION"], machine, splits)

    def _run_split(self, choice: TileChoice) -> None:
        """Sums `choice.splits` parts of k one by one, then adds them up and does the rest."""
        plan = self.plan
        dtype = plan.constants["ACC"] or matmul_kernel.accumulator_of(plan.dtype)
        shape = (choice.splits, *plan.lead, plan.m, plan.n)
        sums = new_array(self.values["a"], self.views["a"], shape, dtype)
        kept = {name: plan.constants[name] for name in ("ACC", "PRECISION")}
        a, b = self._argument("a"), self._argument("b")
        _kernel_on("product", self.device)(
            *(a, b, sums, 0, 0, 0, 0, 1.0, 0),
            **choice.constants,
            **kept,
            SPLITS=choice.splits,
            stream=self._stream(),
        )
        rest = {name: plan.constants[name] for name in ("PARTS", "ACTIVATION")}
        _kernel_on("combine", self.device)(
            *(sums, *self._ordered(_ORDER[2:])),
            **rest,
            SPLITS=choice.splits,
            stream=self._stream(),
        )

    def _ordered(self, names: Sequence[str]) -> list[Any]:
        """The kernel's arguments in order, 0 for what is not there."""
        return [
            self.factor if name == "factor" else self._argument(name) if name in self.views else 0
            for name in names
        ]

    def _argument(self, name: str) -> Any:
        """An argument as the kernel wants it: as it is where it fits, because launches of
        frameworks' own arrays are the fastest."""
        found = self.views[name]
        view = View((1,), (1,)) if name == "scale" else self.plan.views[name]
        if (found.shape, found.strides) == (view.shape, view.strides):
            return self.values[name]
        return with_dimensions(found, view.shape, view.strides)

    def _stream(self) -> int | None:
        """The stream to launch on; None where the launcher finds it by itself."""
        if self.stream is not None or self.plan.unchanged:
            return self.stream
        return common_stream(list(self.values.values()))


_plans: dict[Any, Plan] = {}


def _plan_of(views: Mapping[str, ArrayView], options: Options) -> Plan:
    """The plan of arguments like these: looked up, or made."""
    key = (
        tuple((name, v.dtype, v.shape, v.strides, v.writable) for name, v in views.items()),
        options,
    )
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = make_plan(views, options)
    return plan


def _check_overlap(views: Mapping[str, ArrayView]) -> None:
    """`out` is written while inputs are still read, so it must not be one of them.

    A residual may be `out` itself: each of its elements is read just before it is written.
    """
    out = views["out"]
    low, high = (out.pointer + byte for byte in out.extent())
    for name, view in views.items():
        start, end = (view.pointer + byte for byte in view.extent())
        same = (view.pointer, view.shape, view.strides, view.dtype) == (
            *(out.pointer, out.shape, out.strides, out.dtype),
        )
        if name == "out" or (name == "residual" and same):
            continue
        if start < high and low < end:
            raise ArgumentError(f"argument 'out': it overlaps {name!r} in memory")


def _refuse_gradients(name: str, value: Any) -> None:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return
    if value.requires_grad and torch.is_grad_enabled():
        raise ArgumentError(
            f"argument {name!r}: the tensor requires a gradient, which tilec.ops.matmul does not "
            "record; use tilec.ops.torch.matmul, or torch.no_grad()"
        )


@cache
def _kernel_on(name: str, device: Any) -> Kernel:
    return getattr(matmul_kernel, name).on(device)


@cache
def _tuned_kernel(element_bytes: int, device: Any) -> TunedKernel:
    return autotune(search=tile_space(element_bytes))(_kernel_on("product", device))
