"""An instruction whose form is known gets the code that it would get if it were written anew."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tilec.runtime.emulator import load
from tilec.runtime.emulator.execution import blocks, forms
from tilec.runtime.emulator.execution.blocks import BlockCompiler
from tilec.runtime.emulator.reading.parser import parse_module

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
SOURCES = sorted(GOLDEN.glob("*.ptx"))
_MARK = re.compile(r"(_|\bt)f?\d+_(\d+)(?=_p\b|\b)")


def snippets(path: Path) -> list[tuple[str, list[str], frozenset[tuple[int, int]]]]:
    """Code, names and written registers of each instruction, whatever its mark."""
    found = []
    for entry in parse_module(path.read_text()).entries.values():
        compiler = BlockCompiler(entry)
        for instruction in entry.instructions:
            snippet = compiler.write(instruction, lanes=False)
            names = sorted(_MARK.sub(r"\1_\2", name) for name in snippet.factories)
            found.append((_MARK.sub(r"\1_\2", snippet.text), names, snippet.written))
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_filled_in_is_as_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = snippets(path)
    monkeypatch.setattr(forms, "find", lambda form: None)
    assert snippets(path) == filled


def test_most_instructions_have_a_form_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    path = GOLDEN / "matmul.sm_90a.ptx"
    snippets(path)
    kept: list[forms.Form] = []
    monkeypatch.setattr(forms, "keep", lambda form, snippet: kept.append(form))
    snippets(path)
    assert not kept


KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr out) {
  .reg .b32 %r<12>;
  .reg .b64 %rd<3>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  mov.b32 %r2, 0f3F800000;
  mov.b32 %r3, 1;
  mov.b32 %r4, 0f80000000;
  mov.b32 %r5, 0f00000000;
  add.s32 %r6, %r2, %r3;
  add.s32 %r7, %r6, %r6;
  xor.b32 %r8, %r4, %r5;
  setp.lt.u32 %p1, %r1, 7;
  setp.lt.u32 %p2, %r1, 9;
  @%p1 add.s32 %r7, %r7, %r8;
  @!%p2 add.s32 %r7, %r7, %r3;
  st.global.u32 [%rd1], %r7;
  ret;
}
"""


def test_what_looks_alike_is_not_taken_for_the_other() -> None:
    """1 and 1.0, 0.0 and -0.0, two registers and one twice, guards and negated guards."""
    out = np.zeros(32, np.uint32)
    load(KERNEL).run("k", 1, 32, [out])
    one, threads = 0x3F800000, np.arange(32, dtype=np.uint32)
    expected = np.full(32, 2 * (one + 1), np.uint32)
    expected += np.where(threads < 7, np.uint32(0x80000000), np.uint32(0))
    expected += (threads >= 9).astype(np.uint32)
    np.testing.assert_array_equal(out, expected)


def test_programs_share_the_code_of_blocks_that_are_alike() -> None:
    out = np.zeros(32, np.uint32)
    load(KERNEL).run("k", 1, 32, [out])
    before = blocks._code.cache_info()
    load(KERNEL.replace("@%p1 add", "@%p2 add")).run("k", 1, 32, [out])
    after_another = blocks._code.cache_info()
    load(KERNEL.replace(" ret;", " // the same\n ret;")).run("k", 1, 32, [out])
    assert after_another.misses > before.misses
    assert blocks._code.cache_info().misses == after_another.misses
