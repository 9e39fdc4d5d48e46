"""mov, cvta, isspacep: values, vectors and addresses between registers (PTX ISA 9.7.9)."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.memories.spaces import SPACE_WINDOWS, WINDOW_SIZE
from tilec.runtime.emulator.numbers.scalar_types import TYPES, ScalarType
from tilec.runtime.emulator.reading.instruction import Instruction, Operand, Vector
from tilec.runtime.emulator.writing.writer import Writer, vector_elements

U64, PRED = TYPES["u64"], TYPES["pred"]


def emit_mov(instruction: Instruction, writer: Writer) -> None:
    if instruction.modifiers == ("b128",):
        return _emit_wide(instruction, writer)
    scalar = TYPES.get(instruction.modifiers[-1]) if len(instruction.modifiers) == 1 else None
    if scalar is None or scalar.kind == "x":
        raise writer.unsupported("modifiers")
    destination, source = instruction.operands
    if isinstance(source, Vector) and isinstance(destination, Vector):
        raise writer.unsupported("vector to vector")
    if isinstance(source, Vector):
        return _emit_join(writer, destination, source, scalar)
    if isinstance(destination, Vector):
        return _emit_split(writer, destination, source, scalar)
    return writer.assign(destination, scalar, writer.read(source, scalar))


def _emit_wide(instruction: Instruction, writer: Writer) -> None:
    """mov.b128: two 64-bit halves on either side."""
    sides = [vector_elements(operand) for operand in instruction.operands]
    if [len(side) for side in sides] != [2, 2]:
        raise writer.unsupported("operands")
    values = []
    for element in sides[1]:
        values.append(writer.fresh())
        writer.line(f"{values[-1]} = np.array({writer.read(element, U64)})")
    for element, value in zip(sides[0], values, strict=True):
        writer.assign(element, U64, value)


def _piece(writer: Writer, vector: Vector, scalar: ScalarType) -> ScalarType:
    bits, left = divmod(scalar.bits, len(vector.elements))
    if left or bits not in (8, 16, 32):
        raise writer.unsupported("vector length")
    return TYPES[f"u{bits}"]


def _emit_join(writer: Writer, destination: Operand, source: Vector, scalar: ScalarType) -> None:
    """Pack elements, the first one in the lowest bits."""
    piece = _piece(writer, source, scalar)
    unsigned = TYPES[f"u{scalar.bits}"]
    wide = f"np.{unsigned.dtype.name}"
    terms = []
    for position, element in enumerate(source.elements):
        term = f"{writer.read(element, piece)}.astype({wide})"
        shift = position * piece.bits
        terms.append(f"({term} << {wide}({shift}))" if shift else term)
    writer.assign(destination, unsigned, " | ".join(terms))


def _emit_split(writer: Writer, destination: Vector, source: Operand, scalar: ScalarType) -> None:
    piece = _piece(writer, destination, scalar)
    unsigned = TYPES[f"u{scalar.bits}"]
    whole = writer.fresh()
    # A copy, for the source may be one of the destinations.
    writer.line(f"{whole} = np.array({writer.read(source, unsigned)})")
    for position, element in enumerate(destination.elements):
        shift = f"np.{unsigned.dtype.name}({position * piece.bits})"
        writer.assign(element, piece, f"({whole} >> {shift}).astype(np.{piece.dtype.name})")


def emit_cvta(instruction: Instruction, writer: Writer) -> None:
    """Addresses between a state space's window and the generic space."""
    modifiers = list(instruction.modifiers)
    to = modifiers[0] == "to"
    if to:
        modifiers.pop(0)
    if len(modifiers) != 2 or modifiers[1] != "u64" or modifiers[0] not in SPACE_WINDOWS:
        raise writer.unsupported("modifiers")
    window = SPACE_WINDOWS[modifiers[0]]
    destination, source = instruction.operands
    value = writer.read(source, U64)
    if window:
        value = f"({value} {'-' if to else '+'} np.uint64({window}))"
    writer.assign(destination, U64, value)


def emit_isspacep(instruction: Instruction, writer: Writer) -> None:
    (space,) = instruction.modifiers
    if space not in SPACE_WINDOWS:
        raise writer.unsupported("state space")
    destination, source = instruction.operands
    value = writer.read(source, U64)
    windows = sorted({window for window in SPACE_WINDOWS.values() if window})
    function = writer.function(in_window)
    if SPACE_WINDOWS[space]:
        test = f"{function}({value}, [{SPACE_WINDOWS[space]}])"
    else:
        test = f"~{function}({value}, {windows})"
    writer.assign(destination, PRED, test)


def in_window(address: np.ndarray, windows: list[int]) -> np.ndarray:
    inside = np.zeros(np.shape(address), bool)
    for window in windows:
        inside |= (address >= window) & (address < window + WINDOW_SIZE)
    return inside


RULES = {"mov": emit_mov, "cvta": emit_cvta, "isspacep": emit_isspacep}
