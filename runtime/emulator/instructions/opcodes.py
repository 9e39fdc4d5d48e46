"""The table of every opcode the emulator knows, joined from the family files."""

from __future__ import annotations

from collections.abc import Callable

from tilec.runtime.emulator.checking.register_checker import emit_touch
from tilec.runtime.emulator.instructions import (
    atomics,
    bits,
    bulk_copy,
    call,
    cluster,
    compare,
    control,
    convert,
    cp_async,
    floating,
    hints,
    integer,
    launch_control,
    matrix,
    mbarrier,
    memory,
    move,
    register_budget,
    scaled_mma,
    tcgen05,
    warp,
    wgmma,
)
from tilec.runtime.emulator.reading.instruction import Instruction
from tilec.runtime.emulator.writing.writer import Writer

Rule = Callable[[Instruction, Writer], None]

_FAMILIES = (
    atomics, bits, call, cluster, compare, control, convert, cp_async, floating, hints, integer,
    launch_control, matrix, mbarrier, memory, move, register_budget, scaled_mma, tcgen05,
    warp, wgmma,
)  # fmt: skip
RULES: dict[str, Rule] = {}
for _family in _FAMILIES:
    _doubles = RULES.keys() & _family.RULES.keys()
    if _doubles:
        raise RuntimeError(f"opcodes with two rules: {sorted(_doubles)}")
    RULES.update(_family.RULES)

# Opcodes after which a block ends, because the scheduler has to act.
CONTROL = {"bra", "brx", "exit", "ret", "trap", "barrier", "setmaxnreg", "griddepcontrol"}


def is_control(instruction: Instruction) -> bool:
    if instruction.opcode == "bar":
        return not control.is_warp_barrier(instruction)
    if instruction.opcode == "mbarrier":
        return instruction.modifiers[:1] in (("try_wait",), ("test_wait",))
    return instruction.opcode in CONTROL


def rule_of(instruction: Instruction, writer: Writer) -> Rule:
    """The emitter of an instruction; UnsupportedInstruction if there is none."""
    opcode = instruction.opcode
    if opcode in integer.SHARED_RULES:
        if integer.is_integer(instruction):
            return integer.SHARED_RULES[opcode]
        return floating.SHARED_RULES[opcode]
    if opcode == "bar":
        if control.is_warp_barrier(instruction):
            return control.emit_warp_barrier
        return control.emit_barrier
    if opcode == "cp" and ("bulk" in instruction.modifiers):
        return bulk_copy.emit_bulk
    rule = RULES.get(opcode)
    if rule is None:
        raise writer.unsupported(f"opcode {opcode}")
    return rule


def _write(rule: Rule, instruction: Instruction, writer: Writer) -> None:
    emit_touch(instruction, writer)
    rule(instruction, writer)


def emit(instruction: Instruction, writer: Writer) -> None:
    """Write one instruction, with its guard."""
    writer.instruction = instruction
    rule = rule_of(instruction, writer)
    try:
        if instruction.guard is None or is_control(instruction):
            _write(rule, instruction, writer)
        else:
            writer.guarded(instruction.guard, lambda: _write(rule, instruction, writer))
    except (ValueError, IndexError, KeyError, TypeError) as error:
        if isinstance(error, ValueError) and hasattr(error, "ptx_line"):
            raise
        raise writer.unsupported(f"form ({error})") from error
