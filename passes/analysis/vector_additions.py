"""How many neighbours in memory one atomic addition takes: `red` and `atom` on pairs and vectors.

PTX ISA 9.0, "red", "atom": pairs of f16 on every target, of bf16 since Hopper; since PTX 8.1 Hopper
and what follows it add vectors of up to 16 bytes of these and of f32. Of 16 bits these are all the
additions that the hardware has: ptxas makes a loop of compare-and-swaps of a single one.
"""

from __future__ import annotations

from tilec.dialects.tile import ArrayOp, AtomicRmwOp
from tilec.dialects.types import byte_width, element
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.hardware.target import Feature
from tilec.passes.contract import PassContext

VECTORS = 81
"""The PTX version of both on vectors (PTX ISA 9.0, "red", "PTX ISA Notes")."""
WORD_ELEMENTS = 2
"""Elements of 16 bits that a word has, which one instruction adds."""


def most_added(op: ArrayOp, context: PassContext) -> int:
    """Elements that one instruction of the target adds to memory; 1 if `op` adds no floats, or if
    somebody wants an old value, which pairs and vectors do not give here."""
    if not isinstance(op, AtomicRmwOp) or op.kind != "addf":
        return 1
    name, target = str(element(op.value)), context.target
    if name not in ("f16", "bf16", "f32") or op.gives_old:
        return 1
    if target.supports(Feature.VECTOR_REDUCTIONS) and context.ptx_version >= VECTORS:
        return VECTOR_BYTES // byte_width(element(op.value))
    has_pairs = name == "f16" or (name == "bf16" and target.supports(Feature.BF16_ARITHMETIC))
    return WORD_ELEMENTS if has_pairs else 1
