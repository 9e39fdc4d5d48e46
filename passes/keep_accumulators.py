"""keep-accumulators: sums in tensor memory stay there while a loop adds to them.

Before:   %r = scf.for %k = %lower to %upper ... iter_args(%acc = %zero) {
            "gpu_tile.buffer_store"(%acc, %t)
            "gpu_tile.tcgen05_mma"(%a, %b, %t, %true)   ... commit, wait ...
            %next = "gpu_tile.buffer_load"(%t)
            scf.yield %next
          }
After:    scf.for %k = %lower to %upper ... {
            %add = arith.cmpi slt, %lower, %k                   (the first iteration overwrites)
            "gpu_tile.tcgen05_mma"(%a, %b, %t, %add)   ... commit, wait ...
          }
          %r = scf.if %lower < %upper {                         (without iterations %t is empty)
            %sum = "gpu_tile.buffer_load"(%t)   scf.yield %sum
          } else { scf.yield %zero }

A tile qualifies if the loop does nothing with it but that. A start other than zeros is stored once,
in front of the loop. Of two instructions that add to one sum in an iteration the second goes on in
the first's buffer.
Does not handle: sums that the loop also scales or reads, or adds to in a branch (they go through
registers each time).
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import made_by, only_use, only_user, users
from tilec.dialects.gpu_tile import BufferLoadOp, BufferStoreOp, Tcgen05MmaOp
from tilec.dialects.types import is_tile
from tilec.passes.contract import Level, PassContext, tile_pass
from tilec.passes.rewriting.control import either
from tilec.passes.rewriting.loops import behind, find_loops, terminator, without_iteration_argument
from tilec.passes.rewriting.scalars import is_zero, less
from tilec.passes.rewriting.walk import find_ops
from tilec.records import dataclass


@tile_pass(
    requires=Level.LAYOUTS, behind={"stage-operands": "that puts the sums into tensor memory"}
)
def keep_accumulators(module: ir.Module, context: PassContext) -> None:
    """Takes accumulators in tensor memory out of the values that loops carry."""
    for loop in find_loops(module):
        _join(loop)
        while (found := _find(loop)) is not None:
            loop = _keep(loop, found)
            context.report.add(
                "accumulator", loop, "tensor memory", "the loop does nothing else with it"
            )
        if any(_is_skipped(op.opview, loop) for op in find_ops(loop, Tcgen05MmaOp)):
            context.report.add("accumulator", loop, "registers between iterations", _SKIPPED)


_SKIPPED = "some skip its products by 'if'; in a loop over a list of the others it would stay there"


def _is_skipped(multiply: Tcgen05MmaOp, loop: ir.Operation) -> bool:
    """Whether a product in a branch adds to what the loop carries."""
    body = loop.regions[0].blocks[0]
    values = [store.value for store in users(multiply.acc, BufferStoreOp)]
    return any(value.owner == body for value in values) and multiply.operation.block != body


def _join(loop: ir.Operation) -> None:
    """Leaves a sum where it is that is loaded from one accumulator only to be stored in another:
    both become one."""
    block = loop.regions[0].blocks[0]
    for view in list(block.operations):
        if not isinstance(view, BufferStoreOp):
            continue
        if all(multiply.acc != view.dst for multiply in users(view.dst, Tcgen05MmaOp)):
            continue
        source = made_by(view.value, BufferLoadOp)
        if source is None or only_use(view.value) is None:
            continue
        if source.src.type != view.dst.type or source.operation.block != block:
            continue
        view.dst.replace_all_uses_with(source.src)
        view.operation.erase()
        source.operation.erase()


@dataclass
class _Accumulator:
    """One loop-carried sum. `number`: that of the loop-carried value."""

    number: int
    store: BufferStoreOp
    multiplies: list[Tcgen05MmaOp]
    load: BufferLoadOp


def _find(loop: ir.Operation) -> _Accumulator | None:
    block = loop.regions[0].blocks[0]
    last = terminator(block)
    for number, argument in enumerate(list(block.arguments)[1:]):
        store = only_user(argument, BufferStoreOp) if is_tile(argument) else None
        if store is None or store.operation.block != block:
            continue
        load = made_by(last.operands[number], BufferLoadOp)
        if load is None or load.src != store.dst:
            continue
        multiplies = users(store.dst, Tcgen05MmaOp)
        alone = len(users(store.dst)) == len(multiplies) + 2 and only_use(load.result) is not None
        if multiplies and alone and all(m.operation.block == block for m in multiplies):
            return _Accumulator(number, store, multiplies, load)
    return None


def _keep(loop: ir.Operation, found: _Accumulator) -> ir.Operation:
    """Rewrites `loop` without the carried tile; returns the new loop."""
    number, buffer = found.number, found.store.dst
    init, kind = loop.operands[3 + number], found.load.result.type
    buffer.owner.operation.move_before(loop)
    overwrites = is_zero(init)
    if not overwrites:
        with ir.InsertionPoint(loop), found.store.operation.location:
            BufferStoreOp.build(init, buffer)
    first = _first(found.multiplies, loop.regions[0].blocks[0])
    if overwrites:
        with ir.InsertionPoint(first.operation), first.operation.location:
            first.use_acc = less(loop.operands[0], loop.regions[0].blocks[0].arguments[0])
    found.store.operation.erase()
    location = found.load.operation.location
    new = without_iteration_argument(loop, number)
    found.load.operation.erase()
    following = behind(new)
    with ir.InsertionPoint(following), location:
        if overwrites:
            ran = less(new.operands[0], new.operands[1])
            (total,) = either(ran, lambda: [_load(buffer, kind)], lambda: [init])
        else:
            total = _load(buffer, kind)
    loop.results[number].replace_all_uses_with(total)
    loop.erase()
    return new


def _load(buffer: ir.Value, kind: ir.Type) -> ir.Value:
    return BufferLoadOp.build(buffer, results=[kind])


def _first(multiplies: list[Tcgen05MmaOp], block: ir.Block) -> Tcgen05MmaOp:
    operations = [m.operation for m in multiplies]
    return next(view for view in block.operations if view.operation in operations)
