"""Shared by the folders: the command line without a process start, golden files, GPU tests."""

from __future__ import annotations

import difflib
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import one_blas_thread  # noqa: F401 - what it sets
import op_rules  # noqa: F401 - what it imports for
import pytest
from forked import Command, run_batch, run_command
from hypothesis import settings
from shares import WHOLE, is_checked, leave_a_share, note_places

from tilec.runtime.cuda.driver import no_device_reason

# The same examples on every run, and no deadline: a slow machine is no failure.
settings.register_profile("tilec", deadline=None, derandomize=True)
settings.load_profile("tilec")

_KERNELS = pytest.StashKey[str]()


@dataclass(frozen=True)
class Result:
    """How a command ended: its exit code (128 + signal if it died) and what it wrote."""

    code: int
    output: str
    errors: str


def pytest_configure(config: pytest.Config) -> None:
    """Kernels are kept for this run alone; the workers of pytest-xdist share the folder."""
    gc.set_threshold(20_000, 100)  # of a heap of kernels a collection takes long, and finds little
    if config.getoption("--every-mutant"):
        os.environ[WHOLE] = "1"
    if not hasattr(config, "workerinput"):
        config.stash[_KERNELS] = os.environ["TILEC_CACHE_DIR"] = tempfile.mkdtemp(prefix="tilec-")


def pytest_collection_finish() -> None:
    """What is there now stays: no collection of garbage looks at it again, no child copies it."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes the folder."""
    if _KERNELS in config.stash:
        shutil.rmtree(config.stash[_KERNELS], ignore_errors=True)


@pytest.fixture
def tilec_command(tmp_path: Path) -> Callable[..., Result]:
    """`tilec_command("opt", "-", stdin=text)`: runs the command line in a forked child."""

    def run(*words: str, stdin: str | bytes = "", **environment: str) -> Result:
        names = [str(tmp_path / f"stream.{name}") for name in ("in", "out", "err")]
        content = stdin.encode() if isinstance(stdin, str) else stdin
        Path(names[0]).write_bytes(content)
        for name in names[1:]:
            Path(name).write_bytes(b"")
        command = Command(["tilec", *words])
        code = run_command(command, *names, {**os.environ, **environment})
        output, errors = (Path(name).read_text(errors="replace") for name in names[1:])
        return Result(code, output, errors)

    return run


@pytest.fixture
def tilec_commands(tmp_path: Path) -> Callable[..., list[Result] | None]:
    """`tilec_commands(texts, "opt", "-")`: the command on each text, all in one forked child; None
    if the child died on one of them."""

    def run(texts: Sequence[str | bytes], *words: str) -> list[Result] | None:
        streams = []
        for number, text in enumerate(texts):
            names = [str(tmp_path / f"{number}.{name}") for name in ("in", "out", "err")]
            Path(names[0]).write_bytes(text.encode() if isinstance(text, str) else text)
            for name in names[1:]:
                Path(name).write_bytes(b"")
            streams.append(names)
        codes = tmp_path / "codes"
        if not run_batch(["tilec", *words], streams, str(codes)):
            return None
        return [
            Result(int(code), *(Path(name).read_text(errors="replace") for name in names[1:]))
            for code, names in zip(codes.read_text().split(), streams, strict=True)
        ]

    return run


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites golden files instead of comparing with them; `--every-mutant`
    takes all of the lists of which a run takes a share (`shares.py`)."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
    parser.addoption("--every-mutant", action="store_true", help="all mutants, not a share")


def _difference(expected: str, found: str, most: int = 60) -> str:
    """The first lines of what differs."""
    lines = list(
        difflib.unified_diff(
            expected.splitlines(), found.splitlines(), "golden", "now", lineterm=""
        )
    )
    more = [f"... {len(lines) - most} more lines"] if len(lines) > most else []
    return "\n".join(lines[:most] + more)


@pytest.fixture(scope="session")
def every_mutant(request: pytest.FixtureRequest) -> bool:
    """Whether the run takes all of what it otherwise takes a share of."""
    return bool(request.config.getoption("--every-mutant"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """`golden(path, text)`: the text is what the file holds; shows what differs, says how to
    update it."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert path.exists(), f"{path} is missing; write it with: make golden"
        if path.read_text() != text:
            shown = _difference(path.read_text(), text)
            message = f"{path} differs; if that is right, rewrite it with: make golden\n{shown}"
            pytest.fail(message, pytrace=False)

    return compare


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of marked tests a share runs; those that need a GPU are skipped where there is none."""
    note_places(items)
    by_name = any("[" in argument for argument in config.args)
    if not by_name and not config.getoption("--every-mutant"):
        items[:], left = leave_a_share(items)
        if left:
            config.hook.pytest_deselected(items=left)
    _skip_without_device(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Says whether programs are checked around every pass (`PassContext.verify`), in processes of a
    test, too."""
    os.environ["TILEC_CHECK"] = str(int(is_checked(item.nodeid)))


def _skip_without_device(items: list[pytest.Item]) -> None:
    """With the reason."""
    if not any(item.get_closest_marker("gpu") for item in items):
        return
    reason = no_device_reason()
    if reason is not None:
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason=f"no GPU: {reason}"))
