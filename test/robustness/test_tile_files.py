"""Broken `.tile` files: whatever is wrong, one diagnostic with a position and exit code 1.

Each broken text runs through `tilec compile` in a forked child, as on the command line. It may be
right by accident; it must not give a traceback, an internal error, a signal or a hang.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from mutations import damaged, mutant

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "unit"))

from op_examples import ALL_OPS, program  # noqa: E402 - found through the path above

PROGRAMS = {
    path.name: path.read_text()
    for path in (
        *sorted((ROOT / "tilec/examples").glob("*.tile")),
        *sorted((ROOT / "test/robustness/programs").glob("*.tile")),
    )
}
MUTANTS_A_PROGRAM = 40
BATCH = 10

_POSITION = re.compile(r"^<stdin>:\d+:\d+: error: ", re.MULTILINE)


def complaint(done, content: str | bytes) -> str | None:
    """What is wrong with how a broken text was received, None if nothing."""
    if done.code == 0 and not done.errors:
        return None
    if done.code == 1 and _POSITION.match(done.errors) and "Traceback" not in done.errors:
        return None
    return f"exit code {done.code}: {done.errors[:600]}\n--- of\n{content!s}"


@pytest.fixture
def check(tilec_command, tilec_commands):
    """`check(command, contents)`: nothing is wrong with how any of the texts is received."""

    def run(command: tuple[str, ...], contents: list[str] | list[bytes]) -> None:
        done = tilec_commands(contents, *command)
        if done is None:  # one of them killed the process: which?
            done = [tilec_command(*command, stdin=content) for content in contents]
        wrong = [complaint(one, text) for one, text in zip(done, contents, strict=True)]
        assert [text for text in wrong if text] == []

    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_are_right(tilec_command, name: str) -> None:
    assert tilec_command("compile", "-", stdin=PROGRAMS[name]).errors == ""


@pytest.mark.share(8)
@pytest.mark.parametrize("batch", range(MUTANTS_A_PROGRAM // BATCH))
@pytest.mark.parametrize("name", PROGRAMS)
def test_mutants_compile_or_are_diagnosed(check, name: str, batch: int) -> None:
    texts = [mutant(PROGRAMS[name], f"{name} {batch} {i}") for i in range(BATCH)]
    check(("compile", "-"), texts)


@pytest.mark.share(4)
@pytest.mark.parametrize("batch", range(4))
@pytest.mark.parametrize("dialect", ["tile", "gpu_tile"])
def test_mutants_of_every_op(check, dialect: str, batch: int) -> None:
    texts = [
        mutant(program(op), f"{op.OPERATION_NAME} {batch}")
        for op in ALL_OPS
        if dialect == op.DIALECT
    ]
    check(("opt", "-"), texts)


@pytest.mark.parametrize("name", PROGRAMS)
def test_damaged_bytes(check, name: str) -> None:
    contents = [damaged(PROGRAMS[name], f"{name} {i}") for i in range(BATCH)]
    check(("compile", "-"), contents)


@pytest.mark.parametrize("name", PROGRAMS)
def test_truncated_files(check, name: str) -> None:
    text = PROGRAMS[name]
    check(("compile", "-"), [text[: len(text) * i // 8] for i in range(8)])


LATE = "weights.tile"


@pytest.mark.parametrize("level", ["gpu_tile", "llvm"])
def test_mutants_of_later_levels(tilec_command, check, level: str) -> None:
    text = tilec_command("compile", "-", "--emit", level, stdin=PROGRAMS[LATE]).output
    check(("compile", "-"), [mutant(text, f"{level} {i}") for i in range(BATCH)])


HOSTILE = {
    "empty": "",
    "a comment": "// nothing",
    "parentheses": "(" * 100000,
    "modules": "module {" * 20000,
    "brackets": "func.func @a() attributes {a = " + "[" * 50000,
    "positions": "func.func @a() { return } loc(" + "callsite(" * 50000,
    "signs": "#m = affine_map<(d0) -> (" + "-" * 100000 + "d0)>",
    "types": "func.func @a(%x: " + "tuple<" * 100000,
    "arrows": "func.func @a(%x: " + "() -> " * 100000 + "())",
    "one long line": "func.func @a() { return } " + "// " * 1000000,
    "many functions": "func.func private @a()\n" * 20000,
    "itself": "#a = #a\nfunc.func @a() attributes {x = #a} { return }",
    "no body": "func.func private @a() attributes {tile.kernel}",
}


def kernel(
    parameters: str = "", attributes: str = "", body: str = "return", name: str = "a"
) -> str:
    """A kernel in one line."""
    written = f"{{{attributes or 'a'}, tile.kernel}}"
    return f"func.func @{name}({parameters}) attributes {written} {{ {body} }}"


HOSTILE_KERNELS = {
    "a huge constant": kernel(
        body="%x = arith.constant dense<0.0> : tensor<9223372036854775807x4xf32> return"
    ),
    "a resource": kernel(body="%x = arith.constant dense_resource<r> : tensor<4xf32> return"),
    "two kernels": kernel() + kernel(name="b"),
    "blocks": kernel(body="cf.br ^b ^b: cf.br ^b"),
    "a call of itself": kernel(body="func.call @a() : () -> () return"),
    "a kernel in a module": f"module {{ module {{ {kernel()} }} }}",
    "a strange grid": kernel(attributes='tile.grid = ["__import__(0)"]'),
    "a grid of four": kernel(attributes='tile.grid = ["1", "1", "1", "1"]'),
    "a grid of one word": kernel(attributes="tile.grid = 3 : i32"),
    "a grid of numbers": kernel(attributes="tile.grid = [3 : i32]"),
    "strange warps": kernel(attributes='tile.num_warps = "4"'),
    "strange indices": kernel(attributes='tile.index_bits = "32"'),
    "strange constants": kernel(attributes="tile.constants = 3 : i32"),
    "an array of wide numbers": kernel(attributes="x = array<i128: 0>"),
    "an array of wide numbers, deep": kernel(attributes="x = {y = [array<f16: 0.0>]}"),
    "a tensor of pairs": kernel(attributes="x = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>"),
    "strange reasons": kernel(attributes="tile.auto = {BM = 3 : i32}"),
    "an unknown demand": kernel(attributes="tile.fast = true"),
    "a strange name": kernel("%x: i32 {tile.name = 3 : i32}"),
    "an empty name": kernel('%x: i32 {tile.name = ""}'),
    "one name twice": kernel('%x: i32 {tile.name = "x"}, %y: i32 {tile.name = "x"}'),
    "an unknown fact": kernel("%x: memref<4xf32> {tile.facts = {odd = true}}"),
    "strange facts": kernel("%x: memref<4xf32> {tile.facts = 3 : i32}"),
    "facts of a number": kernel("%x: i32 {tile.facts = {align = 16 : i32}}"),
    "a strange alignment": kernel("%x: memref<4xf32> {tile.facts = {align = 3 : i32}}"),
    "too many divisors": kernel("%x: memref<4xf32> {tile.facts = {sizes = array<i32: 1, 1>}}"),
    "a divisor of zero": kernel("%x: memref<4xf32> {tile.facts = {strides = array<i32: 0>}}"),
    "a strange argument": kernel("%x: tuple<i32>"),
    "a huge width": kernel("%x: i16777215"),
    "an array of arrays": kernel("%x: memref<4xmemref<4xf32>>"),
    "an array in shared memory": kernel("%x: memref<4xf32, 3>"),
    "an array with a map": kernel("%x: memref<4x4xf32, affine_map<(i, j) -> (j, i)>>"),
    "an array with an offset": kernel("%x: memref<4xf32, strided<[1], offset: 8>>"),
    "an array of any rank": kernel("%x: memref<*xf32>"),
    "a quoted name": kernel(name='"a b\\0A}"'),
    "results": kernel().replace("() attributes", "() -> i32 attributes"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(check, name: str) -> None:
    check(("compile", "-"), [HOSTILE[name]])


@pytest.mark.parametrize("name", HOSTILE_KERNELS)
def test_hostile_kernels_are_refused(tilec_command, name: str) -> None:
    done = tilec_command("compile", "-", stdin=HOSTILE_KERNELS[name])
    assert complaint(done, HOSTILE_KERNELS[name]) is None
    assert done.code == 1
