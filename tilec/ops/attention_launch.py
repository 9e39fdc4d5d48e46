"""Launches attention: which kernels, and what each is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import tilec.language as tl
from tilec.call.device_target import target_of
from tilec.call.jit import Kernel
from tilec.costs.machine import machine_of
from tilec.hardware.powers import power_above
from tilec.ops import (
    attention_kernel,
    decode_kernels,
    gradient_kernels,
    handed_kernels,
    packed_kernels,
    paired_kernels,
)
from tilec.ops.attention_options import Options
from tilec.ops.attention_plan import PACKED, Plan, plan_attention
from tilec.ops.batch_dimensions import with_dimensions
from tilec.ops.known_calls import KnownCall, KnownCalls, look
from tilec.ops.launch_steps import FACTOR, Made, OwnArrays, Step
from tilec.ops.new_arrays import new_array
from tilec.ops.plain_product import refuse_gradients
from tilec.ops.product_launch import check_overlap
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.device import device as find_device
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import common_stream, located
from tilec.runtime.streams import stream_number
from tilec.terms.dtypes import DType

PARAMETERS = {"out": "o"}
"""What kernels call an array, where callers call it otherwise."""
OPTIONAL = ("out", "logs", "sinks", "starts", "key_starts", "lengths", "table")
"""The arrays that a call may have beside q, k and v."""
PROGRAMS = 4
"""Of decoding that share a multiprocessor: 16 rows take two warps and rings that leave room for so
many (`test/unit/test_paged_attention.py`)."""
LEAST_KEYS = 256
"""Of a part of a sequence's keys: a program begins and ends in the time that it loads as many.
Not timed."""
MOST_PARTS = 64
"""What a tile of the kernel that joins them holds beside 256 elements, in f32: 128 registers of
each of 128 threads."""


ARRAYS = ("q", "k", "v", *OPTIONAL)
"""The arrays of a call, in the order in which they are looked at."""


class Call:
    """One call on one device. `values`, `views`: its arrays by name, those that are there. `steps`:
    its launches, `own`: arrays that only these use.

    Packed arrays (tokens, heads, elements) are looked at as those of one batch.
    """

    def __init__(self, values: Mapping[str, Any], device: Any, stream: Any) -> None:
        self.number = None if stream is None else stream_number(stream)
        self.values = {name: value for name, value in values.items() if value is not None}
        for name, value in self.values.items():
            refuse_gradients(name, value, "gradients of attention")
        self.views = {
            name: located(describe(value, name, self.number)) for name, value in self.values.items()
        }
        self.steps: list[Step] = []
        self.own = OwnArrays(self.values["q"], self.views["q"])
        self._given = device

    def add(self, name: str, shape: Sequence[int], dtype: DType) -> Any:
        """A new array beside q, for the caller."""
        value = self.values[name] = new_array(self.values["q"], self.views["q"], shape, dtype)
        self.views[name] = located(describe(value, name, self.number))
        return value

    def add_own(self, name: str, shape: Sequence[int], dtype: DType) -> Any:
        """One that is new at every call like this one, too, and that kernels may read packed."""
        value = self.own.new(name, shape, dtype)
        self.views[name] = located(describe(value, name, self.number))
        return value

    def check_written(self, names: Sequence[str]) -> None:
        """Refuses to write what is read-only, or another array of the call."""
        for name in (name for name in names if name in self.views):
            if not self.views[name].writable:
                raise ArgumentError(f"argument {name!r}: the array is read-only")
            check_overlap(self.views, name)

    @property
    def device(self) -> Any:
        """Where the arrays are."""
        given = self._given
        where = find_device(given) if isinstance(given, str) else given
        return device_of(list(self.views.items()), where)

    def launch(
        self, name: str, arrays: Sequence[str], given: Mapping[str, Any], **looked: Any
    ) -> None:
        """Launches a kernel on those of these arrays that are there, with numbers and constants as
        `given`. `looked`: arrays that it takes otherwise."""
        kernel = kernel_on(name, self.device)
        found = {PARAMETERS.get(n, n): (n, self._as_launched(n)) for n in arrays}
        found |= {n: (n, value) for n, value in looked.items()}
        found = {n: (source if x is not None else "", x) for n, (source, x) in found.items()}
        constants = {p.name for p in kernel.parameters if p.kind == "const"}
        numbers = {n: value for n, value in given.items() if n not in constants}
        found |= {n: (FACTOR if n == "seed" else "", value) for n, value in numbers.items()}
        names = [p.name for p in kernel.parameters if p.name in found]
        fixed = {n: value for n, value in given.items() if n in constants}
        step = Step(kernel, [found[n] for n in names], fixed, names)
        stream = self.number
        if stream is None and any(isinstance(value, ArrayView) for value in step.values):
            stream = common_stream([*self.values.values(), *self.own.values.values()])
        step.launch(stream)
        self.steps.append(step)

    def _as_launched(self, name: str) -> Any:
        value = self.own.values.get(name, self.values.get(name))
        return self._as_one_batch(name, value) if PACKED in self.views else value

    def _as_one_batch(self, name: str, value: Any) -> Any:
        view = self.views.get(name)
        if view is None or len(view.shape) == 1:
            return value
        shape, strides = view.shape, view.strides
        if len(shape) == 3:
            shape, strides = (shape[1], shape[0], shape[2]), (strides[1], strides[0], strides[2])
        return with_dimensions(view, (1, *shape), (shape[0] * strides[0], *strides))


def launch_attention(values: Mapping[str, Any], options: Options, device: Any, stream: Any) -> Any:
    """`tilec.ops.attention` of the arrays that `ARRAYS` names, of which those of `OPTIONAL` may be
    None. Gives the result."""
    arrays = [values[name] for name in ARRAYS]
    seen = look(arrays, kind_of(options, device)) if stream is None else None
    if seen is not None and (known := _known.find(seen[0])) is not None:
        return known.launch(values["out"], seen[1], options.seed)
    call = Call(values, device, stream)
    plan = plan_attention(call.views, options)
    if "out" not in call.values:
        call.add("out", plan.out_shape, plan.dtype)
    call.check_written(("out", "logs"))
    if 0 not in plan.out_shape:
        _attend(call, plan)
        if seen is not None:
            kept = ARRAYS, call.values, call.views, call.steps, call.own
            made = Made(*kept, plan.out_shape, plan.dtype, written=("out", "logs"))
            _known.keep(seen[0], KnownCall.of(made))
    return call.values["out"]


_known = KnownCalls()


def kind_of(options: Options, device: Any) -> tuple[Any, ...]:
    """What a plan depends on beside arrays."""
    seed = options.seed
    # A kernel's number is as wide as the seed; True and 1 are the same key, but not the same call.
    kind = -(2**31) <= seed < 2**31 if seed.__class__ is int else seed
    return (kind, options.without_seed, options.causal.__class__, options.window.__class__, device)


def _attend(call: Call, plan: Plan) -> None:
    arrays = ("q", "k", "v", "logs", "sinks", "out")
    given = {**plan.numbers, **plan.constants}
    if PACKED in call.views:
        given["longest"] = plan.longest[0]
        call.launch("packed_attention", (*arrays, "starts", "key_starts"), given)
    elif plan.decodes and call.number is None:  # on a caller's stream memory would go too early
        _decode(call, plan)
    else:
        given["PAGE"] = plan.shapes.page
        call.launch("attention", (*arrays, "lengths", "table"), given)


def _decode(call: Call, plan: Plan) -> None:
    """Attention of one query a sequence, whose keys several programs share."""
    sizes, shared = plan.shapes, plan.constants["SHARED"]
    machine = machine_of(call.device, target_of(call.device))
    programs = sizes.batch * sizes.few
    fitting = PROGRAMS * machine.multiprocessors // programs  # one more would begin a second round
    count = max(1, min(fitting, sizes.keys // LEAST_KEYS, MOST_PARTS))
    lead = (count, sizes.batch, sizes.few, shared)
    call.own.new("parts", (*lead, sizes.others), tl.f32)
    call.own.new("sums", lead, tl.f32)
    view = call.views["q"]
    batch, head, _, element = view.strides
    by_keys = (sizes.batch, sizes.few, shared, sizes.elements)
    q = with_dimensions(view, by_keys, (batch, shared * head, head, element))
    kept = ("scale", "window", "cap")
    numbers = {
        **{name: plan.numbers[name] for name in kept},
        **{name: plan.constants[name] for name in ("D", "DV", "SHARED")},
        "PAGE": sizes.page,
        "count": count,
    }
    call.launch("attend_parts", ("k", "v", "parts", "sums", "lengths", "table"), numbers, q=q)
    joined = {"SHARED": shared, "DV": plan.constants["DV"], "PARTS": power_above(count)}
    call.launch("join_parts", ("parts", "sums", "out", "logs", "sinks"), joined)


@cache
def kernel_on(name: str, device: Any) -> Kernel[...]:
    """A kernel by its name, to run on a device: parameters without types are as given."""
    rooms = (
        *(attention_kernel, packed_kernels, decode_kernels),
        *(gradient_kernels, handed_kernels, paired_kernels),
    )
    return next(vars(room)[name] for room in rooms if name in vars(room)).on(device)
