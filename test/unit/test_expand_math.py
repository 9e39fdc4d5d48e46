"""Errors of the expanded math functions against C's long double, and their PTX.

The limits below are those of passes/math/README.md: the largest error, in units in the last place
of the type, over the samples, with hardware instructions as bad as PTX allows them to be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from cpu_function import CpuFunction
from math_errors import (
    ARRAYS,
    SPECIAL,
    UNARY,
    assert_close,
    compiled,
    expanded,
    one_op,
    reference_of,
    samples,
)
from mlir import ir
from mlir.passmanager import PassManager
from scalar_execution import assemble, find_ptxas, llvm_text, ptx_of
from target_names import MAIN

import tilec
import tilec.language as tl
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.passes.contract import PassContext
from tilec.passes.expand_math import expand_math
from tilec.passes.layouts.op_costs import FUNCTIONS


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_error_is_below_the_stated_one(name: str, kind: str) -> None:
    _, single, double, limits = UNARY[name]
    interval, limit = (single, limits[0]) if kind == "f32" else (double, limits[1])
    x = samples(kind, *interval, 100_000 if kind == "f32" else 50_000)
    with np.errstate(all="ignore"):
        wanted = reference_of(name)(x)
        got = compiled(f"math.{name}", [kind])(x)
        assert_close(got, wanted, kind, limit, (x,))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize(("kind", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_every_16_bit_argument(name: str, kind: str, dtype: type) -> None:
    limit = UNARY[name][3][2 if kind == "f16" else 3]
    bits = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        x = bits.view(dtype).astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = reference_of(name)(x)
        got = compiled(f"math.{name}", [kind])(bits).view(dtype).astype(np.float64)
        assert_close(got, wanted, kind, limit, (x,))


# With the hardware's instructions rounding correctly, what is left is the formulas' own error.
@pytest.mark.parametrize(
    ("name", "limit"), [("exp", 1.7), ("sinh", 2.5), ("tanh", 1.8), ("erf", 1.2), ("erfc", 4.3)]
)
def test_error_of_the_formula_itself(name: str, limit: float) -> None:
    x = samples("f32", *UNARY[name][1], 100_000, seed=1)
    with np.errstate(all="ignore"):
        wanted = reference_of(name)(x)
        got = compiled(f"math.{name}", ["f32"], exact_hardware=True)(x)
        assert_close(got, wanted, "f32", limit, (x,))


def pairs(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Every special value with every other, then random ones."""
    dtype, _ = ARRAYS[kind]
    with np.errstate(over="ignore"):
        special = np.array([*SPECIAL, 5, -5, 0.1, 7, 2.5, -2.5, 2**24, 2**53, 1e6]).astype(dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(special, special))
    more = samples(kind, -10, 10, count, seed=2), samples(kind, -10, 10, count, seed=3)
    order = np.random.default_rng(4).permutation(more[0].size)
    return np.concatenate([x, more[0]]), np.concatenate([y, more[1][order]])


@pytest.mark.parametrize(("kind", "limit"), [("f32", 0.53), ("f64", 1.3)])
def test_power(kind: str, limit: float) -> None:
    x, y = pairs(kind, 100_000 if kind == "f32" else 40_000)
    near_one = np.random.default_rng(5).uniform(0.5, 2, x.size).astype(x.dtype)
    with np.errstate(all="ignore"):
        x = np.concatenate([x, near_one])
        y = np.concatenate([y, (y * 4).astype(x.dtype)])
        wanted = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        got = compiled("math.powf", [kind, kind])(x, y)
        assert_close(got, wanted, kind, limit, (x, y))


@pytest.mark.parametrize(("kind", "limit"), [("f32", 2.0), ("f64", 2.0)])
def test_atan2(kind: str, limit: float) -> None:
    y, x = pairs(kind, 100_000 if kind == "f32" else 40_000)
    with np.errstate(all="ignore"):
        wanted = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
        got = compiled("math.atan2", [kind, kind])(y, x)
        assert_close(got, wanted, kind, limit, (y, x))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_remainder_is_exact(kind: str) -> None:
    x, y = pairs(kind, 100_000)
    with np.errstate(all="ignore"):
        wanted = np.fmod(x, y)
        got = compiled("arith.remf", [kind, kind])(x, y)
    same = (got == wanted) & (np.signbit(got) == np.signbit(wanted))
    wrong = ~(same | (np.isnan(got) & np.isnan(wanted)))
    assert not wrong.any(), (x[wrong][0], y[wrong][0], got[wrong][0], wanted[wrong][0])


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_16_bit_remainder(kind: str) -> None:
    dtype = np.float16 if kind == "f16" else ml_dtypes.bfloat16
    rng = np.random.default_rng(6)
    bits = [rng.integers(0, 1 << 16, 100_000, dtype=np.uint16) for _ in range(2)]
    with np.errstate(all="ignore"):
        x, y = (array.view(dtype).astype(np.float64) for array in bits)
        got = compiled("arith.remf", [kind, kind])(*bits).view(dtype).astype(np.float64)
        assert_close(got, np.fmod(x, y), kind, 0.0, (x, y))


@pytest.mark.parametrize("exponent", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize(("kind", "limit"), [("f32", 0.53), ("f64", 1.3)])
def test_power_of_an_integer(kind: str, limit: float, exponent: str) -> None:
    dtype = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}[exponent]
    rng = np.random.default_rng(7)
    n = rng.integers(-60, 60, 100_000).astype(dtype)
    n[:7] = [0, 1, -1, np.iinfo(dtype).max, np.iinfo(dtype).min, 2, 3]
    x = (rng.standard_normal(n.size) * 3).astype(ARRAYS[kind][0])
    x[:12] = [np.nan, -0.0, -0.0, -1, -1, np.inf, -np.inf, 0, 1, -1, -0.0, np.inf]
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.longdouble), n.astype(np.longdouble))
        got = compiled("math.fpowi", [kind, exponent], kind)(x, n)
        assert_close(got, wanted, kind, limit, (x, n))


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_integer_power(kind: str) -> None:
    bits = int(kind[1:])
    function = compiled("math.ipowi", [kind, kind])
    bases = [-7, -3, -2, -1, 1, 2, 3, 5, 10, 12345]
    grid = [(base, n) for base in [0, *bases] for n in range(0, 70)]
    grid += [(base, n) for base in bases for n in (-1, -2, -3, -63)]
    dtype = np.int32 if kind == "i32" else np.int64
    x, n = (np.array(column, dtype) for column in zip(*grid, strict=True))
    for base, exponent, got in zip(x.tolist(), n.tolist(), function(x, n).tolist(), strict=True):
        power = base**exponent if exponent >= 0 else math.trunc(1 / base**-exponent)
        wanted = (power + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
        assert got == wanted, (base, exponent)


def _relative(x: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.abs(wanted)


def _absolute(x: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.ones_like(wanted)


# op: interval, largest error as a function of argument and result (README.md states them)
APPROXIMATE: dict[str, tuple[tuple[float, float], Callable]] = {
    "exp": ((-80, 80), lambda x, r: r * (2.0**-21.6 + np.abs(x) * 2.0**-23)),
    "exp2": ((-120, 120), lambda x, r: r * 2.0**-21.6),
    "log": ((1e-3, 1e3), lambda x, r: np.maximum(2.0**-22, np.abs(r) * 2.0**-21)),
    "log2": ((1e-3, 1e3), lambda x, r: np.maximum(2.0**-21.6, np.abs(r) * 2.0**-21.6)),
    "log10": ((1e-3, 1e3), lambda x, r: np.maximum(2.0**-23, np.abs(r) * 2.0**-21)),
    "sqrt": ((0, 100), lambda x, r: r * 2.0**-22.4),
    "rsqrt": ((1e-3, 100), lambda x, r: r * 2.0**-22.4),
    "sin": ((-3.14, 3.14), lambda x, r: 2.0**-20.3),
    "cos": ((-3.14, 3.14), lambda x, r: 2.0**-20.3),
    "tan": ((-1, 1), lambda x, r: 2.0**-18 + 0 * r),
    "tanh": ((-10, 10), lambda x, r: np.abs(r) * 2.0**-10.9),
}


@pytest.mark.parametrize("name", APPROXIMATE)
@pytest.mark.parametrize("flags", ["afn", "fast"])
def test_approximate_forms_are_as_good_as_stated(name: str, flags: str) -> None:
    interval, allowed = APPROXIMATE[name]
    x = np.random.default_rng(8).uniform(*interval, 200_000).astype(np.float32)
    text = expanded(one_op(f"math.{name}", ["f32"], "f32", flags))
    assert "llvm.nvvm" in text or "@llvm.tanh" in text
    wanted = reference_of(name)(x)
    error = np.abs(CpuFunction(text, "f", ["f32"], "f32")(x) - wanted)
    assert (error <= allowed(x, wanted)).all()


def test_approximate_power() -> None:
    rng = np.random.default_rng(9)
    x = rng.uniform(0.1, 10, 100_000).astype(np.float32)
    y = rng.uniform(-10, 10, 100_000).astype(np.float32)
    wanted = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    got = compiled("math.powf", ["f32", "f32"], flags="afn")(x, y)
    allowed = 2.0**-21 + np.abs(y) * np.maximum(1, np.abs(np.log2(x))) * 2.0**-21.5
    assert (np.abs(got - wanted) <= wanted * allowed).all()


def test_quotient_with_arcp_is_within_two_ulps() -> None:
    x, y = pairs("f32", 50_000)
    with np.errstate(all="ignore"):
        wanted = x.astype(np.longdouble) / y.astype(np.longdouble)
        got = compiled("arith.divf", ["f32", "f32"], flags="arcp")(x, y)
        assert_close(got, wanted, "f32", 3.0, (x, y))


def test_approximate_quotient() -> None:
    """Within two ulps of divisors up to 2**126, 0 beyond; denormals are zeros."""
    x, y = pairs("f32", 50_000)
    least = np.finfo(np.float32).smallest_normal
    with np.errstate(all="ignore"):
        wanted = x.astype(np.longdouble) / y.astype(np.longdouble)
        got = compiled("arith.divf", ["f32", "f32"], flags="afn")(x, y)
        near = (np.abs(y) >= least) & (np.abs(y) <= 2.0**126) & (np.abs(x) >= least)
        near &= (np.abs(wanted) >= 2 * least) & (np.abs(wanted) <= 2.0**126)
    assert near.sum() > 10_000
    assert_close(got[near], wanted[near], "f32", 3.0, (x[near], y[near]))


def test_an_approximate_reciprocal_is_one_instruction() -> None:
    text = expanded("""
        llvm.func @f(%x: f32) -> f32 {
          %one = arith.constant 1.0 : f32
          %r = arith.divf %one, %x fastmath<afn> : f32
          llvm.return %r : f32
        }""")
    assert "nvvm.rcp.approx.ftz" in text
    assert "fdiv" not in text
    assert "div.approx" not in text


@pytest.mark.parametrize("flags", ["", "contract"])
def test_other_quotients_are_left_to_llvm(flags: str) -> None:
    text = expanded(one_op("arith.divf", ["f32", "f32"], "f32", flags))
    assert "fdiv" in text
    assert "nvvm" not in text


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_classification(kind: str) -> None:
    if kind == "f16":
        bits = np.arange(1 << 16, dtype=np.uint16)
        x = bits.view(np.float16)
    else:
        bits = x = samples(kind, -1, 1, 1000)
    smallest = np.finfo(x.dtype).smallest_normal
    wanted = {
        "isnan": np.isnan(x),
        "isinf": np.isinf(x),
        "isfinite": np.isfinite(x),
        "isnormal": np.isfinite(x) & (np.abs(x) >= smallest),
    }
    for name, answer in wanted.items():
        got = compiled(f"math.{name}", [kind], "i1")(bits) & 1
        assert (got == answer).all(), name


def test_clamp_keeps_nan() -> None:
    x = np.array([-5, -1, 0.5, 3, np.nan, np.inf, -np.inf], np.float32)
    low, high = np.full_like(x, -2), np.full_like(x, 2)
    got = compiled("math.clampf", ["f32", "f32", "f32"])(x, low, high)
    np.testing.assert_array_equal(got, np.clip(x, -2, 2))


def test_vectors_are_taken_apart() -> None:
    source = """
    func.func @f(%x: f32, %y: f32) -> f32 {
      %a = vector.from_elements %x, %y : vector<2xf32>
      %e = math.exp %a : vector<2xf32>
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %p = llvm.extractelement %e[%zero : i32] : vector<2xf32>
      %q = llvm.extractelement %e[%one : i32] : vector<2xf32>
      %r = arith.subf %p, %q : f32
      return %r : f32
    }"""
    source = source.replace(
        "%a = vector.from_elements %x, %y : vector<2xf32>",
        "%n = llvm.mlir.poison : vector<2xf32>\n %i0 = arith.constant 0 : i32\n"
        "%i1 = arith.constant 1 : i32\n"
        "%m = llvm.insertelement %x, %n[%i0 : i32] : vector<2xf32>\n"
        "%a = llvm.insertelement %y, %m[%i1 : i32] : vector<2xf32>",
    )
    function = CpuFunction(expanded(source), "f", ["f32", "f32"], "f32", exact_hardware=True)
    x, y = np.array([1, 2], np.float32), np.array([0, -1], np.float32)
    np.testing.assert_allclose(function(x, y), np.exp(x) - np.exp(y), rtol=1e-6)


def test_a_formula_is_written_once_and_keeps_the_locations_of_its_uses() -> None:
    source = """
    module {
      func.func @f(%x: f32) -> f32 {
        %0 = math.erf %x : f32 loc("k.py":3:5)
        %1 = math.erf %0 : f32 loc("k.py":4:5)
        return %1 : f32
      }
      gpu.module @kernels {
        llvm.func @g(%x: f32) -> f32 {
          %0 = math.erf %x : f32 loc("k.py":9:5)
          llvm.return %0 : f32
        }
      }
    }"""
    with ir.Context():
        module = ir.Module.parse(source)
        expand_math(module, PassContext(find_target("sm_80")))
        module.operation.verify()
        text = module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
    assert text.count("llvm.func internal @__tilec_erf_f32") == 2
    assert text.count("llvm.call @__tilec_erf_f32") == 3
    for line in (3, 4, 9):
        assert f'-> f32 loc("k.py":{line}:5)' in text


def test_inlined_formulas_have_the_location_of_the_op() -> None:
    source = """
    llvm.func @k(%a: !llvm.ptr<1>) attributes {nvvm.kernel} {
      %x = llvm.load %a : !llvm.ptr<1> -> f32 loc("k.py":3:5)
      %y = math.exp %x : f32 loc("k.py":7:5)
      llvm.store %y, %a : f32, !llvm.ptr<1> loc("k.py":9:5)
      llvm.return loc("k.py":10:5)
    } loc("k.py":1:1)"""
    scope = "ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}"
    with ir.Context():
        module = ir.Module.parse(source)
        expand_math(module, PassContext(find_target("sm_80")))
        PassManager.parse(f"builtin.module({scope})").run(module.operation)
        (ptx,) = ptx_of([llvm_text(module)], "sm_80")
    before_ex2 = ptx[: ptx.index("ex2.approx")]
    assert before_ex2[before_ex2.rindex(".loc") :].split()[2] == "7"


def test_layouts_are_told_how_long_functions_are() -> None:
    """A table of layout inference against the instructions of each function's PTX."""
    rows = [(name, kind) for name in FUNCTIONS for kind in ("f32", "f64")]
    arity = {"math.atan2": 2, "math.powf": 2, "arith.remf": 2}
    source = "".join(
        one_op(name, [kind] * arity.get(name, 1), kind, name=f"f{number}")
        for number, (name, kind) in enumerate(rows)
    )
    (ptx,) = ptx_of([expanded(source)], "sm_80")
    bodies = re.split(r"\.func .*?\bf\d+\(", ptx)[1:]
    for (name, kind), body in zip(rows, bodies, strict=True):
        instructions = re.findall(r"^\s*(?:@\S+ )?([a-z]\w*)[. ].*;", body, re.MULTILINE)
        counted = [i for i in instructions if i not in ("ld", "st", "mov", "ret")]
        told = FUNCTIONS[name][kind == "f64"]
        assert told <= 4 or told / 1.5 < len(counted) < told * 1.5, (name, kind, len(counted))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (one_op("math.exp", ["f128"], "f128"), "math.exp has no expansion for f128; known types"),
        (one_op("math.exp", ["vector<2x2xf32>"], "vector<2x2xf32>"), "for vector<2x2xf32>"),
    ],
)
def test_unknown_types_are_an_error(source: str, message: str) -> None:
    with ir.Context():
        module = ir.Module.parse(source)
        with pytest.raises(CompileError, match=message):
            expand_math(module, PassContext(find_target("sm_80")))


FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGERS = ["i8", "i16", "i32", "i64"]


def every_op() -> list[tuple[str, list[str], str, str]]:
    """(op, operand types, result type, flags) of all that expand_math promises."""
    plain = ["absf", "floor", "ceil", "round", "roundeven", "trunc", *UNARY]
    rows = []
    for kind in FLOATS:
        for flags in ("", "afn"):
            rows += [(f"math.{name}", [kind], kind, flags) for name in plain]
            rows += [(f"math.{name}", [kind] * 2, kind, flags) for name in ("powf", "atan2")]
            rows += [(f"arith.{name}", [kind] * 2, kind, flags) for name in ("divf", "remf")]
        rows += [(f"math.{name}", [kind], "i1", "") for name in ("isnan", "isinf", "isfinite")]
        rows += [("math.isnormal", [kind], "i1", ""), ("math.copysign", [kind] * 2, kind, "")]
        rows += [("math.fma", [kind] * 3, kind, ""), ("math.clampf", [kind] * 3, kind, "")]
        rows += [("arith.divf", [kind] * 2, kind, "arcp")]
        rows += [(f"arith.{name}f", [kind] * 2, kind, "") for name in ("maximum", "minimum")]
        rows += [(f"arith.{name}f", [kind] * 2, kind, "") for name in ("maxnum", "minnum")]
        rows += [("math.fpowi", [kind, "i32"], kind, "")]
    for kind in INTEGERS:
        rows += [(f"math.{name}", [kind], kind, "") for name in ("absi", "ctlz", "cttz", "ctpop")]
        rows += [("math.ipowi", [kind] * 2, kind, "")]
    return rows


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
@pytest.mark.parametrize("target", MAIN)
def test_every_op_becomes_ptx_that_assembles(target: str) -> None:
    source = "".join(one_op(*row, name=f"f{index}") for index, row in enumerate(every_op()))
    (ptx,) = ptx_of([expanded(source, target)], target)
    assert ".extern" not in ptx
    assert "call" not in ptx
    assemble(ptx, target)


@tilec.kernel(grid=lambda x: x.shape[0])
def weights(x: tl.array, y: tl.array, APPROX: tl.const):
    """Exponentials of rows."""
    row = tl.load(x, (tl.program_id(0), 0), (1, 4096))
    tl.store(y, (tl.program_id(0), 0), tl.exp(row - tl.max(row), approx=APPROX))


@pytest.mark.parametrize("approx", [False, True])
def test_the_report_says_what_accurate_functions_take(approx: bool) -> None:
    specs = ["x:f32[?,?:4;?:4,1]", "y:f32[?,?:4;?:4,1]"]
    report = weights.compile(specs, {"APPROX": approx}, target="sm_90a").report
    told = [one["chosen"] for one in report["decisions"] if one["about"] == "function"]
    assert told == ([] if approx else ["exp in 9 instructions"])
