"""Lowers scf: the same loops and branches over registers instead of tiles."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from tilec.passes.lower_to_nvvm.state import Lowering

LowerBlock = Callable[[ir.Block, Lowering], None]


def lower_region_op(op: ir.Operation, state: Lowering, lower_block: LowerBlock) -> None:
    """scf.for, scf.if and scf.while: operands, results and block arguments become registers."""
    results = [t for r in op.results for t in state.register_types(r)]
    attributes = {name: attr for name, attr in op.attributes.items() if "." not in name}
    new = ir.Operation.create(
        op.name,
        results=results,
        operands=state.flatten(op.operands),
        attributes=attributes,
        regions=len(op.regions),
    )
    for region, new_region in zip(op.regions, new.regions, strict=True):
        for block in region.blocks:
            types = [t for a in block.arguments for t in state.register_types(a)]
            new_block = new_region.blocks.append(*types, arg_locs=[op.location] * len(types))
            state.bind(block.arguments, list(new_block.arguments))
            with ir.InsertionPoint(new_block):
                lower_block(block, state)
    state.bind(op.results, list(new.results))


def lower_terminator(op: ir.Operation, state: Lowering) -> None:
    """scf.yield and scf.condition."""
    ir.Operation.create(op.name, operands=state.flatten(op.operands))


REGION_OPS = ("scf.for", "scf.if", "scf.while")
RULES = {"scf.yield": lower_terminator, "scf.condition": lower_terminator}
