"""Pages' links lead somewhere; the README's kernels and report, and commands, are as said."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frontend_cases import load_text

import tilec

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
COMMANDS = (ROOT / "tilec/README.md").read_text()
FOLDERS = ("tilec", "dialects", "passes", "runtime", "test")
PAGES = [*ROOT.glob("*.md"), *(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.md"))]


def blocks(language: str = "", page: str = README) -> list[str]:
    """A page's blocks of code of a language, in order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    targets = [t for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    assert [t for t in targets if not (page.parent / t.partition("#")[0]).exists()] == []


def test_the_first_kernel_runs(tmp_path: Path) -> None:
    text = blocks("python")[0]
    kernel = load_text(text[: text.index("\nmatmul(a, b, c)")], tmp_path).matmul
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((40, 72), (72, 24)))
    c = np.full((40, 24), np.nan, np.float16)
    kernel.on("emulator")(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=0.05)


def test_a_first_kernel_is_found_right(tilec_command: Callable[..., Any], tmp_path: Path) -> None:
    (text,) = (text for text in blocks("python") if "import numpy" in text)
    (tmp_path / "first.py").write_text(text)
    done = tilec_command("run", str(tmp_path / "first.py"), "--check")
    assert float(done.output) < 1e-5, done.errors


def test_commands_do_what_is_said(
    tilec_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those of tilec/README.md compile one after the other; the dumps that pages name are written.

    `run` and `doctor` have tests of their own.
    """
    (text,) = (text for text in blocks(page=COMMANDS) if text.startswith("tilec compile"))
    (tmp_path / "tilec").symlink_to(ROOT / "tilec")
    monkeypatch.chdir(tmp_path)
    lines = [line for line in text.splitlines() if line.split()[1] in ("compile", "opt")]
    for line in lines:
        done = tilec_command(*shlex.split(line)[1:])
        assert done.code == 0, done.errors
    named = {name for page in PAGES for name in re.findall(r"out/(\d\d-[\w.-]+)", page.read_text())}
    assert named <= {path.name for path in (tmp_path / "out").iterdir()}
    assert named
    assert len(lines) > 1


def test_the_report_is_what_is_shown(
    tilec_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = (text for text in blocks() if text.startswith("$ tilec compile"))
    command, *lines = shown.splitlines()
    _, _, *words = shlex.split(command)
    at = words.index("...")
    others = [word for name in "bc" for word in ("--arg", f"{name}:bf16[?,?:8;?:8,1]")]
    monkeypatch.chdir(ROOT)
    done = tilec_command(*words[:at], *others, *words[at + 1 :])
    said = [re.sub(r"^\S*/", "", line) for line in done.output.splitlines()]
    assert [line for line in lines if line not in said] == []
    assert len(lines) > 5


MAPS = {
    "tilec/c_source": ("tilec/c_source",),
    "tilec": (
        "tilec",
        "tilec/messages",
        "tilec/terms",
        "tilec/hardware",
        "tilec/executable",
        "tilec/compile",
        "tilec/call",
    ),
    "dialects": ("dialects", "dialects/tile", "dialects/gpu_tile"),
    "runtime": ("runtime", "runtime/cuda"),
    "tilec/ops": ("tilec/ops",),
    "tilec/costs": ("tilec/costs", "tilec/costs/rates"),
    "tilec/jax": ("tilec/jax",),
    "tilec/tuning": ("tilec/tuning",),
    "tilec/refit": ("tilec/refit",),
}
"""Pages that say where what is: each names every module of these folders."""


@pytest.mark.parametrize("page", MAPS)
def test_a_map_names_every_module(page: str) -> None:
    text = (ROOT / page / "README.md").read_text()
    modules = [path for folder in MAPS[page] for path in (ROOT / folder).glob("*.py")]
    named = {name.rpartition("/")[2] for name in re.findall(r"[\w/]+\.py", text)}
    # A dialect's own file has nothing to look for, nor the command's entrance.
    plain = {"__init__.py", "__main__.py", "dialect.py"}
    assert [path.name for path in modules if path.name not in named | plain] == []


def test_pages_name_files_that_exist() -> None:
    files = {path.as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    imagined = {"first.py", "passes/fold_transposes.py", "kernel.py", "tilec/costs/rates/sm_89.py"}
    gone = []
    for page in PAGES:
        named = set(re.findall(r"`([\w/]+\.py)`", page.read_text())) - imagined
        gone += [f"{page.name}: {name}" for name in named if not _ends(files, name)]
    assert gone == []


def _ends(files: set[str], name: str) -> bool:
    return any(file.endswith(f"/{name}") for file in files)


def test_every_python_and_system_that_the_readme_names_is_tested() -> None:
    first, last = re.search(r"Python 3\.(\d+) to 3\.(\d+)", README).groups()
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    (listed,) = re.findall(r"python: \[(.*)\]", workflow)
    assert listed == ", ".join(f'"3.{n}"' for n in range(int(first), int(last) + 1))
    machines = re.findall(r"(?:machine: \[?|runs-on: )(\w+)-([\w.-]+)", workflow)
    assert {"ubuntu", "macos", "windows"} == {name for name, _ in machines}
    assert any(name == "ubuntu" and release.endswith("-arm") for name, release in machines)


def test_the_changelog_begins_with_this_version() -> None:
    """With the day of its release, or without while it changes."""
    page = (ROOT / "CHANGELOG.md").read_text()
    number, when = re.search(r"^## ([\d.]+), (.*)$", page, re.MULTILINE).groups()
    assert number == tilec.__version__
    assert re.fullmatch(r"unreleased|\d{4}-\d\d-\d\d", when)


def test_the_glossary_gives_a_word_one_meaning() -> None:
    rows = re.findall(
        r"^\| ([^|]+) \| .+ \|$", (ROOT / "tilec/GLOSSARY.md").read_text(), re.MULTILINE
    )
    words = [word for row in rows if row != "word" for word in row.split(", ")]
    assert sorted(words) == sorted(set(words))
    assert len(words) > 50


def test_what_people_expect_is_shown_by_what_exists() -> None:
    page = (ROOT / "tilec/EXPECTED.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    gone, bare = [], []
    for expected, what, shown, *_ in rows:
        for name in re.findall(r"`([^`]+)`", shown):
            command, *words = name.split()
            if command == "make":
                found = f"\n{words[0]}: " in makefile
            elif command == "tilec":
                found = (ROOT / f"tilec/cli/{words[0]}.py").exists()
            else:
                found = (
                    name.startswith("-") or command == "kernel.check(...)" or (ROOT / name).exists()
                )
            gone += [] if found else [name]
        if not re.search(r"`[^`]+`|\]\(", shown) and not what.startswith("-"):
            bare.append(expected)
    assert (gone, bare) == ([], [])
    assert len(rows) >= 30
