"""Ops and ways of calling beside loads, stores and arithmetic: on the emulator, against NumPy."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e5m2
from target_names import MAIN

import tilec.triton
from tilec.messages.diagnostics import CompileError
from tilec.runtime.emulator_device import FindingsError
from tilec.runtime.errors import ArgumentError
from tilec.triton.ahead import module_ahead

KERNELS = Path(__file__).parent / "kernels"
RNG = np.random.default_rng(29)


@pytest.fixture(params=MAIN)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each target in turn is the emulator's."""
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


def kernel_of(name: str) -> tilec.triton.TritonKernel:
    """A kernel of the folder, to run in check mode."""
    path = KERNELS / f"{name}.ttir"
    return tilec.triton.kernel(path.read_text(), path.name).on("emulator:check")


def graded(x: int) -> int:
    """What `call.ttir` calls."""
    return 7 if x < 0 else 2 * min(x, 100)


def test_functions_out_of_line(target: str) -> None:
    x, out = np.array([-3, 0, 20, 51, 100, 170], np.int32), np.full(16, -1, np.int32)
    kernel_of("call")[6](x, out)
    once = [graded(int(one)) for one in x]
    np.testing.assert_array_equal(out[:6], once)
    np.testing.assert_array_equal(out[8:14], [graded(one) for one in once])


def test_branches_that_pass_values_on(target: str) -> None:
    x, out = np.array([-1, -2, 3, -5, -4, 0], np.int32), np.full(6, -77, np.int32)
    kernel_of("branches")[6](x, out)
    # Squares that are 1 modulo 5 return before anything is stored.
    np.testing.assert_array_equal(out, [-77, 5, 6, 26, -77, 6])


@dataclass
class Descriptor:
    """As Triton's `TensorDescriptor`: strides in elements."""

    base: Any
    block_shape: Sequence[int]
    padding: str = "zero"

    @property
    def shape(self) -> Sequence[int]:
        """Sizes."""
        return list(self.base.shape)

    @property
    def strides(self) -> Sequence[int]:
        """In elements."""
        return [stride // self.base.itemsize for stride in self.base.strides]


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_descriptors_as_arguments(target: str, padding: str) -> None:
    m, n = 13, 36
    a = RNG.integers(-9, 9, (m, n)).astype(np.float32)
    total, out = np.full((m, n), 5, np.int32), RNG.integers(0, 9, (16, n)).astype(np.float32)
    # Rows that are there twice would race; those that are outside are left out.
    rows = np.concatenate([RNG.permutation(16)[:14], [16, -1]]).astype(np.int32)
    expected, before = total + a.astype(np.int32), out.copy()
    loaded = np.full((16, n), 0 if padding == "zero" else np.nan, np.float32)
    loaded[:m] = a
    for place, row in enumerate(rows):
        if 0 <= row < 16:
            before[row] += loaded[place]
    kernel_of("host_descriptors")[2, 3](
        Descriptor(a, [8, 16], padding), Descriptor(total, [8, 16]), Descriptor(out, [1, 16]), rows
    )
    np.testing.assert_array_equal(total, expected)
    np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize(("word", "right"), [("max", np.maximum), ("min", np.minimum)])
def test_the_largest_of_floats_by_descriptor(word: str, right: Any) -> None:
    text = (KERNELS / "host_descriptors.ttir").read_text().replace("8x16xsi32", "8x16xf32")
    text = text.replace("reduce add, %sum[%2, %3], %5", f"reduce {word}, %sum[%2, %3], %4")
    text = text.replace(">>, tensor<8x16xi32>", ">>, tensor<8x16xf32>")
    a, best = (RNG.standard_normal((8, 16)).astype(np.float32) for _ in range(2))
    expected, out = right(a, best), np.zeros((8, 16), np.float32)
    rows = np.arange(8, dtype=np.int32)
    tilec.triton.kernel(text).on("emulator:check")[1, 1](a, best, out, rows)
    np.testing.assert_array_equal(best, expected)


def test_an_array_is_a_descriptor_of_all_of_it(target: str) -> None:
    a, total = np.full((8, 16), 3, np.float32), np.zeros((8, 16), np.int32)
    out = np.zeros((8, 16), np.float32)
    kernel_of("host_descriptors")[1, 1](a, total, out, np.arange(8, dtype=np.int32))
    assert (total == 3).all()
    assert (out == 3).all()


@dataclass
class Wrapper:
    """As Triton's `TensorWrapper`: an array read as another dtype."""

    base: Any

    def data_ptr(self) -> int:
        """The address."""
        return self.base.ctypes.data


def test_a_descriptor_of_what_is_read_as_another_dtype() -> None:
    a, total = np.full((8, 16), 3, np.float32), np.zeros((8, 16), np.int32)
    out, rows = np.zeros((8, 16), np.float32), np.arange(8, dtype=np.int32)
    given = Descriptor(total, [8, 16])
    wrapped = SimpleNamespace(
        base=Wrapper(total), shape=given.shape, strides=given.strides, block_shape=[8, 16]
    )
    kernel_of("host_descriptors")[1, 1](a, wrapped, out, rows)
    assert (total == 3).all()


def test_descriptors_are_checked() -> None:
    kernel = kernel_of("host_descriptors")
    a, total, out = (np.zeros((8, 16), dtype) for dtype in (np.float32, np.int32, np.float32))
    rows = np.arange(8, dtype=np.int32)
    with pytest.raises(ArgumentError, match=r"'a': expected a descriptor of tiles of \(8, 16\)"):
        kernel[1](Descriptor(a, [16, 8]), total, out, rows)
    with pytest.raises(ArgumentError, match="'a': expected a last stride of 1, found 8"):
        kernel[1](a.reshape(16, 8).T, total, out, rows)
    with pytest.raises(ArgumentError, match=r"'s': expected a multiple of 4 .* found 17"):
        kernel[1](np.zeros((8, 17), np.float32)[:, :16], total, out, rows)


def test_inline_assembly(target: str) -> None:
    x = RNG.integers(-128, 128, 256).astype(np.int8)
    y, out = RNG.integers(-50, 50, 256).astype(np.float32), np.full(256, np.nan, np.float32)
    kernel_of("inline_asm")[1](x, y, out)
    shifted = ((x & 0x1F).astype(np.uint8) << 3).astype(np.int8)
    np.testing.assert_array_equal(out, (x + y) * shifted - np.arange(256))


def test_maps_of_elements(target: str) -> None:
    x, y = (RNG.integers(0, 3, 128).astype(np.int32) for _ in range(2))
    out = np.full(256, 99, np.int32)
    kernel_of("map_elementwise")[1](x, y, out)
    compared = np.sign(x - y)
    four, signs = x.reshape(32, 4), compared.reshape(32, 4)
    first = np.concatenate([four[:, :1], four[:, 1:] - signs[:, :3]], axis=1)
    np.testing.assert_array_equal(out[:128], first.reshape(-1))
    np.testing.assert_array_equal(out[128:], np.roll(signs, 1, axis=1).reshape(-1))


def test_products_with_scales_on_one_side(target: str) -> None:
    x = RNG.standard_normal((32, 64)).astype(np.float16)
    codes = RNG.integers(0, 16, (64, 32))
    packed = (codes[::2] | codes[1::2] << 4).astype(np.uint8).view(np.int8)
    scale = RNG.integers(123, 131, (32, 2)).astype(np.uint8)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    numbers = np.where(codes & 8, -1, 1) * values[codes & 7]
    numbers *= 2.0 ** (scale.T.repeat(32, axis=0).astype(np.float64) - 127)
    out = np.full((32, 32), np.nan, np.float32)
    kernel_of("dot_scaled")[1](x, packed, scale.view(np.int8), out)
    # f16 has x and the numbers exactly: only sums of f32 are rounded.
    np.testing.assert_allclose(out, x.astype(np.float64) @ numbers, rtol=1e-5, atol=1e-4)


def of_floats(symbol: str, given: Sequence[str], result: str) -> str:
    """A kernel of a libdevice function on tiles of 64."""
    kinds = [*given, result]
    lines = ["    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>"]
    for n, kind in enumerate(kinds):
        tile = f"tensor<64x!tt.ptr<{kind}>>"
        lines.append(f"    %s{n} = tt.splat %p{n} : !tt.ptr<{kind}> -> {tile}")
        lines.append(f"    %q{n} = tt.addptr %s{n}, %r : {tile}, tensor<64xi32>")
        if n < len(given):
            lines.append(f"    %x{n} = tt.load %q{n} : {tile}")
    names = ", ".join(f"%x{n}" for n in range(len(given)))
    types = ", ".join(f"tensor<64x{kind}>" for kind in given)
    arguments = ", ".join(f"%p{n}: !tt.ptr<{kind}>" for n, kind in enumerate(kinds))
    call = f'{{libname = "", libpath = "", pure = true, symbol = "{symbol}"}}'
    lines.append(
        f"    %y = tt.extern_elementwise {names} {call} : ({types}) -> tensor<64x{result}>"
    )
    lines.append(f"    tt.store %q{len(given)}, %y : tensor<64x!tt.ptr<{result}>>")
    body = "\n".join(lines)
    return f"module {{\n  tt.func public @k({arguments}) {{\n{body}\n    tt.return\n  }}\n}}\n"


F32, F64, I32, I64 = "f32", "f64", "i32", "i64"
DTYPES: dict[str, Any] = {F32: np.float32, F64: np.float64, I32: np.int32}


def towards(up: bool, exact: Any) -> Any:
    """An f64 rounded to f32 upwards, or downwards."""
    near = exact.astype(np.float32)
    wrong = near < exact if up else near > exact
    return np.where(wrong, np.nextafter(near, np.float32(np.inf if up else -np.inf)), near)


def lgamma(x: float) -> float:
    """math.lgamma, which has no infinities at its poles."""
    return math.inf if math.isinf(x) or (x <= 0 and x == int(x)) else math.lgamma(x)


def erfinv(x: Any) -> Any:
    """By bisection in f64."""
    low, high = np.full(x.shape, -7.0), np.full(x.shape, 7.0)
    for _ in range(60):
        middle = (low + high) / 2
        above = np.vectorize(math.erf)(middle) > x
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    inside = np.where(np.abs(x) == 1, np.copysign(np.inf, x), (low + high) / 2)
    return np.where(x == 0, x, np.where(np.abs(x) <= 1, inside, np.nan))


@pytest.mark.parametrize(
    ("symbol", "given", "result", "right"),
    [
        ("__nv_isnanf", [F32], I32, np.isnan),
        ("__nv_isinfd", [F64], I32, np.isinf),
        ("__nv_finitef", [F32], I32, np.isfinite),
        ("__nv_signbitd", [F64], I32, np.signbit),
        ("__nv_fdimf", [F32, F32], F32, lambda x, y: np.where(x <= y, 0, x - y)),
        ("__nv_hypotf", [F32, F32], F32, np.hypot),
        ("__nv_fmodf", [F32, F32], F32, np.fmod),
        ("__nv_rcbrt", [F64], F64, lambda x: 1 / np.cbrt(x)),
        ("__nv_powif", [F32, I32], F32, lambda x, n: x.astype(np.float64) ** n),
        ("__nv_powi", [F64, I32], F64, lambda x, n: x**n),
        ("__nv_erfinvf", [F32], F32, erfinv),
        ("__nv_lgammaf", [F32], F32, np.vectorize(lgamma)),
        ("__nv_normcdff", [F32], F32, np.vectorize(lambda x: math.erfc(-x / math.sqrt(2)) / 2)),
        ("__nv_mulhi", [I32, I32], I32, lambda x, y: (x.astype(np.int64) * y) >> 32),
        ("__nv_float_as_int", [F32], I32, lambda x: x.view(np.int32)),
    ],
)
def test_libdevice(symbol: str, given: list[str], result: str, right: Any) -> None:
    drawn = [
        RNG.integers(-(1 << 31), 1 << 31, 64).astype(np.int32)
        if kind == I32
        else (3 * RNG.standard_normal(64)).astype(DTYPES[kind])
        for kind in given
    ]
    if given[0] != I32:
        drawn[0][:9] = [np.inf, -np.inf, np.nan, -0.0, 1, -1, 2, 0.999, -2.4571]
    out = np.full(64, 77, DTYPES[result])
    tilec.triton.kernel(of_floats(symbol, given, result)).on("emulator")[1](*drawn, out)
    with np.errstate(all="ignore"):
        expected = np.asarray(right(*drawn)).astype(out.dtype)
    np.testing.assert_allclose(out, expected, rtol=3e-7, atol=0)


@pytest.mark.parametrize("power", [3, 0, -5])
def test_known_whole_powers_are_products(power: int) -> None:
    text = of_floats("__nv_powif", [F32, I32], F32)
    constant = f"%x1 = arith.constant dense<{power}> : tensor<64xi32>"
    text = re.sub("%x1 = tt.load.*", constant, text)
    x, out = (3 * RNG.standard_normal(64)).astype(np.float32), np.zeros(64, np.float32)
    kernel = tilec.triton.kernel(text).on("emulator")
    kernel[1](x, np.zeros(64, np.int32), out)
    assert kernel.latest is not None
    assert "fma" not in kernel.latest.ptx
    np.testing.assert_allclose(out, x.astype(np.float64) ** power, rtol=4e-7)


@pytest.mark.parametrize("symbol", ["__nv_powif", "__nv_powi"])
def test_whole_powers_that_the_launch_knows_are_products(symbol: str) -> None:
    kind = F32 if symbol.endswith("f") else F64
    text = of_floats(symbol, [kind, I32], kind)
    one = "%n = tt.load %p1 : !tt.ptr<i32>\n%x1 = tt.splat %n : i32 -> tensor<64xi32>"
    text = re.sub("%x1 = tt.load.*", one, text)
    kernel = tilec.triton.kernel(text).on("emulator")
    x = (3 * RNG.standard_normal(64)).astype(DTYPES[kind])
    x[:4] = [np.inf, -np.inf, np.nan, -0.0]
    for power in (3, 0, 1, -5, 17, 2**31 - 1, -(2**31)):
        out = np.zeros_like(x)
        kernel[1](x, np.array([power], np.int32), out)
        with np.errstate(all="ignore"):
            expected = (x.astype(np.float64) ** power).astype(x.dtype)
        np.testing.assert_allclose(out, expected, rtol=3e-6)
    assert kernel.latest is not None
    assert "fma" not in kernel.latest.ptx


def test_libdevice_rounds_as_it_says() -> None:
    x, y = (RNG.standard_normal(64).astype(np.float32) for _ in range(2))
    for symbol, up in (("__nv_fadd_ru", True), ("__nv_fadd_rd", False)):
        out = np.zeros(64, np.float32)
        tilec.triton.kernel(of_floats(symbol, [F32, F32], F32)).on("emulator")[1](x, y, out)
        exact = x.astype(np.float64) + y
        assert (exact != out).any()
        np.testing.assert_array_equal(out, towards(up, exact))
    w = (100 * x).astype(np.float32)
    for symbol, whole in (("__nv_float2ll_rd", np.floor), ("__nv_llrintf", np.rint)):
        long = np.zeros(64, np.int64)
        tilec.triton.kernel(of_floats(symbol, [F32], I64)).on("emulator")[1](w, long)
        np.testing.assert_array_equal(long, whole(w).astype(np.int64))


@pytest.mark.parametrize(
    ("before", "after", "rounded"),
    [("f32", "f16", np.float16), ("f32", "bf16", bfloat16), ("f16", "f8E5M2", float8_e5m2)],
)
def test_conversions_that_round_towards_zero(before: str, after: str, rounded: Any) -> None:
    text = of_floats("none", [before], after)
    call = re.search(r"tt.extern_elementwise.*", text)
    assert call is not None
    kinds = f"tensor<64x{before}> -> tensor<64x{after}>"
    text = text.replace(call[0], f"tt.fp_to_fp %x0, rounding = rtz : {kinds}")
    x = RNG.standard_normal(64).astype(np.float32).astype({"f32": "f4", "f16": "f2"}[before])
    x[:4] = [np.inf, -np.inf, np.nan, -0.0]
    out = np.full(64, 77, np.float32).astype(rounded)
    tilec.triton.kernel(text).on("emulator")[1](x, out)
    found, exact = out.astype(np.float64), x.astype(np.float64)
    bits = out.view(f"u{out.itemsize}")
    np.testing.assert_array_equal(found[:4], exact[:4])
    # No further from 0 than before, and the next number outwards is.
    assert (np.abs(found[4:]) <= np.abs(exact[4:])).all()
    assert (np.abs(found[4:]) < np.abs(exact[4:])).any()
    outwards = (bits + 1).view(rounded).astype(np.float64)
    assert (np.abs(outwards[4:]) > np.abs(exact[4:])).all()


def body(lines: str, arguments: str = "%x: !tt.ptr<f32>, %n: i32") -> str:
    """A kernel's text."""
    return f"module {{\n  tt.func public @k({arguments}) {{\n{lines}\n    tt.return\n  }}\n}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (body("    %0 = tt.call @other(%n) : (i32) -> i32"), "there is no function 'other'"),
        (body("    tt.call @k(%x, %n) : (!tt.ptr<f32>, i32) -> ()"), "'k' calls itself"),
        (
            body("    cf.br ^bb1\n  ^bb1:\n    cf.br ^bb2\n  ^bb2:\n    cf.br ^bb1\n  ^bb3:"),
            "a loop made of branches",
        ),
        (body("", "%d: !tt.tensordesc<tensor<8x16xf32>>, %n: i32"), "without sizes and strides"),
        (
            of_floats("__nv_tgammaf", [F32], F32),
            "tilec has no function '__nv_tgammaf' for f32",
        ),
        (
            body(
                '    %0 = tt.elementwise_inline_asm "mov.u32 $0, $2;" {constraints = "=r,r", '
                "packed_element = 1 : i32, pure = false} %n : i32 -> i32"
            ),
            "names an operand that is not there",
        ),
        (
            body(
                '    %0 = tt.elementwise_inline_asm "ld.global.u32 $0, [$1];" {constraints = '
                '"=r,l", packed_element = 1 : i32, pure = false} %x : !tt.ptr<f32> -> i32'
            ),
            "pointers as operands",
        ),
        (
            body(
                '    %0 = tt.elementwise_inline_asm "add.u32 $0, $1, $2;" {constraints = '
                '"=r,r,n", packed_element = 1 : i32, pure = false} %n, %n : i32, i32 -> i32'
            ),
            "'n', is no constant",
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        module_ahead(text, "k.ttir")


def test_numbers_of_inline_assembly_stand_in_its_text() -> None:
    text = of_floats("none", [I32, I32], I32)
    call = re.search(r"tt.extern_elementwise.*", text)
    assert call is not None
    kinds = "tensor<64xi32>, tensor<64xi32>, tensor<64xi32>, i32 -> tensor<64xi32>"
    text = text.replace(
        call[0],
        'tt.elementwise_inline_asm "lop3.b32 $0, $1, $2, $3, $4;" {constraints = "=r,n,r,r,n", '
        f"packed_element = 1 : i32, pure = true}} %c, %x0, %x1, %l : {kinds}",
    )
    constants = (
        "%c = arith.constant dense<-252645136> : tensor<64xi32>\n    %l = arith.constant 234 : i32"
    )
    text = text.replace("    %r = ", f"    {constants}\n    %r = ", 1)
    x, y = (RNG.integers(-(1 << 31), 1 << 31, 64).astype(np.int32) for _ in range(2))
    out = np.zeros(64, np.int32)
    tilec.triton.kernel(text).on("emulator")[1](x, y, out)
    np.testing.assert_array_equal(out, (-252645136 & x) | y)


SUMMED = """
module {
  tt.func public @summed(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>) {
    %i = tt.make_range {end = 37 : i32, start = 0 : i32} : tensor<37xi32>
    %0 = tt.splat %x : !tt.ptr<i32> -> tensor<37x!tt.ptr<i32>>
    %1 = tt.addptr %0, %i : tensor<37x!tt.ptr<i32>>, tensor<37xi32>
    %2 = tt.load %1 : tensor<37x!tt.ptr<i32>>
    %3 = "tt.reduce"(%2) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c100 = arith.constant 100 : i32
      %s = arith.addi %a, %b : i32
      %ok = arith.cmpi slt, %s, %c100 : i32
      tt.assert %ok, "too much" : i1
      %c0 = arith.constant 0 : i32
      %some = arith.cmpi sgt, %b, %c0 : i32
      tt.assert %some, "a phantom" : i1
      tt.reduce.return %s : i32
    }) : (tensor<37xi32>) -> i32
    tt.store %out, %3 : !tt.ptr<i32>
    tt.return
  }
}
"""


def test_assertions_where_elements_are_combined(target: str) -> None:
    """Of what is combined, and of no phantom: Triton asserts so that no sum overflows."""
    x, out = np.full(37, 2, np.int32), np.zeros(1, np.int32)
    kernel = tilec.triton.kernel(SUMMED, "summed.ttir").on("emulator:check")
    kernel[1](x, out)
    assert out[0] == 74
    x[36] = 40
    with pytest.raises(FindingsError, match=r"too much.*summed\.ttir:13"):
        kernel[1](x, out)


def test_parameters_of_one_name_have_their_place() -> None:
    """Numbers behind a descriptor, and parts of a tuple, are named as it is."""
    text = (
        '#loc1 = loc("sizes")\nmodule {\n  tt.func public @k(%arg0: !tt.ptr<i32> loc("out"), '
        "%arg1: i32 loc(#loc1), %arg2: i32 loc(#loc1)) {\n"
        "    %0 = arith.subi %arg1, %arg2 : i32\n    tt.store %arg0, %0 : !tt.ptr<i32>\n"
        "    tt.return\n  }\n}\n"
    )
    out = np.zeros(1, np.int32)
    kernel = tilec.triton.kernel(text).on("emulator")
    assert [a.name for a in kernel.function.arguments] == ["out", "sizes", "sizes_2"]
    kernel[1](out, 9, 5)
    assert out[0] == 4


def test_pointers_chosen_between_arguments(target: str) -> None:
    n = 21
    a, b, c = (RNG.integers(-9, 9, size).astype(np.float32) for size in (40, 90, 40))
    out, other = (np.full(3 * n, -77, np.float32) for _ in range(2))
    kernel_of("choices")[3](a, b, c, out, other, n)
    third = np.arange(n) % 3 == 1
    for program, tile in enumerate([a[:n], b[2 * n :][:n], c[:n]]):
        # Every third element is stored in `out`, and added there again.
        np.testing.assert_array_equal(out[program * n :][:n], np.where(third, 2 * tile, -77))
        np.testing.assert_array_equal(other[program * n :][:n], np.where(third, -77, tile))


def test_volatile_loads_see_what_others_write(target: str) -> None:
    x, come, out = RNG.integers(-9, 9, 16), np.zeros(1, np.int32), np.full((3, 16), 77)
    kernel_of("volatile")[3](x, come, out, 11)
    assert come[0] == 3
    np.testing.assert_array_equal(out, np.tile(np.where(np.arange(16) < 11, x, -5), (3, 1)))


def test_places_of_extremes(target: str) -> None:
    """Of equals the lower; where nothing is a number, some place of the row."""
    x = RNG.integers(-3, 3, (8, 64)).astype(np.float32)
    x[2], x[3, 1:] = -np.inf, -np.inf
    rows, columns = np.full(8, -1, np.int32), np.full(64, -1, np.int32)
    kernel_of("places")[1](x, rows, columns)
    np.testing.assert_array_equal(rows, x.argmax(axis=1))
    np.testing.assert_array_equal(columns, x.argmin(axis=0))
    x[2] = np.nan
    kernel_of("places")[1](x, rows, columns)
    assert 0 <= rows[2] < 64
    others = np.arange(8) != 2
    np.testing.assert_array_equal(rows[others], x[others].argmax(axis=1))


@pytest.mark.parametrize("n", [2048, 1537, 3])
def test_an_extreme_and_its_place_are_of_one_element(target: str, n: int) -> None:
    """Of equals the lower; of NaNs the first."""
    x = RNG.integers(-99, 99, (5, n)).astype(np.float32)
    x[1, [n // 2, n - 1]], x[2] = np.nan, np.nan
    best, places = np.zeros(5, np.float32), np.full(5, -1, np.int64)
    kernel_of("extremes")[5](x, best, places, n)
    np.testing.assert_array_equal(best, x.max(axis=1))
    np.testing.assert_array_equal(places, x.argmax(axis=1))


def test_pointers_made_of_numbers_are_numbers() -> None:
    """Chosen, moved on by elements of two bytes, and stored; accesses by them are errors."""
    text = (KERNELS / "addresses.ttir").read_text()
    c = RNG.integers(-2, 3, 64).astype(np.int32)
    a, b = (RNG.integers(-(1 << 60), 1 << 60, 64) for _ in range(2))
    out = np.zeros(64, np.int64)
    tilec.triton.kernel(text).on("emulator:check")[1](c, a, b, out)
    np.testing.assert_array_equal(out, np.where(c != 0, a, b) + 2 * c)
    text = re.sub(r"tt.ptr_to_int %m (: tensor<64x!tt.ptr<f16>>) -> .*", r"tt.load %m \1", text)
    with pytest.raises(CompileError, match=r"'tt\.load'.*pointer that is made of a number"):
        tilec.triton.kernel(text).on("emulator")[1](c, a, b, out)
