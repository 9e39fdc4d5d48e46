"""Text and constraints of inline PTX that LLVM would die of are diagnostics, at every level."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

import tilec
import tilec.language as tl
from tilec.compile.compiler import lower_to
from tilec.compile.llvm_level import lower_llvm
from tilec.dialects.context import make_context
from tilec.dialects.inline_text import wrong_text
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError

WRONG = {
    "add.f32 $31, $1, $1;": "'$31' names an operand that is not there: there are 2",
    "add.f32 $0, $1, $2;": "'$2' names an operand that is not there",
    "add.f32 ${9}, $1, $1;": "'${9}' names an operand that is not there",
    "add.f32 $99999999999999999999, $1, $1;": "names an operand that is not there",
    "add.f32 $0, $1, $": "'$' names no operand",
    "add.f32 ${0:q}, $1, $1;": "'${0:q}, ' names no operand",
    "add.f32 ${0, $1, $1;": "names no operand",
    "$(add.f32$|mul.f32$) $0, $1, $1;": "names no operand",
    "mov.f32 $0, %$x;": "names no operand",
}


@tilec.kernel(grid=(1,))
def inlined(x: tl.array, TEXT: tl.const):
    value = tl.inline_ptx(TEXT, "=f,f", tl.load(x, 0, 4), tl.f32)
    tl.store(x, 0, value)


@pytest.mark.parametrize("text", WRONG)
def test_a_text_of_python(text: str) -> None:
    with pytest.raises(CompileError) as error:
        inlined.compile(["x:f32[?]"], {"TEXT": text}, target="sm_80")
    assert WRONG[text] in str(error.value)
    assert "value = tl.inline_ptx(TEXT" in str(error.value)


def test_a_dollar_and_braces() -> None:
    x = np.arange(4, dtype=np.float32)
    text = "{ .reg .f32 $$t; add.f32 $$t, ${1}, $1; mov.f32 ${0}, $$t; }"
    inlined.on("emulator")(x, text)
    np.testing.assert_array_equal(x, [0, 2, 4, 6])
    assert wrong_text("mov \0", 2) == "the text holds a NUL character"


LAYOUT = '#gpu_tile.layout<"T(4):(1@0) V():()">'


@pytest.mark.parametrize("layout", ["", LAYOUT], ids=["tile", "gpu_tile"])
@pytest.mark.parametrize(
    ("text", "constraints", "message"),
    [
        ("neg.f32 $7, $1;", "=f,f", "names an operand that is not there"),
        ("neg.f32 $0, $1;", "=f,&f", "unknown constraint '&f'"),
        ("neg.f32 $0, $1;", "=&=f,f", "unknown constraint '=&=f'"),
    ],
)
def test_a_text_of_a_file(layout: str, text: str, constraints: str, message: str) -> None:
    kind = f"tensor<4xf32{', ' + LAYOUT.replace(' V():()', '') if layout else ''}>"
    source = f"""
func.func @k(%x: memref<?xf32, strided<[1]>>) attributes {{tile.kernel}} {{
  %v = arith.constant dense<1.0> : {kind}
  %w = "tile.inline_ptx"(%v) {{text = "{text}", constraints = "{constraints}", pure = true,
    operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>,
    resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>}} : ({kind}) -> {kind}
  return
}}"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        with pytest.raises(CompileError, match=r".+") as error:
            lower_to(module, find_target("sm_80"), "llvm")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('llvm.inline_asm "a $31;", "r" %a : (i32) -> ()', "'$31' names an operand"),
        ('llvm.inline_asm "a $", "r" %a : (i32) -> ()', "'$' names no operand"),
        ('llvm.inline_asm "a ${0:q}", "r" %a : (i32) -> ()', "'${0:q}' names no operand"),
        ('%0 = llvm.inline_asm "a", "r,=r" %a : (i32) -> i32', "'r' is no constraint of a result"),
        ('%0 = llvm.inline_asm "a", "=r" %a : (i32) -> i32', "1 results and 1 inputs need"),
        ('%0 = llvm.inline_asm "a", "=r,5" %a : (i32) -> i32', "'5' ties an input"),
        (
            '%0 = llvm.inline_asm "a", "=r,0,0" %a, %a : (i32, i32) -> i32',
            "each result may share its register with one input",
        ),
        ('llvm.inline_asm "a", "=" %a : (i32) -> ()', "'=' is no constraint of an input"),
        ('llvm.inline_asm "a", "~{mem" : () -> ()', "0 results and 0 inputs need"),
        ('llvm.inline_asm "a", "q" %a : (i32) -> ()', "constraint 'q' does not hold i32"),
        ('llvm.inline_asm asm_dialect = intel "a", "r" %a : (i32) -> ()', "no Intel dialect"),
        ('nvvm.inline_ptx "add $31;" ro(%a : i32)', "'$31' names an operand"),
    ],
)
def test_inline_assembly_of_llvm(line: str, message: str) -> None:
    source = f"""
llvm.func @k(%a: i32) attributes {{nvvm.kernel}} {{
  {line}
  llvm.return
}}"""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        with pytest.raises(CompileError, match=r".+") as error:
            lower_llvm(module, find_target("sm_90a"), "llvmir")
    assert message in str(error.value)
