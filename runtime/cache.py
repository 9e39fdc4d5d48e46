"""Compiled kernels kept on disk, so that a program compiles once and not once a run.

An entry's name is the hash of everything that went into it, so an entry is never out of date; what
no longer hits is evicted, least recently used first. Files are written aside and moved into place,
so that any number of processes may share a directory. Nothing read is trusted: an entry that is cut
off or changed counts as missing and is removed; one that another user could have written counts as
missing, too, and so does the whole cache, with a warning, where another user may write its folders.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import re
import struct
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tilec.executable.kernel import CompiledKernel
from tilec.records import dataclass
from tilec.runtime.atomic_file import write_atomically
from tilec.runtime.file_lock import locked
from tilec.runtime.foreign_files import (
    make_own_folder,
    parse_json,
    read_regular,
    untrusted_folder,
    who_may_write,
)
from tilec.runtime.manifest import checked_kernel

DEFAULT_LIMIT_BYTES = 1 << 30
"""Of all entries: ten thousand kernels of 100 KB, and no disk is filled by it."""

_MAGIC = b"tilec cache 1\n"
_HEADER = struct.Struct(f"<{len(_MAGIC)}s32sQ")
_PAYLOAD = struct.Struct("<QQ")
_SUFFIX = ".kernel"
_TOUCH_AFTER_SECONDS = 60
"""An entry whose time of use is younger is not written to again: what was used within a minute is
not what is thrown out."""
_NAME = re.compile(rf"([0-9a-f]{{2}})/([0-9a-f]{{62}}){re.escape(_SUFFIX)}")
_LONGEST_WAIT_SECONDS = 120.0
"""For another process that compiles the same kernel, in a second or so: then it hangs."""
_ABANDONED_AFTER_SECONDS = 3600
"""A temporary file so old has no writer any more: entries are written in milliseconds."""


def default_cache() -> DiskCache | None:
    """The cache of this user: in TILEC_CACHE_DIR, else where the system keeps caches.

    None with TILEC_CACHE=0. ValueError for a value of TILEC_CACHE other than 0 and 1.
    """
    wanted = os.environ.get("TILEC_CACHE", "") or "1"
    if wanted not in ("0", "1"):
        raise ValueError(f"TILEC_CACHE: expected 0 or 1, found {wanted!r}")
    if wanted == "0":
        return None
    directory = os.environ.get("TILEC_CACHE_DIR")
    if not directory:
        directory = importlib.import_module("platformdirs").user_cache_dir("tilec")
    return _cache_in(Path(directory))


@functools.cache
def _cache_in(directory: Path) -> DiskCache:
    """One cache a directory: it knows what this process has put there."""
    return DiskCache(directory)


@dataclass(frozen=True)
class Entry:
    """A kernel in a cache: its file, the file's size in bytes, and when it was used last, in
    seconds since 1970."""

    path: Path
    size: int
    used: float
    kernel: CompiledKernel


class DiskCache:
    """Kernels under keys, in `directory`; at most about `limit_bytes` of them."""

    def __init__(self, directory: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.directory = directory
        self.limit_bytes = limit_bytes
        self._written_bytes: int | None = None

    def get(self, key: Mapping[str, Any]) -> CompiledKernel | None:
        """The kernel stored under `key`, None if there is none to be trusted.

        `key`: JSON-able; everything the compiled code depends on, tilec's version included.
        """
        digest = key_digest(key)
        path = self._path(digest)
        if not _is_ours(self.directory):
            return None
        payload = _read_entry(path, digest)
        if payload is None:
            return None
        try:
            return _decode(payload)
        except ValueError:
            _remove(path)
            return None

    def put(self, key: Mapping[str, Any], kernel: CompiledKernel) -> None:
        """Stores `kernel`; where the disk refuses it, warns and goes on."""
        if not _is_ours(self.directory):
            return
        digest = key_digest(key)
        payload = _encode(kernel)
        checksum = hashlib.sha256(digest + payload).digest()
        entry = _HEADER.pack(_MAGIC, checksum, len(payload)) + payload
        try:
            path = self._path(digest)
            make_own_folder(self.directory)
            make_own_folder(path.parent)
            write_atomically(path, entry)
            self._evict_when_full(len(entry))
        except OSError as error:
            warnings.warn(f"tilec: cannot keep a compiled kernel: {error}", stacklevel=2)

    @contextmanager
    def making(self, key: Mapping[str, Any]) -> Iterator[None]:
        """Lets one process at a time make the kernel of `key`: who waited finds it made.

        Where locks cannot be had, or a maker hangs, everybody makes it.
        """
        with ExitStack() as stack:
            if _is_ours(self.directory):
                path = self._path(key_digest(key))
                with suppress(OSError):
                    make_own_folder(self.directory)
                    make_own_folder(path.parent)
                    stack.enter_context(locked(path, _LONGEST_WAIT_SECONDS))
            yield

    def entries(self) -> Iterator[Entry]:
        """All kernels that can be read, in no order."""
        for path in self.directory.glob(f"??/*{_SUFFIX}") if _is_ours(self.directory) else ():
            with suppress(OSError, ValueError):
                status = path.stat()
                found = _read_entry(path, bytes.fromhex(path.parent.name + path.stem), mark=False)
                if found is not None:
                    yield Entry(path, status.st_size, status.st_mtime, _decode(found))

    def add(self, name: str, entry: bytes) -> bool:
        """Takes a file of another cache, `name` within its folder; whether it is a kernel of this
        format and whole. OSError where the disk refuses it."""
        match = _NAME.fullmatch(name)
        if match is None or not _is_ours(self.directory):
            return False
        payload = _payload_of(entry, bytes.fromhex(match[1] + match[2]))
        try:
            if payload is None or not _decode(payload):
                return False
        except ValueError:
            return False
        path = self.directory / name
        make_own_folder(self.directory)
        make_own_folder(path.parent)
        write_atomically(path, entry)
        return True

    def _path(self, digest: bytes) -> Path:
        name = digest.hex()
        return self.directory / name[:2] / (name[2:] + _SUFFIX)

    def _evict_when_full(self, added: int) -> None:
        """Counts what this process adds; looks at the whole directory only when it may be full."""
        if self._written_bytes is None or self._written_bytes + added > self.limit_bytes:
            self._written_bytes = self._evict()
        else:
            self._written_bytes += added

    def _evict(self) -> int:
        """Removes the least recently used entries of a full cache; returns the bytes kept."""
        now = time.time()
        entries: list[tuple[float, int, Path]] = []
        for path in self.directory.glob("??/*"):
            with suppress(OSError):
                status = path.stat()
                if path.suffix == _SUFFIX:
                    entries.append((status.st_mtime, status.st_size, path))
                elif now - status.st_mtime > _ABANDONED_AFTER_SECONDS:
                    _remove(path)
        kept = sum(size for _, size, _ in entries)
        if kept <= self.limit_bytes:
            return kept
        for _, size, path in sorted(entries):
            # Down to less than the limit, so that the next entries do not evict again.
            if kept <= self.limit_bytes * 3 // 4:
                break
            _remove(path)
            kept -= size
        return kept


def key_digest(key: Mapping[str, Any]) -> bytes:
    """SHA-256 of `key` as canonical JSON. TypeError or ValueError if it has no JSON."""
    text = json.dumps(key, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).digest()


@functools.cache
def _is_ours(directory: Path) -> bool:
    """Whether nobody else may write a cache; said once where somebody may."""
    reason = untrusted_folder(directory.absolute())
    if reason is None:
        return True
    warnings.warn(
        f"tilec: compiled kernels are not kept, since others could replace them: {reason}; "
        "take away the right (chmod go-w), or name another folder (TILEC_CACHE_DIR)",
        stacklevel=3,
    )
    return False


def _read_entry(path: Path, digest: bytes, *, mark: bool = True) -> bytes | None:
    """The checked payload of an entry, None if missing or not to be trusted; `mark`: as used."""
    try:
        entry, status = read_regular(path)
        if who_may_write(status) or who_may_write(path.parent.stat()):
            return None
    except FileNotFoundError:
        return None
    except OSError:
        _remove(path)
        return None
    age = time.time() - status.st_mtime
    payload = _payload_of(entry, digest)
    if payload is None:
        _remove(path)
    elif mark and age > _TOUCH_AFTER_SECONDS:
        with suppress(OSError):
            os.utime(path)
    return payload


def _payload_of(entry: bytes, digest: bytes) -> bytes | None:
    """What an entry's file holds for the key of that digest; None if it is not whole."""
    if len(entry) < _HEADER.size:
        return None
    payload = entry[_HEADER.size :]
    magic, checksum, length = _HEADER.unpack_from(entry)
    whole = magic == _MAGIC and length == len(payload)
    return payload if whole and checksum == hashlib.sha256(digest + payload).digest() else None


def _encode(kernel: CompiledKernel) -> bytes:
    fields = json.dumps(kernel.to_json()).encode()
    ptx = kernel.ptx.encode()
    cubin = kernel.cubin or b""
    return _PAYLOAD.pack(len(fields), len(ptx)) + fields + ptx + cubin


def _decode(payload: bytes) -> CompiledKernel:
    """ValueError unless `payload` is what `_encode` gave."""
    if len(payload) < _PAYLOAD.size:
        raise ValueError("cut off")
    fields_length, ptx_length = _PAYLOAD.unpack_from(payload)
    ptx_start = _PAYLOAD.size + fields_length
    cubin_start = ptx_start + ptx_length
    if cubin_start > len(payload):
        raise ValueError("cut off")
    return checked_kernel(
        parse_json(payload[_PAYLOAD.size : ptx_start]),
        payload[ptx_start:cubin_start].decode(),
        payload[cubin_start:] or None,
    )


def _remove(path: Path) -> None:
    # Another process may have been faster, or may own the file.
    with suppress(OSError):
        path.unlink()
