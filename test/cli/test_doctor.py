"""`tilec doctor`: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys

import pytest

from tilec.cli import doctor
from tilec.compile.assembler import locate_tool
from tilec.hardware.target import TARGETS
from tilec.messages.diagnostics import InternalError


def ask(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`tilec doctor` in a process of its own: CUDA's driver, which it asks, does not work in a fork
    of one that has used it."""
    called = "import sys; from tilec.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", called, "doctor", *words]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )


def test_names_versions_targets_and_devices() -> None:
    done = ask()
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"llvmlite {importlib.metadata.version('llvmlite')}" in done.stdout
    for name in TARGETS:
        assert f"target {name}" in done.stdout
    assert "emulator" in done.stdout


def test_json_has_the_same_findings() -> None:
    found = json.loads(ask("--json").stdout)
    assert {"tilec", "MLIR bindings", "ptxas", "emulator"} <= {entry["subject"] for entry in found}


def test_a_missing_tool_is_no_failure_but_says_what_to_do() -> None:
    done = ask(TILEC_PTXAS="/nowhere/ptxas")
    assert done.returncode == 0
    assert "missing ptxas" in done.stdout
    assert "-> pip install nvidia-cuda-nvcc" in done.stdout


def test_a_tool_that_does_not_run_is_wrong(tmp_path) -> None:
    tool = tmp_path / "ptxas"
    tool.write_bytes(b"\0")
    tool.chmod(0o755)
    done = ask(TILEC_PTXAS=str(tool))
    assert done.returncode == 1
    assert "wrong   ptxas" in done.stdout


def test_a_missing_package_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_RUNTIME", (("nothing", "tilec-has-no-such-package"),))
    found = {finding.subject: finding for finding in doctor.findings()}
    assert found["nothing"].state == "wrong"
    assert found["nothing"].remedy == "pip install tilec-has-no-such-package"


def test_a_target_llvm_cannot_print_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise InternalError("LLVM died of SIGABRT")

    monkeypatch.setattr(doctor, "emit_ptx", refuse)
    states = {f.subject: f.state for f in doctor.findings() if f.subject.startswith("target")}
    assert states == {f"target {name}": "wrong" for name in TARGETS}


def test_tools_are_found_where_the_compiler_finds_them() -> None:
    found = {finding.subject: finding for finding in doctor.findings()}
    assert (found["ptxas"].state == "ok") == (locate_tool("ptxas") is not None)


def test_a_machine_without_the_compiler_is_told_what_it_is_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = (("a", "tilec-has-no-such-package"), ("b", "tilec-has-none-such-either"))
    monkeypatch.setattr(doctor, "_COMPILER", missing)
    found = {finding.subject: finding for finding in doctor.findings()}
    assert found["compiler"].state == "missing"
    assert "runs artefacts" in found["compiler"].text
    assert not [subject for subject in found if subject.startswith("target ") or subject in "ab"]
    monkeypatch.setattr(doctor, "_COMPILER", (missing[0], ("NumPy too", "numpy")))
    found = {finding.subject: finding.state for finding in doctor.findings()}
    assert (found["a"], found["NumPy too"], "compiler" in found) == ("wrong", "ok", False)


def test_a_machine_that_only_launches_needs_no_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_EMULATOR", (("numbers", "tilec-has-no-such-package"),))
    found = {finding.subject: finding.state for finding in doctor.findings()}
    assert (found["numbers"], found["emulator"]) == ("wrong", "missing")
    monkeypatch.setattr(doctor, "_COMPILER", (("a", "tilec-has-no-such-package"),))
    found = {finding.subject: finding.state for finding in doctor.findings()}
    assert (found["numbers"], found["emulator"]) == ("missing", "missing")
