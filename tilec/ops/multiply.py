"""`tilec.ops.matmul`: a product with a fused epilogue, for any layout, dtype and framework."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tilec.ops.known_calls import ARRAYS, MOST_KNOWN_CALLS, KnownCall, KnownCalls, look
from tilec.ops.multiply_plan import Options, Plan, make_plan, settled_names
from tilec.ops.new_arrays import new_array
from tilec.ops.product_launch import Launch, check_overlap
from tilec.ops.scaled_product import multiply_scaled
from tilec.runtime.arrays import ArrayView, describe
from tilec.runtime.device import device as find_device
from tilec.runtime.device import device_of
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import located
from tilec.runtime.streams import stream_number


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    a_scale: Any = None,
    b_scale: Any = None,
    bias: Any = None,
    activation: str | Callable[..., Any] | None = None,
    scale: Any = None,
    row_scale: Any = None,
    column_scale: Any = None,
    residual: Any = None,
    out_dtype: Any = None,
    acc_dtype: Any = None,
    precision: str = "ieee",
    settled: str | tuple[str, ...] = (),
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
    "tf32" puts f32 on tensor cores; "f32" adds products of fp8 up in f32 every 512 elements of k,
    where warpgroup instructions alone keep 14 bits of a sum.
    `a_scale`, `b_scale`: a scale per block of k (mx and nv formats, `tl.dot_scaled`), (M, K / 32)
    and (K / 32, N) of f8e8m0 (or its bytes, i8), with 16 a block of f8e4m3, or both as
    `arrange_scales` makes them. a and b are then matrices of fp8, fp6, f16, bf16 or f4e2m1x2, two
    numbers a byte along k; the result is bf16 unless `out` or `out_dtype` says otherwise.
    `settled`: "a", "b" or both, where no launch that may still run writes them (weights): products
    of few rows load them under the launch before.
    `tune`: measure tile sizes at the first call of each size class (see `tilec.autotune`).
    `device`, `stream`: as in a launch. Runs where the arrays are, NumPy arrays on the emulator.

    ArgumentError (a TypeError) names the argument that is wrong. There is no gradient here:
    `tilec.ops.torch.matmul` has one. Inside `torch.compile` this is that operator.
    """
    factor, scale_array = _factor(scale)
    if not a_scale is b_scale is None:
        given = {"bias": bias, "row_scale": row_scale, "column_scale": column_scale}
        given |= {"scale": scale_array, "residual": residual, "out": out}
        given |= {"a": a, "b": b, "a_scale": a_scale, "b_scale": b_scale}
        words = out_dtype, acc_dtype, precision, settled_names(settled)
        options = Options(activation, scale is not None, *words)
        return _multiply_blocks(given, options, factor, device, stream, tune)
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        placed = {"out": out, "device": device, "stream": stream}
        epilogue = {"bias": bias, "activation": activation, "residual": residual}
        scales = {"scale": scale, "row_scale": row_scale, "column_scale": column_scale}
        dtypes = {"out_dtype": out_dtype, "acc_dtype": acc_dtype, "precision": precision}
        dtypes |= {"settled": settled, "tune": tune}
        return _as_operator(a, b, placed, {**epilogue, **scales, **dtypes})
    arrays = (a, b, out, bias, row_scale, column_scale, scale_array, residual)
    asked = (activation, scale is not None, out_dtype, acc_dtype, precision)
    seen = look(arrays, (*asked, settled, device, tune)) if stream is None else None
    if seen is not None and (known := _known.find(seen[0])) is not None:
        return known.launch(out, seen[1], factor)
    values = {n: v for n, v in zip(ARRAYS, arrays, strict=True) if n in "ab" or v is not None}
    options = Options(*asked, settled_names(settled))
    result, launch = _multiply(values, options, factor, device, stream, tune)
    if seen is not None and launch is not None and not tune:
        _known.keep(seen[0], KnownCall.of(launch))
    return result


def _multiply(
    values: dict[str, Any], options: Options, factor: float, device: Any, stream: Any, tune: bool
) -> tuple[Any, Launch | None]:
    """The whole way: describes and checks the arrays, plans, launches where there is something
    to compute. Gives the result and the launch."""
    for name, value in values.items():
        _refuse_gradients(name, value)
    number = None if stream is None else stream_number(stream)
    views = {name: located(describe(value, name, number)) for name, value in values.items()}
    plan = _plan_of(views, options)
    if "out" not in values:
        values["out"] = new_array(values["a"], views["a"], plan.out_shape, plan.out_dtype)
        views["out"] = located(describe(values["out"], "out", number))
    if 0 in plan.out_shape:
        return values["out"], None
    check_overlap(views)
    where = find_device(device) if isinstance(device, str) else device
    found = device_of(list(views.items()), where)
    launch = Launch(plan, values, views, factor, found, number)
    launch.run(tune)
    return values["out"], launch


def _factor(scale: Any) -> tuple[float, Any]:
    """A scale that is a number, and one that is an array."""
    if scale is None or not isinstance(scale, numbers.Real):
        return 1.0, scale
    return float(scale), None


def _multiply_blocks(
    given: Mapping[str, Any],
    options: Options,
    factor: float,
    device: Any,
    stream: Any,
    tune: bool,
) -> Any:
    """The product where blocks of the operands have scales."""
    is_plain = options.acc_dtype is None and options.precision == "ieee" and not options.settled
    if tune or not is_plain:
        raise ArgumentError(
            "argument 'a_scale': products with scales of blocks take no 'tune', 'acc_dtype', "
            "'precision' or 'settled'"
        )
    values = {name: value for name, value in given.items() if value is not None}
    for name, value in values.items():
        _refuse_gradients(name, value)
    number = None if stream is None else stream_number(stream)
    return multiply_scaled(values, options, factor, device, number)


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


def _as_operator(a: Any, b: Any, placed: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    """The call while torch traces the caller, which must not see what a launch looks at."""
    # Needs torch, which is optional; and torch follows a statement, not importlib.
    from tilec.ops.torch import matmul as operator

    for name, value in placed.items():
        if value is not None:
            raise ArgumentError(
                f"argument {name!r}: inside torch.compile the result is a new tensor where a and b "
                "are, on the current stream"
            )
    return operator(a, b, **named)


def _refuse_gradients(name: str, value: Any) -> None:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return
    if value.requires_grad and torch.is_grad_enabled():
        raise ArgumentError(
            f"argument {name!r}: the tensor requires a gradient, which tilec.ops.matmul does not "
            "record; use tilec.ops.torch.matmul, or torch.no_grad()"
        )
