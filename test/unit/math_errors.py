"""Errors of functions on the CPU against C's long double, in units in the last place."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

import numpy as np
from cpu_function import WIDEST, CpuFunction
from mlir import ir
from scalar_execution import llvm_text
from shares import WHOLE

from tilec.dialects.context import make_context
from tilec.hardware.target import find_target
from tilec.passes.contract import PassContext
from tilec.passes.expand_math import expand_math

PRECISIONS = {"f16": (11, -14, 16), "bf16": (8, -126, 128), "f32": (24, -126, 128)}
PRECISIONS["f64"] = (53, -1022, 1024)


def expanded(source: str, target: str = "sm_80") -> str:
    """LLVM IR of `source` after expand_math."""
    with _context():
        module = ir.Module.parse(source)
        expand_math(module, PassContext(find_target(target)))
        module.operation.verify()
        return llvm_text(module)


@cache
def _context() -> ir.Context:
    """One for all functions: making it takes as long as a function does."""
    return make_context()


def one_op(op: str, operands: list[str], result: str, flags: str = "", name: str = "f") -> str:
    """MLIR of a function that is one op."""
    values = [f"%x{index}" for index in range(len(operands))]
    signature = ", ".join(f"{v}: {t}" for v, t in zip(values, operands, strict=True))
    fastmath = f" <{{fastmath = #arith.fastmath<{flags}>}}>" if flags else ""
    return (
        f"func.func @{name}({signature}) -> {result} {{\n"
        f'  %r = "{op}"({", ".join(values)}){fastmath} : ({", ".join(operands)}) -> {result}\n'
        f"  return %r : {result}\n}}\n"
    )


def compiled(
    op: str,
    operands: list[str],
    result: str | None = None,
    flags: str = "",
    *,
    exact_hardware: bool = False,
) -> CpuFunction:
    """The op as a function of arrays."""
    result = result or operands[0]
    text = expanded(one_op(op, operands, result, flags))
    return CpuFunction(text, "f", operands, result, exact_hardware=exact_hardware)


def errors_in_ulps(got: np.ndarray, wanted: np.ndarray, kind: str) -> np.ndarray:
    """|got - wanted| in ulps of `wanted`; a NaN on one side only counts as 1e9.

    An infinity counts as the power of two after the largest number.
    """
    digits, lowest, highest = PRECISIONS[kind]
    limit = np.ldexp(np.longdouble(1), highest)
    ulps = np.ldexp(np.longdouble(1), np.arange(lowest, highest) - (digits - 1))
    undefined, lost = np.isnan(wanted), np.isnan(got)  # no arithmetic with them: it takes long
    wanted = np.clip(np.where(undefined, 1, wanted.astype(np.longdouble)), -limit, limit)
    got = np.clip(np.where(lost, 1, got.astype(np.longdouble)), -limit, limit)
    _, exponent = np.frexp(wanted)
    error = np.abs(got - wanted) / ulps[np.clip(exponent - 1, lowest, highest - 1) - lowest]
    error[undefined & lost] = 0
    error[undefined != lost] = 1e9
    return error


def assert_close(
    got: np.ndarray, wanted: np.ndarray, kind: str, limit: float, inputs: tuple[np.ndarray, ...]
) -> None:
    """Fails at the worst element, and where a zero has the wrong sign."""
    error = errors_in_ulps(got, wanted, kind)
    worst = int(np.argmax(error))
    at = [array[worst] for array in inputs]
    assert error[worst] <= limit, f"{error[worst]:.3f} ulp at {at}: {got[worst]}, {wanted[worst]}"
    wrong = (got == 0) & (wanted == 0) & (np.signbit(got) != np.signbit(wanted))
    assert not wrong.any(), f"sign of zero at {[array[wrong][0] for array in inputs]}"


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 4, 10, 100, 1000]
SPECIAL += [1e-45, -1e-45, 1e-38, -1e-38, 2**-126, 3.4e38, -3.4e38, 5e-324, 1e-310, 1e308, -1e308]
SPECIAL += [2**-1022, 88.7, 88.73, -87.4, -103.9, -104.1, 709.7, 709.8, -745.1, -745.2, 0.55, 1e22]
ARRAYS = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}


def samples(kind: str, low: float, high: float, count: int, seed: int = 0) -> np.ndarray:
    """Special values, random bits (all exponents alike), random magnitudes, and [low, high]; of so
    many of each a run takes a quarter (`shares.py`)."""
    count //= 1 if WHOLE in os.environ else 4
    rng = np.random.default_rng(seed)
    dtype, bits = ARRAYS[kind]
    largest = np.iinfo(bits).max
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [
            np.array(SPECIAL).astype(dtype),
            rng.integers(0, largest, count, dtype=bits, endpoint=True).view(dtype),
            (np.exp2(rng.uniform(-30, 30, count)) * rng.choice([-1, 1], count)).astype(dtype),
            rng.uniform(low, high, count).astype(dtype),
            (rng.standard_normal(count) * 4).astype(dtype),
        ]
    return np.concatenate(parts)


def libm(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """A long double function of the C library."""
    text = f"declare {WIDEST} @{name}({WIDEST})\n"
    return CpuFunction(text, name, ["long double"], "long double")


# op: reference, the interval to look at closely (f32, f64), limits in ulp for f32, f64, f16, bf16
UNARY: dict[str, tuple[Callable | str, tuple, tuple, tuple[float, float, float, float]]] = {
    "exp": (np.exp, (-105, 90), (-746, 711), (3.7, 1.1, 0.51, 0.51)),
    "exp2": (np.exp2, (-150, 129), (-1076, 1025), (3.1, 1.1, 0.51, 0.51)),
    "expm1": (np.expm1, (-3, 3), (-3, 3), (1.5, 2.0, 0.51, 0.51)),
    "log": (np.log, (0.5, 2), (0.5, 2), (0.9, 1.2, 0.51, 0.51)),
    "log2": (np.log2, (0.5, 2), (0.5, 2), (1.5, 1.6, 0.51, 0.51)),
    "log10": (np.log10, (0.5, 2), (0.5, 2), (1.7, 1.8, 0.51, 0.51)),
    "log1p": (np.log1p, (-1, 2), (-1, 2), (1.6, 1.9, 0.51, 0.51)),
    "sqrt": (np.sqrt, (0, 4), (0, 4), (0.5, 0.5, 0.51, 0.51)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0, 4), (0, 4), (1.5, 1.6, 0.51, 0.51)),
    "cbrt": (np.cbrt, (-8, 8), (-8, 8), (0.51, 0.51, 0.51, 0.51)),
    "sin": (np.sin, (-200, 200), (-200, 200), (1.7, 2.2, 0.51, 0.51)),
    "cos": (np.cos, (-200, 200), (-200, 200), (1.7, 2.2, 0.51, 0.51)),
    "tan": (np.tan, (-200, 200), (-200, 200), (3.4, 3.7, 0.51, 0.51)),
    "asin": (np.arcsin, (-1, 1), (-1, 1), (2.2, 2.2, 0.51, 0.51)),
    "acos": (np.arccos, (-1, 1), (-1, 1), (1.5, 1.5, 0.51, 0.51)),
    "atan": (np.arctan, (-3, 3), (-3, 3), (1.3, 1.3, 0.51, 0.51)),
    "sinh": (np.sinh, (-90, 90), (-711, 711), (6.0, 1.6, 0.51, 0.51)),
    "cosh": (np.cosh, (-90, 90), (-711, 711), (4.5, 1.6, 0.51, 0.51)),
    "tanh": (np.tanh, (-3, 3), (-3, 3), (3.1, 2.5, 0.51, 0.63)),
    "asinh": (np.arcsinh, (-3, 3), (-3, 3), (2.2, 2.3, 0.51, 0.51)),
    "acosh": (np.arccosh, (1, 3), (1, 3), (2.5, 2.5, 0.51, 0.51)),
    "atanh": (np.arctanh, (-1, 1), (-1, 1), (2.5, 2.5, 0.51, 0.51)),
    "erf": ("erfl", (-4, 4), (-6, 6), (1.8, 1.1, 0.51, 0.51)),
    "erfc": ("erfcl", (-2, 10.3), (-2, 27.5), (8.0, 4.0, 0.51, 0.51)),
}


def reference_of(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """The function in long double, of 64 bits or more: NumPy's float64 forms are of its own making
    and differ from machine to machine; `test_math_references.py` holds these against integers."""
    reference = UNARY[name][0]
    function = libm(reference) if isinstance(reference, str) else reference
    return lambda x: function(x.astype(np.longdouble))
