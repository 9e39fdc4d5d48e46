"""What it takes to learn that there is no GPU, and who asks."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from fake_driver import uninstall

from tilec.cli import python_input
from tilec.cli.command import main
from tilec.runtime.cuda import driver

EXAMPLE = Path(__file__).resolve().parents[2] / "tilec" / "examples" / "vector_add.py"


@pytest.mark.parametrize("has_triton", [False, True])
def test_a_file_without_triton_s_kernels_asks_for_no_gpu(
    has_triton: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A GPU's driver takes longer to start than the whole of a small kernel's compilation."""
    asked: list[str] = []
    monkeypatch.setenv("TILEC_DEBUG", "1")  # which compiles in this process
    monkeypatch.setattr(python_input, "no_device_reason", lambda: asked.append("asked"))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    if has_triton:
        monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))
    else:
        monkeypatch.delitem(sys.modules, "triton", raising=False)
    arrays = [f"--arg={name}:f32[?;1]" for name in "xyz"]
    assert main(["compile", f"{EXAMPLE}:vector_add", *arrays, "-o", str(tmp_path / "k.ptx")]) == 0
    assert asked == ["asked"] * has_triton


def test_without_a_driver_nobody_waits_for_its_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take as long to import as a product to be lowered."""
    uninstall()
    monkeypatch.delitem(sys.modules, "cuda.bindings.driver", raising=False)
    monkeypatch.setattr(driver, "_LIBRARY", "libcuda_that_there_is_not.so.1")
    reason = driver.no_device_reason() or ""
    uninstall()
    assert reason.startswith("the NVIDIA driver library does not load (libcuda_that_there_is_not")
    assert "cuda.bindings.driver" not in sys.modules
