"""Instructions that end a block: branches, exit, trap and barriers. The scheduler executes them.

A control instruction's emitter writes `return guard, values...`; `guard` is None or the lanes for
which the instruction happens, the others go on behind it.
"""

from __future__ import annotations

from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction, Register, Symbol
from tilec.runtime.emulator.writing.writer import U32, Writer

PRED = TYPES["pred"]
ALL_LANES = 0xFFFFFFFF
"""The member mask of a whole warp."""


def returns(instruction: Instruction, writer: Writer, *values: str) -> None:
    guard = "None"
    if instruction.guard is not None:
        guard = writer.read(instruction.guard, PRED)
    writer.line(f"return {', '.join((guard, *values))},")


def emit_bra(instruction: Instruction, writer: Writer) -> None:
    if set(instruction.modifiers) - {"uni"} or len(instruction.operands) != 1:
        raise writer.unsupported("modifiers")
    if not isinstance(instruction.operands[0], Symbol):
        raise writer.unsupported("branch target")
    returns(instruction, writer)


def emit_brx(instruction: Instruction, writer: Writer) -> None:
    if set(instruction.modifiers) - {"idx", "uni"}:
        raise writer.unsupported("modifiers")
    index = instruction.operands[0]
    returns(instruction, writer, writer.broadcast(writer.read(index, U32), index))


def emit_exit(instruction: Instruction, writer: Writer) -> None:
    if set(instruction.modifiers) - {"uni"} or instruction.operands:
        raise writer.unsupported("modifiers")
    returns(instruction, writer)


def emit_barrier(instruction: Instruction, writer: Writer) -> None:
    """bar and barrier: `form_of_barrier` says which of the many spellings it is."""
    if is_cluster_barrier(instruction):
        if set(instruction.modifiers) - _CLUSTER_WORDS or instruction.operands:
            raise writer.unsupported("modifiers")
        return returns(instruction, writer)
    form = form_of_barrier(instruction)
    if form is None:
        raise writer.unsupported("modifiers")
    reduces = form.kind == "red"
    operands = instruction.operands[1:-1] if reduces else instruction.operands
    names = [writer.broadcast(writer.read(operand, U32), operand) for operand in operands]
    names += ["None"] * (2 - len(names))
    if reduces:
        predicate = instruction.operands[-1]
        names.append(writer.broadcast(writer.read(predicate, PRED), predicate))
    return returns(instruction, writer, *names)


_CLUSTER_WORDS = {"cluster", "arrive", "wait", "acquire", "release", "relaxed", "aligned"}


def is_cluster_barrier(instruction: Instruction) -> bool:
    return instruction.opcode == "barrier" and instruction.modifiers[:1] == ("cluster",)


class BarrierForm:
    """kind: sync, arrive or red; operation of red; aligned: all lanes of a warp together."""

    def __init__(self, kind: str, operation: str, aligned: bool) -> None:
        self.kind = kind
        self.operation = operation
        self.aligned = aligned


def form_of_barrier(instruction: Instruction) -> BarrierForm | None:
    names = [name for name in instruction.modifiers if name not in ("cta",)]
    if not names or names[0] not in ("sync", "arrive", "red"):
        return None
    kind, rest = names[0], names[1:]
    operation = ""
    if kind == "red":
        if not rest or rest[0] not in ("popc", "and", "or"):
            return None
        operation = rest.pop(0)
        if rest[-1:] not in (["u32"], ["pred"]):
            return None
        rest.pop()
    aligned = instruction.opcode == "bar" or "aligned" in rest
    if set(rest) - {"aligned"}:
        return None
    return BarrierForm(kind, operation, aligned)


def emit_trap(instruction: Instruction, writer: Writer) -> None:
    returns(instruction, writer)


def is_warp_barrier(instruction: Instruction) -> bool:
    return instruction.opcode == "bar" and instruction.modifiers[:1] == ("warp",)


def emit_warp_barrier(instruction: Instruction, writer: Writer) -> None:
    """bar.warp.sync: the lanes have met when this runs, see `needs_whole_warp`."""
    if instruction.modifiers != ("warp", "sync"):
        raise writer.unsupported("modifiers")
    writer.line("pass")


_WARP_OPCODES = {
    "shfl", "vote", "match", "redux", "elect", "mma", "ldmatrix", "stmatrix", "movmatrix",
    "wgmma", "setmaxnreg",
}  # fmt: skip


WARPGROUP = 4
"""Warps that multiply together (PTX ISA 9.0, "wgmma")."""


def member_mask_operand(instruction: Instruction) -> int | None:
    """The position of the member mask among the operands, None where all lanes must come."""
    if instruction.opcode in ("shfl", "vote", "match", "redux", "elect"):
        return len(instruction.operands) - 1
    if is_warp_barrier(instruction) and instruction.operands:
        return 0
    return None


def needs_whole_warp(instruction: Instruction) -> bool:
    """Must the lanes of a warp (of the member mask) arrive at this instruction together?"""
    if instruction.opcode == "tcgen05":
        return "aligned" in instruction.modifiers
    if instruction.opcode in _WARP_OPCODES or is_warp_barrier(instruction):
        return True
    if is_cluster_barrier(instruction):
        return "aligned" in instruction.modifiers
    if instruction.opcode in ("bar", "barrier"):
        form = form_of_barrier(instruction)
        return form is not None and form.aligned
    return False


def begins_products(instruction: Instruction) -> bool:
    """Whether products of a warpgroup begin here, which its warps reach one by one and this
    emulator does for all of them at once."""
    return instruction.opcode == "wgmma" and "fence" in instruction.modifiers


def member_mask(instruction: Instruction) -> Immediate | Register:
    """The member mask, a literal or a register; all lanes where the instruction names none."""
    position = member_mask_operand(instruction)
    operand = None if position is None else instruction.operands[position]
    return operand if isinstance(operand, (Immediate, Register)) else Immediate(ALL_LANES)


RULES = {
    "bra": emit_bra,
    "brx": emit_brx,
    "exit": emit_exit,
    "ret": emit_exit,
    "trap": emit_trap,
    "barrier": emit_barrier,
}
