"""One launch of an entry: grid, arguments, memories, and what the kernel printed."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilec.runtime.emulator.checking.checker import Reports
from tilec.runtime.emulator.checking.global_checker import GlobalChecker
from tilec.runtime.emulator.checking.global_shadow import GlobalHistory
from tilec.runtime.emulator.checking.shadow import granule_of
from tilec.runtime.emulator.errors import EmulatorError, Finding
from tilec.runtime.emulator.memories.global_memory import (
    ARENA_BASE,
    GlobalMemory,
    Pointer,
    PointerTable,
)
from tilec.runtime.emulator.memories.spaces import SHARED_WINDOW
from tilec.runtime.emulator.memories.tensor_map import TensorMap, TensorMaps
from tilec.runtime.emulator.reading.instruction import Entry, Module, Variable


@dataclass
class Statistics:
    """Counts of a launch: instructions executed (one per warp), shared-memory bank conflicts."""

    warp_instructions: int = 0
    shared_accesses: int = 0
    bank_conflicts: int = 0


@dataclass
class Result:
    """What a launch left besides the arrays: printed text, findings of check mode, counts."""

    printed: str
    findings: list[Finding]
    statistics: Statistics


@dataclass(eq=False)
class Launch:
    """The launch-wide state that machines of all batches share."""

    module: Module
    entry: Entry
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    mode: str
    dynamic_size: int
    tensor_fences: bool = True
    registers: int | None = None
    steps: int = sys.maxsize
    seed: int | None = None
    memory: GlobalMemory = field(default_factory=GlobalMemory)
    printed: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)

    previous: Launch | None = None
    """The launch before this one in its stream, if this one may begin under it."""
    history: GlobalHistory | None = None

    def __post_init__(self) -> None:
        self.is_over = self.is_followed = False
        self.waits = False
        """Whether a thread has run griddepcontrol.wait."""
        ctas = self.grid[0] * self.grid[1] * self.grid[2]
        self.lets_next = np.zeros(ctas, np.bool_)
        """CTAs that have run griddepcontrol.launch_dependents, or ended."""
        self.covered: set[int] | None = None
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.cluster_size = self.cluster[0] * self.cluster[1] * self.cluster[2]
        self.started_end = 0  # CTAs before this one are in a batch
        self.unstarted_end = self.grid[0] * self.grid[1] * self.grid[2]
        self._addresses: dict[str, int] = {}
        self._spaces: dict[str, str] = {}
        self._parameters: dict[str, bytes] = {}
        self._tables: list[tuple[int, bytes]] = []
        """Address and content of each table of pointers."""
        self._layout_private("shared")
        self._layout_private("local")
        self.tensor_maps = TensorMaps()
        self.reports = Reports(self.findings)
        self.global_checker: GlobalChecker | None = None

    def _variables(self) -> dict[str, Variable]:
        return {**self.module.variables, **self.entry.variables}

    def _layout_private(self, space: str) -> None:
        """Offsets of shared or local variables; dynamic shared memory comes last."""
        offset = 0
        dynamic: list[Variable] = []
        for variable in self._variables().values():
            if variable.space != space:
                continue
            if variable.dynamic:
                dynamic.append(variable)
                continue
            offset = -(-offset // variable.alignment) * variable.alignment
            self._addresses[variable.name] = offset
            self._spaces[variable.name] = space
            offset += variable.size
        if space == "local":
            self.local_size = -(-offset // 16) * 16
            return
        if dynamic or self.dynamic_size:
            alignment = max([16, *(variable.alignment for variable in dynamic)])
            offset = -(-offset // alignment) * alignment
        for variable in dynamic:
            self._addresses[variable.name] = offset
            self._spaces[variable.name] = space
        self.shared_size = offset + self.dynamic_size

    # -- the stream ----------------------------------------------------------------------------

    def let_next(self, ctas: np.ndarray) -> None:
        """CTAs of the grid let the next launch begin."""
        self.lets_next[ctas] = True

    @property
    def next_may_begin(self) -> bool:
        """Whether all CTAs let it; those that another one has taken over do not begin."""
        return bool(self.lets_next[: self.unstarted_end].all())

    def end(self) -> None:
        """All CTAs have ended."""
        self.is_over = True
        if self.global_checker is not None:
            self.global_checker.end()

    # -- the grid ------------------------------------------------------------------------------

    def cta_ids(self, linear: np.ndarray) -> np.ndarray:
        """(CTAs, 3): %ctaid of CTAs numbered so that those of a cluster follow one another."""
        number, rank = linear // self.cluster_size, linear % self.cluster_size
        clusters = [size // part for size, part in zip(self.grid, self.cluster, strict=True)]
        columns = []
        for axis in range(3):
            outer = number // math.prod(clusters[:axis]) % clusters[axis]
            inner = rank // math.prod(self.cluster[:axis]) % self.cluster[axis]
            columns.append(outer * self.cluster[axis] + inner)
        return np.stack(columns, 1)

    def take_cluster(self) -> np.ndarray:
        """x, y, z, 1 of the last cluster that is in no batch, which will not start; or zeros."""
        answer = np.zeros(4, np.uint32)
        if self.unstarted_end - self.cluster_size >= self.started_end:
            self.unstarted_end -= self.cluster_size
            answer[:3] = self.cta_ids(np.array([self.unstarted_end]))[0]
            answer[3] = 1
        return answer

    # -- arguments -----------------------------------------------------------------------------

    def place(self, arguments: Sequence[Any]) -> None:
        """Give every argument and global variable its place in memory."""
        self.note(arguments)
        self.memory.place_arguments()
        self.allocate(arguments)
        self.memory.seal()
        self.fill()

    def note(self, arguments: Sequence[Any]) -> None:
        """Tell the memory which arrays it has to hold."""
        parameters = self.entry.parameters
        if len(arguments) != len(parameters):
            names = ", ".join(parameter.name for parameter in parameters)
            raise ValueError(
                f"{self.entry.name} takes {len(parameters)} arguments ({names}), "
                f"got {len(arguments)}"
            )
        memory = self.memory
        for position, argument in enumerate(arguments):
            array = argument
            if isinstance(argument, PointerTable):
                for pointer in argument.pointers.values():
                    memory.add_argument(f"argument {pointer.name!r}", pointer.array)
            if isinstance(argument, (Pointer, TensorMap)):
                array = argument.array
            if isinstance(array, np.ndarray):
                name = argument.name if isinstance(argument, Pointer) else ""
                memory.add_argument(f"argument {name!r}" if name else f"argument {position}", array)

    def allocate(self, arguments: Sequence[Any]) -> None:
        """Give every argument's bytes and every global variable its place in memory."""
        memory, parameters = self.memory, self.entry.parameters
        globals_ = [v for v in self._variables().values() if v.space in ("global", "const")]
        for variable in globals_:
            label = f"variable {variable.name}"
            self._addresses[variable.name] = memory.allocate(
                label, variable.size, variable.alignment
            )
        for position, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
            raw = self._argument_bytes(position, parameter, argument)
            self._parameters[parameter.name] = raw
            label = f"parameter {parameter.name}"
            self._addresses[parameter.name] = memory.allocate(label, parameter.size, 64)

    def fill(self) -> None:
        """Write parameters and variables, and begin to watch the memory in check mode."""
        memory = self.memory
        for name, raw in self._parameters.items():
            self._write(name, raw)
        for address, raw in self._tables:
            start = address - ARENA_BASE
            memory.bytes[start : start + len(raw)] = np.frombuffer(raw, np.uint8)
        for variable in self._variables().values():
            if variable.space in ("global", "const"):
                self._initialise(variable)
        if self.mode == "check":
            ctas = self.grid[0] * self.grid[1] * self.grid[2]
            warps = -(-self.threads // 32)
            if self.history is None:
                granule = granule_of(self.entry.instructions, "global")
                self.history = GlobalHistory(memory.bytes.size, granule)
            self.global_checker = GlobalChecker(
                self.history, ctas, warps, self.cluster_size, self.entry.instructions,
                self.reports, self.covered,
            )  # fmt: skip

    def _write(self, name: str, raw: bytes) -> None:
        start = self._addresses[name] - ARENA_BASE
        self.memory.bytes[start : start + len(raw)] = np.frombuffer(raw, np.uint8)

    def _initialise(self, variable: Variable) -> None:
        raw = bytearray(variable.initial or b"\0" * variable.size)
        for offset, symbol, addend in variable.words:
            address = self.address_of(symbol) + addend
            if self._spaces.get(symbol) == "shared":
                address += SHARED_WINDOW
            raw[offset : offset + 8] = address.to_bytes(8, "little")
        self._write(variable.name, bytes(raw))

    def _argument_bytes(self, position: int, parameter: Variable, argument: Any) -> bytes:
        """The bytes of one parameter. Raises TypeError or ValueError naming the argument."""
        where = f"argument {position} ({parameter.name}, {parameter.size} bytes)"
        if isinstance(argument, PointerTable):
            return self._table(argument).to_bytes(8, "little")
        if isinstance(argument, (np.ndarray, Pointer)):
            if parameter.size != 8:
                raise TypeError(f"{where}: an array needs an 8-byte pointer parameter")
            pointer = argument if isinstance(argument, Pointer) else Pointer(argument)
            address = self.memory.address_of(pointer.array) + pointer.byte_offset
            return address.to_bytes(8, "little")
        raw = self._value_bytes(where, parameter.size, argument)
        if len(raw) != parameter.size:
            raise ValueError(f"{where}: got {len(raw)} bytes")
        return raw

    def _table(self, table: PointerTable) -> int:
        """Gives a table of pointers its place; returns its address."""
        words = np.array(table.words, np.int64)
        for number, pointer in table.pointers.items():
            words[number] = self.memory.address_of(pointer.array) + pointer.byte_offset
        address = self.memory.allocate(table.name, words.nbytes)
        self.memory.regions[-1].writable = False
        self._tables.append((address, words.tobytes()))
        return address

    def _value_bytes(self, where: str, size: int, argument: Any) -> bytes:
        if isinstance(argument, TensorMap):
            return self.tensor_maps.encode(argument)
        if isinstance(argument, (bytes, bytearray)):
            return bytes(argument)
        if isinstance(argument, np.generic):
            return argument.tobytes()
        if isinstance(argument, (bool, int)):
            mask = (1 << 8 * size) - 1
            if not -(mask + 1) // 2 <= argument <= mask:
                raise ValueError(f"{where}: {argument} does not fit")
            return (int(argument) & mask).to_bytes(size, "little")
        if isinstance(argument, float):
            if size not in (4, 8):
                raise TypeError(f"{where}: a float needs 4 or 8 bytes")
            return (np.float32 if size == 4 else np.float64)(argument).tobytes()
        raise TypeError(f"{where}: cannot pass a {type(argument).__name__}")

    def is_shared(self, name: str) -> bool:
        return self._spaces.get(name) == "shared"

    def parameter_bytes(self, name: str) -> bytes:
        return self._parameters[name]

    def address_of(self, name: str) -> int:
        """Address of a variable or parameter in its state space."""
        if name not in self._addresses:
            raise EmulatorError(f"unknown variable {name}")
        return self._addresses[name]
