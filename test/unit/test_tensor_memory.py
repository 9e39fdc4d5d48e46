"""Tensor memory as threads see it: every shape of tcgen05.ld, packed elements, views, copies."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from frontend_cases import load_text
from shares import modes
from tensor_cases import COPIES, TARGET, check_copy, check_layouts

from tilec.compile.assembler import assemble
from tilec.hardware.layout import parse_layout
from tilec.hardware.target import TARGETS
from tilec.hardware.tensor_access import FORMS, Form, plan_access
from tilec.hardware.tensor_memory import (
    blocked_tensor_memory,
    parse_tensor_memory_layout,
)
from tilec.hardware.tensor_registers import rows_layout

FULL, HALF = "(128,64):(1@lane,1@col)", "((16,4),64):((1@lane,32@lane),1@col)"
LAYOUTS = {
    "32x32b": (FULL, "T(128):(1@0) V(64):(1@1)"),
    "32x32b in 8 warps": (FULL, "T(128,2):(1@0,32@1) V(32):(1@1)"),
    "32x32b in any order": (FULL, "T(128):(1@0) V(2,4,8):(32@1,1@1,4@1)"),
    "32x32b in blocks": (
        "((16,4,2),64):((1@lane,32@lane,16@lane),1@col)",
        "T(16,2,4):(1@0,64@0,16@0) V(64):(1@1)",
    ),
    "16x256b": (FULL, "T(4,8,4):(2@1,1@0,32@0) V(2,2,8,2):(1@1,8@0,8@1,16@0)"),
    "16x256b in 8 warps": (FULL, "T(4,8,4,2):(2@1,1@0,32@0,32@1) V(2,2,4,2):(1@1,8@0,8@1,16@0)"),
    "16x256b half": (HALF, "T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)"),
    "16x128b": (FULL, "T(4,8,4):(1@1,1@0,32@0) V(2,16,2):(8@0,4@1,16@0)"),
    "16x64b": (FULL, "T(2,2,8,4):(8@0,1@1,1@0,32@0) V(32,2):(2@1,16@0)"),
    "16x32bx2": (HALF, "T(16,2,4):(1@0,32@1,16@0) V(32):(1@1)"),
    "16x32bx2 near": (HALF, "T(16,2,4):(1@0,8@1,16@0) V(8,4):(1@1,16@1)"),
}


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", TARGET)


def pairs() -> list[tuple[str, str]]:
    """Each layout, written by another one for the same memory and warps."""
    names = list(LAYOUTS)
    chosen = []
    for number, name in enumerate(names):
        like = [
            other
            for other in names[number + 1 :] + names[:number]
            if LAYOUTS[other][0] == LAYOUTS[name][0] and ("8 warps" in other) == ("8 warps" in name)
        ]
        chosen.append((like[0] if like else name, name))
    return chosen


@pytest.mark.parametrize(("writer", "reader"), pairs())
def test_what_one_layout_writes_another_reads(writer: str, reader: str) -> None:
    memory, first = LAYOUTS[writer]
    for mode in modes():
        ptx = check_layouts(f"emulator:{mode}", memory, first, LAYOUTS[reader][1])
    assert f"tcgen05.st.sync.aligned.{writer.split()[0]}.x" in ptx
    assert f"tcgen05.ld.sync.aligned.{reader.split()[0]}.x" in ptx


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_every_shape_is_among_them(form: Form) -> None:
    plans = [
        plan_access(parse_layout(text), parse_tensor_memory_layout(memory), shape, 32)
        for memory, text in LAYOUTS.values()
        for shape in [parse_tensor_memory_layout(memory).shape]
    ]
    assert form.name in {transfer.form for plan in plans for transfer in plan.transfers}


PACKED = {
    "f16": (np.float16, "(128,64):(1@lane,16@bit)", "T(128):(1@0) V(64):(1@1)"),
    "f16 a column": (np.float16, "(128,64):(1@lane,1@col)", "T(128):(1@0) V(64):(1@1)"),
    "bf16 fragments": (
        ml_dtypes.bfloat16,
        "(128,64):(1@lane,16@bit)",
        "T(4,8,4):(4@1,1@0,32@0) V(4,2,4,2):(1@1,8@0,16@1,16@0)",
    ),
    "i8": (
        np.int8,
        "((16,4),64):((1@lane,32@lane),8@bit)",
        "T(16,2,4):(1@0,32@1,16@0) V(32):(1@1)",
    ),
    "e4m3": (ml_dtypes.float8_e4m3fn, "(128,64):(1@lane,8@bit)", "T(128,2):(1@0,32@1) V(32):(1@1)"),
    "i32": (np.int32, "(128,48):(1@lane,1@col)", "T(128):(1@0) V(48):(1@1)"),
}


@pytest.mark.parametrize("name", PACKED)
def test_elements_of_every_size(name: str) -> None:
    dtype, memory, layout = PACKED[name]
    check_layouts("emulator:check", memory, layout, layout, dtype)


def test_slots_and_views(tmp_path: Path) -> None:
    """Slots by a run-time number, columns from a run-time offset on, rows by a number."""
    text = """
        @tilec.kernel(num_warps=4, grid=(1,))
        def k(x: tl.array, y: tl.array):
            memory = gpu.tensor_memory((256, 64), (128, 64))
            ring = gpu.alloc_tensor_memory((256, 64), tl.f32, memory, slots=3)
            rows = gpu.layout("T(128):(1@0) V(16):(1@1)")
            for i in tl.range(3):
                for part in tl.range(4):
                    for half in tl.static_range(2):
                        piece = ring.slot(i).view((half * 128, part * 16), (128, 16))
                        at = (i * 256 + half * 128, part * 16)
                        piece.store(gpu.load(x, at, (128, 16), rows))
            for i in tl.range(3):
                whole = ring.slot(2 - i).load(gpu.tensor_rows(memory, 4))
                tl.store(y, (i * 256, 0), whole)
    """
    x = np.random.default_rng(2).standard_normal((768, 64)).astype(np.float32)
    y = np.zeros_like(x)
    kernel = load_text(text, tmp_path).k
    kernel.on("emulator:check")(x, y)
    np.testing.assert_array_equal(y, x.reshape(3, 256, 64)[::-1].reshape(768, 64))


@pytest.mark.share(2)
@pytest.mark.parametrize("swizzled", [False, True], ids=["plain", "swizzled"])
@pytest.mark.parametrize("name", COPIES)
def test_copies_from_shared_memory(name: str, swizzled: bool) -> None:
    compiled = check_copy("emulator:check", name, swizzled=swizzled)
    assert assemble(compiled.ptx, TARGETS[TARGET]).spills == 0


def test_a_block_of_64_rows_has_16_in_32_lanes() -> None:
    text = "((16,4,2,2),(64,2)):((1@lane,32@lane,16@lane,64@col),(1@col,128@col))"
    assert str(blocked_tensor_memory((256, 128), (64, 64), 32)) == text
    layout = rows_layout(blocked_tensor_memory((64, 128), (64, 64), 32), 8)
    assert layout.num_threads == 256
    assert layout.is_exact((64, 128))
