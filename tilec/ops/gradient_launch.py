"""Launches the gradients of attention: which kernels, and what each is given.

Two kernels multiply seven times a block of queries and keys. Where that takes longer than what they
have in common takes through memory, the first hands it on (`handed_kernels.py`): five products.
Where programs are few, one kernel does what both do (`paired_kernels.py`).
"""

from __future__ import annotations

import warnings
from math import prod
from typing import TYPE_CHECKING, Any

import tilec.language as tl
from tilec.call.device_target import target_of
from tilec.costs.machine import machine_of
from tilec.messages.diagnostics import PerformanceWarning
from tilec.messages.tracebacks import short_traceback
from tilec.ops.attention_launch import Call, kind_of
from tilec.ops.attention_options import Asked, Options
from tilec.ops.attention_plan import PACKED, Plan, plan_attention
from tilec.ops.gradient_plan import WIDE, Paired, handed_shape, heads_at_once, paired
from tilec.ops.known_calls import KnownCall, KnownCalls, look
from tilec.ops.launch_steps import Made
from tilec.ops.new_arrays import is_out_of_memory

if TYPE_CHECKING:
    from typing_extensions import Unpack

ARRAYS = ("q", "k", "v", "out", "do", "logs", "sinks", "starts", "key_starts", "dq")
"""The arrays of a call, in the order in which they are looked at; the last is its result, beside
others that each call makes for itself."""


@short_traceback
def attention_gradients(
    do: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    logs: Any,
    *,
    sinks: Any = None,
    starts: Any = None,
    key_starts: Any = None,
    device: Any = None,
    **asked: Unpack[Asked],
) -> tuple[Any, ...]:
    """The gradients of q, k and v, new row-major arrays of their dtype, from that of the result;
    with `sinks` theirs behind them, f32.

    `do`: the gradient of `out`; `out`, `logs`: what `attention` gave for the same q, k, v and
    options. The same bits at every call. ArgumentError names the argument that is wrong.
    """
    options = Options.of(asked)
    arrays = (q, k, v, out, do, logs, sinks, starts, key_starts, None)
    seen = look(arrays, kind_of(options, device))
    results = slice(1, 3 if sinks is None else 4)  # of arrays of its own, as `_launch` makes them
    if seen is not None and (known := _known.find(seen[0])) is not None:
        try:
            dq, own = known.launch_all(None, list(seen[1]), options.seed)
            return (dq, *own[results])
        except Exception as error:  # nothing is launched before all memory is there
            if not is_out_of_memory(error):
                raise
    call = Call(dict(zip(ARRAYS, arrays, strict=True)), device, None)
    plan = plan_attention(call.views, options)
    dq = call.add("dq", call.views["q"].shape, plan.dtype)
    launched = _launch(call, plan)
    if seen is not None and launched:
        views = {name: view for name, view in call.views.items() if name in ARRAYS}
        kept = ARRAYS, call.values, views, call.steps, call.own
        made = Made(*kept, views["q"].shape, plan.dtype, written=("dq",), out="dq")
        _known.keep(seen[0], KnownCall.of(made))
    return (dq, *list(call.own.values.values())[results])


_known = KnownCalls()


def _launch(call: Call, plan: Plan) -> bool:
    """Launches all kernels on new arrays; whether a call like this one had best do the same."""
    call.add_own("delta", plan.logs_shape, tl.f32)
    for name in "kv":
        call.add_own(f"d{name}", call.views[name].shape, plan.dtype)
    if "sinks" in call.values:
        call.add_own("dsinks", (plan.shapes.heads,), tl.f32)
    has_queries, has_keys = 0 not in plan.out_shape, 0 not in call.views["k"].shape
    at_once = _paired(call, plan) if has_queries and has_keys else None
    is_twice = has_queries and has_keys and at_once is None
    wanted = _heads_at_once(call, plan) if is_twice else 0
    heads = wanted if wanted and _has_scratch(call, plan, wanted) else 0
    if at_once is not None:
        _compute_at_once(call, plan, at_once)
    elif heads:
        _hand_on(call, plan, heads)
    else:
        _compute_twice(call, plan, has_queries, has_keys)
    if "sinks" in call.values:
        call.launch("sink_gradients", ("logs", "delta", "sinks", "dsinks"), {})
    return has_queries and has_keys and heads == wanted


def _has_scratch(call: Call, plan: Plan, heads: int) -> bool:
    """Makes the array that hands gradients of scores on, last of all, so that it takes no result's
    memory; whether there was enough for it."""
    shape = handed_shape(plan.shapes, heads)
    try:
        call.add_own("dscores", shape, plan.dtype)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        size = plan.dtype.bytes * prod(shape)
        text = (
            f"gradients of attention: {size} bytes of scratch are more than is free; they are "
            "computed without it, slower. A smaller scratch= for attention asks for less, "
            "scratch=0 for none"
        )
        warnings.warn(text, PerformanceWarning, stacklevel=2)
        return False
    return True


def _heads_at_once(call: Call, plan: Plan) -> int:
    if PACKED in call.views or plan.numbers["window"] is not None:
        return 0
    machine = machine_of(call.device, target_of(call.device))
    return heads_at_once(plan.shapes, plan.dtype.bytes, machine, plan.scratch)


def _paired(call: Call, plan: Plan) -> Paired | None:
    # A cap's slope, and dropout's numbers, want more registers than such a program has left.
    if PACKED in call.views or {plan.numbers[n] for n in ("cap", "dropout")} != {None}:
        return None
    machine = machine_of(call.device, target_of(call.device))
    window = plan.numbers["window"]
    return paired(plan.shapes, plan.constants["CAUSAL"], window, machine)


def _compute_at_once(call: Call, plan: Plan, how: Paired) -> None:
    """One kernel behind that of the deltas."""
    given = {**plan.numbers, **plan.constants, "APART": how.apart, "BN": how.held}
    call.launch("deltas", ("out", "do", "delta"), {"DV": given["DV"]})
    names = ("q", "k", "v", "do", "logs", "delta", "dq", "dk", "dv")
    kernel = "wide_gradients" if how.held == WIDE else "paired_gradients"
    call.launch(kernel, names, given)


def _compute_twice(call: Call, plan: Plan, has_queries: bool, has_keys: bool) -> None:
    """Each of two kernels computes the scores and their gradients."""
    packed = PACKED in call.views
    kind, spans = ("packed_", ("starts", "key_starts")) if packed else ("", ())
    given = {**plan.numbers, **plan.constants}
    seen = ("do", "logs", "delta", *spans)
    if has_queries:
        most = {"longest": plan.longest[0]} if packed else {}
        names = ("q", "k", "v", "out", *seen, "dq")
        call.launch(f"{kind}query_gradients", names, {**given, **most})
    if has_keys:
        most = {"longest": plan.longest[1]} if packed else {}
        names = ("q", "k", "v", *seen, "dk", "dv")
        call.launch(f"{kind}key_gradients", names, {**given, **most})


def _hand_on(call: Call, plan: Plan, heads: int) -> None:
    """The kernel that holds keys hands the gradients of scores on, of so many heads of keys at a
    time."""
    sizes, given = plan.shapes, {**plan.numbers, **plan.constants}
    call.launch("deltas", ("out", "do", "delta"), {"DV": given["DV"]})
    of_keys = ("q", "k", "v", "do", "logs", "delta", "dscores", "dk", "dv")
    of_queries = {name: given[name] for name in ("scale", "D", "CAUSAL", "SHARED")}
    del given["window"]
    for first in range(0, sizes.batch * sizes.few, heads):
        place = {"first": first, "count": min(heads, sizes.batch * sizes.few - first)}
        call.launch("handing_key_gradients", of_keys, {**given, **place})
        names = ("q", "k", "dscores", "dq")
        call.launch("handed_query_gradients", names, {**of_queries, **place})
