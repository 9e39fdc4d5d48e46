"""Commands on a GPU whose memory another program has: one message, no bug of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_driver import CUresult, FakeDriver, install, uninstall

from tilec.cli.command import main

SOURCE = """
import tilec
import tilec.language as tl

@tilec.autotune([{"B": 64}])
@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B))
def twice(x: tl.array, B: tl.const = 32):
    i = tl.program_id(0) * B
    tl.store(x, i, 2 * tl.load(x, i, B))
"""
WORD = "opening the context of cuda:0: CUDA_ERROR_OUT_OF_MEMORY"


@pytest.fixture(autouse=True)
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    fake = install(monkeypatch, FakeDriver())
    fake.fail["cuDevicePrimaryCtxRetain"] = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    yield fake
    uninstall()


def test_doctor_names_it_among_its_findings(capsys: Any) -> None:
    assert main(["doctor"]) == 1
    told = capsys.readouterr()
    assert f"wrong   cuda:0          {WORD}" in told.out
    assert "ok      MLIR bindings" in told.out
    assert told.err == ""


@pytest.mark.parametrize("words", [["tune"], ["tune", "--device", "cuda:0"], ["refit"], ["run"]])
def test_others_end_by_one_line(words: list[str], tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(SOURCE)
    arguments = [] if words == ["refit"] else [str(path)]
    arguments += ["--arg", "x:f32[64]"] * (words[0] == "tune")
    assert main([words[0], *arguments, *words[1:]]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: {WORD}"), told
    assert told.count("\n") == 1
