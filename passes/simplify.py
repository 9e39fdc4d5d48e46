"""simplify: upstream canonicalize, cse and licm, and the same for our own pure ops.

Before:   %0 = "tile.iota"() ...   %1 = "tile.iota"() ...     (equal)
          %2 = "tile.broadcast"(%x) ...  (unused)
After:    %0 = "tile.iota"() ...                              each use of %1 now uses %0

MLIR 22 treats dynamic ops as opaque: it never merges, drops or moves them. Ops marked `pure` are
merged here when name, operands, attributes and types agree and one dominates the other (same or
enclosing block), dropped when unused, and moved out of loops that do not define their operands.
Does not handle: ops with combining regions (merged by nobody), memory accesses (never moved).
"""

from __future__ import annotations

from mlir import ir
from mlir.passmanager import PassManager

from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.walk import is_pure

_UPSTREAM = "builtin.module(func.func(canonicalize,cse,loop-invariant-code-motion))"
_LOOPS = ("scf.for", "scf.while")


@tile_pass(requires=Level.TILE, ensures=None)
def simplify(module: ir.Module, context: PassContext) -> None:
    """Folds, merges, hoists and drops what has no effect."""
    _drop_unused(module)
    PassManager.parse(_UPSTREAM).run(module.operation)
    for function in module.body.operations:
        for region in function.operation.regions:
            for block in region.blocks:
                _simplify_block(block, {})
    _drop_unused(module)


def _simplify_block(block: ir.Block, available: dict[tuple, ir.Operation]) -> None:
    """Merges equal ops, hoisting first; `available`: ops of enclosing blocks by key."""
    available = dict(available)
    for view in list(block.operations):
        op = view.operation
        if op.name in _LOOPS:
            _hoist(op)
    for view in list(block.operations):
        op = view.operation
        if is_pure(op) and not op.regions:
            key = (
                op.name,
                tuple(op.operands),
                tuple(sorted((a, str(op.attributes[a])) for a in op.attributes)),
                tuple(r.type for r in op.results),
            )
            earlier = available.get(key)
            if earlier is not None:
                for old, new in zip(op.results, earlier.results, strict=True):
                    old.replace_all_uses_with(new)
                op.erase()
                continue
            available[key] = op
        elif op.name.startswith("scf."):
            for region in op.regions:
                for inner in region.blocks:
                    _simplify_block(inner, available)


def _hoist(loop: ir.Operation) -> None:
    """Moves pure ops whose operands are defined outside a loop in front of it, inner loops
    first."""
    for region in loop.regions:
        for block in region.blocks:
            for view in list(block.operations):
                op = view.operation
                if op.name in _LOOPS:
                    _hoist(op)
                elif is_pure(op) and all(_is_outside(v, loop) for v in op.operands):
                    op.move_before(loop)


def _is_outside(value: ir.Value, loop: ir.Operation) -> bool:
    owner = value.owner
    op = owner.owner if isinstance(owner, ir.Block) else owner.operation
    if isinstance(owner, ir.Block) and op == loop:
        return False
    while op is not None:
        if op == loop:
            return isinstance(owner, ir.Block) is False and owner.operation == loop
        op = op.parent
    return True


def _drop_unused(module: ir.Module) -> None:
    pure: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if is_pure(op):
            pure.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in reversed(pure):
        if not any(True for result in op.results for _ in result.uses):
            op.erase()
