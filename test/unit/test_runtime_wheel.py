"""The wheel of tilec-runtime: tilec's files, with requirements of its own."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("setuptools")

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
METADATA = """\
Metadata-Version: 2.4
Name: tilec
Version: 7.5
License-File: LICENSE
Requires-Dist: llvmlite==0.50.0
Provides-Extra: test
Requires-Dist: pytest>=8; extra == "test"

# tilec

Name: and Requires-Dist: of a page are its own.
"""
FILES = {
    "tilec/__init__.py": "x = 1\n",
    "tilec-7.5.dist-info/METADATA": METADATA,
    "tilec-7.5.dist-info/entry_points.txt": "[console_scripts]\ntilec = tilec.cli:main\n",
    "tilec-7.5.dist-info/RECORD": "",
}


@pytest.fixture
def backend() -> Any:
    path = RUNTIME / "packaging" / "runtime_wheel.py"
    spec = importlib.util.spec_from_file_location("runtime_wheel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wheel(backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> zipfile.ZipFile:
    def build_wheel(place: str) -> str:
        assert Path.cwd() == RUNTIME.parent
        with zipfile.ZipFile(Path(place, "tilec-7.5-py3-none-any.whl"), "w") as whole:
            for name, text in FILES.items():
                whole.writestr(name, text)
        return "tilec-7.5-py3-none-any.whl"

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(backend.build_meta, "build_wheel", build_wheel)
    name = backend.build_wheel(str(tmp_path))
    assert name == "tilec_runtime-7.5-py3-none-any.whl"
    return zipfile.ZipFile(tmp_path / name)


def test_files_are_the_same_under_another_name(wheel: zipfile.ZipFile) -> None:
    renamed = {name.replace("tilec-7.5.", "tilec_runtime-7.5."): FILES[name] for name in FILES}
    assert sorted(wheel.namelist()) == sorted(renamed)
    for name in renamed:
        if not name.endswith(("METADATA", "RECORD")):
            assert wheel.read(name).decode() == renamed[name]
    record = wheel.read("tilec_runtime-7.5.dist-info/RECORD").decode().splitlines()
    listed = {name: (digest, size) for name, digest, size in (line.split(",") for line in record)}
    assert [*listed] == wheel.namelist()
    assert listed.pop("tilec_runtime-7.5.dist-info/RECORD") == ("", "")
    for name, (digest, size) in listed.items():
        content = wheel.read(name)
        found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        assert (digest, int(size)) == (f"sha256={found}", len(content))


def test_it_requires_what_a_launch_needs(wheel: zipfile.ZipFile) -> None:
    text = wheel.read("tilec_runtime-7.5.dist-info/METADATA").decode()
    fields, _, page = text.partition("\n\n")
    lines = fields.splitlines()
    assert lines[:4] == [
        "Metadata-Version: 2.4",
        "Name: tilec-runtime",
        "Version: 7.5",
        "License-File: LICENSE",
    ]
    required = [line for line in lines if line.startswith("Requires-Dist")]
    always = [line for line in required if "extra ==" not in line]
    (bindings,) = always
    assert bindings.startswith("Requires-Dist: cuda-bindings")
    assert "Provides-Extra: emulator" in lines
    assert any("numpy" in line and "extra == 'emulator'" in line for line in required)
    assert page == METADATA.partition("\n\n")[2]


def test_there_is_no_sdist(backend: Any, tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="build a wheel"):
        backend.build_sdist(str(tmp_path))
