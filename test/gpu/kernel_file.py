"""Specialisations of a kernel for one target in a file, and the file as something to call."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilec.kernel import CompiledKernel
from tilec.runtime.arrays import ArrayView
from tilec.runtime.errors import ArgumentError
from tilec.runtime.facts import check
from tilec.runtime.launch_argument import LaunchArgument
from tilec.runtime.launcher import Launcher


def save_kernels(path: Path, kernels: Sequence[CompiledKernel]) -> None:
    """Writes specialisations of one kernel for one target."""
    entries = [{"kernel": kernel.to_json(), "ptx": kernel.ptx} for kernel in kernels]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zlib.compress(json.dumps(entries).encode(), 6))


def load_kernels(path: Path) -> list[CompiledKernel]:
    """What `save_kernels` wrote."""
    entries = json.loads(zlib.decompress(path.read_bytes()))
    return [CompiledKernel.from_json(entry["kernel"], entry["ptx"]) for entry in entries]


def launcher_of(kernels: Sequence[CompiledKernel]) -> Launcher:
    """A launcher that takes the specialisation with the most facts that the arguments satisfy."""
    by_facts = sorted(kernels, key=_facts, reverse=True)

    def resolve(device: Any, bound: Mapping[str, Any]) -> CompiledKernel:
        arrays = {name: value for name, value in bound.items() if isinstance(value, ArrayView)}
        reasons = []
        for kernel in by_facts:
            try:
                check(kernel, arrays)
            except ArgumentError as error:
                reasons.append(str(error))
            else:
                return kernel
        raise ArgumentError(f"no specialisation fits: {'; '.join(dict.fromkeys(reasons))}")

    first = kernels[0]
    arguments = [LaunchArgument(parameter.name, parameter.kind) for parameter in first.parameters]
    return Launcher(first.name, arguments, resolve)


def _facts(kernel: CompiledKernel) -> tuple[int, int]:
    """How much was assumed: narrow indices first, then alignment and divisors."""
    known = 0
    for parameter in kernel.parameters:
        facts = parameter.facts
        known += facts.align + sum(facts.sizes) + sum(facts.strides)
        known += 100 * sum(stride is not None for stride in parameter.strides)
    return (64 - kernel.index_bits, known)
