"""8-bit floats against ml_dtypes and exact rounding, for the integer and the instruction form."""

from __future__ import annotations

import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from cpu_function import CpuFunction
from mlir import ir
from scalar_execution import assemble, find_ptxas, llvm_text, ptx_of
from target_names import MAIN

from tilec.dialects.context import make_context
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.passes.contract import PassContext
from tilec.passes.convert_floats import convert_floats

FORMS = {"f8E4M3FN": (ml_dtypes.float8_e4m3fn, 0x7E), "f8E5M2": (ml_dtypes.float8_e5m2, 0x7B)}
WITHOUT_INSTRUCTION, WITH_INSTRUCTION = "sm_80", "sm_90a"


def converted(source: str, target: str) -> str:
    """LLVM IR of `source` after convert_floats."""
    with _context():
        module = ir.Module.parse(source)
        convert_floats(module, PassContext(find_target(target)))
        module.operation.verify()
        assert "f8E" not in str(module)
        return llvm_text(module)


@cache
def _context() -> ir.Context:
    """One for all functions: making it takes as long as a function does."""
    return make_context()


@cache
def fp8_instructions() -> list[str]:
    """Modules that define the fp8 instructions: from the integer forms and from ml_dtypes."""
    modules = []
    for form, (dtype, _) in FORMS.items():
        short = form[2:6].lower()
        encode = to_code(form, "f32", name=f"encode_{short}")
        modules.append(converted(encode, WITHOUT_INSTRUCTION))
        values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float16).view(np.uint16)
        table = ", ".join(f"i16 {value}" for value in values)
        modules.append(f"""
declare i8 @encode_{short}(float)
@table_{short} = constant [256 x i16] [{table}]
define half @decode_{short}(i16 %c) {{
  %b = and i16 %c, 255
  %i = zext i16 %b to i64
  %p = getelementptr [256 x i16], ptr @table_{short}, i64 0, i64 %i
  %v = load half, ptr %p
  ret half %v
}}
define <2 x half> @hw.{short}x2.to.f16x2.rn(i16 %c) {{
  %l = call half @decode_{short}(i16 %c)
  %u = lshr i16 %c, 8
  %h = call half @decode_{short}(i16 %u)
  %v = insertelement <2 x half> poison, half %l, i32 0
  %w = insertelement <2 x half> %v, half %h, i32 1
  ret <2 x half> %w
}}
define i16 @hw.ff.to.{short}x2.rn(float %upper, float %lower) {{
  %u8 = call i8 @encode_{short}(float %upper)
  %l8 = call i8 @encode_{short}(float %lower)
  %u16 = zext i8 %u8 to i16
  %l16 = zext i8 %l8 to i16
  %s = shl i16 %u16, 8
  %r = or i16 %s, %l16
  ret i16 %r
}}""")
    return modules


def run(text: str, operands: list[str], result: str) -> CpuFunction:
    """`f` of an LLVM IR text, with the fp8 instructions defined."""
    return CpuFunction(text, "f", operands, result, more_hardware=fp8_instructions())


def to_code(form: str, source: str, op: str = "arith.truncf", name: str = "f") -> str:
    return f"""func.func @{name}(%x: {source}) -> i8 {{
      %c = {op} %x : {source} to {form}
      %r = arith.bitcast %c : {form} to i8
      return %r : i8
    }}"""


def from_code(form: str, target: str, op: str = "arith.extf") -> str:
    return f"""func.func @f(%c: i8) -> {target} {{
      %x = arith.bitcast %c : i8 to {form}
      %r = {op} %x : {form} to {target}
      return %r : {target}
    }}"""


def to_bf16(op: str, source: str) -> str:
    return f"""func.func @f(%x: {source}) -> bf16 {{
      %r = {op} %x : {source} to bf16
      return %r : bf16
    }}"""


def nearest_code(x: np.ndarray, form: str) -> np.ndarray:
    """The codes of `x` rounded once, to nearest even, saturating; NaN is 0x7f."""
    dtype, largest = FORMS[form]
    values = np.arange(largest + 1, dtype=np.uint8).view(dtype).astype(np.longdouble)
    middles = (values[1:] + values[:-1]) / 2
    magnitude = np.abs(x.astype(np.longdouble))
    code = np.searchsorted(middles, magnitude, side="left")
    tie = (code < middles.size) & (magnitude == middles[np.minimum(code, middles.size - 1)])
    code = np.where(tie & (code % 2 == 1), code + 1, code).astype(np.uint8)
    code = code | np.where(np.signbit(x), 0x80, 0).astype(np.uint8)
    return np.where(np.isnan(x), np.uint8(0x7F), code)


def numbers(form: str) -> np.ndarray:
    """Float64 numbers: every value and tie of the format and their neighbours, and random ones."""
    dtype, largest = FORMS[form]
    values = np.arange(largest + 1, dtype=np.uint8).view(dtype).astype(np.float64)
    exact = np.concatenate([values, (values[1:] + values[:-1]) / 2, [values[-1] * 1.0625, 1e30]])
    close = [exact, np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf)]
    close += [exact * (1 + 2.0**-30), exact * (1 - 2.0**-30), exact * (1 + 2.0**-12)]
    rng = np.random.default_rng(0)
    close += [np.exp2(rng.uniform(-30, 20, 50_000)), np.array([np.inf, np.nan, 5e-324, 1e300])]
    positive = np.concatenate(close)
    return np.concatenate([positive, -positive])


both_ways = pytest.mark.parametrize("target", [WITHOUT_INSTRUCTION, WITH_INSTRUCTION])
both_forms = pytest.mark.parametrize("form", FORMS)


@both_ways
@both_forms
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_rounding_to_8_bits_is_to_nearest_even_and_once(
    target: str, form: str, source: str
) -> None:
    with np.errstate(over="ignore"):
        x = numbers(form).astype({"f32": np.float32, "f64": np.float64}[source])
    got = run(converted(to_code(form, source), target), [source], "i8")(x)
    wanted = nearest_code(x, form)
    # The sign of a NaN's code is always clear.
    wrong = got != wanted
    assert not wrong.any(), (x[wrong][:5], got[wrong][:5], wanted[wrong][:5])


@both_ways
@both_forms
@pytest.mark.parametrize(("source", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_every_16_bit_float_to_8_bits(target: str, form: str, source: str, dtype: type) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    got = run(converted(to_code(form, source), target), [source], "i8")(bits)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, nearest_code(bits.view(dtype).astype(np.float64), form))


@pytest.mark.share(2)
@both_ways
@both_forms
@pytest.mark.parametrize(
    ("source", "op"),
    [(f"i{bits}", op) for bits in (8, 16, 32, 64) for op in ("arith.sitofp", "arith.uitofp")],
)
def test_integers_to_8_bits(target: str, form: str, source: str, op: str) -> None:
    dtype = np.dtype(("u" if op == "arith.uitofp" else "") + f"int{source[1:]}")
    rng = np.random.default_rng(1)
    limits = np.iinfo(dtype)
    x = np.concatenate(
        [
            rng.integers(limits.min, limits.max, 1000, dtype=dtype, endpoint=True),
            rng.integers(max(limits.min, -600), min(limits.max, 600), 5000).astype(dtype),
            rng.integers(max(limits.min, -70000), min(limits.max, 70000), 5000).astype(dtype),
        ]
    )
    got = run(converted(to_code(form, source, op), target), [source], "i8")(x)
    np.testing.assert_array_equal(got, nearest_code(x.astype(np.longdouble), form))


@both_ways
@both_forms
@pytest.mark.parametrize("wide", ["f16", "bf16", "f32", "f64"])
def test_every_code_to_a_wider_float(target: str, form: str, wide: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    got = run(converted(from_code(form, wide), target), ["i8"], wide)(codes)
    if wide in ("f16", "bf16"):
        got = got.view(np.float16 if wide == "f16" else ml_dtypes.bfloat16)
    wanted = codes.view(FORMS[form][0]).astype(np.float64)
    got = got.astype(np.float64)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got)[wanted == 0], np.signbit(wanted)[wanted == 0])


@both_ways
@both_forms
@pytest.mark.parametrize(("op", "low"), [("arith.fptosi", -500), ("arith.fptoui", 0)])
def test_codes_to_integers(target: str, form: str, op: str, low: int) -> None:
    values = np.arange(256, dtype=np.uint8).view(FORMS[form][0]).astype(np.float64)
    codes = np.arange(256, dtype=np.uint8)[(values >= low) & (values <= 30000)]
    got = run(converted(from_code(form, "i32", op), target), ["i8"], "i32")(codes)
    np.testing.assert_array_equal(got, np.trunc(codes.view(FORMS[form][0]).astype(np.float64)))


@both_ways
def test_types_of_arguments_loops_and_constants_change(target: str) -> None:
    source = """
    func.func @g(%x: f8E5M2) -> f8E5M2 { return %x : f8E5M2 }
    func.func @f(%x: f32, %n: i32) -> f32 {
      %start = arith.constant -1.5 : f8E5M2
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %last = scf.for %i = %zero to %n step %one iter_args(%c = %start) -> (f8E5M2) : i32 {
        %w = arith.extf %c : f8E5M2 to f32
        %s = arith.addf %w, %x : f32
        %t = arith.truncf %s : f32 to f8E5M2
        %odd = arith.cmpi eq, %i, %two : i32
        %u = arith.select %odd, %start, %t : f8E5M2
        scf.yield %u : f8E5M2
      }
      %called = func.call @g(%last) : (f8E5M2) -> f8E5M2
      %r = arith.extf %called : f8E5M2 to f32
      return %r : f32
    }"""
    x = np.array([0.3, 1, 5, -0.01], np.float32)
    for turns in (0, 1, 3, 4):
        wanted = np.full(4, -1.5, np.float32)
        for turn in range(turns):
            wanted = (wanted + x).astype(ml_dtypes.float8_e5m2).astype(np.float32)
            wanted = np.full(4, -1.5, np.float32) if turn == 2 else wanted
        got = run(converted(source, target), ["f32", "i32"], "f32")(x, np.full(4, turns, np.int32))
        np.testing.assert_array_equal(got, wanted)


PAIR = """
func.func @f(%x: f32, %y: f32, %z: f32) -> i32 {
  %a = arith.truncf %x : f32 to f8E4M3FN
  %b = arith.truncf %y : f32 to f8E4M3FN
  %d = arith.addf %y, %z : f32
  %c = arith.truncf %d : f32 to f8E4M3FN
  %i = arith.bitcast %a : f8E4M3FN to i8
  %j = arith.bitcast %b : f8E4M3FN to i8
  %k = arith.bitcast %c : f8E4M3FN to i8
  %l = arith.extui %i : i8 to i32
  %m = arith.extui %j : i8 to i32
  %n = arith.extui %k : i8 to i32
  %eight = arith.constant 8 : i32
  %sixteen = arith.constant 16 : i32
  %o = arith.shli %m, %eight : i32
  %p = arith.shli %n, %sixteen : i32
  %q = arith.ori %l, %o : i32
  %r = arith.ori %q, %p : i32
  return %r : i32
}"""


def test_neighbours_share_an_instruction() -> None:
    text = converted(PAIR, WITH_INSTRUCTION)
    assert len(re.findall(r"call i16 @llvm\.nvvm\.ff\.to\.e4m3x2\.rn", text)) == 2
    x, y, z = (np.array([v], np.float32) for v in (1.5, -3, 7))
    (got,) = run(text, ["f32", "f32", "f32"], "i32")(x, y, z)
    codes = np.array([1.5, -3, 4]).astype(ml_dtypes.float8_e4m3fn).view(np.uint8).astype(int)
    assert got == codes[0] | codes[1] << 8 | codes[2] << 16


def test_a_conversion_needed_before_the_next_operand_is_alone() -> None:
    source = """
    func.func @f(%x: f32) -> f32 {
      %a = arith.truncf %x : f32 to f8E4M3FN
      %c = arith.bitcast %a : f8E4M3FN to i8
      %y = arith.uitofp %c : i8 to f32
      %d = arith.addf %y, %x : f32
      %b = arith.truncf %d : f32 to f8E4M3FN
      %z = arith.extf %b : f8E4M3FN to f32
      return %z : f32
    }"""
    text = converted(source, WITH_INSTRUCTION)
    assert len(re.findall(r"call i16 @llvm\.nvvm\.ff\.to\.e4m3x2\.rn", text)) == 2
    x = np.array([1.06, 30.1, -0.02], np.float32)
    once = x.astype(ml_dtypes.float8_e4m3fn).view(np.uint8).astype(np.float32)
    wanted = (once + x).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(run(text, ["f32"], "f32")(x), wanted)


@both_ways
@both_forms
def test_no_code_changes_its_neighbour(target: str, form: str) -> None:
    """All pairs of codes, side by side: one operation converts both, and each is as alone."""
    source = f"""
    func.func @f(%i: i8, %j: i8) -> i32 {{
      %x = arith.bitcast %i : i8 to {form}
      %y = arith.bitcast %j : i8 to {form}
      %l = arith.extf %x : {form} to f16
      %h = arith.extf %y : {form} to f16
      %m = arith.bitcast %l : f16 to i16
      %n = arith.bitcast %h : f16 to i16
      %o = arith.extui %m : i16 to i32
      %p = arith.extui %n : i16 to i32
      %sixteen = arith.constant 16 : i32
      %q = arith.shli %p, %sixteen : i32
      %r = arith.ori %o, %q : i32
      return %r : i32
    }}"""
    text = converted(source, target)
    if form == "f8E4M3FN" and target == WITHOUT_INSTRUCTION:
        assert len(re.findall("fmul <2 x half>", text)) == 1
    first, second = (codes.ravel() for codes in np.indices((256, 256), np.uint8))
    got = run(text, ["i8", "i8"], "i32")(first, second).view(np.float16).reshape(-1, 2)
    for codes, found in ((first, got[:, 0]), (second, got[:, 1])):
        wanted = codes.view(FORMS[form][0]).astype(np.float16)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@both_ways
def test_vectors_are_converted_in_pairs(target: str) -> None:
    source = """
    func.func @f(%x: f32, %y: f32, %z: f32) -> f32 {
      %none = llvm.mlir.poison : vector<3xf32>
      %i0 = arith.constant 0 : i32
      %i1 = arith.constant 1 : i32
      %i2 = arith.constant 2 : i32
      %v0 = llvm.insertelement %x, %none[%i0 : i32] : vector<3xf32>
      %v1 = llvm.insertelement %y, %v0[%i1 : i32] : vector<3xf32>
      %v = llvm.insertelement %z, %v1[%i2 : i32] : vector<3xf32>
      %c = arith.truncf %v : vector<3xf32> to vector<3xf8E4M3FN>
      %w = arith.extf %c : vector<3xf8E4M3FN> to vector<3xf32>
      %p = llvm.extractelement %w[%i0 : i32] : vector<3xf32>
      %q = llvm.extractelement %w[%i1 : i32] : vector<3xf32>
      %r = llvm.extractelement %w[%i2 : i32] : vector<3xf32>
      %s = arith.subf %p, %q : f32
      %t = arith.mulf %s, %r : f32
      return %t : f32
    }"""
    text = converted(source, target)
    arrays = [np.array(values, np.float32) for values in ([1.06, 3], [0.52, -7], [2, 5])]
    x, y, z = (a.astype(ml_dtypes.float8_e4m3fn).astype(np.float32) for a in arrays)
    np.testing.assert_array_equal(run(text, ["f32"] * 3, "f32")(*arrays), (x - y) * z)
    assert text.count("call i16 @llvm.nvvm.ff.to") == (2 if target == WITH_INSTRUCTION else 0)


@pytest.mark.parametrize("op", ["arith.sitofp", "arith.uitofp"])
@pytest.mark.parametrize("source", ["i8", "i16", "i32", "i64"])
def test_integers_to_bf16_round_once(op: str, source: str) -> None:
    text = converted(to_bf16(op, source), WITHOUT_INSTRUCTION)
    dtype = np.dtype(("u" if op == "arith.uitofp" else "") + f"int{source[1:]}")
    rng = np.random.default_rng(2)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, 50_000, dtype=dtype, endpoint=True)
    # Ties of bf16 and their neighbours, which f32 would make ties.
    ties = (rng.integers(257, 512, 50_000).astype(object) * 2 + 1) << max(0, int(source[1:]) - 12)
    ties = [int(t) + d for t in ties[:5000] for d in (-1, 0, 1) if int(t) + d <= limits.max]
    x = np.concatenate([x, np.array(ties or [0]).astype(dtype)])
    mantissa, exponent = np.frexp(x.astype(np.longdouble))
    wanted = np.ldexp(np.rint(mantissa * 256), exponent - 8).astype(np.float64)
    got = run(text, [source], "bf16")(x).view(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_array_equal(got, wanted)


def test_integers_to_bf16_are_left_alone_where_the_hardware_converts() -> None:
    source = (
        "func.func @f(%x: i32) -> bf16 { %r = arith.sitofp %x : i32 to bf16\n return %r : bf16 }"
    )
    assert "sitofp i32" in converted(source, WITH_INSTRUCTION)


def test_a_module_without_8_bit_floats_stays() -> None:
    source = "func.func @f(%x: f32) -> f16 { %r = arith.truncf %x : f32 to f16\n return %r : f16 }"
    with ir.Context():
        module = ir.Module.parse(source)
        before = str(module)
        convert_floats(module, PassContext(find_target("sm_80")))
        assert str(module) == before


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%r = arith.addf %x, %x : f8E5M2", "arith.addf has no form for f8E5M2"),
        ("%r = math.exp %x : f8E5M2", "math.exp has no form for f8E5M2"),
        ("%r = arith.cmpf olt, %x, %x : f8E5M2", "arith.cmpf has no form for f8E5M2"),
        (
            "%r = arith.constant dense<[1.0, 2.0]> : vector<2xf8E5M2>",
            "constant vector of f8E5M2 whose elements differ",
        ),
        (
            "%w = arith.extf %x : f8E5M2 to f32\n%r = arith.truncf %w toward_zero : f32 to f8E5M2",
            "rounds to nearest even only",
        ),
    ],
)
def test_what_8_bit_floats_cannot_do_is_an_error(body: str, message: str) -> None:
    with ir.Context():
        module = ir.Module.parse(f"func.func @f(%x: f8E5M2) {{ {body}\n return }}")
        with pytest.raises(CompileError, match=message):
            convert_floats(module, PassContext(find_target("sm_80")))


@pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")
@pytest.mark.parametrize("target", MAIN)
def test_every_conversion_becomes_ptx_that_assembles(target: str) -> None:
    sources = [to_code(form, kind) for form in FORMS for kind in ("f16", "bf16", "f32", "f64")]
    sources += [from_code(form, kind) for form in FORMS for kind in ("f16", "bf16", "f32", "f64")]
    for form in FORMS:
        for kind in ("i8", "i16", "i32", "i64"):
            sources += [to_code(form, kind, op) for op in ("arith.sitofp", "arith.uitofp")]
            sources += [from_code(form, kind, op) for op in ("arith.fptosi", "arith.fptoui")]
    for op in ("arith.sitofp", "arith.uitofp"):
        for kind in ("i8", "i16", "i32", "i64"):
            sources.append(to_bf16(op, kind))
    sources.append(PAIR)
    module = "".join(s.replace("@f(", f"@f{i}(") for i, s in enumerate(sources))
    (ptx,) = ptx_of([converted(module, target)], target)
    assert ".extern" not in ptx
    has_instruction = target != "sm_80"
    assert ("cvt.rn.satfinite.e4m3x2.f32" in ptx) == has_instruction
    assert ("cvt.rn.f16x2.e5m2x2" in ptx) == has_instruction
    assemble(ptx, target)
