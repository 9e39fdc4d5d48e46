"""Calls that were made before: the checks and choices of the first serve all like it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilec.ops.multiply_plan import Plan, View
from tilec.ops.new_arrays import new_array
from tilec.ops.product_launch import ORDER, Launch, is_like
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import Launcher, common_stream

MOST_KNOWN_CALLS = 1024


def call_key(values: Mapping[str, Any], asked: Any) -> Any:
    """What tells calls with different plans apart; None where an array must be described anew.

    `asked`: everything else that the plan depends on, hashable.
    """
    parts = []
    for name, value in values.items():
        seen = _seen(value)
        if seen is None:
            return None
        parts.append((name, seen))
    key = (asked, tuple(parts))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _seen(value: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        # With a gradient or a pending negation, the whole way says what is wrong.
        if value.requires_grad or value.is_neg():
            return None
        return (value.dtype, value.shape, value.stride(), value.device)
    if isinstance(value, ArrayView) and value.framework == "tilec":
        return (value.dtype, value.shape, value.strides, value.device)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(value, cupy.ndarray):
        return (value.dtype, value.shape, value.strides, value.device.id)
    return None


@dataclass(frozen=True)
class KnownCall:
    """One launch. `like`: what `a` is. `views`: the arrays that are looked at in another shape.
    `spans`: bytes of each array, from its pointer on. `order`: of the kernel's arguments.
    `may_update`: whether the residual may be `out` itself. Nothing here keeps an array alive.
    """

    plan: Plan
    like: ArrayView
    launcher: Launcher
    constants: Mapping[str, Any]
    views: tuple[tuple[str, ArrayView], ...]
    spans: tuple[tuple[str, int, int], ...]
    order: tuple[str, ...]
    may_update: bool

    @classmethod
    def of(cls, launch: Launch) -> KnownCall:
        """The launches that are like this one."""
        values = launch.ordered(ORDER)
        spans = tuple((name, *view.extent()) for name, view in launch.views.items())
        views = tuple(
            (name, _without_memory(launch.views[name], view))
            for name in launch.views
            if (view := launch.view_of(name)) is not None
        )
        launcher = launch.kernel.launcher_of(values)
        a = launch.views["a"]
        like = replace(_without_memory(a, View(a.shape, a.strides)), framework=a.framework)
        may_update = is_like(launch.views.get("residual"), launch.views["out"])
        constants, order = launch.constants, launch.order
        return cls(launch.plan, like, launcher, constants, views, spans, order, may_update)

    def launch(self, values: dict[str, Any], factor: float) -> Any:
        """Launches on other arrays of the same kind; gives the result."""
        out = values.get("out")
        if out is None:
            shape, dtype = self.plan.out_shape, self.plan.out_dtype
            out = values["out"] = new_array(values["a"], self.like, shape, dtype)
        else:
            self._check_overlap(values)
        stream = common_stream(list(values.values())) if self.views else None
        for name, view in self.views:
            found = values[name]
            values[name] = ArrayView(
                _pointer(found),
                view.shape,
                view.strides,
                view.dtype,
                view.device,
                "tilec",
                owner=found,
            )
        values["factor"] = factor
        arguments = [values.get(name, 0) for name in self.order]
        self.launcher.call(*arguments, **self.constants, stream=stream)
        return out

    def _check_overlap(self, values: Mapping[str, Any]) -> None:
        places = {
            name: (_pointer(values[name]) + low, _pointer(values[name]) + high)
            for name, low, high in self.spans
        }
        start, end = places.pop("out")
        if self.may_update and places.get("residual", (0, 0))[0] == start:
            del places["residual"]
        for name, (low, high) in places.items():
            if low < end and start < high:
                raise ArgumentError(f"argument 'out': it overlaps {name!r} in memory")


def _without_memory(found: ArrayView, view: View) -> ArrayView:
    return ArrayView(0, view.shape, view.strides, found.dtype, found.device, "tilec")


def _pointer(value: Any) -> int:
    if isinstance(value, ArrayView):
        return value.pointer
    return value.data_ptr() if hasattr(value, "data_ptr") else value.data.ptr
