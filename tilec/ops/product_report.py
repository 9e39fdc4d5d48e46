"""`tilec.ops.matmul_report`: what a product launches, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilec.messages.report import Report
from tilec.messages.tracebacks import short_traceback
from tilec.ops.multiply import factor_of
from tilec.ops.multiply_plan import Options, settled_names
from tilec.ops.plain_product import prepared


@short_traceback
def matmul_report(
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
    settled: str | tuple[str, ...] = (),
    device: Any = None,
) -> str:
    """What `matmul` of these arguments would launch, and why: its tiles, and what the compiler
    decided for each kernel. Compiles what is new, and launches nothing. ArgumentError as
    `matmul`."""
    factor, scale_array = factor_of(scale)
    arrays = {"a": a, "b": b, "out": out, "bias": bias, "row_scale": row_scale}
    arrays |= {"column_scale": column_scale, "scale": scale_array, "residual": residual}
    values = {n: value for n, value in arrays.items() if n in "ab" or value is not None}
    words = out_dtype, acc_dtype, precision, settled_names(settled)
    launch = prepared(values, Options(activation, scale is not None, *words), factor, device, None)
    if launch is None:
        return "nothing is launched: the result has no elements\n"
    told = [step.kernel.report(*step.values, **step.constants) for step in launch.steps]
    return Report("\n".join([f"matmul: {launch.reason}", *told]))
