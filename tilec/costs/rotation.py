"""Whether registers hold the operands of products that run in the next iteration
(`passes/dots/rotate_last.py`)."""

from __future__ import annotations

from tilec.costs.model import LOAD_WARPS, LOADING_REGISTERS
from tilec.hardware.sizes import WARP_SIZE
from tilec.hardware.target import Target

COLUMN_LANES = 4
"""Lanes that share a row of a product's sums, two neighbours each (PTX ISA 9.0, "Register Fragments
for wgmma"): of a row that is loaded each has a part."""
BESIDE_SUMS = 20
"""Registers of a thread for all else where the last products of an iteration rotate. Of 10 tiles of
gradients of heads of 64 elements all are told right so, with 11 to 20."""


def have_room(tiles: int, rows: int, warps: int, target: Target) -> bool:
    """Whether so many `warps` hold `tiles`, registers of all sums and operands at once, beside the
    elements of `rows`, of which each thread has those of its columns."""
    threads = warps * WARP_SIZE
    loading = LOAD_WARPS * WARP_SIZE * LOADING_REGISTERS
    there = min((target.registers_per_sm - loading) // threads, target.registers_per_thread)
    return tiles / threads + rows / COLUMN_LANES + BESIDE_SUMS <= there
