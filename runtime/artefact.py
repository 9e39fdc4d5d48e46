"""Artefacts: one file that holds a kernel's code for several targets and all a launch needs.

An artefact is a zip file: `manifest.json` lists the specialisations, each with its target, entry,
parameters, grid rule, shared memory and assumptions; beside it lies one `.ptx` (and perhaps one
`.cubin`) for each. It runs where neither MLIR nor LLVM is installed.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, cast

from tilec.executable.kernel import CompiledKernel, Grid
from tilec.hardware.target import find_target, targets_for_device
from tilec.messages.tracebacks import short_traceback
from tilec.runtime.atomic_file import write_atomically
from tilec.runtime.device import device as find_device
from tilec.runtime.errors import ArgumentError, ArtefactError
from tilec.runtime.facts import check, check_programs
from tilec.runtime.foreign_files import parse_json, read_regular
from tilec.runtime.launch_argument import LaunchArgument
from tilec.runtime.launcher import Launcher
from tilec.runtime.manifest import checked_kernel

FORMAT = 8
"""Of the manifest: one more each time that a field changes its meaning, so that another version is
refused."""
MANIFEST = "manifest.json"

_MAX_FILE_BYTES = 256 << 20
"""Of an artefact: far above what kernels for all targets take, little enough to be read at once."""
_MAX_MEMBER_BYTES = 64 << 20
"""Of one member unpacked, so that a small file does not fill memory: far above any kernel's PTX."""
_MAX_KERNELS = 4096
"""Of an artefact: a specialisation a target, of which there are nine."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can name (APPNOTE.TXT 4.4.6), so that equal content gives equal
bytes."""


class Artefact(Launcher):
    """A kernel loaded from a file: call it on arrays and numbers, as its author's function.

    `artefact(a, b, c)` takes, of the specialisations for the device that fit the arrays, the one
    that assumes most; `artefact[grid](a, b, c)` overrides the grid rule, `stream=` the current
    stream. `kernels` has every specialisation, with its decision report.
    """

    def __init__(
        self,
        name: str,
        kernels: Sequence[CompiledKernel],
        device: Any = None,
        target: str | None = None,
    ) -> None:
        self.kernels = tuple(kernels)
        self.target = target
        arguments = [LaunchArgument(p.name, p.kind) for p in self.kernels[0].parameters]
        super().__init__(name, arguments, self._pick, device)

    def __repr__(self) -> str:
        arguments = ", ".join(argument.name for argument in self.arguments)
        targets = ", ".join(dict.fromkeys(kernel.target for kernel in self.kernels))
        return f"<artefact {self.name}({arguments}) for {targets}>"

    def _pick(
        self, device: Any, bound: Mapping[str, Any], grid: Grid | None = None
    ) -> CompiledKernel:
        """The specialisation to launch, with `grid` if that is known. ArtefactError if there is no
        code for the device, ArgumentError if none of it takes the arguments."""
        candidates = self._kernels_for(device)
        refusals: list[str] = []
        for kernel in sorted(candidates, key=_assumptions, reverse=True):
            try:
                check(kernel, bound)
                if grid is not None:
                    check_programs(kernel, grid)
            except ArgumentError as error:
                refusals.append(str(error))
                continue
            return kernel
        if len(refusals) == 1:
            raise ArgumentError(refusals[0])
        reasons = "\n".join(f"  {reason}" for reason in dict.fromkeys(refusals))
        raise ArgumentError(
            f"{self.name}: none of {len(refusals)} specialisations for {candidates[0].target} "
            f"takes these arguments:\n{reasons}"
        )

    def _kernels_for(self, device: Any) -> list[CompiledKernel]:
        """The specialisations of the first target that the device runs and the file has."""
        present = dict.fromkeys(kernel.target for kernel in self.kernels)
        if self.target is not None:
            runnable = [self.target]
        elif device.compute_capability is None:
            runnable = list(present)
        else:
            limits = device.compute_capability, device.shared_bytes
            runnable = [target.name for target in targets_for_device(*limits)]
        for name in runnable:
            if name in present:
                return [kernel for kernel in self.kernels if kernel.target == name]
        raise ArtefactError(
            f"{self.name} holds code for {', '.join(present)}; "
            f"{device.name} runs {' or '.join(runnable) or 'none of the known targets'}"
        )


def save(
    path: str | PathLike[str], kernels: Sequence[CompiledKernel], name: str | None = None
) -> None:
    """Writes an artefact, the same bytes for the same kernels; `name`: else the first one's.

    The kernels are specialisations, for one or several targets, of one function. ValueError if
    there are none, or their arguments differ.
    """
    if not kernels:
        raise ValueError("an artefact needs at least one kernel")
    _check_one_function(kernels)
    content = io.BytesIO()
    entries: list[dict[str, Any]] = []
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for number, kernel in enumerate(kernels):
            stem = f"{number:04}.{kernel.target}"
            entry: dict[str, Any] = {"kernel": kernel.to_json(), "ptx": f"{stem}.ptx"}
            _add(file, entry["ptx"], kernel.ptx.encode())
            if kernel.cubin is not None:
                entry["cubin"] = f"{stem}.cubin"
                _add(file, entry["cubin"], kernel.cubin)
            entries.append(entry)
        manifest = {"format": FORMAT, "name": name or kernels[0].name, "kernels": entries}
        _add(file, MANIFEST, json.dumps(manifest, indent=1, allow_nan=False).encode())
    write_atomically(Path(path), content.getvalue())


@short_traceback
def load(path: str | PathLike[str], device: Any = None, target: str | None = None) -> Artefact:
    """Reads an artefact: a kernel to call on arrays.

    `device`: a device or its name, see `tilec.device`; by default each call runs where its arrays
    are. `target`: the one to run code of, by default the device's own, else an older one it runs.
    OSError if the file cannot be read, ArtefactError if it is no artefact.
    """
    where = Path(path)
    if where.stat().st_size > _MAX_FILE_BYTES:
        raise ArtefactError(f"{where}: larger than any artefact ({_MAX_FILE_BYTES} bytes)")
    content, _ = read_regular(where)
    if isinstance(device, str):
        device = find_device(device)
    if target is not None:
        find_target(target)
    try:
        name, kernels = _parse(content)
        return Artefact(name, kernels, device, target)
    except Exception as error:
        # zipfile, zlib and json raise a dozen kinds of errors on files that are not theirs.
        reason = str(error) or type(error).__name__
        raise ArtefactError(f"{where}: not a tilec artefact: {reason}") from error


def _parse(content: bytes) -> tuple[str, list[CompiledKernel]]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        found = parse_json(_member(file, MANIFEST))
        manifest = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        if type(manifest.get("format")) is not int:
            raise ValueError("the manifest has no format number")
        if manifest["format"] != FORMAT:
            raise ValueError(f"format {manifest['format']}; this version of tilec reads {FORMAT}")
        name, given = manifest.get("name"), manifest.get("kernels")
        if not isinstance(name, str) or not isinstance(given, list):
            raise ValueError("the manifest has no name or no list of kernels")
        entries = cast("list[Any]", given)
        if not 1 <= len(entries) <= _MAX_KERNELS:
            raise ValueError(f"{len(entries)} kernels; expected 1 to {_MAX_KERNELS}")
        kernels = [_parse_kernel(file, entry) for entry in entries]
    _check_one_function(kernels)
    return name, kernels


def _parse_kernel(file: zipfile.ZipFile, entry: Any) -> CompiledKernel:
    if not isinstance(entry, dict) or not {"kernel", "ptx"} <= entry.keys() <= {
        "kernel",
        "ptx",
        "cubin",
    }:
        raise ValueError("a kernel of the manifest needs the fields kernel, ptx and perhaps cubin")
    cubin = _member(file, entry["cubin"]) if "cubin" in entry else None
    return checked_kernel(entry["kernel"], _member(file, entry["ptx"]).decode(), cubin)


def _member(file: zipfile.ZipFile, name: Any) -> bytes:
    """One file of the zip, its checksum verified, and no more of it than is reasonable."""
    if not isinstance(name, str) or name not in file.namelist():
        raise ValueError(f"it holds no file {name!r:.80}")
    with file.open(name) as member:
        content = member.read(_MAX_MEMBER_BYTES + 1)
    if len(content) > _MAX_MEMBER_BYTES:
        raise ValueError(f"{name} is larger than {_MAX_MEMBER_BYTES} bytes")
    return content


def _add(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    # A fixed date, so that a build gives the same file twice.
    member = zipfile.ZipInfo(name, _EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    file.writestr(member, content)


def _check_one_function(kernels: Sequence[CompiledKernel]) -> None:
    """ValueError unless all kernels take arguments of the same names and kinds, in one order."""
    first = [(parameter.name, parameter.kind) for parameter in kernels[0].parameters]
    for kernel in kernels:
        found = [(parameter.name, parameter.kind) for parameter in kernel.parameters]
        if found != first:
            raise ValueError(
                f"{kernel.name} for {kernel.target} takes {found}, but {kernels[0].name} for "
                f"{kernels[0].target} takes {first}: they are not one function"
            )


def _assumptions(kernel: CompiledKernel) -> int:
    """How much a kernel assumes of its arguments: more means faster, where it fits."""
    count = int(kernel.index_bits == 32)
    for parameter in kernel.parameters:
        facts = parameter.facts
        fixed = [value for value in (*parameter.sizes, *parameter.strides) if value is not None]
        known = [value for value in (facts.align, *facts.sizes, *facts.strides) if value > 1]
        count += len(fixed) + len(known)
    return count
