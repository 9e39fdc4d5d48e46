"""split-sums: CTAs each sum a part of a loop; those of a cluster add up a stripe each.

Before:   (tile.sum_parts = 4 : i32 of the kernel)
          %acc = scf.for %k = %low to %high step %c64 iter_args(%sum = %zero) { ... "tile.dot" ... }
          ... the rest of the kernel, for the 64 rows of %acc ...
          "tile.store"(%x, %c, %m, %n) ...
After:    (tile.stripes = 4 : i32: each program is run by so many CTAs)
          %part = "tile.stripe_id"()
          %first = %part * 16
          %steps = the iterations from %low to %high
          %mine = scf.for %k = %low + (%part * %steps / 4) * 64
                      to %low + ((%part + 1) * %steps / 4) * 64 step %c64 ... { ... the same ... }
          %acc = "tile.sum_stripes"(%mine) {axis = 0, merges = ["arith.addf"]}
              : tensor<64x...> -> tensor<16x...>
          ... the rest, for 16 rows ...
          "tile.store"(%x, %c, %m + %first, %n) ...

Loops in loops are one sum, if the inner one adds to what the outer one carries, as gradients of
keys that several heads share do:
          scf.for %head = %c0 to %c4 step %c1 iter_args(%s = %zero) {
            %t = scf.for %k = %low to %high step %c64 iter_args(%u = %s) { ... "tile.dot" ... }
            scf.yield %t }
Of those the outermost whose iterations are known to be a multiple of the parts is cut into them,
else the innermost.

A loop that only adds up tiles is cut as well, where it is the only one of a kernel that multiplies
nothing: 5327 images of 23 x 143 f32 are 69 programs of 64 places.

So is one that carries the least or the greatest of what it meets, and what stands beside that, its
place say (`programs/merges.py`):
          %less = arith.cmpf olt, %found, %best
          %place' = arith.select %less, %at, %place
          %best' = arith.minimumf %found, %best
The stripes are merged by {merges = ["arith.minimumf", "olt 0"]}: of equals the first CTA's, whose
iterations are the first.

Few programs with a long loop leave most multiprocessors without work, and each CTA waits for memory
as often as the loop has iterations. The parts of a cluster need no array in memory and no second
launch: `send-sums` exchanges them through distributed shared memory, where each CTA gets as much as
it sends.

More parts than a cluster has CTAs, those of a target without clusters, or of a kernel whose rest
comes in no stripes, meet in memory that the launch gives (`programs/memory_sums.py`), where the CTA
that comes last merges them and does the rest:
          (tile.parts = 128 : i32, tile.stripes = 4 : i32: each program is run by 32 clusters)
          %part = "tile.part_id"()
          ...
          %stripe = "tile.sum_stripes"(%mine) {axis = 0, merges = ["arith.addf"]}
          "tile.store"(%stripe, %sums, %place, %part / 4, %c0, %c0) ...
          %come = "tile.atomic_rmw"(%one, %flags, %true, %place) ...
          scf.if %come == 31 {
            %acc = the sum of what is in %sums
            ... the rest, for 16 rows ... }
There, sums that are reduced right behind the loop are so first: each CTA leaves one number of a
product of two vectors.

1. `tile.sum_parts` says into how many parts the loop is cut: the author demands it, or `tl.auto`
   chooses it (`tilec/call/auto_tiles.py`). 16 are more than every GPU with clusters has room for:
   a launch asks for them (`Target.ctas_per_cluster`). `programs/sum_parts.py` says which loops can
   be cut, and how many of the CTAs are a cluster.
2. All CTAs do what stands in front of the loop. What stands behind it each does for its own stripe
   of the sum, rows or columns (`programs/cut_tiles.py`), which it stores, or scatters by its stripe
   of the indices; the first CTA stores what does not follow from the sum. Where nothing
   reads the sums, no loop is needed, and nobody meets: the first CTA does the rest.

Does not handle: sums that start from anything but zero; sums that are scaled on the way, as an
online softmax does; kernels with effects up to the end of the
loop; loops in branches; programs that CTAs or clusters share already; clusters on targets with
tensor memory, which all warps meet at the end to give back: those that load and multiply would wait
there for the ones that compute, and these at the cluster's barrier for all that still run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.merges import Merge
from tilec.dialects.types import element, shape, with_shape
from tilec.messages.diagnostics import InternalError
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import PARTS, STRIPES, stripes_of
from tilec.passes.programs.cut_tiles import (
    Cut,
    Writer,
    find_cut,
    following,
    operands_in_stripes,
    stores_of,
    tiles_of,
)
from tilec.passes.programs.memory_sums import MemorySums
from tilec.passes.programs.merges import merges_of
from tilec.passes.programs.sum_parts import (
    find_shared,
    find_sum,
    is_read,
    meeting_of,
    ops_behind,
    sum_ends,
    sum_parts_of,
    why_uncut,
    why_whole,
)
from tilec.passes.rewriting.control import only_if, run_only_if
from tilec.passes.rewriting.free_ops import drop_unused
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.scalars import as_type, binary, constant, create, equal
from tilec.passes.rewriting.values import retype
from tilec.passes.rows.row_edits import begin_at
from tilec.terms.demands import SUM_PARTS


@kernel_pass(requires=Level.SELECTED)
def split_sums(function: ir.Operation, context: PassContext) -> None:
    """Gives the CTAs of a cluster parts of a loop of products, and a stripe each of the sum."""
    parts = sum_parts_of(function)
    if parts == 1:
        return
    reason = why_whole(function, context.target, parts)
    loop = find_sum(function)
    if reason is not None or loop is None:
        raise error_at(function, f"sum_parts={parts} was asked for, but {reason}")
    together = meeting_of(function, context.target).together(parts)
    why = "few programs have a long loop: so many CTAs sum a part of it each"
    if apart := why_uncut(function, context.target, parts):
        why += f"; these are no cluster: {apart}"
    how = _how(parts, together)
    if not is_read(loop):
        how, why = f"none: the first of {parts} CTAs does the rest", "nothing reads them"
    context.report.add("sums", loop, how, why, parts=parts)
    with function.location:
        _split(function, loop, parts, together)


def _how(parts: int, together: int) -> str:
    """In which parts, for the report."""
    if parts == together:
        return f"in {parts} parts, a cluster"
    if together == 1:
        return f"in {parts} parts, which meet in memory"
    return f"in {parts} parts, clusters of {together}, which meet in memory"


def _split(function: ir.Operation, loop: ir.Operation, parts: int, together: int) -> None:
    """Cuts a loop into parts, and lets what is behind it be done by clusters of `together` CTAs, of
    several the one that comes last."""
    i32 = ir.IntegerType.get_signless(32)
    del function.attributes[SUM_PARTS.attribute]
    if together > 1:
        function.attributes[STRIPES] = ir.IntegerAttr.get(i32, together)
    if parts > together:
        function.attributes[PARTS] = ir.IntegerAttr.get(i32, parts)
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), loop.location:
        part = tile.StripeIdOp.build() if parts == together else tile.PartIdOp.build()
    merges = [merge for merge in merges_of(loop) if merge is not None]
    if not is_read(loop):
        _leave_out(loop, part)
        return
    if together > 1:
        _in_stripes(function, loop, part, parts, merges)
    else:
        _whole(function, loop, part, parts, merges)
    _shorten(find_shared(loop, parts), part, parts)


def _whole(
    function: ir.Operation,
    loop: ir.Operation,
    part: ir.Value,
    parts: int,
    merges: Sequence[Merge],
) -> None:
    """Lets the CTA that comes last do the rest of the kernel."""
    ends, before = sum_ends(loop)
    rest = [op for op in ops_behind(loop) if op not in before]
    for op in before:
        op.move_before(rest[0])
    used = _with_deciders([n for n, end in enumerate(ends) if list(end.uses)], merges)
    values = [ends[number] for number in used]
    readers = [[(use.owner, use.operand_number) for use in value.uses] for value in values]
    own = [_renumbered(merges[number], used) for number in used]
    with ir.InsertionPoint(rest[0]), loop.location:
        found, end = MemorySums(function, part, parts, values).meet(own)
    for total, uses in zip(found, readers, strict=True):
        for op, number in uses:
            op.operands[number] = total
    _move(rest, end)


def _leave_out(loop: ir.Operation, part: ir.Value) -> None:
    """Lets the first CTA do the rest of a kernel that reads nothing of what a loop sums: nobody
    meets, so the others must not run it."""
    _, unread = sum_ends(loop)
    rest = [op for op in ops_behind(loop) if op not in unread]
    with ir.InsertionPoint(loop), loop.location, only_if(equal(part, 0)) as end:
        _move(rest, end)
    for op in (*reversed(unread), loop):
        op.erase()


def _in_stripes(
    function: ir.Operation,
    loop: ir.Operation,
    part: ir.Value,
    parts: int,
    merges: Sequence[Merge],
) -> None:
    """Lets each CTA of a cluster do the rest of the kernel for its stripe, of several clusters each
    of the one whose CTA comes last."""
    rest, together = ops_behind(loop), stripes_of(function)
    cut = find_cut(list(loop.results), rest, together)
    *_, behind = list(part.owner.operation.block.operations)[:2]
    with ir.InsertionPoint(behind), loop.location:
        stripe = part if parts == together else tile.StripeIdOp.build()
        first = binary("arith.muli", stripe, cut.size // together)
        is_first = equal(stripe, 0)
    stripes = _Stripes(cut, first, together)
    with ir.InsertionPoint(rest[0]), loop.location:
        stripes.merge(merges)
        if parts > together:
            _move(rest, stripes.meet(function, part, parts // together, merges))
    stores = stores_of(rest)
    cuttable = following(cut.followers, stores)
    for store in stores:
        if store in cuttable:
            stripes.store(store)
        else:
            run_only_if(is_first, store.operation)
    stripes.drop()


def _move(ops: Sequence[ir.Operation], end: ir.Operation) -> None:
    """Moves ops into a branch, in front of its end."""
    for op in ops:
        op.move_before(end)


class _Stripes:
    """The stripes that this CTA has of sums, and of what follows from them."""

    def __init__(self, cut: Cut, first: ir.Value, parts: int) -> None:
        self._cut, self._first, self._parts = cut, first, parts
        self._found: dict[tuple[ir.Value, int], ir.Value] = {}
        self._whole: list[ir.Operation] = []

    def merge(self, merges: Sequence[Merge]) -> None:
        """Gives each CTA its stripe of the sums that are used."""
        axis, sums = self._cut.axis, self._cut.sums
        used = [number for number, value in enumerate(sums) if list(value.uses)]
        for group in _groups(used, merges):
            values = [sums[number] for number in group]
            names = [_name(merges[number], group) for number in group]
            types = [self._type(value, axis) for value in values]
            found = tile.SumStripesOp.build(values, results=[types], axis=axis, merges=names)
            for value, total in zip(values, found, strict=True):
                self._found.setdefault((value, axis), total)

    def meet(
        self, function: ir.Operation, part: ir.Value, groups: int, merges: Sequence[Merge]
    ) -> ir.Operation:
        """Merges stripes of several clusters in memory. Gives the end of the branch in which the
        CTA that comes last has all of its stripe."""
        axis, sums = self._cut.axis, self._cut.sums
        used = [n for n, value in enumerate(sums) if (value, axis) in self._found]
        values = [self._found[sums[number], axis] for number in used]
        own = [_renumbered(merges[number], used) for number in used]
        found, end = MemorySums(function, part, groups, values).meet(own)
        for number, total in zip(used, found, strict=True):
            self._found[sums[number], axis] = total
        return end

    def store(self, op: Writer) -> None:
        """Lets a store write this CTA's stripe."""
        dim = self._cut.dim_of(op)
        if dim is None:
            raise InternalError("a tile behind a sum in parts comes in no stripes")
        own = {value: self._of(value, dim) for value in tiles_of(op)}
        for number, operand in enumerate(op.operation.operands):
            if operand in own:
                op.operation.operands[number] = own[operand]
        if isinstance(op, tile.StoreOp):
            self._move(op, dim)

    def drop(self) -> None:
        """Erases what nobody uses any more."""
        drop_unused(self._whole)

    def _of(self, value: ir.Value, dim: int) -> ir.Value:
        """This CTA's stripe of a value along `dim`."""
        if (value, dim) not in self._found:
            self._make(value, dim)
        return self._found[value, dim]

    def _make(self, value: ir.Value, dim: int) -> None:
        """Makes the stripe along `dim` of all that the op of a value gives."""
        op, needed = defining_op(value), operands_in_stripes(value, dim)
        if op is None or needed is None:
            raise InternalError("a tile behind a sum in parts comes in no stripes")
        stripes = {source: self._of(source, at) for source, at in needed}
        with ir.InsertionPoint(op), op.location:
            own = op.clone()
            for number, operand in enumerate(op.operands):
                if operand in stripes:
                    own.operands[number] = stripes[operand]
            for result in own.results:
                retype(result, self._type(result, dim))
        found = list(own.results)
        view = own.opview
        if isinstance(view, tile.LoadOp):
            with ir.InsertionPoint(own), op.location:
                self._move(view, dim)
        if isinstance(view, tile.IotaOp) and view.axis == dim:
            with ir.InsertionPoint(op), op.location:
                found = [self._moved(view.result)]
        for whole, stripe in zip(op.results, found, strict=True):
            self._found[whole, dim] = stripe
        self._whole.append(op)

    def _type(self, value: ir.Value, dim: int) -> ir.Type:
        sizes = list(shape(value))
        sizes[dim] //= self._parts
        return with_shape(value, sizes)

    def _move(self, access: tile.LoadOp | tile.StoreOp, dim: int) -> None:
        """Lets an access begin at this CTA's stripe."""
        axis = access.dims[dim]
        with ir.InsertionPoint(access.operation), access.operation.location:
            begin_at(access, axis, binary("arith.addi", access.offsets[axis], self._first))

    def _moved(self, iota: ir.Value) -> ir.Value:
        """Coordinates from those of this CTA's stripe on."""
        by = as_type(self._first, element(iota))
        return binary("arith.addi", iota, create("tensor.splat", [by], iota.type))


def _with_deciders(used: Sequence[int], merges: Sequence[Merge]) -> list[int]:
    """Numbers of values, and of those that others decide about."""
    deciders = [by for number in used if (by := merges[number].by) is not None]
    found = list(dict.fromkeys([*used, *deciders]))
    return found if len(found) == len(used) else _with_deciders(found, merges)


def _renumbered(merge: Merge, group: Sequence[int]) -> Merge:
    """The same where values are numbered as in a group."""
    return merge if merge.by is None else replace(merge, by=group.index(merge.by))


def _groups(used: Sequence[int], merges: Sequence[Merge]) -> list[list[int]]:
    """Numbers of values that one op merges: two, what another decides about with that. IRDL knows
    the type of an op's first value and one of all others, and what is alike here has unlike
    layouts later (numbers of rows and of columns, a product's sum and one that terms are added to).
    """
    deciders = list(dict.fromkeys(by for n in used if (by := merges[n].by) is not None))
    found: list[list[int]] = []
    for decider in deciders:
        theirs = [[decider, n] for n in used if merges[n].by == decider != n]
        found += theirs or [[decider]]
    alone = [n for n in used if merges[n].by is None and n not in deciders]
    return found + [alone[at : at + 2] for at in range(0, len(alone), 2)]


def _name(merge: Merge, group: Sequence[int]) -> str:
    """A merge's name where values are numbered as in a group."""
    return _renumbered(merge, group).name


def _shorten(loop: ir.Operation, part: ir.Value, parts: int) -> None:
    """Leaves a loop the iterations of one part."""
    low, high, step = list(loop.operands)[:3]
    with ir.InsertionPoint(loop), loop.location:
        one, all_parts = constant(step.type, 1), constant(step.type, parts)
        part = as_type(part, step.type)
        length = binary("arith.subi", high, low)
        rounded = binary("arith.addi", length, binary("arith.subi", step, one))
        steps = binary("arith.divsi", rounded, step)

        def start(number: ir.Value) -> ir.Value:
            done = binary("arith.divsi", binary("arith.muli", number, steps), all_parts)
            return binary("arith.addi", low, binary("arith.muli", done, step))

        loop.operands[0] = start(part)
        loop.operands[1] = start(binary("arith.addi", part, one))
