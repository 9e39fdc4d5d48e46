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


def why_no_argument(pointer: Value) -> tuple[str, ...]:
    """Why a pointer comes from no one argument, and what is known beside."""
    roots, seen, todo = set[Value](), set[Value](), [pointer]
    while todo:
        one = todo.pop()
        if one in seen or defining(one, "ub.poison"):
            continue
        seen.add(one)
        sources = pointer_sources(one)
        if sources is None:
            return _made_elsewhere(one)
        roots.update([] if sources else [one])
        todo += sources
    names = sorted(f"'{root.name}'" for root in roots)
    return (f"the pointer may come from {' or '.join(names)}, by what a loop or a branch decides",)


def _made_elsewhere(pointer: Value) -> tuple[str, ...]:
    maker = pointer.owner if isinstance(pointer.owner, Op) else pointer.owner.parent
    if maker is None or maker.name != "tt.load":
        return (f"the pointer is made by '{maker.name if maker else 'a branch'}', of no argument",)
    return ("the pointer comes from memory", f"it is loaded at {maker.location}", OF_NO_ARRAY)


OF_NO_ARRAY = (
    "an array of pointers says neither which arrays they go to nor where these end, and what "
    "overlaps: give the kernel the arrays, or one array and where its parts begin"
)


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
