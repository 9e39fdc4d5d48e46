"""Sums that CTAs of a program have in parts, beyond a cluster: they meet in the launch's memory.

Each part stores what it has, and counts itself in a flag. The one that comes last finds all others'
parts there, merges them in one order, whoever came when, and does the rest of the kernel. It leaves
the flag at 0, as it was. Nobody waits for anybody, so any number of CTAs may run at a time, in any
order.

    "tile.store"(%mine, %sums, %cluster, %number, 0...)
    %come = "tile.atomic_rmw"(1, %flags, true, %cluster) {kind = "addi", order = "acq_rel"}
    scf.if %come == parts - 1 {
      %total = scf.for %n = 0 to parts step 8 iter_args(%sum = 0) {
        scf.yield %sum + "tile.reduce"("tile.load"(%sums, %cluster, %n to %n + 7, 0...)) }
      "tile.store"(0, %flags, %cluster)
      ... the rest of the kernel ... }

The least of parts is found likewise, from part 0 on, which may come twice. The memory is two or
more parameters behind the author's (`tile.workspace`); the launch gives them.
A cluster of the grid that has a stripe each has a place of its own there for each stripe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.merges import SUMS as ADDITIONS
from tilec.dialects.merges import Merge
from tilec.dialects.types import bit_width, element, is_float, is_tile, shape
from tilec.executable.kernel import INDEX_LIMIT_32
from tilec.hardware.powers import power_below
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.passes.demands.kernels import FLAGS, SUMS, WORKSPACE, stripes_of
from tilec.passes.programs.merges import later
from tilec.passes.rewriting.control import for_loop, only_if
from tilec.passes.rewriting.scalars import as_type, binary, constant, create, equal

TOGETHER = 8192
"""Elements of parts that are loaded at once: 64 registers for each of four warps, of which the
products are over. Not timed with others."""


class MemorySums:
    """Where `groups` CTAs of each program, or clusters of them, have parts of `values`."""

    def __init__(
        self, function: ir.Operation, part: ir.Value, groups: int, values: Sequence[ir.Value]
    ) -> None:
        """Made at the insertion point, in front of which all of `values` are known. `part`: the
        number of this CTA among all that run its program."""
        self._groups = groups
        stripes = stripes_of(function)
        self._number = part if stripes == 1 else binary("arith.divsi", part, stripes)
        self._place = _program_number(function)
        if stripes > 1:
            stripe = tile.StripeIdOp.build()
            self._place = binary("arith.addi", binary("arith.muli", self._place, stripes), stripe)
        self._numbers = [not is_tile(value) for value in values]
        self._values = [value if is_tile(value) else _as_tile(value) for value in values]
        kinds = [_memory_type(value, groups) for value in self._values]
        places = min(kind.shape[0] for kind in kinds)
        i32 = ir.IntegerType.get_signless(32)
        self._flags = _parameter(function, ir.MemRefType.get([places], i32, _rows([places])), FLAGS)
        self._sums = [_parameter(function, kind, SUMS) for kind in kinds]

    def meet(self, merges: Sequence[Merge]) -> tuple[list[ir.Value], ir.Operation]:
        """Stores this CTA's parts. Gives all parts' merged, in the branch that the last CTA takes,
        and the end of that branch."""
        for value, memory in zip(self._values, self._sums, strict=True):
            tile.StoreOp.build(
                value, memory, self._at(value, self._number), dims=_dims(value), options={}
            )
        with only_if(equal(self._come(), self._groups - 1)) as end:
            both = zip(self._merged(merges), self._numbers, strict=True)
            found = [_number_of(value) if is_number else value for value, is_number in both]
            i32 = ir.IntegerType.get_signless(32)
            zero = constant(ir.RankedTensorType.get([], i32), 0)
            tile.StoreOp.build(zero, self._flags, [self._place], dims=[], options={})
        return found, end

    def _come(self) -> ir.Value:
        """How many others have come before this CTA, which counts itself."""
        i32, i1 = (ir.IntegerType.get_signless(bits) for bits in (32, 1))
        one, true = (constant(ir.RankedTensorType.get([], kind), 1) for kind in (i32, i1))
        place = _as_tile(as_type(self._place, i32))
        old = tile.AtomicRmwOp.build(
            one, self._flags, true, [place], kind="addi", order="acq_rel", scope="gpu", options={}
        )
        return _number_of(old)

    def _merged(self, merges: Sequence[Merge]) -> list[ir.Value]:
        """All parts put together, in the order of their numbers if that matters."""
        if all(merge.by is None for merge in merges):
            return [self._combined(index, merge) for index, merge in enumerate(merges)]
        indices = range(len(self._values))
        first = [self._loaded(index, constant(self._number.type, 0)) for index in indices]

        def step(number: ir.Value, before: list[ir.Value]) -> list[ir.Value]:
            return later(merges, before, [self._loaded(index, number) for index in indices])

        return self._loop(1, first, step)

    def _combined(self, index: int, merge: Merge) -> ir.Value:
        """All parts of a value combined, several of them at once, which threads share."""
        size = prod(shape(self._values[index]))
        together = power_below(min(self._groups, max(1, TOGETHER // size)))
        first = constant(self._values[index].type, 0)
        if merge.op not in ADDITIONS:  # of which no number of parts that are not there is part
            together = gcd(together, self._groups)
            first = self._loaded(index, constant(self._number.type, 0))

        def step(number: ir.Value, before: list[ir.Value]) -> list[ir.Value]:
            brought = self._loaded(index, number, together)
            return [binary(merge.op, before[0], _reduced(brought, merge.op, together))]

        return self._loop(together, [first], step)[0]

    def _loop(
        self,
        step: int,
        inits: list[ir.Value],
        body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """What comes of `inits` by a loop over parts, so many at a time."""
        bounds = [constant(self._number.type, number) for number in (0, self._groups, step)]
        loop, block = for_loop(bounds, inits)
        number, *carried = block.arguments
        with ir.InsertionPoint(block):
            ir.Operation.create("scf.yield", operands=body(number, carried))
        return list(loop.results)

    def _loaded(self, index: int, number: ir.Value, together: int = 1) -> ir.Value:
        """What CTAs from that number on have left of a value; of several, in a tile of them all."""
        value, memory = self._values[index], self._sums[index]
        sizes = [together, *shape(value)] if together > 1 else shape(value)
        dims = [1, *_dims(value)] if together > 1 else _dims(value)
        of = element(value)
        return tile.LoadOp.build(
            memory,
            self._at(value, number),
            results=[ir.RankedTensorType.get(sizes, of)],
            dims=dims,
            padding=ir.FloatAttr.get(of, 0.0) if is_float(of) else ir.IntegerAttr.get(of, 0),
            options={},
        )

    def _at(self, value: ir.Value, number: ir.Value) -> list[ir.Value]:
        zero = constant(number.type, 0)
        return [self._place, number, *[zero] * len(shape(value))]


def _as_tile(number: ir.Value) -> ir.Value:
    return create("tensor.splat", [number], ir.RankedTensorType.get([], number.type))


def _number_of(tile_of_one: ir.Value) -> ir.Value:
    return create("tensor.extract", [tile_of_one], element(tile_of_one))


def _reduced(value: ir.Value, op: str, together: int) -> ir.Value:
    """The first axis of a tile combined, where it has one for parts."""
    if together == 1:
        return value
    (found,) = tile.ReduceOp.build(
        [value],
        axis=0,
        body=lambda one, other: [binary(op, one, other)],
        body_types=[element(value)] * 2,
    )
    return found


def _program_number(function: ir.Operation) -> ir.Value:
    """The number of a program in the whole grid."""
    rules = [rule.value for rule in function.attributes.get("tile.grid", ())]
    number: ir.Value | None = None
    for axis in (2, 1, 0):
        if axis < len(rules) and rules[axis] == "1":
            continue
        own = tile.ProgramIdOp.build(axis=axis)
        if number is not None:
            number = binary("arith.muli", number, tile.NumProgramsOp.build(axis=axis))
            own = binary("arith.addi", number, own)
        number = own
    return constant(ir.IndexType.get(), 0) if number is None else number


def _memory_type(value: ir.Value, groups: int) -> ir.MemRefType:
    """Of memory for all parts of a value, of as many places as 32-bit indices reach."""
    each = [groups, *shape(value)]
    bytes_ = prod(each) * -(-bit_width(element(value)) // 8)
    sizes = [INDEX_LIMIT_32 // bytes_, *each]
    return ir.MemRefType.get(sizes, element(value), _rows(sizes))


def _rows(sizes: Sequence[int]) -> ir.Attribute:
    """The layout of a row-major array."""
    strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    return ir.StridedLayoutAttr.get(0, strides)


def _dims(value: ir.Value) -> list[int]:
    return [axis + 2 for axis in range(len(shape(value)))]


def _parameter(function: ir.Operation, kind: ir.MemRefType, use: str) -> ir.Value:
    """Adds a parameter that the launch gives."""
    block = function.regions[0].blocks[0]
    before = list(
        function.attributes.get("arg_attrs", [ir.DictAttr.get({})] * len(block.arguments))
    )
    added = block.add_argument(kind, function.location)
    i32 = ir.IntegerType.get_signless(32)
    facts = ir.DictAttr.get({"align": ir.IntegerAttr.get(i32, VECTOR_BYTES)})
    given = {WORKSPACE: ir.StringAttr.get(use), "tile.facts": facts}
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([*before, ir.DictAttr.get(given)])
    types = [argument.type for argument in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    return added
