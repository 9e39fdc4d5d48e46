"""A digest of everything a kernel's code is made from: what may be kept on disk under it.

That is its source, the source of the functions it calls, the constants it reads from outside, and
its grid rule. What a function uses is read from its byte code, which names a little too much rather
than too little: then a kernel is compiled once too often, never once too seldom.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import linecache
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import tilec
from tilec.call.specialization import Specialization, constant_text
from tilec.hardware.any_layout import LAYOUTS
from tilec.language.builtin import Function
from tilec.runtime.outside import Outside
from tilec.terms.dtypes import DType

_LANGUAGE = "tilec.language"
_OWN = ("tilec.language", "tilec.ops", "tilec.tuning")
_NO_COMPILER = ("__pycache__", "cuda", "emulator", "examples", "ops", "tuning")
"""Folders that no compiled code depends on: what launches it, kernels, what chooses constants."""


def disk_key(
    fn: Callable[..., Any],
    grid: Any,
    demands: Mapping[str, Any],
    wanted: Specialization,
    target: tuple[str, int | None],
) -> dict[str, Any]:
    """Lists everything that the compiled code of a specialisation depends on. `target`: its name,
    and the version of PTX."""
    values = [value for _, value in wanted.constants]
    return {
        "compiler": compiler_digest(),
        "source": source_digest(fn, grid, *values),
        "parameters": list(map(repr, wanted.parameters)),
        "constants": [(name, constant_text(value)) for name, value in wanted.constants],
        "index_bits": wanted.index_bits,
        "call": None if wanted.call is None else wanted.call.text,
        "programs_per_sm": wanted.programs_per_sm,
        "demands": demands,
        "target": target[0],
        "ptx_version": target[1],
    }


def source_digest(fn: Callable[..., Any], *others: Any, portable: bool = False) -> str:
    """The digest of a kernel function and of `others`: its grid rule, functions among constants.

    `portable`: the same wherever the source lies, by the text of each function; without it files
    and lines count, because compiled code names them, and the text is that of the whole files,
    which is read in a tenth of the time that it takes to find where a function ends.
    """
    digest = _Digest(portable)
    for value in (fn, *others):
        digest.add("", value)
    return digest.text()


@functools.cache
def compiler_digest() -> str:
    """Identifies this compiler: its version and the state of its files."""
    states = [tilec.__version__]
    for root in tilec.__path__:
        whole = os.path.basename(root) == "tilec"
        for part in [root] if whole else [f"{root}/{n}" for n in ("dialects", "passes", "runtime")]:
            states += _file_states(part) if os.path.isdir(part) else _archive_state(part)
    return hashlib.sha256("\n".join(states).encode()).hexdigest()


def _file_states(folder: str, inside: int | None = None) -> Iterator[str]:
    """Lists name, size and time of each Python file in a folder and in those below it, whose names
    come before theirs. `inside`: the descriptor of the folder that `folder` is in: looking 300
    files up by their whole paths takes longer than all else here."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY, dir_fd=inside)
    try:
        for name in sorted(os.listdir(here)):
            if name.startswith("."):  # as editors call what is no module
                continue
            if name.endswith(".py"):
                status = os.stat(name, dir_fd=here)
                yield f"{name} {status.st_size} {status.st_mtime_ns}"
            elif "." not in name and name not in _NO_COMPILER:
                with suppress(NotADirectoryError):
                    states = list(_file_states(name, here))
                    yield f"{name}/ {len(states)}"
                    yield from states
    finally:
        os.close(here)


def _archive_state(folder: str) -> Iterator[str]:
    """Gives name, size and time of the archive that a folder is in. OSError if it is in none."""
    archive = next((path for path in Path(folder).parents if path.is_file()), Path(folder))
    status = archive.stat()
    yield f"{archive.name} {status.st_size} {status.st_mtime_ns}"


def outside_values(fn: Callable[..., Any], *others: Any) -> tuple[Outside, ...]:
    """Finds what a kernel function and `others` (its grid rule) read from outside themselves,
    through the functions they call: what `source_digest` digests. Code of tilec's own does not
    change."""
    found: dict[tuple[str, int, str], Outside] = {}
    roots = [fn, *others]
    pending = list(roots)
    while pending:
        value = pending.pop()
        value = value.fn if isinstance(value, Function) else value
        if not isinstance(value, FunctionType) or (value.__module__ or "").startswith(_OWN):
            continue
        for one in _read_by(value):
            if one.kind == "code" and value in roots:
                continue  # the author's kernel is another one then
            key = (one.kind, id(one.owner), one.name)
            if key not in found:
                found[key] = one
                pending.append(one.value)
    return tuple(found.values())


def _read_by(fn: FunctionType) -> Iterator[Outside]:
    """Finds what one function reads from outside."""
    yield Outside("code", fn, "", fn.__code__)
    names = set(_names(fn.__code__))
    for name in sorted(names & fn.__globals__.keys()):
        value = fn.__globals__[name]
        if _is_read(value):
            yield Outside("name", fn.__globals__, name, value)
        if not isinstance(value, ModuleType):
            continue
        if not value.__name__.startswith((_LANGUAGE, "math", "tilec")):
            inside = {each: vars(value)[each] for each in sorted(names & vars(value).keys())}
            yield from (
                Outside("name", vars(value), each, one)
                for each, one in inside.items()
                if _is_read(one)
            )
    for cell in fn.__closure__ or ():
        with suppress(ValueError):  # an empty cell: compiling will say so
            if _is_read(cell.cell_contents):
                yield Outside("cell", cell, "", cell.cell_contents)


def _is_read(value: Any) -> bool:
    """Whether code can depend on a value of this kind, and the value may be another one later."""
    if isinstance(value, (Function, FunctionType)):
        return not (value.__module__ or "").startswith(_OWN)
    kinds = (bool, int, float, str, tuple, list, type(None), DType, *LAYOUTS)
    return isinstance(value, kinds) or type(value).__module__ == "numpy"


class _Digest:
    def __init__(self, portable: bool) -> None:
        self._portable = portable
        self._hash = hashlib.sha256()
        self._seen: set[int] = set()
        self._texts: dict[str, str] = {}

    def text(self) -> str:
        return self._hash.hexdigest()

    def _note(self, *words: Any) -> None:
        self._hash.update("\0".join(map(repr, words)).encode() + b"\n")

    def add(self, name: str, value: Any) -> None:
        """Adds what `name` stands for: a constant by value, a function by source and use."""
        if isinstance(value, Function):
            value = value.fn
        if isinstance(value, FunctionType):
            if not (value.__module__ or "").startswith(_LANGUAGE):  # covered by `compiler_digest`
                self._add_function(name, value)
        elif isinstance(value, (tuple, list)):
            self._note(name, type(value).__name__, len(value))
            for part in value:
                self.add(name, part)
        elif value is None or isinstance(value, (bool, int, float, str, DType)):
            self._note(name, type(value).__name__, value)
        elif isinstance(value, LAYOUTS):
            self._note(name, type(value).__name__, str(value))
        elif type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            self._note(name, str(value.dtype), value.item())

    def _add_function(self, name: str, fn: FunctionType) -> None:
        self._note(name, fn.__qualname__)
        if id(fn.__code__) in self._seen:
            return
        self._seen.add(id(fn.__code__))
        code = fn.__code__
        if self._portable:
            self._note(_source(fn))
        else:
            self._note(code.co_filename, code.co_firstlineno, self._text(fn))
        self.add("defaults", fn.__defaults__)
        names = set(_names(code))
        for used in sorted(names):
            if used in fn.__globals__:
                self._add_global(used, fn.__globals__[used], names)
        for used, cell in zip(code.co_freevars, fn.__closure__ or (), strict=True):
            try:
                self.add(used, cell.cell_contents)
            except ValueError:  # an empty cell: compiling will say so
                self._note(used, "empty")

    def _text(self, fn: FunctionType) -> str:
        """The digest of all text of the file or notebook cell that a function stands in."""
        file = fn.__code__.co_filename
        if file not in self._texts:
            content = _content(file, fn.__globals__)
            self._texts[file] = hashlib.sha256(content).hexdigest() if content else ""
        return self._texts[file] or fn.__code__.co_code.hex()

    def _add_global(self, name: str, value: Any, names: set[str]) -> None:
        if not isinstance(value, ModuleType):
            self.add(name, value)
        elif not value.__name__.startswith((_LANGUAGE, "math")):
            for attribute in sorted(names & vars(value).keys()):
                self.add(f"{name}.{attribute}", vars(value)[attribute])


def _source(fn: FunctionType) -> str:
    try:
        return inspect.getsource(fn)
    except (OSError, TypeError):
        return fn.__code__.co_code.hex()


def _content(file: str, names: dict[str, Any]) -> bytes:
    """A file of Python, or what is kept of a text that is in none: a cell, a part of an archive."""
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError:
        linecache.checkcache(file)
        return "".join(linecache.getlines(file, names)).encode()


def _names(code: CodeType) -> Iterator[str]:
    """Lists every name that the byte code of a function, and of the functions in it, may look up
    outside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
