"""`tilec cache`, and processes that share one."""

from __future__ import annotations

import multiprocessing
import os
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from test_runtime_cache import kernel

from tilec.cli.command import main
from tilec.runtime import cache as cache_module
from tilec.runtime.cache import DiskCache
from tilec.tuning.store import FILE_NAME, FORMAT


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    """The user's cache, with three kernels of two names, and a tuned choice."""
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TILEC_CACHE", raising=False)
    found = DiskCache(tmp_path / "cache")
    for number, name in enumerate(("mine", "mine", "yours")):
        found.put({"number": number}, kernel(name, 100 * number))
    (found.directory / FILE_NAME).write_text(f'{{"format": "{FORMAT}", "entries": {{"a": 1}}}}')
    return found


def test_list(cache: DiskCache, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["mine", "sm_90a", "2"], ["yours", "sm_90a", "1"]]  # fmt: skip
    assert lines[3].startswith("3 kernels, 0.0 MB, in ")
    assert lines[4].endswith(FILE_NAME)


def test_clear(cache: DiskCache, capsys: pytest.CaptureFixture[str]) -> None:
    old = next(entry for entry in cache.entries() if entry.kernel.name == "yours")
    week_ago = time.time() - 7 * 24 * 3600
    os.utime(old.path, (week_ago, week_ago))
    assert main(["cache", "clear", "--unused", "6"]) == 0
    assert capsys.readouterr().out == "removed 1 kernels\n"
    assert {entry.kernel.name for entry in cache.entries()} == {"mine"}
    assert (cache.directory / FILE_NAME).exists()
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "removed 2 kernels and the tuned choices\n"
    assert not list(cache.entries())
    assert not (cache.directory / FILE_NAME).exists()


def test_an_archive_carries_all_to_another_cache(
    cache: DiskCache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "all.tar.gz"
    assert main(["cache", "export", str(file)]) == 0
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path / "other"))
    assert main(["cache", "import", str(file)]) == 0
    assert capsys.readouterr().out == f"3 kernels in {file}\n3 kernels and 1 tuned choices added\n"
    other = DiskCache(tmp_path / "other")
    assert other.get({"number": 2}) == cache.get({"number": 2}) == kernel("yours", 200)
    assert main(["cache", "import", str(file)]) == 0
    assert "3 kernels and 0 tuned choices" in capsys.readouterr().out


@pytest.mark.parametrize("damage", ["name", "content", "other", "choices", "../path"])
def test_what_is_no_kernel_is_left_out(
    cache: DiskCache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    entry = next(iter(cache.entries()))
    name = str(entry.path.relative_to(cache.directory))
    content = entry.path.read_bytes()
    if damage == "content":
        content = content[:-1] + b"?"
    changed = {"name": f"00/{'0' * 62}.kernel", "other": "readme.txt", "choices": FILE_NAME,
               "../path": f"../{name}"}.get(damage, name)  # fmt: skip
    (tmp_path / "file").write_bytes(content)
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "file", changed)
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path / "other"))
    assert main(["cache", "import", str(tmp_path / "bad.tar.gz")]) == 1
    out = capsys.readouterr().out
    assert out.startswith("0 kernels and 0 tuned choices added\nleft out, nothing of this version")
    assert not [path for path in (tmp_path / "other").rglob("*") if path.is_file()]


def test_wrong_files_and_no_cache(
    cache: DiskCache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cache", "import", str(tmp_path / "missing")]) == 1
    assert main(["cache", "import", __file__]) == 1
    assert main(["cache", "export", str(tmp_path / "no" / "folder.tar.gz")]) == 1
    assert capsys.readouterr().err.count("error: ") == 3
    monkeypatch.setenv("TILEC_CACHE", "0")
    assert main(["cache", "list"]) == 1
    assert "TILEC_CACHE=0" in capsys.readouterr().err


def make(directory: str, made: Any, ready: Any) -> None:
    """Makes the one kernel, slowly, unless it is there; as a call does."""
    cache = DiskCache(Path(directory))
    ready.wait()
    with cache.making({"k": 1}):
        if cache.get({"k": 1}) is None:
            with made.get_lock():
                made.value += 1
            time.sleep(0.1)
            cache.put({"k": 1}, kernel())


def test_of_many_processes_one_makes_a_kernel(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    made, ready = context.Value("i", 0), context.Barrier(8)
    arguments = (str(tmp_path / "cache"), made, ready)
    processes = [context.Process(target=make, args=arguments) for _ in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0] * 8
    assert made.value == 1


def test_a_maker_that_hangs_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_LONGEST_WAIT_SECONDS", 0.05)
    one, two = DiskCache(tmp_path / "cache"), DiskCache(tmp_path / "cache")
    with one.making({"k": 1}):
        begun = time.monotonic()
        with two.making({"k": 1}):
            assert 0.04 < time.monotonic() - begun < 10
        with two.making({"k": 2}):
            pass
