"""Instructions without an effect on values: fences, prefetches, sleeps, launch hints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tilec.runtime.emulator.checking.global_checker import order_of
from tilec.runtime.emulator.errors import EmulatorError
from tilec.runtime.emulator.instructions.control import returns
from tilec.runtime.emulator.instructions.memory import WIDE_SCOPES, lanes_of, settle_arrivals
from tilec.runtime.emulator.numbers.scalar_types import TYPES
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction
from tilec.runtime.emulator.writing.writer import Writer

if TYPE_CHECKING:
    from tilec.runtime.emulator.execution.machine import Machine

_B64 = TYPES["b64"]
_FENCE_WORDS = {
    "cta", "gl", "sys", "sc", "acq_rel", "acquire", "release", "cluster", "gpu", "proxy", "alias",
    "async", "async.global", "global", "shared::cta", "shared::cluster", "mbarrier_init",
    "sync_restrict::shared::cta", "sync_restrict::shared::cluster", "tensormap::generic",
    "async::generic", "async::proxy", "generic", "level",
}  # fmt: skip
_PREFETCH_WORDS = {
    "global", "local", "L1", "L2", "L2::evict_last", "L2::evict_normal", "param", "const",
    "tensormap", "L2::evict_first",
}  # fmt: skip


_DEVICE_WIDE = {"gpu", "sys", "gl"}


def _global_fence(machine: Machine, instruction: Instruction) -> Callable[[np.ndarray], None]:
    """A fence orders what relaxed accesses around it tell other CTAs."""
    checker, order = machine.launch.global_checker, order_of(instruction)

    def run(lanes: np.ndarray) -> None:
        if checker is not None:
            checker.fence(machine.first_cta + lanes // 32 % machine.cta_count, order)

    return run


def emit_fence(instruction: Instruction, writer: Writer) -> None:
    """fence and membar: one schedule is executed in order, so values never depend on them."""
    unknown = set(instruction.modifiers) - _FENCE_WORDS
    if unknown:
        raise writer.unsupported(f"modifier .{sorted(unknown)[0]}")
    settle_arrivals(instruction, writer)
    writer.line("pass")
    if not writer.checked:
        return
    checker = writer.bind("checker", lambda b: b.machine.checker)
    if {"proxy", "async"} <= set(instruction.modifiers):
        writer.line(f"{checker}.proxy_fence({lanes_of(writer)})")
    elif not WIDE_SCOPES.isdisjoint(instruction.modifiers):
        writer.line(f"{checker}.cluster_fence({lanes_of(writer)})")
        if not _DEVICE_WIDE.isdisjoint(instruction.modifiers):
            fence = writer.bind("global_fence", lambda b: _global_fence(b.machine, instruction))
            writer.line(f"{fence}({lanes_of(writer)})")


def emit_prefetch(instruction: Instruction, writer: Writer) -> None:
    unknown = set(instruction.modifiers) - _PREFETCH_WORDS
    if unknown:
        raise writer.unsupported(f"modifier .{sorted(unknown)[0]}")
    writer.line("pass")


def emit_discard(instruction: Instruction, writer: Writer) -> None:
    if instruction.modifiers not in (("global", "L2"), ("L2",)):
        raise writer.unsupported("modifiers")
    writer.line("pass")


def emit_griddepcontrol(instruction: Instruction, writer: Writer) -> None:
    """The scheduler executes both."""
    if instruction.modifiers not in (("wait",), ("launch_dependents",)):
        raise writer.unsupported("modifiers")
    returns(instruction, writer)


def emit_nanosleep(instruction: Instruction, writer: Writer) -> None:
    if instruction.modifiers != ("u32",):
        raise writer.unsupported("modifiers")
    writer.line("pass")


def emit_pmevent(instruction: Instruction, writer: Writer) -> None:
    if instruction.modifiers not in ((), ("mask",)):
        raise writer.unsupported("modifiers")
    writer.line("pass")


def emit_createpolicy(instruction: Instruction, writer: Writer) -> None:
    """Cache policies are opaque 64-bit values that only hints read."""
    known = {"fractional", "L2::evict_first", "L2::evict_last", "L2::evict_normal",
             "L2::evict_unchanged", "b64", "range", "global", "cvt", "L2"}  # fmt: skip
    if set(instruction.modifiers) - known:
        raise writer.unsupported("modifiers")
    writer.assign(instruction.operands[0], _B64, "np.uint64(0)")


def emit_slot(instruction: Instruction, writer: Writer) -> None:
    """`slot.u32 offset, bytes, count;`, which tilec writes into a comment: the offset in bytes of
    one of `count` slots. Shared memory is flat, so no address tells that its slot is none."""
    offset, size, count = instruction.operands
    if instruction.modifiers != ("u32",) or not isinstance(size, Immediate):
        raise writer.unsupported("modifiers")
    if not isinstance(count, Immediate):
        raise writer.unsupported("operands")
    check = writer.bind(
        "slot", lambda b: _slot_check(instruction, int(size.value), int(count.value))
    )
    writer.line(f"{check}({writer.read(offset, TYPES['u32'])})")


def _slot_check(instruction: Instruction, size: int, count: int) -> Callable[[np.ndarray], None]:
    limit = size * count

    def check(offsets: np.ndarray) -> None:
        wrong = np.asarray(offsets) >= limit
        if wrong.any():
            slot = int(np.asarray(offsets)[wrong].flat[0].astype(np.int32)) // size
            message = f"slot {slot} of a ring of {count}"
            raise EmulatorError(message, instruction.place, "slot")

    return check


RULES = {
    "slot": emit_slot,
    "fence": emit_fence,
    "membar": emit_fence,
    "prefetch": emit_prefetch,
    "prefetchu": emit_prefetch,
    "nanosleep": emit_nanosleep,
    "pmevent": emit_pmevent,
    "discard": emit_discard,
    "applypriority": emit_prefetch,
    "griddepcontrol": emit_griddepcontrol,
    "createpolicy": emit_createpolicy,
}
