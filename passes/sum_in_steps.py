"""sum-in-steps: a tile that registers do not hold, of which only sums are wanted, comes in stripes.

Before:   %x = "tile.load"(%a, %row, %c0) : ... -> tensor<32x4096xbf16>        %f = arith.extf %x
          %flat = "tile.reshape"(%f) : ... -> tensor<131072xf32>
          %sum = "tile.reduce"(%flat) ({ addf }) {axis = 0}
After:    %acc = scf.for %i = 0 to 16 iter_args(%part = zeros) -> (tensor<8192xf32>) {
            %first = arith.muli %i, 2          %at = arith.addi %row, %first
            %x = "tile.load"(%a, %at, %c0) : ... -> tensor<2x4096xbf16>        %f = arith.extf %x
            %flat = "tile.reshape"(%f) : ... -> tensor<8192xf32>
            scf.yield (arith.addf %part, %flat)
          }
          %sum = "tile.reduce"(%acc) ({ addf }) {axis = 0}

Threads that load such a tile at once spill most of it, and load no more meanwhile. A stripe is two
vectors a thread, as far as the tile's rows allow; `carry-partials` leaves a number of it for each
thread, and `prefetch-loads` has several stripes under way.

1. All sums of a program that come in stripes of one number do so in one loop, where the first of
   them stands: reductions along the axis that is cut, or of all elements of a tile in their order.
2. Together the tiles that they load take more registers than there are. Nobody else reads these, or
   what follows from them, and nothing writes to memory between the loads and the loop.
3. What a stripe needs whole (where a tile begins, a number that is spread) is known in front of the
   loop. What is loaded of one row for all, or of one number a row, comes in stripes as well.
Does not handle: sums in loops and branches; products; extremes, and other combinations; sums of
less than 32 bits, which would be rounded in each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op, made_by
from tilec.dialects.effects import SIDE_EFFECTS, is_product
from tilec.dialects.traits import Sources
from tilec.dialects.types import bit_width, element, shape, with_shape
from tilec.hardware.sizes import VECTOR_BYTES, WORD_BITS
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.programs.cut_tiles import operands_in_stripes
from tilec.passes.rewriting.control import for_loop
from tilec.passes.rewriting.free_ops import erase_unused
from tilec.passes.rewriting.op_tables import OpMap, OpSet
from tilec.passes.rewriting.scalars import as_type, binary, constant, create
from tilec.passes.rewriting.values import again, retype
from tilec.passes.rewriting.walk import find_ops, is_of
from tilec.passes.rows.row_edits import begin_at
from tilec.records import dataclass

_SUMS = ("arith.addf", "arith.addi")
_READS = (tile.LoadOp, tile.GatherOp)
_WRITES = (tile.StoreOp, tile.ScatterOp, *SIDE_EFFECTS)


VECTORS = 2
"""Of 16 bytes, that a thread loads of the largest tile in each step: 32 KB in all of 1024 threads,
about what a multiprocessor needs under way. Not timed against others."""
_COORDINATES = ("arith.constant", "tensor.splat", tile.IotaOp.OPERATION_NAME)
"""What is made anew wherever it is wanted."""


@dataclass(frozen=True)
class _Sum:
    """A reduction that adds up; `needed`: each value that it comes from, with the dimension that is
    cut."""

    reduce: tile.ReduceOp
    needed: dict[ir.Value, int]

    @property
    def loads(self) -> list[ir.Value]:
        """What it loads."""
        return [value for value in self.needed if is_of(value.owner, tile.LoadOp)]

    @property
    def terms(self) -> ir.Value:
        """What it adds up, along other axes first where its input is such sums."""
        value = self.reduce.inputs[0]
        while (inner := made_by(value, tile.ReduceOp)) is not None and _adds(inner) == _adds(
            self.reduce
        ):
            value = inner.inputs[0]
        return value

    def added_up(self, totals: ir.Value, parts: int) -> ir.Value:
        """The sums along other axes of a stripe of terms."""
        value, inner = self.reduce.inputs[0], []
        while value != self.terms:
            inner.append(value)
            value = value.owner.inputs[0]
        for value in reversed(inner):
            type_ = _stripe_type(value, self.needed[value], parts)
            totals = again(value.owner.operation, [totals], type_)
        return totals


@kernel_pass(requires=Level.SELECTED)
def sum_in_steps(function: ir.Operation, context: PassContext) -> None:
    """Adds up tiles a stripe at a time where registers do not hold them."""
    found = map(_sum_of, function.regions[0].blocks[0].operations)
    sums = _together([one for one in found if one is not None and one.loads])
    loads = dict.fromkeys(load for one in sums for load in one.loads)
    target, threads = context.target, context.num_warps * context.target.warp_size
    words = sum(map(_bits, loads)) // WORD_BITS // threads
    room = min(target.registers_per_sm // threads, target.registers_per_thread)
    parts = _parts(sums, threads) if words > room else 1
    if parts == 1:
        return
    first = sums[0].reduce
    with first.location, ir.InsertionPoint(first):
        loop = _in_stripes(sums, parts)
    why = f"a thread would hold {words} registers of what is loaded, it has {room}"
    context.report.add("sums", loop, f"in {parts} steps", why, parts=parts)


def _bits(value: ir.Value) -> int:
    return prod(shape(value)) * bit_width(element(value))


def _sum_of(view: ir.OpView) -> _Sum | None:
    """What adds up a tile that comes in stripes along the axis that it adds up along."""
    if not isinstance(view, tile.ReduceOp) or len(view.inputs) != 1:
        return None
    needed: dict[ir.Value, int] = {}
    if _adds(view) is None or bit_width(element(view.inputs[0])) < WORD_BITS:
        return None
    return _Sum(view, needed) if _cut(view.inputs[0], view.axis, needed) else None


def _adds(reduce: tile.ReduceOp) -> str | None:
    """The op by which a reduction adds up; None of other reductions."""
    adds = reduce.body.operations[0].operation
    whole = len(reduce.body.operations) == 2 and set(adds.operands) == set(reduce.body.arguments)
    return adds.name if whole and adds.name in _SUMS else None


def _cut(value: ir.Value, dim: int, needed: dict[ir.Value, int]) -> bool:
    """Whether a value comes in stripes along `dim`; puts it behind what it comes from."""
    if value in needed:
        return needed[value] == dim
    op, sources = defining_op(value), _sources(value, dim)
    if op is None or sources is None or is_product(op.opview) or len(op.results) != 1:
        return False
    if not all(_cut(*each, needed) for each in sources):
        return False
    needed[value] = dim
    return True


def _sources(value: ir.Value, dim: int) -> Sources | None:
    """The operands of whose stripes one is made; of all elements of a tile in their order rows."""
    flat = defining_op(value, tile.ReshapeOp.OPERATION_NAME)
    if flat is not None and len(shape(value)) == 1 and len(shape(flat.operands[0])) > 1:
        return [(flat.operands[0], 0)]
    return operands_in_stripes(value, dim)


def _together(sums: Sequence[_Sum]) -> list[_Sum]:
    """Those that load the largest tiles, where all of them can be added up where the first one
    stands."""
    largest = max((_bits(load) for one in sums for load in one.loads), default=0)
    inner = OpSet(value.owner.operation for one in sums for value in one.needed)
    sums = [one for one in sums if one.reduce.operation not in inner]
    sums = [one for one in sums if any(_bits(load) == largest for load in one.loads)]
    if not sums:
        return []
    first = sums[0].reduce.operation
    order = OpMap((view.operation, number) for number, view in enumerate(first.block.operations))
    values = [value for one in sums for value in one.needed]
    known = all(order.get(op, -1) < order[first] for op in _whole_operands(values))
    return (
        sums
        if known and _is_alone(sums, values) and not _is_written(values, order, order[first])
        else []
    )


def _whole_operands(values: Sequence[ir.Value]) -> Iterator[ir.Operation]:
    """What gives numbers that a stripe needs whole."""
    for value in values:
        for operand in value.owner.operands:
            maker = defining_op(operand)
            if operand not in values and maker is not None:
                yield maker


def _is_alone(sums: Sequence[_Sum], values: Sequence[ir.Value]) -> bool:
    """Whether nobody but the sums reads as large tiles as they load, or make of what they load."""
    ours = OpSet([value.owner.operation for value in values])
    ours.update(one.reduce.operation for one in sums)
    largest = max(prod(shape(load)) for one in sums for load in one.loads)
    large = [v for v in values if prod(shape(v)) >= largest and v.owner.name not in _COORDINATES]
    return all(use.owner.operation in ours for value in large for use in value.uses)


def _is_written(values: Sequence[ir.Value], order: OpMap[int], at: int) -> bool:
    """Whether memory is written between the loads and that place, in front of it or behind."""
    places = [order[value.owner.operation] for value in values if is_of(value.owner, *_READS)]
    between = [op for op, number in order.items() if min(places) < number < max(at, *places)]
    return any(find_ops(op, *_WRITES) for op in between)


def _parts(sums: Sequence[_Sum], threads: int) -> int:
    """As many stripes as leave each thread `VECTORS` of one, and divide all that is cut."""
    largest = max((load for one in sums for load in one.loads), key=_bits)
    wanted = _bits(largest) // (VECTORS * 8 * VECTOR_BYTES * threads)
    sizes = [shape(value)[dim] for one in sums for value, dim in one.needed.items()]
    whole = gcd(*sizes)
    return max(parts for parts in range(1, whole + 1) if whole % parts == 0 and parts <= wanted)


def _in_stripes(sums: Sequence[_Sum], parts: int) -> ir.Operation:
    """Makes the loop, whose sums are what is reduced."""
    index = ir.IndexType.get()
    bounds = [constant(index, number) for number in (0, parts, 1)]
    types = [_stripe_type(one.terms, one.needed[one.terms], parts) for one in sums]
    loop, body = for_loop(bounds, [constant(type_, 0) for type_ in types])
    number, *totals = body.arguments
    with ir.InsertionPoint(body):
        stripes = _Stripes(number, parts)
        following = []
        for one, total in zip(sums, totals, strict=True):
            brought = stripes.of(one.terms, one.needed)
            adds = one.reduce.body.operations[0].operation
            following.append(again(adds, [total, brought], total.type))
        ir.Operation.create("scf.yield", operands=following)
    for one, total in zip(sums, loop.results, strict=True):
        whole = one.reduce.inputs[0]
        one.reduce.operation.operands[0] = one.added_up(total, parts)
        erase_unused(whole)
    return loop


def _stripe_type(value: ir.Value, dim: int, parts: int) -> ir.Type:
    sizes = list(shape(value))
    sizes[dim] //= parts
    return with_shape(value, sizes)


class _Stripes:
    """The stripe with a number of each value, made once, at the current insertion point."""

    def __init__(self, number: ir.Value, parts: int) -> None:
        self._number, self._parts = number, parts
        self._found: dict[tuple[ir.Value, int], ir.Value] = {}

    def of(self, value: ir.Value, needed: dict[ir.Value, int]) -> ir.Value:
        """Of a value; `needed`: dimensions, as a sum has them."""
        key = value, needed[value]
        if key not in self._found:
            for source, _ in _sources(*key) or []:
                self.of(source, needed)
            self._found[key] = self._made(*key)
        return self._found[key]

    def _made(self, value: ir.Value, dim: int) -> ir.Value:
        op, sources = value.owner.operation, _sources(value, dim) or []
        with op.location:
            own = op.clone(ir.InsertionPoint.current).operation
            for place, operand in enumerate(op.operands):
                for source in (each for each in sources if each[0] == operand):
                    own.operands[place] = self._found[source]
            retype(own.results[0], _stripe_type(value, dim, self._parts))
            if is_of(own, tile.LoadOp):
                with ir.InsertionPoint(own):
                    self._begin(own.opview, dim, shape(value)[dim])
            elif is_of(own, tile.IotaOp) and own.opview.axis == dim:
                by = as_type(self._first(shape(value)[dim]), element(value))
                spread = create("tensor.splat", [by], own.results[0].type)
                return binary("arith.addi", own.results[0], spread)
        return own.results[0]

    def _first(self, size: int) -> ir.Value:
        """Where the stripe begins along a dimension."""
        return binary("arith.muli", self._number, size // self._parts)

    def _begin(self, load: tile.LoadOp, dim: int, size: int) -> None:
        axis = load.dims[dim]
        begin_at(load, axis, binary("arith.addi", load.offsets[axis], self._first(size)))
