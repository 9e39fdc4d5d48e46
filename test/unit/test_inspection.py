"""print, assert and inline PTX on the emulator."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from emulated import (
    array_type,
    inline_ptx_text,
    lower,
    print_text,
    random_layout,
    run,
    tile_type,
)
from frontend_cases import load_text as load_kernels
from test_reductions import load_text, store_text

from tilec.compile.assembler import assemble
from tilec.hardware.layout import Layout, parse_layout
from tilec.hardware.target import TARGETS
from tilec.messages.diagnostics import CompileError
from tilec.runtime.emulator import EmulatorError


def on_tile(shape: Sequence[int], element: str, layout: Layout, lines: str) -> str:
    """A kernel that loads %v from %x, runs `lines`, and may store to %y."""
    array = array_type(len(shape), element)
    return f"""
func.func @k(%x: {array}, %y: {array}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {load_text(shape, element, layout, "%v", "%x")}
  {lines}
  return
}}"""


@pytest.mark.parametrize(("shape", "num_warps"), [((5,), 1), ((37,), 2), ((3, 11), 4)])
def test_print_gives_each_element_of_a_tile_one_line(
    shape: tuple[int, ...], num_warps: int
) -> None:
    layout = random_layout(random.Random(4), shape, num_warps)
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(np.int32)
    text = on_tile(
        shape,
        "i32",
        layout,
        print_text(["%v"], [tile_type(shape, "i32", layout)], "100% x = {}!"),
    )
    printed = run(text, [x, x.copy()], num_warps=num_warps, grid=(2, 1, 3)).printed
    want = [
        f"({p}, 0, {q}) [{', '.join(map(str, at))}] 100% x = {x[at]}!"
        for p in range(2)
        for q in range(3)
        for at in np.ndindex(*shape)
    ]
    assert sorted(printed.splitlines()) == sorted(want)


def print_scalar(element: str, value: str, template: str = "{}") -> str:
    """A kernel that prints one constant."""
    return f"""
func.func @k() attributes {{tile.kernel}} {{
  %s = arith.constant {value}{"" if element == "i1" else " : " + element}
  {print_text(["%s"], [element], template)}
  return
}}"""


@pytest.mark.parametrize(
    ("element", "value", "want"),
    [
        ("f32", "1.5", "1.5"),
        ("f64", "-2.5e-10", "-2.5e-10"),
        ("f16", "0.25", "0.25"),
        ("bf16", "-3.0", "-3"),
        ("i64", "-9000000000", "-9000000000"),
        ("i8", "-7", "-7"),
        ("i1", "true", "1"),
        ("index", "12", "12"),
    ],
)
def test_scalars_print_once_a_program(element: str, value: str, want: str) -> None:
    for bits in (32, 64):
        result = run(print_scalar(element, value), [], num_warps=2, grid=2, index_bits=bits)
        assert result.printed == f"(0, 0, 0) {want}\n(1, 0, 0) {want}\n"


def test_printing_nothing_but_text() -> None:
    text = f"""
func.func @k() attributes {{tile.kernel}} {{
  {print_text([], [], "hello")}
  return
}}"""
    assert run(text, [], num_warps=2).printed == "(0, 0, 0) hello\n"


def test_print_in_a_loop_reuses_its_arguments() -> None:
    """An alloca in the loop would take the stack of every iteration."""
    text = f"""
func.func @k(%n: i32) attributes {{tile.kernel}} {{
  %i0 = arith.constant 0 : i32
  %i1 = arith.constant 1 : i32
  scf.for %i = %i0 to %n step %i1 : i32 {{
    {print_text(["%i"], ["i32"], "i = {}")}
  }}
  return
}}"""
    printed = run(text, [np.int32(3)], num_warps=1).printed
    assert printed == "".join(f"(0, 0, 0) i = {i}\n" for i in range(3))


def test_values_of_several_types_print_in_one_line() -> None:
    shape, layout = (3, 7), parse_layout("T(32):(1@1) V(3):(1@0)")
    x = np.random.default_rng(0).integers(-99, 99, shape).astype(np.int32)
    tile = tile_type(shape, "i32", layout)
    small, real = tile_type(shape, "i8", layout), tile_type(shape, "f32", layout)
    lines = f"""
  %a = arith.trunci %v : {tile} to {small}
  %f = arith.sitofp %v : {tile} to {real}
  {print_text(["%v", "%c0", "%f", "%a"], [tile, "index", real, small], "{} {} {} {}")}"""
    printed = run(on_tile(shape, "i32", layout, lines), [x, x.copy()], num_warps=1).printed
    want = [f"(0, 0, 0) [{at[0]}, {at[1]}] {x[at]} 0 {x[at]} {x[at]}" for at in np.ndindex(*shape)]
    assert sorted(printed.splitlines()) == sorted(want)


def test_print_has_a_limit_and_says_so() -> None:
    """32 arguments, of which 3 are the program's and one a dimension the element's coordinates."""
    tile = tile_type((1,) * 22, "i32", parse_layout("T(32):(0) V():()"))
    text = f"""
func.func @k(%s: i32) attributes {{tile.kernel}} {{
  %t = tensor.splat %s : {tile}
  {print_text(["%t"] * 8, [tile] * 8, "{}" * 8)}
  return
}}"""
    with pytest.raises(CompileError, match="cannot print 8 values at once, the most here is 7"):
        lower(text, num_warps=1)


def test_fp8_must_be_cast_to_print() -> None:
    layout = parse_layout("T(32):(1@0) V():()")
    lines = print_text(["%v"], [tile_type((32,), "f8E5M2", layout)], "{}")
    text = on_tile((32,), "f8E5M2", layout, lines).replace("padding = 77", "padding = 0.0")
    with pytest.raises(CompileError, match="cannot print f8E5M2; cast it to float32 first"):
        lower(text, num_warps=1)


def assertion(shape: Sequence[int], layout: Layout) -> str:
    """Asserts that all elements are below 100."""
    tile = tile_type(shape, "i32", layout)
    lines = f"""
  %h = arith.constant dense<100> : {tile}
  %ok = arith.cmpi slt, %v, %h : {tile}
  "tile.assert"(%ok) {{message = "element too large"}} : ({tile_type(shape, "i1", layout)}) -> ()
    loc("kernels.py":17:5)"""
    return on_tile(shape, "i32", layout, lines).replace("padding = 77", "padding = 1000")


@pytest.mark.parametrize("shape", [(37,), (3, 11)])
def test_assert_names_the_line_and_leaves_phantoms_out(shape: tuple[int, ...]) -> None:
    layout = random_layout(random.Random(2), shape, 4)
    assert layout.has_phantoms(shape)
    x = np.zeros(shape, np.int32)
    run(assertion(shape, layout), [x, x.copy()], num_warps=4)
    for at in np.ndindex(*shape):
        x[:] = 0
        x[at] = 100
        if sum(at) % 5 == 0:
            with pytest.raises(EmulatorError, match=r"element too large \(kernels.py:17, in k\)"):
                run(assertion(shape, layout), [x, x.copy()], num_warps=4, mode="eager")


def test_scalar_assert() -> None:
    text = """
func.func @k(%n: i32) attributes {tile.kernel} {
  %i0 = arith.constant 0 : i32
  %ok = arith.cmpi sge, %n, %i0 : i32
  "tile.assert"(%ok) {message = "n is negative"} : (i1) -> ()
  return
}"""
    run(text, [np.int32(0)], num_warps=2)
    with pytest.raises(EmulatorError, match="n is negative"):
        run(text, [np.int32(-1)], num_warps=2, mode="eager")


@pytest.mark.parametrize(
    ("element", "text", "constraints", "reference"),
    [
        ("f32", "add.f32 $0, $1, $1;", "=f,f", lambda x: x + x),
        ("f64", "neg.f64 $0, $1;", "=d,d", lambda x: -x),
        ("i32", "not.b32 $0, $1;", "=r,r", lambda x: ~x),
        ("i64", "not.b64 $0, $1;", "=l,l", lambda x: ~x),
        ("i16", "not.b16 $0, $1;", "=h,h", lambda x: ~x),
        ("i8", "not.b16 $0, $1;", "=h,h", lambda x: ~x),
        ("i8", "add.s32 $0, $1, $1;", "=r,r", lambda x: x + x),
        ("f32", "xor.b32 $0, $1, 0x80000000;", "=r,r", lambda x: -x),
    ],
)
def test_inline_ptx_runs_per_element(
    element: str, text: str, constraints: str, reference: object
) -> None:
    shape = (3, 37)
    layout = random_layout(random.Random(6), shape, 4)
    tile = tile_type(shape, element, layout)
    for pure in (True, False):
        ptx = inline_ptx_text(text, constraints, (["%v"], [tile]), [tile], pure=pure)
        lines = f"%r = {ptx}\n{store_text(shape, element, layout, '%r', '%y')}"
        dtype = {"f32": np.float32, "f64": np.float64}.get(element)
        dtype = dtype or np.dtype(f"int{element[1:]}")
        x = np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)
        y = np.zeros_like(x)
        run(on_tile(shape, element, layout, lines), [x, y], num_warps=4)
        np.testing.assert_array_equal(y, reference(x))


def test_half_precision_travels_in_16_bits() -> None:
    shape, layout = (64,), parse_layout("T(32):(2@0) V(2):(1@0)")
    tile = tile_type(shape, "f16", layout)
    ptx = inline_ptx_text("mul.f16 $0, $1, $1;", "=h,h", (["%v"], [tile]), [tile])
    lines = f"%r = {ptx}\n  {store_text(shape, 'f16', layout, '%r', '%y')}"
    x = np.random.default_rng(0).standard_normal(64).astype(np.float16)
    y = np.zeros_like(x)
    run(on_tile(shape, "f16", layout, lines), [x, y], num_warps=1)
    np.testing.assert_array_equal(y, x * x)


def test_inline_ptx_takes_and_gives_several_types() -> None:
    """Inputs f64 and i32, results f64 and i32, in one text."""
    shape, layout = (3, 37), random_layout(random.Random(9), (3, 37), 4)
    word, real = tile_type(shape, "i32", layout), tile_type(shape, "f64", layout)
    ptx = inline_ptx_text(
        "fma.rn.f64 $0, $2, $2, $2; add.s32 $1, $3, $4;",
        "=d,=r,d,r,r",
        (["%f", "%v", "%v"], [real, word, word]),
        [real, word],
    )
    lines = f"""
  %f = arith.sitofp %v : {word} to {real}
  %r, %s = {ptx}
  %t = arith.fptosi %r : {real} to {word}
  %u = arith.addi %t, %s : {word}
  {store_text(shape, "i32", layout, "%u", "%y")}"""
    x = np.random.default_rng(0).integers(-50, 50, shape).astype(np.int32)
    y = np.zeros_like(x)
    run(on_tile(shape, "i32", layout, lines), [x, y], num_warps=4)
    np.testing.assert_array_equal(y, x * x + x + 2 * x)


@pytest.mark.parametrize("with_result", [False, True])
def test_effects_happen_once_an_element(with_result: bool) -> None:
    """Text without results runs in first copies alone, and no text runs for phantoms."""
    shape, layout = (37,), parse_layout("T(2,16,2):(0,1@0,16@0) V(2):(32@0)")
    tile = tile_type(shape, "i32", layout)
    count = (
        "{ .reg .b64 a; ld.param.b64 a, [k_param_2]; mad.wide.u32 a, $0, 4, a; "
        "red.global.add.u32 [a], 1; }"
    )
    lines = inline_ptx_text(count, "r", (["%v"], [tile]), [], pure=False)
    if with_result:
        text = "mov.b32 $0, $1; " + count.replace("$0", "$1")
        lines = "%r = " + inline_ptx_text(text, "=r,r", (["%v"], [tile]), [tile], pure=False)
    x, y = np.arange(37, dtype=np.int32), np.zeros(100, np.int32)
    run(on_tile(shape, "i32", layout, lines), [x, y], num_warps=2)
    # A result is wanted by every copy, so each computes its own.
    np.testing.assert_array_equal(y[:37], 2 if with_result else 1)
    np.testing.assert_array_equal(y[37:], 0)


def test_index_follows_the_register() -> None:
    layout = parse_layout("T(32):(1@0) V():()")
    places, words = tile_type((32,), "index", layout), tile_type((32,), "i64", layout)
    text = f"""
func.func @k(%y: {array_type(1, "i64")}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %i = "tile.iota"() {{axis = 0 : i32}} : () -> {places}
  %r = {inline_ptx_text("add.s64 $0, $1, 1;", "=l,l", (["%i"], [places]), [words])}
  {store_text((32,), "i64", layout, "%r", "%y")}
  return
}}"""
    for bits in (32, 64):
        y = np.zeros(32, np.int64)
        run(text, [y], num_warps=1, index_bits=bits)
        np.testing.assert_array_equal(y, np.arange(32) + 1)


@pytest.mark.parametrize(
    ("element", "letter", "bits"),
    [("f32", "d", 64), ("f32", "l", 64), ("i64", "r", 32), ("f16", "f", 32)],
)
def test_a_register_that_does_not_hold_the_element(element: str, letter: str, bits: int) -> None:
    layout = parse_layout("T(32):(1@0) V():()")
    tile = tile_type((32,), element, layout)
    constraints = f"={letter},{letter}"
    lines = "%r = " + inline_ptx_text("mov.b32 $0, $1;", constraints, (["%v"], [tile]), [tile])
    wanted = f"constraint '{letter}' is a register of {bits} bits, which does not hold {element}"
    with pytest.raises(CompileError, match=wanted):
        lower(on_tile((32,), element, layout, lines), num_warps=1)


@pytest.mark.parametrize("target", list(TARGETS))
def test_ptxas_takes_print_and_assert(target: str) -> None:
    layout = parse_layout("T(32):(1@0) V(2):(32@0)")
    tile = tile_type((37,), "i32", layout)
    shown = print_text(["%v"], [tile], "{}")
    text = assertion((37,), layout).replace("  return", f"{shown}\n  return")
    assemble(lower(text, num_warps=1, target=target)[0], TARGETS[target])


NAMED = """
import tilec
import tilec.language as tl

@tilec.kernel(grid=1, num_warps=2)
def NAME(x: tl.array):
    total = tl.sum(tl.load(x, 0, 512))
    assert total < 1000
    tl.print("total", total)
"""


@pytest.mark.parametrize("name", ["shared", "text_0", "text_1"])
def test_a_kernel_may_have_any_name(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """That of its shared memory, too, or what its texts could be called."""
    kernel = vars(load_kernels(NAMED.replace("NAME", name), tmp_path))[name]
    x = np.ones(512, np.float32)
    kernel.on("emulator")(x)
    assert capfd.readouterr().out == "(0, 0, 0) total 512\n"
    ptx = kernel.on("emulator").compiled(x).ptx
    assert ".extern .shared" in ptx
    assert assemble(ptx, TARGETS["sm_80"]).spills == 0


@pytest.mark.parametrize("name", ["vprintf", "__assertfail"])
def test_a_kernel_is_not_called_in_the_driver_s_place(name: str, tmp_path: Path) -> None:
    kernel = vars(load_kernels(NAMED.replace("NAME", name), tmp_path))[name]
    with pytest.raises(CompileError, match=f"cannot call the driver's '{name}'"):
        kernel.compile(["x:f32[?]"], target="sm_80")
