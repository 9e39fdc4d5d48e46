"""Kernels of `@triton.jit` on the command line: `tilec run --check`, `tilec compile k.py:name`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

SCRIPT = """
import torch, triton, triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def add_one(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr, KNOWN: tl.constexpr = 1):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at * stride, tl.load(x_ptr + at, mask=at < n) + KNOWN, mask=at < n)

@triton.jit
def wild(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)

device = triton.runtime.driver.active.get_active_torch_device()
x, out = torch.randn(100, device=device), torch.empty(100, device=device)
if __name__ == "__main__":
    add_one[lambda given: (triton.cdiv(100, given["BLOCK"]),)](x, out, 100, 1)
    print("right", torch.equal(out, x + 1), add_one.best_config.kwargs)
    wild[(1,)](x, 100, BLOCK=128)
"""
POINTERS = ("--arg", "x_ptr:f32[?]", "--arg", "out_ptr:f32[?]@4")


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_run_checks_them(tilec_command, script: str) -> None:
    done = tilec_command("run", "--check", script)
    assert "right True {'BLOCK': 64}" in done.output
    assert done.code == 1
    assert f"out of bounds on global memory: {script}:12:" in done.errors


def test_a_function_is_compiled(tilec_command, script: str) -> None:
    words = (*POINTERS, "--arg", "n:i32:16", "--const", "stride=1", "--target", "sm_90a")
    done = tilec_command("compile", f"{script}:add_one", *words, "--emit", "tile")
    assert done.code == 0, done.errors
    assert "tensor<64xf32>" in done.output
    assert 'tile.name = "stride"' not in done.output
    assert "align = 16" in done.output
    assert "align = 4 " in done.output
    done = tilec_command("compile", f"{script}:add_one", *words, "--const", "BLOCK=32")
    assert ".target sm_90a" in done.output


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (POINTERS, 1, "4:1: error: add_one: nothing is said of n, stride"),
        ((*POINTERS, "--arg", "m:i32"), 1, "error: add_one has no parameter 'm'"),
        ((*POINTERS, "--cluster", "2"), 2, "--cluster is for kernels of tilec's language"),
    ],
)
def test_mistakes(tilec_command, script: str, words: tuple, code: int, message: str) -> None:
    done = tilec_command("compile", f"{script}:add_one", *words)
    assert done.code == code
    assert message in done.errors
