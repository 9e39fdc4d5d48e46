"""The `emulator` device: runs kernels on the CPU, on host arrays, in place."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from tilec.executable.grid import Grid, check_grid
from tilec.executable.kernel import AbiSlot, CompiledKernel, Parameter, row_words
from tilec.executable.thread_lock import ThreadLock
from tilec.messages.mistakes import mistake
from tilec.records import dataclass
from tilec.runtime import emulator
from tilec.runtime.array_list import ArrayList, describe_list, table_of
from tilec.runtime.arrays import HOST, ArrayView, describe
from tilec.runtime.errors import ArgumentError, DeviceError
from tilec.runtime.facts import check
from tilec.runtime.host import host_array, host_memory, numpy_dtype
from tilec.runtime.scalars import check_scalar, encode, index_argument
from tilec.runtime.tensor_maps import kernel_map

MODES = ("eager", "late", "check")
"""Asynchronous work done at once, as late as allowed, or at once with races looked for."""
_ANYTHING = 0xFF
"""A byte of memory that nobody has written: floats of it are no numbers."""
_MOST_WORK = 10_000
"""Of NumPy's search for a common element: ordinary strides take none."""
RESIDENT_CTAS = 3
"""CTAs (or clusters) of a persistent launch: few, so that small problems take several programs
each."""


@dataclass(frozen=True, eq=False)
class EmulatedKernel:
    """A kernel whose PTX the emulator has decoded."""

    kernel: CompiledKernel
    program: emulator.Program


class FindingsError(DeviceError):
    """The emulator found races or missing waits: `findings` has all, warnings too."""

    is_mistake = True

    def __init__(self, name: str, findings: Sequence[emulator.Finding]) -> None:
        lines = texts_of(findings)
        what = "1 finding" if len(lines) == 1 else f"{len(lines)} findings"
        super().__init__("\n".join([f"{name}: {what} of the emulator", *lines]))
        self.findings = tuple(findings)


def texts_of(findings: Sequence[emulator.Finding]) -> list[str]:
    """A line for each finding; those that differ only in the PTX of a source line are one."""
    groups: dict[tuple[Any, ...], list[emulator.Finding]] = {}
    for found in findings:
        places = [place and (place.source or place) for place in (found.first, found.second)]
        key = (found.severity, found.kind, found.memory, *places, found.missing, found.mend)
        groups.setdefault(key, []).append(found)
    return [
        str(group[0]) + (f" ({len(group)} pairs of instructions)" if len(group) > 1 else "")
        for group in groups.values()
    ]


class EmulatorDevice:
    """The CPU as a device for kernels of every target; launches return when the kernel is done.

    `mode`: see `MODES`. What kernels print goes to standard output. `progress`: show a bar on
    standard error when a launch takes seconds; by default where that is a terminal.
    """

    kind = "emulator"
    compute_capability: tuple[int, int] | None = None
    shared_bytes: int | None = None
    newest_ptx = None

    def __init__(self, mode: str = "eager", progress: bool | None = None) -> None:
        if mode not in MODES:
            text = f"unknown emulator mode {mode!r}; expected {', '.join(MODES)}"
            raise mistake(ValueError(text))
        self.name = "emulator" if mode == "eager" else f"emulator:{mode}"
        self.mode = mode
        self.progress = sys.stderr.isatty() if progress is None else progress
        self._warned: set[str] = set()
        self._alone = ThreadLock()

    def load(self, kernel: CompiledKernel) -> EmulatedKernel:
        """Decodes the PTX, unless it did lately; raises what `tilec.runtime.emulator.load` does."""
        with self._alone.lock:
            return EmulatedKernel(kernel, emulator.load(kernel.ptx))

    def run_of(
        self, loaded: EmulatedKernel, arguments: Sequence[Any], grid: Any
    ) -> emulator.Run | None:
        """One launch as the emulator takes it, alone or in a stream (`emulator.run_stream`); None
        of an empty grid. ArgumentError for wrong arguments."""
        kernel = loaded.kernel
        values = [
            _host_view(parameter, value)
            if parameter.has_memory
            else check_scalar(parameter.name, parameter.dtype, value)
            for parameter, value in zip(kernel.parameters, arguments, strict=True)
        ]
        check(kernel, {p.name: v for p, v in zip(kernel.parameters, values, strict=True)})
        sizes = check_grid(grid)
        if not all(sizes):
            return None
        launched = kernel.launched(sizes, RESIDENT_CTAS * prod(kernel.cluster), RESIDENT_CTAS)
        return emulator.Run(
            loaded.program,
            kernel.name,
            grid=launched,
            cluster=(prod(kernel.cluster), 1, 1),
            block=kernel.threads_of(sizes, launched),
            args=[
                _launch_value(kernel, slot, sizes, launched)
                if slot.parameter < 0
                else _slot_value(kernel, slot, values)
                for slot in kernel.abi()
            ],
            shared_bytes=kernel.shared_bytes,
        )

    def launch(
        self, loaded: EmulatedKernel, arguments: Sequence[Any], grid: Any, stream: Any = None
    ) -> None:
        """Runs the kernel on a host array or a number a parameter; there are no streams here.

        ArgumentError for wrong arguments, EmulatorError for what would crash a GPU, FindingsError
        for errors that the check mode finds; its warnings go to standard error, each once.
        """
        run = self.run_of(loaded, arguments, grid)
        if run is None:
            return
        kernel = loaded.kernel
        if self.mode == "check":
            for text in _overlaps(kernel, arguments):
                self._warn(kernel.name, text)
        with self._alone.lock:
            result = run.program.run(
                run.entry,
                run.grid,
                run.block,
                run.args,
                run.shared_bytes,
                run.cluster,
                mode=self.mode,
                progress=self.progress,
            )
        sys.stdout.write(result.printed)
        if any(finding.severity == "error" for finding in result.findings):
            raise FindingsError(kernel.name, result.findings)
        for text in texts_of(result.findings):
            self._warn(kernel.name, text)

    def _warn(self, name: str, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            with suppress(OSError):
                print(f"tilec: {name}: {text}", file=sys.stderr)

    def synchronize(self) -> None:
        """Nothing to wait for."""


def _overlaps(kernel: CompiledKernel, arguments: Sequence[Any]) -> Iterator[str]:
    """Names pairs of arrays that share elements of which the kernel writes some: the compiler
    relies on that no store through one is read through another. Of pointers, whose sizes are
    nobody's, Triton's importer knows it."""
    views = {
        parameter.name: _host_view(parameter, value)
        for parameter, value in zip(kernel.parameters, arguments, strict=True)
        if parameter.has_memory and not parameter.is_list
    }
    arrays = {name: host_array(view) for name, view in views.items() if view.memory is None}
    for (one, first), (other, second) in itertools.combinations(arrays.items(), 2):
        written = [name for name in (one, other) if name in kernel.written()]
        if not written:
            continue
        with suppress(RuntimeError):  # NumPy's TooHardError: strides that nobody has
            work: Any = _MOST_WORK  # NumPy's stubs know no number between none and all
            if np.shares_memory(first, second, max_work=work):
                yield (
                    f"warning: arguments {one!r} and {other!r} overlap, and the kernel writes "
                    f"{' and '.join(map(repr, written))}: a load of one may give what was there "
                    "before a store through the other"
                )


def _host_view(parameter: Parameter, value: Any) -> ArrayView:
    name = parameter.name
    if parameter.is_list:
        array: ArrayView = describe_list(value, name, flat=parameter.kind == "flat_arrays")
    else:
        array = describe(value, name)
    if array.device[0] != HOST:
        raise ArgumentError(
            f"argument {name!r}: expected an array in host memory for the emulator, "
            f"found one on {array.device[0]}:{array.device[1]}"
        )
    return array


def _pointer(value: ArrayView, name: str = "") -> emulator.Pointer:
    """To an array's first element; what it may touch is the memory that it lies in."""
    if value.memory is None:
        return emulator.Pointer(host_array(value), name=name)
    return emulator.Pointer(host_memory(value), value.pointer - value.memory[0], name)


def _table(value: ArrayList, parameter: Parameter) -> emulator.PointerTable:
    """To the table of a list, with the emulator's own pointers to the arrays."""
    each = row_words(parameter.sizes, parameter.strides)
    pointers = {
        number * each: _pointer(one, f"{parameter.name}[{number}]")
        for number, one in enumerate(value.members)
    }
    words = table_of(value, parameter)
    return emulator.PointerTable(words, pointers, f"the table of {parameter.name}")


def _launch_value(kernel: CompiledKernel, slot: AbiSlot, programs: Grid, launched: Grid) -> Any:
    """What a launch itself gives for one hardware parameter: memory of its own, of which what need
    not be 0 is anything."""
    if slot.field == "grid":
        return encode(slot.dtype, programs[slot.axis])
    size = kernel.workspace_bytes(launched)[slot.axis]
    filled = bytes([0 if kernel.workspaces[slot.axis].is_zero else _ANYTHING])
    memory = np.frombuffer(bytearray(filled * size), np.ubyte)
    return emulator.Pointer(memory, name="the launch's memory")


def _slot_value(kernel: CompiledKernel, slot: AbiSlot, values: Sequence[Any]) -> Any:
    """What the emulator takes for one hardware parameter: its own kinds of pointers and tensor
    maps, else bytes."""
    value = values[slot.parameter]
    if slot.field == "pointer":
        parameter = kernel.parameters[slot.parameter]
        if parameter.is_list:
            return _table(value, parameter)
        return _pointer(value, parameter.name)
    if slot.field == "tensor_map":
        made = kernel_map(kernel, kernel.tensor_maps[slot.axis], values)
        return emulator.TensorMap(
            _pointer(value),
            made.sizes,
            made.strides,
            made.box,
            made.swizzle,
            value.element_bytes,
            dtype=numpy_dtype(value.dtype),
            im2col=emulator.Im2col(made.lower, made.upper, made.steps) if made.lower else None,
        )
    if slot.field == "value":
        return encode(slot.dtype, value)
    found = (value.shape if slot.field == "size" else value.strides)[slot.axis]
    return encode(slot.dtype, index_argument(slot.dtype, found))
