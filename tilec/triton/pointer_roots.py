"""Which argument a pointer comes from: through loops, branches and tiles of pointers."""

from __future__ import annotations

from tilec.triton.program import Op, Value, defining


def argument_of(pointer: Value) -> Value | None:
    """The one argument that a pointer can come from, offsets aside; None of several, or of
    memory."""
    roots, seen, todo = set[Value](), set[Value](), [pointer]
    while todo:
        one = todo.pop()
        if one in seen or defining(one, "ub.poison"):
            continue
        seen.add(one)
        sources = pointer_sources(one)
        if sources is None:
            return None
        if not sources:
            roots.add(one)
        todo += sources
    return roots.pop() if len(roots) == 1 else None


def pointer_sources(value: Value) -> list[Value] | None:
    """The pointers that a pointer is made of, none of a kernel's argument; None where it comes
    from no pointer."""
    if not isinstance(value.owner, Op):
        loop = value.owner.parent
        if loop is None:
            return []
        if loop.name == "scf.for":
            n = value.number
            return [loop.operands[2 + n], loop.regions[0].terminator.operands[n - 1]]
        if loop.name == "scf.while":
            return _while_sources(loop, value)
        return None
    op = value.owner
    if op.name in ("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.trans",
                   "tt.bitcast", "tt.reshape"):  # fmt: skip
        return op.operands[:1] if op.operands[0].type.pointee else None
    if op.name == "arith.select":
        return op.operands[1:]
    if op.name == "scf.if":
        return [region.terminator.operands[value.number] for region in op.regions]
    if op.name == "scf.for":
        return [op.operands[3 + value.number], op.regions[0].terminator.operands[value.number]]
    if op.name == "scf.while":
        return [op.regions[0].terminator.operands[1 + value.number]]
    return None


def _while_sources(loop: Op, value: Value) -> list[Value]:
    if value.owner is loop.regions[1]:
        return [loop.regions[0].terminator.operands[1 + value.number]]
    return [loop.operands[value.number], loop.regions[1].terminator.operands[value.number]]
