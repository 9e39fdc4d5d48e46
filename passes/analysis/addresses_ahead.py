"""What the addresses of a loop's next iterations follow from, if they are known ahead."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import defining_op, of_kind
from tilec.dialects.gpu_tile import CpAsyncGatherOp, ThreadCopy
from tilec.dialects.tile import GatherOp, LoadOp
from tilec.passes.analysis.hazards import read_ahead_hazard
from tilec.passes.demands.kernels import is_dynamic
from tilec.passes.rewriting.free_ops import is_one_element
from tilec.passes.rewriting.loops import is_inside, is_program_loop
from tilec.passes.rewriting.refusals import Refusal
from tilec.passes.rewriting.scalars import truth_of
from tilec.passes.rewriting.walk import blocks_in, is_of, kernel_of

ADDRESS_OPS = (
    "arith.",
    "memref.dim",
    "tensor.splat",
    "tile.array_at",
    "tile.broadcast",
    "tile.iota",
    "tile.transpose",
)
"""How the names of ops begin that compute addresses."""


def address_ops(
    loop: ir.Operation, copies: list[ir.Operation], *, tiles: bool = False
) -> list[ir.Operation]:
    """The loop's scalar ops, loads of one element and branches of such ops among them, that the
    offsets of copies or loads follow from, in order; of gathers the ops that make indices and
    masks, too; refused where an iteration's cannot be known ahead. `tiles`: whole tiles may be
    loaded themselves, numbers of rows.

    Past the last iteration such a load of an array with bounds reads some other element, or
    padding: no access is wild. Of one without, whoever clones it sees to that.
    """
    if is_program_loop(loop) and is_dynamic(kernel_of(loop)):
        raise Refusal("which program comes next is not known before this one is done")
    body = loop.regions[0].blocks[0]
    needed: list[ir.Operation] = []
    pending = [value for copy in copies for value in _addresses(copy.opview)]
    while pending:
        value = pending.pop()
        op = defining_op(value)
        if op is None:
            carried = value.owner == body and ir.BlockArgument(value).arg_number > 0
            if carried:
                raise Refusal("an address depends on a loop-carried value")
            continue
        if op.block != body or op in needed:
            continue
        inside = _ops_of(op)
        may = tiles and is_of(op, LoadOp, GatherOp)
        wrong = next((each for each in inside if not (may or _is_address(each))), None)
        if wrong is not None:
            raise Refusal(f"an address depends on '{wrong.name}' in the loop")
        loads = of_kind(inside, LoadOp, GatherOp)
        hazard = read_ahead_hazard(loop, {load.src for load in loads}, "the loop")
        if loads and hazard is not None:
            raise Refusal(f"an address depends on '{loads[0].operation.name}', and {hazard}")
        needed.append(op)
        pending += [v for each in inside for v in each.operands if not is_inside(v, op)]
    order = [view.operation for view in body.operations]
    return [op for op in order if op in needed]


def _ops_of(op: ir.Operation) -> list[ir.Operation]:
    """An op; of a branch what it holds, too."""
    if op.name != "scf.if":
        return [op]
    blocks = blocks_in(op)
    inside = [
        each for block in blocks for view in block.operations for each in _ops_of(view.operation)
    ]
    return [op, *inside]


def _is_address(op: ir.Operation) -> bool:
    control = op.name in ("scf.if", "scf.yield")
    return control or op.name.startswith(ADDRESS_OPS) or is_one_element(op)


def _addresses(op: ir.OpView) -> list[ir.Value]:
    """The operands of a copy or load that say where it reads, and whether, an array out of a list
    among them; of a gather what it gives otherwise, too."""
    if isinstance(op, GatherOp):
        return [*_chosen(op.src), op.mask, op.other, *op.indices]
    at = [op.elements, *op.indices] if isinstance(op, CpAsyncGatherOp) else list(op.offsets)
    masked = isinstance(op, ThreadCopy) and not truth_of(op.mask)
    return [*_chosen(op.src), *at, *([op.mask] if masked else [])]


def _chosen(array: ir.Value) -> list[ir.Value]:
    """An array, where an op gives it."""
    return [] if defining_op(array) is None else [array]
