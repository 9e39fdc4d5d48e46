"""Which lanes at an instruction of whole warps may run it: those whose member lanes are there."""

from __future__ import annotations

import numpy as np

from tilec.runtime.emulator.execution.machine import Machine
from tilec.runtime.emulator.instructions.control import (
    ALL_LANES,
    WARPGROUP,
    begins_products,
    member_mask,
)
from tilec.runtime.emulator.reading.instruction import Immediate, Instruction

_LANES = np.arange(32, dtype=np.uint32)


def complete_lanes(mask: np.ndarray, instruction: Instruction, machine: Machine) -> np.ndarray:
    """Those of the lanes `mask` at an instruction whose member lanes are there too, or have exited;
    where a warpgroup's products begin, those of all four warps.

    Lanes with a mask in a register wait for others with the same mask in it, and forever where they
    are none of its lanes (PTX ISA 9.0, "shfl.sync": "the same qualifiers and same membermask
    value"; "the behavior is undefined if the executing thread is not in the membermask").
    """
    members = member_mask(instruction)
    if isinstance(members, Immediate):
        wanted = ((int(members.value) & ALL_LANES) >> _LANES & 1).astype(bool)
        missing = np.any(wanted & ~machine.exited & ~mask, 2, keepdims=True)
        if begins_products(instruction):
            whole = len(missing) // WARPGROUP * WARPGROUP
            groups = missing[:whole].reshape(-1, WARPGROUP, *missing.shape[1:])
            missing[:whole] = np.repeat(groups.any(1), WARPGROUP, axis=0)
        return mask & ~missing
    masks = machine.registers[members.bits][members.index]
    alike = (masks[..., :, None] == masks[..., None, :]) & mask[..., None, :]
    present = np.packbits(alike | machine.exited[..., None, :], axis=-1, bitorder="little")
    missing = masks & ~present.view("<u4")[..., 0]
    return mask & (missing == 0) & (masks >> _LANES & 1).astype(bool)
