"""Loops as rewrites see them: what is defined inside, where code may move out to, and counters that
run on through a nest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir import ir

from tilec.dialects.def_use import constant_attribute, defining_op, made_by
from tilec.dialects.gpu_tile import LaunchCount
from tilec.passes.rewriting.op_tables import OpMap, OpSet, order_of
from tilec.passes.rewriting.scalars import binary, constant
from tilec.passes.rewriting.walk import all_ops, ops_named


def find_loops(module: ir.Module | ir.Operation) -> list[ir.Operation]:
    """Lists every scf.for of a module or a function, inner before outer."""
    return ops_named(module.operation, ("scf.for",))


def is_inside(value: ir.Value, op: ir.Operation) -> bool:
    """Whether `value` is defined inside the regions of `op`."""
    at = defining_op(value) or value.owner.owner
    while at is not None and at != op:
        at = at.parent
    return at is not None


def outside_loops(value: ir.Value, op: ir.Operation) -> ir.Operation:
    """The outermost loop around `op` that does not define `value`, a branch between them or not,
    else `op` itself."""
    place = op
    for around in enclosing_ops(op):
        if around.name not in COUNTED or is_inside(value, around):
            break
        if around.name != "scf.if":
            place = around
    return place


def enclosing_ops(op: ir.Operation) -> list[ir.Operation]:
    """The ops around `op`, innermost first, without the function."""
    found = []
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        found.append(parent)
        parent = parent.parent
    return found


def innermost_loop(op: ir.Operation) -> ir.Operation | None:
    """The loop whose iterations run an op, not all of them if it stands in a branch; None where
    none is around."""
    at = op.parent
    while at is not None and at.name == "scf.if":
        at = at.parent
    return at if at is not None and at.name in ("scf.for", "scf.while") else None


def are_alternatives(one: ir.Operation, other: ir.Operation) -> bool:
    """Whether two ops stand in different branches of one scf.if."""
    branches = OpMap((op.parent, op.block.region) for op in [other, *enclosing_ops(other)])
    return any(
        op.parent.name == "scf.if" and branches.get(op.parent, op.block.region) != op.block.region
        for op in [one, *enclosing_ops(one)]
    )


def inits_of(loop: ir.Operation) -> list[ir.Value]:
    """What the values begin as that a loop (scf.for) carries."""
    return list(loop.operands)[3:]


def carried_by(loop: ir.Operation) -> list[ir.Value]:
    """The values that a loop (scf.for) carries, as an iteration gets them."""
    return list(loop.regions[0].blocks[0].arguments)[1:]


def yielded_by(loop: ir.Operation) -> list[ir.Value]:
    """The same as an iteration leaves them."""
    return list(terminator(loop.regions[0].blocks[0]).operands)


def trips_of(loop: ir.Operation) -> int | None:
    """How often a loop (scf.for) runs; None where that is not known."""
    low, high, step = (constant_attribute(value) for value in list(loop.operands)[:3])
    if low is None or high is None or step is None:
        return None
    return max(0, -(-(high.value - low.value) // step.value))


def is_program_loop(op: ir.Operation) -> bool:
    """Whether an op is the loop over programs of a persistent kernel, which no author wrote."""
    return op.name == "scf.for" and made_by(op.operands[0], LaunchCount) is not None


def top_level(op: ir.Operation) -> ir.Operation:
    """The op of the function's own block that holds `op` (or is it)."""
    return [op, *enclosing_ops(op)][-1]


def in_block(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of `block` that is `op` or holds it."""
    while op.block != block:
        op = op.parent
    return op


def first_in(block: ir.Block, ops: Iterable[ir.Operation]) -> ir.Operation:
    """The first op of `block` that is or holds one of `ops`."""
    around = OpSet(in_block(op, block) for op in ops)
    return next(view.operation for view in block.operations if view.operation in around)


def last_in(block: ir.Block, ops: Iterable[ir.Operation]) -> ir.Operation:
    """The last op of `block` that is or holds one of `ops`."""
    order = order_of(view.operation for view in block.operations)
    return max((in_block(op, block) for op in ops), key=order.__getitem__)


def with_iteration_arguments(
    loop: ir.Operation, inits: Sequence[ir.Value]
) -> tuple[ir.Operation, list[ir.Value]]:
    """Rebuilds `loop` (scf.for) with further loop-carried values that start as `inits`.

    The new loop has the old one's body, attributes and results; its new block arguments come back
    with it. They are yielded unchanged: the caller replaces the last operands of the terminator.
    """
    new = _with_more(loop, inits, [init.type for init in inits])
    body = new.regions[0].blocks[0]
    fresh = [body.add_argument(init.type, new.location) for init in inits]
    _yield_also(body, fresh)
    return new, fresh


def without_iteration_argument(loop: ir.Operation, number: int) -> ir.Operation:
    """Rebuilds `loop` (scf.for) in front of itself without one loop-carried value; the old shell
    stays, empty, for the caller to replace its results and erase it. Nothing but the body's yield
    may use the value by then."""
    results = all_but(list(loop.results), number)
    new = _moved(loop, all_but(list(loop.operands), 3 + number), [r.type for r in results])
    body = new.regions[0].blocks[0]
    last = terminator(body)
    replace_yield(last, all_but(list(last.operands), number))
    body.erase_argument(1 + number)
    for before, after in zip(results, new.results, strict=True):
        before.replace_all_uses_with(after)
    return new


def all_but(values: Sequence[ir.Value], number: int) -> list[ir.Value]:
    """Lists `values` without the one at `number`."""
    return [*values[:number], *values[number + 1 :]]


def clone_mapped(op: ir.Operation, mapped: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Clones `op` at the current insertion point with operands replaced by `mapped`, which learns
    the clone's results."""
    copy = op.clone(ir.InsertionPoint.current).operation

    for inner in all_ops(copy):
        for number, operand in enumerate(inner.operands):
            if operand in mapped:
                inner.operands[number] = mapped[operand]
    mapped.update(zip(op.results, copy.results, strict=True))
    return copy


def behind(op: ir.Operation) -> ir.Operation:
    """The op that follows `op` in its block."""
    return ir.InsertionPoint.after(op).ref_operation.operation


def terminator(block: ir.Block) -> ir.Operation:
    """The last op of a block."""
    return block.operations[-1].operation


def replace_yield(old: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Makes a terminator yield `values` instead of what it did."""
    ir.Operation.create(
        old.name, operands=list(values), ip=ir.InsertionPoint(old), loc=old.location
    )
    old.erase()


def with_results(branch: ir.Operation, yielded: Sequence[ir.Value]) -> ir.Operation:
    """Rebuilds `branch` (scf.if) with further results, for which both its blocks yield `yielded`,
    values from outside: the caller replaces the last operands of a terminator."""
    new = _with_more(branch, (), [value.type for value in yielded])
    for region in new.regions:
        if region.blocks:
            _yield_also(region.blocks[0], yielded)
        else:
            with ir.InsertionPoint(region.blocks.append()), new.location:
                ir.Operation.create("scf.yield", operands=list(yielded))
    return new


def with_while_argument(loop: ir.Operation, init: ir.Value) -> tuple[ir.Operation, ir.Value]:
    """Rebuilds `loop` (scf.while) with one more value that starts as `init`, goes through its
    condition, and is yielded unchanged; the argument of its body comes back with it."""
    new = _with_more(loop, [init], [init.type])
    for region in new.regions:
        argument = region.blocks[0].add_argument(init.type, new.location)
        _yield_also(region.blocks[0], [argument])
    return new, argument


def _with_more(
    op: ir.Operation, operands: Sequence[ir.Value], results: Sequence[ir.Type]
) -> ir.Operation:
    """Rebuilds a loop or branch with further operands and results."""
    types = [*(result.type for result in op.results), *results]
    new = _moved(op, [*op.operands, *operands], types)
    for before, after in zip(op.results, new.results, strict=False):
        before.replace_all_uses_with(after)
    op.erase()
    return new


def _moved(
    op: ir.Operation, operands: Sequence[ir.Value], results: Sequence[ir.Type]
) -> ir.Operation:
    """Makes an op like `op`, in front of it, with its attributes and blocks, which `op` loses."""
    new = ir.Operation.create(
        op.name,
        results=list(results),
        operands=list(operands),
        attributes=dict(op.attributes.items()),
        regions=len(op.regions),
        ip=ir.InsertionPoint(op),
        loc=op.location,
    )
    for old, region in zip(op.regions, new.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(region)
    return new


def _yield_also(block: ir.Block, values: Sequence[ir.Value]) -> None:
    """Has a block yield `values` behind what it yields."""
    last = terminator(block)
    replace_yield(last, [*last.operands, *values])


COUNTED = ("scf.for", "scf.if", "scf.while")
"""What a count runs on through."""


def why_no_counter(op: ir.Operation) -> str | None:
    """Says why no count of how often an op's block runs can be carried through what is around it;
    None if it can."""
    inner = op
    for outer in enclosing_ops(op):
        if outer.name not in COUNTED:
            return f"it stands in '{outer.name}'"
        if outer.name == "scf.while" and inner.block.region != outer.regions[1]:
            return "it stands in the condition of a 'while'"
        inner = outer
    return None


def add_counter(op: ir.Operation) -> ir.Value:
    """An i32 that counts how often the block of `op` has run before, since the start of the kernel.

    The count runs on through the loops and branches around it, which are rebuilt: a ring's phases
    stay right in a nest, whatever the trip counts, and a branch not taken is no turn. ValueError
    where something else stands around it.
    """
    reason = why_no_counter(op)
    if reason is not None:
        raise ValueError(f"no count: {reason}")
    i32 = ir.IntegerType.get_signless(32, op.context)
    with ir.InsertionPoint(top_level(op)), op.location:
        count = constant(i32, 0)
    for outer in reversed(enclosing_ops(op)):
        # Outermost first, so that each inner one starts where the one around it stands.
        if outer.name == "scf.for":
            _, (count,) = with_iteration_arguments(outer, [count])
        elif outer.name == "scf.while":
            _, count = with_while_argument(outer, count)
        else:
            with_results(outer, [count])
    around = enclosing_ops(op)
    if not around:
        return count
    with ir.InsertionPoint(terminator(op.block)), op.location:
        following = binary("arith.addi", count, constant(i32, 1))
    _yield_last(op.block, following)
    for inner in around[:-1]:
        _yield_last(inner.block, inner.results[len(inner.results) - 1])
    return count


def _yield_last(block: ir.Block, value: ir.Value) -> None:
    last = terminator(block)
    replace_yield(last, [*list(last.operands)[:-1], value])
