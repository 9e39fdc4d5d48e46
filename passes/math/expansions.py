"""Which formula stands for which op: the table `expand_math` works from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType

from tilec.passes.math import (
    error_function,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    quotient,
    remainder,
    root,
    trigonometric,
)
from tilec.passes.math.kinds import BF16, F16, Kind
from tilec.passes.math.scalar_builder import Scalar
from tilec.records import dataclass

Formula = Callable[..., Scalar]
"""(ScalarBuilder, Scalar, ...) -> Scalar."""


@dataclass(frozen=True)
class Expansion:
    """The formulas of one op.

    `accurate` takes f32 and f64. `approximate` takes f32 and is for ops with fastmath<afn>.
    `narrow` takes f32 and is for 16-bit types: an error far below their half ulp. Where a formula
    is absent `accurate` does its work, in f32 for 16-bit types.
    """

    accurate: Formula
    approximate: Formula | None = None
    narrow: Mapping[Kind, Formula] = field(default_factory=lambda: MappingProxyType({}))

    def formula(self, kind: Kind, *, approximate: bool) -> Formula:
        """The formula for operands of `kind`."""
        if approximate and self.approximate is not None and kind.bits <= 32:
            return self.approximate
        return self.narrow.get(kind, self.accurate)


EXPANSIONS: Mapping[str, Expansion] = MappingProxyType(
    {
        "math.exp": Expansion(
            exponential.exp,
            exponential.exp_approximate,
            {F16: exponential.exp_approximate, BF16: exponential.exp_widened_bf16},
        ),
        "math.exp2": Expansion(
            exponential.exp2, exponential.exp2_flushing, {F16: exponential.exp2_flushing}
        ),
        "math.expm1": Expansion(exponential.expm1),
        "math.log": Expansion(logarithm.log, logarithm.log_approximate),
        "math.log2": Expansion(logarithm.log2, logarithm.log2_approximate),
        "math.log10": Expansion(logarithm.log10, logarithm.log10_approximate),
        "math.log1p": Expansion(logarithm.log1p),
        "math.sqrt": Expansion(
            root.sqrt, root.sqrt_approximate, {F16: root.sqrt_narrow, BF16: root.sqrt_narrow}
        ),
        "math.rsqrt": Expansion(root.rsqrt, root.rsqrt_approximate),
        "math.cbrt": Expansion(root.cbrt),
        "math.sin": Expansion(trigonometric.sin, trigonometric.sin_approximate),
        "math.cos": Expansion(trigonometric.cos, trigonometric.cos_approximate),
        "math.tan": Expansion(trigonometric.tan, trigonometric.tan_approximate),
        "math.asin": Expansion(inverse_trigonometric.asin),
        "math.acos": Expansion(inverse_trigonometric.acos),
        "math.atan": Expansion(inverse_trigonometric.atan),
        "math.atan2": Expansion(inverse_trigonometric.atan2),
        "math.sinh": Expansion(hyperbolic.sinh),
        "math.cosh": Expansion(hyperbolic.cosh),
        "math.tanh": Expansion(
            hyperbolic.tanh, hyperbolic.tanh_approximate, {BF16: hyperbolic.tanh_approximate}
        ),
        "math.asinh": Expansion(hyperbolic.asinh),
        "math.acosh": Expansion(hyperbolic.acosh),
        "math.atanh": Expansion(hyperbolic.atanh),
        "math.erf": Expansion(error_function.erf),
        "math.erfc": Expansion(error_function.erfc),
        "math.powf": Expansion(power.power, power.power_approximate),
        "math.fpowi": Expansion(power.power_of_integer),
        "math.ipowi": Expansion(power.integer_power),
        "arith.remf": Expansion(remainder.remainder, remainder.remainder_approximate),
        "arith.divf": Expansion(quotient.divide_full, quotient.divide_approximate),
    }
)

IN_PLACE = frozenset(
    {
        exponential.exp_approximate,
        exponential.exp_widened_bf16,
        exponential.exp2_flushing,
        logarithm.log2_approximate,
        logarithm.log_approximate,
        logarithm.log10_approximate,
        root.sqrt,
        root.sqrt_narrow,
        root.sqrt_approximate,
        root.rsqrt_approximate,
        trigonometric.sin_approximate,
        trigonometric.cos_approximate,
        hyperbolic.tanh_approximate,
        quotient.divide_full,
        quotient.divide_approximate,
    }
)
"""Formulas of one to three ops, cheaper written where they are used than called."""

DIRECT: Mapping[str, tuple[str, Mapping[str, str]]] = MappingProxyType(
    {
        "math.absf": ("llvm.intr.fabs", {}),
        "math.floor": ("llvm.intr.floor", {}),
        "math.ceil": ("llvm.intr.ceil", {}),
        "math.round": ("llvm.intr.round", {}),
        "math.roundeven": ("llvm.intr.roundeven", {}),
        "math.trunc": ("llvm.intr.trunc", {}),
        "math.copysign": ("llvm.intr.copysign", {}),
        "math.fma": ("llvm.intr.fma", {}),
        "math.absi": ("llvm.intr.abs", {"is_int_min_poison": "false"}),
        "math.ctlz": ("llvm.intr.ctlz", {"is_zero_poison": "false"}),
        "math.cttz": ("llvm.intr.cttz", {"is_zero_poison": "false"}),
        "math.ctpop": ("llvm.intr.ctpop", {}),
    }
)
"""Ops that LLVM's NVPTX back end translates well: the intrinsic op and its attributes."""
