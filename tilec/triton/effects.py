"""What ops do beside giving results: nothing, read memory, or change something."""

from __future__ import annotations

from collections.abc import Iterable

from tilec.triton.program import Op
from tilec.triton.raising import is_volatile

STORES = ("tt.store", "tt.descriptor_store")
EFFECTS = (*STORES, "tt.atomic_rmw", "tt.atomic_cas", "tt.assert", "tt.print", "scf.while")
SILENT = ("llvm.intr.assume", "gpu.barrier")
"""Ops without results that a kernel may do without."""
_LOADS = ("tt.load", "tt.descriptor_load", "tt.descriptor_gather")

READS, CHANGES = 1, 2
"""What `effect_of` gives, beside 0: the more, the less may change places with it."""


def has_effect(op: Op) -> bool:
    """Whether an op changes something by itself, whoever reads its results."""
    known = op.regions or op.results or op.name in (*EFFECTS, *SILENT, "scf.yield")
    return op.name in EFFECTS or op.attributes.get("pure") == "false" or not known


def effect_of(ops: Iterable[Op]) -> int:
    """The most that ops do, with what is inside: 0, READS or CHANGES; in order, none of what reads
    may change places with what changes."""
    most = 0
    for op in ops:
        own = READS if op.name in _LOADS else 0
        if is_volatile(op) or (has_effect(op) and not op.name.endswith(".return")):
            own = CHANGES
        most = max(most, own, *(effect_of(region.ops) for region in op.regions))
    return most
