"""PTX to machine code by ptxas, and machine code to text by nvdisasm: both optional tools.

The driver assembles PTX by itself; ptxas is needed for cubins, SASS, and to know before a launch
what a kernel takes (registers, spills).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tilec.compile.isolation import TIMEOUT_S, run_program
from tilec.hardware.target import Target
from tilec.messages.diagnostics import CompileError, InternalError
from tilec.records import dataclass


@dataclass(frozen=True)
class Assembly:
    """A cubin and what its kernels take; of several kernels, the most of each.

    `registers`: per thread. `spills`, `shared`, `stack`: bytes; spills are stores plus loads,
    shared is the static part. `messages`: ptxas's warnings and its numbered advice (C7510 ...).
    """

    cubin: bytes
    registers: int
    spills: int
    shared: int
    stack: int
    messages: tuple[str, ...]


def assemble(ptx: str, target: Target) -> Assembly:
    """Assembles machine code for `target`. CompileError without ptxas, InternalError if it
    refuses."""
    tool = find_tool("ptxas")
    with tempfile.TemporaryDirectory(prefix="tilec-") as directory:
        source, cubin = Path(directory, "kernel.ptx"), Path(directory, "kernel.cubin")
        source.write_text(ptx)
        command = [tool, "--verbose", "--gpu-name", target.name, "--output-file", cubin, source]
        done = _run(command)
        if done.returncode != 0 or not cubin.exists():
            words = done.stderr.replace(f"ptxas {source}", "ptxas").strip()
            raise InternalError(f"ptxas refuses the PTX for {target.name}: {words}")
        return _assembly(cubin.read_bytes(), done.stderr)


def disassemble(cubin: bytes) -> str:
    """Gives the SASS text of a cubin. CompileError without nvdisasm."""
    tool = find_tool("nvdisasm")
    with tempfile.NamedTemporaryFile(prefix="tilec-", suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = _run([tool, "--print-code", file.name])
    if done.returncode != 0:
        raise InternalError(f"nvdisasm refuses the cubin: {done.stderr.strip()}")
    return done.stdout


_WHEELS = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}
"""The PyPI package that holds each tool."""


def find_tool(name: str) -> str:
    """Finds the path of a CUDA tool. CompileError says where it was looked for and how to get
    it."""
    found = locate_tool(name)
    if found is None:
        raise CompileError(
            f"{name} not found: neither ${_variable(name)}, a CUDA wheel, $CUDA_HOME/bin, PATH "
            "nor /usr/local/cuda/bin has it",
            notes=[f"help: pip install {_WHEELS[name]}, or install the CUDA toolkit"],
        )
    return found


def locate_tool(name: str) -> str | None:
    """Finds the path of a CUDA tool, None if there is none.

    A tool named in the environment comes first, then the one beside this installation, because its
    version fits what tilec was tested with.
    """
    named = os.environ.get(_variable(name))
    if named:
        return named if os.access(named, os.X_OK) else None
    directories = [*_directories(), *os.get_exec_path(), "/usr/local/cuda/bin"]
    return shutil.which(name, path=os.pathsep.join(map(str, directories)))


@lru_cache(maxsize=8)
def tool_version(path: str) -> str:
    """The release a CUDA tool names ("13.5.37"), "unknown" if it does not say."""
    match = re.search(r"\bV(\d+(?:\.\d+)+)", _run([path, "--version"]).stdout)
    return match[1] if match else "unknown"


def _variable(name: str) -> str:
    return f"TILEC_{name.upper()}"


def _directories() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        yield from sorted(Path(root).glob("*/bin"), reverse=True)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], "bin")


def _run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    try:
        return run_program(command, TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise InternalError(f"{command[0]} did not finish within {TIMEOUT_S:g} s") from None
    except OSError as error:
        raise CompileError(f"cannot run {command[0]}: {error.strerror}") from None


def _assembly(cubin: bytes, log: str) -> Assembly:
    def most(pattern: str) -> int:
        return max((sum(map(int, found)) for found in _numbers(pattern, log)), default=0)

    return Assembly(
        cubin=cubin,
        registers=most(r"Used (\d+) registers"),
        spills=most(r"(\d+) bytes spill stores, (\d+) bytes spill loads"),
        shared=most(r"(\d+) bytes smem"),
        stack=most(r"(\d+) bytes stack frame"),
        messages=tuple(_messages(log)),
    )


def _numbers(pattern: str, log: str) -> Iterator[tuple[str, ...]]:
    return (match.groups() for match in re.finditer(pattern, log))


def _messages(log: str) -> Iterator[str]:
    """Lists warnings, and the advice that carries a number (C7510: wgmma serialised, and the
    like)."""
    for line in log.splitlines():
        kind, _, text = line.partition(":")
        if "warning" in kind or ("info" in kind and re.search(r"\bC\d{4}\b", text)):
            yield text.strip()
