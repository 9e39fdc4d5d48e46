"""`tilec.ops.matmul`: a product with a fused epilogue, for any layout, dtype and framework."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tilec.messages.tracebacks import is_shortened, short_traceback, shortened
from tilec.ops.multiply_plan import Options, settled_names
from tilec.ops.plain_product import GradientWanted, multiply_plain, refuse_gradients
from tilec.ops.scaled_product import multiply_scaled
from tilec.runtime.errors import ArgumentError, TracedTensorError
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

    ArgumentError (a TypeError) names the argument that is wrong. Where torch traces the call, or
    wants a gradient, it is `tilec.ops.torch.matmul`: with respect to a, b, bias and residual.
    """
    factor, scale_array = factor_of(scale)
    if not a_scale is b_scale is None:
        given = {"bias": bias, "row_scale": row_scale, "column_scale": column_scale}
        given |= {"scale": scale_array, "residual": residual, "out": out}
        given |= {"a": a, "b": b, "a_scale": a_scale, "b_scale": b_scale}
        words = out_dtype, acc_dtype, precision, settled_names(settled)
        options = Options(activation, scale is not None, *words)
        return _multiply_blocks(given, options, factor, device, stream, tune)
    torch = sys.modules.get("torch")
    if torch is None or not torch.compiler.is_compiling():
        arrays = (a, b, out, bias, row_scale, column_scale, scale_array, residual)
        asked = (activation, scale is not None, out_dtype, acc_dtype, precision)
        try:
            return multiply_plain(arrays, asked, settled, factor, device, stream, tune)
        except (GradientWanted, TracedTensorError):
            pass  # which the operator computes
        except Exception as error:
            if not is_shortened(error):
                raise
            __tracebackhide__ = True
            raise shortened(error) from None
    placed = {"out": out, "device": device, "stream": stream}
    epilogue = {"bias": bias, "activation": activation, "residual": residual}
    scales = {"scale": scale, "row_scale": row_scale, "column_scale": column_scale}
    dtypes = {"out_dtype": out_dtype, "acc_dtype": acc_dtype, "precision": precision}
    dtypes |= {"settled": settled, "tune": tune}
    return _as_operator(a, b, placed, {**epilogue, **scales, **dtypes})


def factor_of(scale: Any) -> tuple[float, Any]:
    """A scale that is a number, and one that is an array."""
    if scale is None or not isinstance(scale, numbers.Real):
        return 1.0, scale
    return float(scale), None


@short_traceback
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
        refuse_gradients(name, value)
    number = None if stream is None else stream_number(stream)
    return multiply_scaled(values, options, factor, device, number)


@short_traceback
def _as_operator(a: Any, b: Any, placed: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    """The call where torch traces the caller, which must not see what a launch looks at, or wants
    its gradient."""
    # Needs torch, which is optional; and torch follows a statement, not importlib.
    from tilec.ops.torch import matmul as operator

    for name, value in placed.items():
        if value is not None:
            raise ArgumentError(
                f"argument {name!r}: where torch traces a product or wants its gradient, the "
                "result is a new tensor where a and b are, on the current stream"
            )
    return operator(a, b, **named)
