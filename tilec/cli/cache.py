"""Shows, empties, and carries to another machine what tilec keeps on disk.

    tilec cache list                     kernels by name and target, and the tuned choices
    tilec cache clear [--unused DAYS]    all, or what was not used for so long
    tilec cache export FILE.tar.gz       all in one archive
    tilec cache import FILE.tar.gz       adds what such an archive holds

The cache lies in TILEC_CACHE_DIR, else in the user's cache folder. Its kernels are machine code
that will run: import only archives whose maker you trust.
"""

from __future__ import annotations

import argparse
import tarfile
import time
from collections import defaultdict
from pathlib import Path

from tilec.cli.parser import AT_FAULT, DONE
from tilec.cli.streams import write_out
from tilec.messages.diagnostics import CompileError
from tilec.runtime.cache import DiskCache, Entry, default_cache
from tilec.tuning.store import FILE_NAME, WinnerFile, default_file

_DAY = 24 * 3600
"""Seconds: what people count unused kernels in."""
_LARGEST_ENTRY = 1 << 28
"""Bytes of a file in an archive: kernels have some 100 KB, and no archive fills the memory."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec cache`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="what is kept")
    clear = actions.add_parser("clear", help="remove kernels")
    clear.add_argument("--unused", metavar="DAYS", type=float, help="only those not used for DAYS")
    for name, text in (("export", "all into an archive"), ("import", "an archive's into it")):
        actions.add_parser(name, help=text).add_argument("file", type=Path, metavar="FILE.tar.gz")


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec cache`; the exit code."""
    cache = default_cache()
    if cache is None:
        raise CompileError("there is no cache: TILEC_CACHE=0")
    if arguments.action == "list":
        write_out(_listed(cache))
    elif arguments.action == "clear":
        write_out(_clear(cache, arguments.unused))
    else:
        try:
            if arguments.action == "export":
                write_out(_export(cache, arguments.file))
            else:
                text, code = _import(cache, arguments.file)
                write_out(text)
                return code
        except (OSError, tarfile.TarError) as error:
            raise CompileError(f"{arguments.file}: {error}") from None
    return DONE


def _listed(cache: DiskCache) -> str:
    """A line a kernel and target, the most used of disk first, and the sums."""
    groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in cache.entries():
        groups[entry.kernel.name, entry.kernel.target].append(entry)
    lines = [f"{'kernel':32} {'target':9} {'versions':>8} {'KB':>8}  last used"]
    for (name, target), entries in sorted(groups.items(), key=lambda g: -_bytes(g[1])):
        used = time.strftime("%Y-%m-%d", time.localtime(max(entry.used for entry in entries)))
        size = _bytes(entries) / 1024
        lines.append(f"{name[:32]:32} {target:9} {len(entries):8} {size:8.0f}  {used}")
    every = [entry for entries in groups.values() for entry in entries]
    lines.append(f"{len(every)} kernels, {_bytes(every) / 2**20:.1f} MB, in {cache.directory}")
    path = default_file()
    if path is not None and path.exists():
        lines.append(f"tuned choices: {path}")
    return "\n".join(lines) + "\n"


def _bytes(entries: list[Entry]) -> int:
    return sum(entry.size for entry in entries)


def _clear(cache: DiskCache, unused_days: float | None) -> str:
    """Removes entries; tuned choices stay, unless all goes."""
    before = float("inf") if unused_days is None else time.time() - unused_days * _DAY
    count = 0
    for entry in cache.entries():
        if entry.used < before:
            entry.path.unlink(missing_ok=True)
            count += 1
    text = f"removed {count} kernels\n"
    path = default_file()
    if unused_days is None and path is not None and path.exists():
        path.unlink()
        text = f"removed {count} kernels and the tuned choices\n"
    return text


def _export(cache: DiskCache, file: Path) -> str:
    count = 0
    with tarfile.open(file, "w:gz") as archive:
        for entry in cache.entries():
            archive.add(entry.path, str(entry.path.relative_to(cache.directory)))
            count += 1
        path = default_file()
        if path is not None and path.exists():
            archive.add(path, FILE_NAME)
    return f"{count} kernels in {file}\n"


def _import(cache: DiskCache, file: Path) -> tuple[str, int]:
    """Adds an archive's kernels, and choices that are not known yet. What is neither is left out,
    which is an error after the others."""
    count = choices = 0
    wrong = []
    with tarfile.open(file, "r:*") as archive:
        for member in archive:
            opened = archive.extractfile(member) if member.size <= _LARGEST_ENTRY else None
            content = opened.read() if opened is not None else b""
            if member.name == FILE_NAME:
                choices += _add_choices(content, wrong)
            elif cache.add(member.name, content):
                count += 1
            elif not member.isdir():
                wrong.append(member.name)
    text = f"{count} kernels and {choices} tuned choices added\n"
    text += "".join(f"left out, nothing of this version: {name}\n" for name in wrong)
    return text, AT_FAULT if wrong else DONE


def _add_choices(content: bytes, wrong: list[str]) -> int:
    path = default_file()
    try:
        return 0 if path is None else WinnerFile(path).add(content)
    except ValueError:
        wrong.append(FILE_NAME)
        return 0
