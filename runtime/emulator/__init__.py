"""tilec's embedded device: executes PTX on the CPU with NumPy and checks its synchronisation."""

from __future__ import annotations

from tilec.runtime.emulator.errors import (
    EmulatorError,
    Finding,
    Place,
    PtxError,
    SourceLocation,
    UnsupportedInstruction,
)
from tilec.runtime.emulator.execution.launch import Launch, Result, Statistics
from tilec.runtime.emulator.memories.global_memory import Pointer, PointerTable
from tilec.runtime.emulator.memories.tensor_map import Im2col, TensorMap
from tilec.runtime.emulator.program import Program, load
from tilec.runtime.emulator.stream import Run, run_stream

__all__ = [
    "EmulatorError",
    "Finding",
    "Im2col",
    "Launch",
    "Place",
    "Pointer",
    "PointerTable",
    "Program",
    "PtxError",
    "Result",
    "Run",
    "SourceLocation",
    "Statistics",
    "TensorMap",
    "UnsupportedInstruction",
    "load",
    "run_stream",
]
