"""The kernel cache on disk: hits, corruption, many processes, eviction, and its switches."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import stat
import struct
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.executable.kernel import CompiledKernel, Facts, Parameter
from tilec.runtime import cache as cache_module
from tilec.runtime import foreign_files
from tilec.runtime.cache import DiskCache, default_cache, key_digest


def kernel(name: str = "k", size: int = 100, cubin: bytes | None = None) -> CompiledKernel:
    parameters = (
        Parameter("a", "array", "bf16", (None, 8), (None, 1), Facts(16, (8, 8), (8, 1))),
        Parameter("n", "scalar", "i32"),
    )
    return CompiledKernel(
        name,
        "sm_90a",
        "é" + "p" * size,
        parameters,
        ("cdiv(a.shape[0], 128)", "n", "1"),
        128,
        4096,
        32,
        {"BM": 128},
        {"loops": [1, 2.5, None]},
        cubin,
    )


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize("cubin", [None, b"\x7fELF\0\1"])
def test_what_was_put_comes_back(tmp_path: Path, cubin: bytes | None):
    made = kernel(cubin=cubin)
    DiskCache(tmp_path).put({"source": "x", "target": "sm_90a"}, made)
    again = DiskCache(tmp_path)
    assert again.get({"target": "sm_90a", "source": "x"}) == made
    assert again.get({"target": "sm_80", "source": "x"}) is None


def test_keys_are_canonical_json():
    assert key_digest({"a": 1, "b": [1, "é"]}) == key_digest({"b": [1, "é"], "a": 1})
    assert key_digest({"a": 1}) != key_digest({"a": "1"})
    assert key_digest({"a": {"b": 1}}) != key_digest({"a.b": 1})
    with pytest.raises(ValueError, match="Out of range float"):
        key_digest({"a": float("nan")})
    with pytest.raises(TypeError, match="not JSON serializable"):
        key_digest({"a": object()})


def test_an_entry_under_another_name_is_not_trusted(tmp_path: Path):
    """As after a hash collision, or a file somebody renamed."""
    cache = DiskCache(tmp_path)
    cache.put({"k": 1}, kernel("one"))
    (entry,) = files(tmp_path)
    cache.put({"k": 2}, kernel("two"))
    other = next(path for path in files(tmp_path) if path != entry)
    other.write_bytes(entry.read_bytes())
    assert cache.get({"k": 2}) is None
    assert cache.get({"k": 1}) == kernel("one")


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_damaged_entry_counts_as_missing(tmp_path_factory: Any, data: st.DataObject):
    directory = tmp_path_factory.mktemp("cache")
    cache = DiskCache(directory)
    cache.put({"k": 1}, kernel())
    (entry,) = files(directory)
    content = bytearray(entry.read_bytes())
    kind = data.draw(st.sampled_from(["flip", "cut", "extend", "replace"]))
    place = data.draw(st.integers(0, len(content) - 1))
    if kind == "flip":
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del content[place:]
    elif kind == "extend":
        content += data.draw(st.binary(min_size=1, max_size=9))
    else:
        content = bytearray(data.draw(st.binary(max_size=200)))
    entry.write_bytes(content)
    assert cache.get({"k": 1}) is None
    assert not entry.exists()
    cache.put({"k": 1}, kernel())
    assert cache.get({"k": 1}) == kernel()


def test_directories_and_unreadable_entries_are_survived(tmp_path: Path):
    cache = DiskCache(tmp_path)
    cache.put({"k": 1}, kernel())
    (entry,) = files(tmp_path)
    entry.unlink()
    entry.mkdir()
    assert cache.get({"k": 1}) is None
    with pytest.warns(UserWarning, match="cannot keep a compiled kernel"):
        cache.put({"k": 1}, kernel())


def test_a_place_that_cannot_be_written_warns_and_goes_on(tmp_path: Path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    cache = DiskCache(blocked / "cache")
    with pytest.warns(UserWarning, match="cannot keep a compiled kernel"):
        cache.put({"k": 1}, kernel())
    assert cache.get({"k": 1}) is None


def test_valid_checksum_but_fields_of_another_version(tmp_path: Path, monkeypatch: Any):
    cache = DiskCache(tmp_path)
    whole = CompiledKernel.to_json
    monkeypatch.setattr(CompiledKernel, "to_json", lambda self: {**whole(self), "new": 1})
    cache.put({"k": 1}, kernel())
    assert cache.get({"k": 1}) is None
    assert files(tmp_path) == []


def test_the_least_recently_used_go_first(tmp_path: Path):
    cache = DiskCache(tmp_path, limit_bytes=10 * 2000)
    old = time.time() - 5000
    paths: dict[int, Path] = {}
    for number in range(9):
        before = set(files(tmp_path))
        cache.put({"k": number}, kernel(size=1000))
        (paths[number],) = set(files(tmp_path)) - before
        os.utime(paths[number], (old + number, old + number))
    assert cache.get({"k": 0}) is not None  # used now, so it stays
    for number in range(9, 14):
        cache.put({"k": number}, kernel(size=1000))
    total = sum(path.stat().st_size for path in files(tmp_path))
    assert total <= 10 * 2000
    assert cache.get({"k": 0}) is not None
    assert cache.get({"k": 1}) is None
    assert cache.get({"k": 13}) is not None


def test_abandoned_parts_are_swept_and_fresh_ones_left(tmp_path: Path):
    (tmp_path / "ab").mkdir()
    stale, fresh = tmp_path / "ab" / "x.part", tmp_path / "ab" / "y.part"
    for path in (stale, fresh):
        path.write_text("half")
    os.utime(stale, (time.time() - 7200,) * 2)
    DiskCache(tmp_path).put({"k": 1}, kernel())
    assert not stale.exists()
    assert fresh.exists()


def hammer(directory: str, seed: int, rounds: int, limit: int) -> int:
    """Puts, gets and damages entries; a wrong kernel would be counted."""
    cache = DiskCache(Path(directory), limit_bytes=limit)
    wrong = 0
    for step in range(rounds):
        number = (step * 7 + seed) % 10
        cache.put({"k": number}, kernel(f"k{number}", 500 * number))
        found = cache.get({"k": (number + step) % 10})
        wrong += found is not None and found != kernel(
            f"k{(number + step) % 10}", 500 * ((number + step) % 10)
        )
        if step % 10 == seed:
            # Not what another process writes just now: it would be there again once renamed.
            whole = [path for path in files(Path(directory)) if path.suffix != ".part"]
            for path in whole[:1]:
                with suppress(OSError):
                    path.write_bytes(path.read_bytes()[:50])
    return wrong


def test_many_processes_share_a_directory(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        jobs = [(str(tmp_path), seed, 60, 12000) for seed in range(4)]
        assert pool.starmap(hammer, jobs) == [0] * 4
    assert not [path for path in files(tmp_path) if path.suffix == ".part"]


def shortest(call: Callable[[], object]) -> float:
    """The shortest of twenty calls, in seconds."""
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def test_reading_an_entry_takes_as_long_as_a_few_checksums(tmp_path: Path):
    """About a millisecond here; measured by what this machine takes for the part that has to be."""
    cache = DiskCache(tmp_path)
    cache.put({"k": 1}, kernel(size=200_000))
    assert cache.get({"k": 1}) is not None
    (entry,) = files(tmp_path)
    checksum = shortest(lambda: hashlib.sha256(entry.read_bytes()).digest())
    assert shortest(lambda: cache.get({"k": 1})) < 16 * checksum


def test_a_process_looks_at_its_directory_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A full look takes long where thousands of kernels are; what is added is counted instead."""
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TILEC_CACHE", raising=False)
    looks = []
    monkeypatch.setattr(DiskCache, "_evict", lambda self: looks.append(self.directory) or 0)
    for number in range(3):
        cache = default_cache()
        assert cache is not None
        cache.put({"k": number}, kernel())
    assert looks == [tmp_path]


def test_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path / "here"))
    for value in ("1", ""):
        monkeypatch.setenv("TILEC_CACHE", value)
        cache = default_cache()
        assert cache is not None
        assert cache.directory == tmp_path / "here"
    monkeypatch.setenv("TILEC_CACHE", "0")
    assert default_cache() is None
    monkeypatch.setenv("TILEC_CACHE", "yes")
    with pytest.raises(ValueError, match="TILEC_CACHE: expected 0 or 1, found 'yes'"):
        default_cache()
    monkeypatch.delenv("TILEC_CACHE")
    monkeypatch.delenv("TILEC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = default_cache()
    assert cache is not None
    assert cache.directory.name == "tilec"


def test_a_pipe_in_place_of_an_entry_keeps_nobody_waiting(tmp_path: Path):
    cache = DiskCache(tmp_path)
    cache.put({"k": 1}, kernel())
    (path,) = files(tmp_path)
    path.unlink()
    os.mkfifo(path)
    assert cache.get({"k": 1}) is None
    cache.put({"k": 1}, kernel())
    assert cache.get({"k": 1}) == kernel()


def test_json_that_nests_deep_counts_as_missing(tmp_path: Path, monkeypatch: Any):
    deep = b"[" * 100_000 + b"]" * 100_000
    monkeypatch.setattr(cache_module, "_encode", lambda _: struct.pack("<QQ", len(deep), 0) + deep)
    cache = DiskCache(tmp_path)
    cache.put({"k": 1}, kernel())
    assert cache.get({"k": 1}) is None
    assert files(tmp_path) == []


OTHERS = {
    "the folder": ("", 0o777, "every user may write it"),
    "the entry's folder": ("??", 0o777, None),
    "the entry": ("??/*", 0o666, None),
    "a group": ("", 0o770, "group 4242 may write it"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_others_may_write_is_not_trusted(tmp_path: Path, name: str, monkeypatch: Any):
    pattern, mode, warning = OTHERS[name]
    DiskCache(tmp_path / "c").put({"k": 1}, kernel())
    (found,) = (tmp_path / "c").glob(pattern) if pattern else [tmp_path / "c"]
    found.chmod(mode)
    if name == "a group":
        pytest.importorskip("grp")
        change_status(monkeypatch, found, st_gid=4242)
    cache = DiskCache(tmp_path / "c")
    cache_module._is_ours.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert cache.get({"k": 1}) is None
        assert cache.get({"k": 1}) is None
        cache.put({"k": 2}, kernel())
    said = [str(one.message) for one in caught]
    assert len(said) == (warning is not None)  # once
    assert all(f"{found}: {warning}; take away the right" in text for text in said)
    assert len(files(tmp_path)) == (1 if warning else 2)


@pytest.mark.parametrize("pattern", ["", "??", "??/*"])
def test_what_belongs_to_another_user_is_not_trusted(
    tmp_path: Path, pattern: str, monkeypatch: Any
):
    DiskCache(tmp_path).put({"k": 1}, kernel())
    (found,) = tmp_path.glob(pattern) if pattern else [tmp_path]
    change_status(monkeypatch, found, st_uid=os.geteuid() + 1)
    cache_module._is_ours.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert DiskCache(tmp_path).get({"k": 1}) is None
    cache_module._is_ours.cache_clear()


def change_status(monkeypatch: Any, path: Path, **fields: int) -> None:
    """Makes a file look as if it were of another user or group."""
    real = foreign_files.who_may_write
    number = path.stat().st_ino

    def look(status: os.stat_result) -> str | None:
        if status.st_ino != number:
            return real(status)
        names = ("st_uid", "st_gid", "st_mode")
        return real(SimpleNamespace(**{n: getattr(status, n) for n in names} | fields))

    monkeypatch.setattr(foreign_files, "who_may_write", look)
    monkeypatch.setattr(cache_module, "who_may_write", look)


def test_a_group_of_one_user_and_a_sticky_folder_are_no_others(monkeypatch: Any):
    mode = stat.S_IFDIR | 0o770
    own = SimpleNamespace(st_uid=os.geteuid(), st_gid=7, st_mode=mode)
    user = SimpleNamespace(pw_name="ann")
    monkeypatch.setattr("pwd.getpwuid", lambda _: user)
    monkeypatch.setattr("grp.getgrgid", lambda _: SimpleNamespace(gr_name="ann", gr_mem=[]))
    assert foreign_files.who_may_write(own) is None
    monkeypatch.setattr("grp.getgrgid", lambda _: SimpleNamespace(gr_name="ann", gr_mem=["bob"]))
    assert foreign_files.who_may_write(own) == "group 7 may write it"
    own.st_mode = stat.S_IFDIR | stat.S_ISVTX | 0o777
    assert foreign_files.who_may_write(own) is None
    own.st_uid = 0
    assert foreign_files.who_may_write(own) is None


def test_folders_are_made_for_their_user_alone(tmp_path: Path):
    before = os.umask(0)
    try:
        DiskCache(tmp_path / "c").put({"k": 1}, kernel())
    finally:
        os.umask(before)
    made = [tmp_path / "c", *(tmp_path / "c").rglob("*")]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700, 0o700, 0o600]
