"""Programs of the llvm dialect: what LLVM cannot take is an error at the text, not its death."""

from __future__ import annotations

import pytest

FUNCTION = """
llvm.func ptx_kernelcc @k(%p: !llvm.ptr<1>, %i: i32) {
  BODY
  llvm.return
}
"""
ASM = FUNCTION.replace("BODY", "%x = llvm.inline_asm has_side_effects BODY%i : (i32) -> i32")

ASSEMBLY = {
    '"mov.b32 $0, $2;", "=r,r" ': "'$2' names an operand that is not there: there are 2",
    '"mov.b32 $0, ${7};", "=r,r" ': "'${7}' names an operand that is not there",
    '"mov.b32 $0, $1; $", "=r,r" ': "'$' names no operand",
    '"mov.b32 $0, ${1:q};", "=r,r" ': "'${1:q};' names no operand",
    '"mov.b32 $0, $1;", "=r,x" ': "'x' is no constraint of an input",
    '"mov.b32 $0, $1;", "=r,(" ': "'(' is no constraint of an input",
    '"mov.b32 $0, $1;", "=r,=r" ': "'=r' is no constraint of an input",
    '"mov.b32 $0, $1;", "=r" ': "1 results and 1 inputs need as many constraints",
    '"mov.b32 $0, $1;", "r,r" ': "'r' is no constraint of a result",
    '"mov.b32 $0, $1;", "=r,r,r" ': "1 results and 1 inputs need as many constraints",
    '"mov.b32 $0, $1;", "=r,~{memory},r" ': "1 results and 1 inputs need as many constraints",
    '"mov.b32 $0, $1;", "=r,1" ': "'1' ties an input to a result that is not there",
    '"mov.b32 $0, $1;", "" ': "1 results and 1 inputs need as many constraints",
}


@pytest.mark.parametrize("asm", ASSEMBLY)
def test_assembly_that_llvm_does_not_survive(tilec_command, asm: str) -> None:
    done = tilec_command("compile", "-", stdin=ASM.replace("BODY", asm))
    assert done.code == 1
    assert done.errors.startswith(f"<stdin>:3:8: error: 'llvm.inline_asm' op {ASSEMBLY[asm]}"), (
        done.errors
    )


@pytest.mark.parametrize(
    "asm",
    [
        '"mov.b32 $0, ${1}; // $$", "=r,r" ',
        '"mov.b32 $0, $1;", "=&r,0,~{memory}" ',
    ],
)
def test_assembly_that_it_takes(tilec_command, asm: str) -> None:
    done = tilec_command("compile", "-", stdin=ASM.replace("BODY", asm))
    assert (done.code, done.errors) == (0, "")
    assert "mov.b32 " in done.output


REFUSED = {
    "no instruction": (
        '%f = llvm.sitofp %i : i32 to f64 %s = "llvm.intr.sin"(%f) : (f64) -> f64 '
        "llvm.store %s, %p : f64, !llvm.ptr<1>",
        "LLVM ",
    ),
    "an alignment that is no power of two": (
        "%s = llvm.load %p {alignment = 3 : i64} : !llvm.ptr<1> -> i32 "
        "llvm.store %s, %p : i32, !llvm.ptr<1>",
        "MLIR's lowering to LLVM IR cannot take this program: the compiler died of SIGABRT",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_llvm_cannot_take(tilec_command, name: str) -> None:
    body, message = REFUSED[name]
    done = tilec_command("compile", "-", stdin=FUNCTION.replace("BODY", body))
    assert done.code == 1
    assert f"<stdin>:2:1: error: {message}" in done.errors, done.errors
    assert "Traceback" not in done.errors


@pytest.mark.parametrize(
    ("declared", "bytes_"),
    [("232449 x i8", 232449), ("8 x array<9999 x f32>", 319968), ("-1 x i8", 2**64 - 1)],
)
def test_more_shared_memory_than_there_is(tilec_command, declared: str, bytes_: int) -> None:
    text = f"llvm.mlir.global external @s() {{addr_space = 3 : i32}} : !llvm.array<{declared}>"
    done = tilec_command(
        "compile", "-", "--target", "sm_90a", stdin=text + FUNCTION.replace("BODY", "")
    )
    assert done.code == 1
    message = f"declares {bytes_} bytes of shared memory; sm_90a has 232448"
    assert done.errors.startswith(f"<stdin>:1:1: error: {message}"), done.errors


@pytest.mark.parametrize("declared", ["0 x i8", "232448 x i8"])
def test_all_the_shared_memory_there_is(tilec_command, declared: str) -> None:
    text = f"llvm.mlir.global external @s() {{addr_space = 3 : i32}} : !llvm.array<{declared}>"
    done = tilec_command(
        "compile", "-", "--target", "sm_90a", stdin=text + FUNCTION.replace("BODY", "")
    )
    assert (done.code, done.errors) == (0, "")
