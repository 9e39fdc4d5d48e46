"""An instruction whose form is known gets the code that it would get if it were written anew."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from golden_kernels import GOLDEN

from tilec.runtime.emulator import load
from tilec.runtime.emulator.execution import blocks, forms
from tilec.runtime.emulator.execution.blocks import BlockCompiler
from tilec.runtime.emulator.reading.parser import parse_module

_MARK = re.compile(r"(_|\bt)f?\d+_(\d+)(?=_p\b|\b)")


@cache
def ptx(kernel: str, target: str) -> str:
    return GOLDEN[kernel, target].ptx(target)


def snippets(text: str) -> list[tuple[str, list[str], frozenset[tuple[int, int]]]]:
    """Code, names and written registers of each instruction, whatever its mark."""
    found = []
    for entry in parse_module(text).entries.values():
        compiler = BlockCompiler(entry)
        for instruction in entry.instructions:
            snippet = compiler.write(instruction, lanes=False)
            names = sorted(_MARK.sub(r"\1_\2", name) for name in snippet.factories)
            found.append((_MARK.sub(r"\1_\2", snippet.text), names, snippet.written))
    return found


@pytest.mark.parametrize(("kernel", "target"), GOLDEN)
def test_filled_in_is_as_written(kernel: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ptx(kernel, target)
    filled = snippets(text)
    monkeypatch.setattr(forms, "find", lambda form: None)
    assert snippets(text) == filled


def test_most_instructions_have_a_form_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ptx("matmul", "sm_90a")
    snippets(text)
    kept: list[forms.Form] = []
    monkeypatch.setattr(forms, "keep", lambda form, snippet: kept.append(form))
    snippets(text)
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
    """Which registers they name makes no other code, and is not mixed up."""
    out, another = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    load(KERNEL).run("k", 1, 32, [out])
    before = blocks._code.cache_info()
    load(KERNEL.replace("@%p1 add", "@%p2 add")).run("k", 1, 32, [another])
    assert blocks._code.cache_info().misses == before.misses
    threads = np.arange(32)
    np.testing.assert_array_equal(another != out, (threads >= 7) & (threads < 9))
    load(KERNEL.replace("  mov.b32 %r3, 1;\n", "", 1)).run("k", 1, 32, [out])
    assert blocks._code.cache_info().misses > before.misses
