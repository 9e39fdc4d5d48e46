"""A product without scales of blocks: looked up among earlier calls, or planned; launched."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tilec.ops.known_calls import MOST_KNOWN_CALLS, KnownCall, KnownCalls, look
from tilec.ops.launch_steps import Made
from tilec.ops.multiply_plan import Options, Plan, make_plan, settled_names
from tilec.ops.new_arrays import new_array
from tilec.ops.product_launch import Launch, check_overlap, is_like
from tilec.records import dataclass
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.device import device as find_device
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import located
from tilec.runtime.streams import stream_number

ARRAYS = ("a", "b", "out", "bias", "row_scale", "column_scale", "scale", "residual")
"""The arrays of a call, in the order in which they are looked at."""
_OUT = ARRAYS.index("out")


def multiply_plain(
    arrays: tuple[Any, ...],
    asked: tuple[Any, bool, Any, Any, str],
    settled: Any,
    factor: float,
    device: Any,
    stream: Any,
    tune: bool,
) -> Any:
    """`tilec.ops.matmul` of the arrays that `ARRAYS` names (None: not given) and of what else it
    is asked: the fields of `Options` before `settled`. `factor`: a scale that is a number."""
    seen = look(arrays, (*asked, settled, device, tune)) if stream is None else None
    if seen is not None and (known := _known.find(seen[0])) is not None:
        return known.launch(arrays[_OUT], seen[1], factor)
    values = {n: v for n, v in zip(ARRAYS, arrays, strict=True) if n in "ab" or v is not None}
    options = Options(*asked, settled_names(settled))
    try:
        result, launch = _multiply(values, options, factor, device, stream, tune)
    except GradientWanted as wanted:
        if seen is not None:
            _known.keep(seen[0], Refusal(str(wanted)))
        raise
    if seen is not None and launch is not None and not tune:
        _known.keep(seen[0], KnownCall.of(_made(launch)))
    return result


def _multiply(
    values: dict[str, Any], options: Options, factor: float, device: Any, stream: Any, tune: bool
) -> tuple[Any, Launch | None]:
    """The whole way: launches where there is something to compute. Gives the result and the
    launch."""
    launch = prepared(values, options, factor, device, stream)
    if launch is not None:
        launch.run(tune)
    return values["out"], launch


def prepared(
    values: dict[str, Any], options: Options, factor: float, device: Any, stream: Any
) -> Launch | None:
    """Describes and checks the arrays, adds `out` to `values` where that is missing, and plans the
    launch; None where there is nothing to compute."""
    for name, value in values.items():
        refuse_gradients(name, value)
    number = None if stream is None else stream_number(stream)
    views = {name: located(describe(value, name, number)) for name, value in values.items()}
    plan = _plan_of(views, options)
    if "out" not in values:
        values["out"] = new_array(values["a"], views["a"], plan.out_shape, plan.out_dtype)
        views["out"] = located(describe(values["out"], "out", number))
    if 0 in plan.out_shape:
        return None
    check_overlap(views)
    where = find_device(device) if isinstance(device, str) else device
    found = device_of(list(views.items()), where)
    return Launch(plan, values, views, factor, found, number)


def _made(launch: Launch) -> Made:
    views, plan = launch.views, launch.plan
    updates = is_like(views.get("residual"), views["out"])
    kept = ARRAYS, launch.values, views, launch.steps, launch.own
    return Made(*kept, plan.out_shape, plan.out_dtype, may_update=updates)


_known = KnownCalls()
_plans: dict[Any, Plan] = {}


def _plan_of(views: Mapping[str, ArrayView], options: Options) -> Plan:
    """The plan of arguments like these: looked up, or made."""
    key = (
        tuple((name, v.dtype, v.shape, v.strides, v.writable) for name, v in views.items()),
        options,
    )
    try:
        plan = _plans.get(key)
    except TypeError:  # an option without a hash is a wrong one
        return make_plan(views, options)
    if plan is None:
        if len(_plans) >= MOST_KNOWN_CALLS:
            _plans.clear()
        plan = _plans[key] = make_plan(views, options)
    return plan


@dataclass(frozen=True)
class Refusal:
    """Stands among known calls for one whose arguments want a gradient."""

    reason: str

    def launch(self, *_: Any) -> Any:
        """Raises GradientWanted again."""
        raise GradientWanted(self.reason)


class GradientWanted(ArgumentError):
    """An argument is a tensor of torch's that records what is done to it."""


def refuse_gradients(
    name: str, value: Any, operation: str = "products with scales of blocks"
) -> None:
    """Raises GradientWanted where an argument is such a tensor."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return
    if value.requires_grad and torch.is_grad_enabled():
        raise GradientWanted(
            f"argument {name!r}: the tensor requires a gradient, which {operation} do not have; "
            "pass tensor.detach(), or call under torch.no_grad()"
        )
