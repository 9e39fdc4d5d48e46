"""Products of rows that lie anywhere: bytes come one by one, and no more of them than registers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tilec.compile.assembler import assemble, locate_tool
from tilec.examples.matmul import PRECISIONS, draw, matmul, reference
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import PerformanceWarning


@pytest.mark.parametrize(("target", "name"), [("sm_80", "fp8"), ("sm_90a", "s8")])
def test_tiles_of_bytes_fit_registers(target: str, name: str) -> None:
    inputs, output = {"fp8": ("f8E4M3FN", "f16"), "s8": ("i8", "i32")}[name]
    specs = [f"a:{inputs}[?,?]", f"b:{inputs}[?,?]", f"c:{output}[?,?]"]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        kernel = matmul.compile(specs, target=target)
    assert not [w for w in said if "registers" in str(w.message)]
    about = [entry["about"] for entry in kernel.report["decisions"]]
    assert "registers in turn" in about
    if locate_tool("ptxas"):
        assert assemble(kernel.ptx, find_target(target)).spills == 0


def test_pieces_are_the_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    monkeypatch.setenv("TILEC_DEVICE", "emulator:check")
    precision, rng = PRECISIONS["s8"], np.random.default_rng(1)
    a, b = draw(rng, (131, 135), precision.inputs), draw(rng, (135, 23), precision.inputs)
    c: Any = np.empty((131, 23), precision.output)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerformanceWarning)
        warnings.filterwarnings("ignore", message=".*promises that it is.*")
        matmul(a, b, c, BM=128, BN=256, BK=128)
    assert np.array_equal(c, reference(a, b))
