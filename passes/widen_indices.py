"""widen-indices: in a kernel of 32-bit indices, what may not fit 32 bits becomes i64.

Before:   %o = arith.muli %p, %c85899346 : index
          %t = "tile.load"(%x, %o) ...
Before:   scf.for %i = %c0 to %n step %c64         (%n any i32: %i + 64 may not fit)
After:    %o = arith.muli %p, %c85899346 : i64
          %1 = arith.maxsi (arith.minsi %o, %limit), %-limit : i64
          %2 = arith.index_cast %1 : i64 to index
          %t = "tile.load"(%x, %2) ...
After:    scf.for %k = %c0 to ceildiv(%n, 64) step %c1 { %i = %k * 64 ...

An index means a 64-bit number, and behind this pass 32 bits hold every one that is left
(`analysis/coordinates.py`):

1. The interval of every integer is computed (`analysis/index_ranges.py`), for launches in which as
   few values as possible are wide: program ids count up to `tile.most_programs`, and what follows
   from sizes of arrays up to `tile.limits`. The launcher takes the kernel of 64-bit indices for
   larger ones.
2. A loop whose variable may step over the edge, at its end or as far ahead as copies run, counts
   its iterations instead, where their number fits.
3. Every other value that may not fit has i64, and so has what it is computed or compared with.
   A result that fits again is an index again; a coordinate is clamped, of a single number that is
   a sum of two indices in 32 bits.

Kernels of 64-bit indices stay as they are. Does not handle: what later passes compute; they add
less than 2**16 to coordinates, which are below 2**31 - 2**16.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.constraints import ANY, INDEX
from tilec.dialects.def_use import defining_op
from tilec.dialects.op import TileOp
from tilec.dialects.tile import Combining
from tilec.dialects.types import is_index, is_tile, number_type, shape, with_element
from tilec.executable.kernel import INDEX_LIMIT_32, MOST_PROGRAMS
from tilec.passes.analysis.coordinates import COORDINATE, clamped, clamped_sum
from tilec.passes.analysis.divisibility import constant_of
from tilec.passes.analysis.index_ranges import Launch, find_ranges
from tilec.passes.analysis.integer_program import IntegerProgram
from tilec.passes.analysis.intervals import NARROW, Interval, holds
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import (
    PROGRAM_LIMIT,
    has_narrow_indices,
    limit_sizes,
)
from tilec.passes.rewriting.loops import behind, find_loops, terminator
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.scalars import as_type, binary, constant, create
from tilec.passes.rewriting.walk import all_ops, blocks_in, is_of

ITERATIONS_AHEAD = 16
"""How far behind a loop's end its variable may be looked at, by copies that run ahead: more than
the slots of any ring that the compiler makes (`MOST_STAGES`)."""
_FEWEST_PROGRAMS = 2**11
"""With the largest tile, 2**20 elements, an id of a grid of so many leads to 2**31."""
_SIZES = (
    (INDEX_LIMIT_32, INDEX_LIMIT_32),
    (2**30, 2**30),
    (2**30, 2**28),
)
"""Largest sizes of arrays, and what is computed of sizes at most, that a kernel may be compiled
for: the first that helps. A sum of two fits, then one of eight products."""
_CASTS = ("arith.index_cast", "arith.index_castui")


@kernel_pass(
    requires=Level.TILE, keeps=True, behind={"dissolve-windows": "sums of windows are indices"}
)
def widen_indices(function: ir.Operation, context: PassContext) -> None:
    """Gives i64 to what 32 bits might not hold."""
    if not has_narrow_indices(function):
        return
    indices = _Indices(function)
    launch = _choose_launch(indices)
    indices.look(launch)
    if _count_iterations(indices):
        indices = _Indices(function)
        indices.look(launch)
    _write_launch(function, launch, indices.limits)
    if indices.wide:
        _report(indices, context)
        _Widening(indices).run(function)


def _choose_launch(indices: _Indices) -> Launch:
    """The launches to compile for: as large as those with the fewest wide values."""
    sizes = [Launch(_FEWEST_PROGRAMS, size, computed) for size, computed in _SIZES]
    counts = [indices.look(launch) for launch in sizes]
    least = min(counts)
    chosen = sizes[counts.index(least)]
    if indices.look(replace(chosen, programs=MOST_PROGRAMS)) == least:
        return replace(chosen, programs=MOST_PROGRAMS)
    low, high = _FEWEST_PROGRAMS.bit_length() - 1, MOST_PROGRAMS.bit_length()
    while high - low > 1:
        middle = (low + high) // 2
        fits = indices.look(replace(chosen, programs=1 << middle)) == least
        low, high = (middle, high) if fits else (low, middle)
    return replace(chosen, programs=1 << low)


def _write_launch(
    function: ir.Operation, launch: Launch, limits: Sequence[tuple[str, int]]
) -> None:
    if launch.programs < MOST_PROGRAMS:
        i32 = ir.IntegerType.get_signless(32)
        function.attributes[PROGRAM_LIMIT] = ir.IntegerAttr.get(i32, launch.programs)
    limit_sizes(function, limits)


class _Indices:
    """The indices of a kernel, and which of them 32 bits may not hold."""

    def __init__(self, function: ir.Operation) -> None:
        self.program = IntegerProgram(function, INDEX_LIMIT_32)
        self.known: list[Interval] = []
        self.limits: tuple[tuple[str, int], ...] = ()
        self.wide: set[int] = set()
        """Numbers of the values that need i64."""
        values = self.program.values
        self.all = {number for value, number in values.items() if _is_index(value)}
        self.loops = [
            (loop, [values[value] for value in [*list(loop.operands)[:3], _variable(loop)]])
            for loop in find_loops(function)
            if _is_index(loop.operands[0])
        ]
        self.groups = [
            {values[value] for value in group}
            for group in _groups(function)
            if group and _is_index(group[0])
        ]

    def look(self, launch: Launch) -> int:
        """Counts, and notes, the indices that 32 bits may not hold in launches no larger than
        `launch`."""
        self.limits = (found := find_ranges(self.program, launch)).limits
        self.known = found.of
        self.wide = {number for number in self.all if not holds(NARROW, self.known[number])}
        self.wide |= {numbers[-1] for _, numbers in self.loops if not self.counts_narrowly(numbers)}
        growing = bool(self.wide)
        while growing:
            before = len(self.wide)
            for group in self.groups:
                if not group.isdisjoint(self.wide):
                    self.wide |= group
            growing = len(self.wide) > before
        return len(self.wide)

    def counts_narrowly(self, loop: Sequence[int]) -> bool:
        """Whether a loop's variable fits 32 bits wherever it is looked at."""
        lower, upper, step, _ = (self.known[number] for number in loop)
        if not holds(NARROW, step) or lower[0] < NARROW[0] or upper[1] > NARROW[1]:
            return False
        beyond = lower[1] > NARROW[1] or upper[0] < NARROW[0]
        if beyond and not self.can_bound(loop):
            return False
        # Steps of 1 never pass the end, and what is looked at behind it is masked. No copies run
        # ahead in steps that are no constant.
        ahead = ITERATIONS_AHEAD if step[0] == step[1] else 1
        return step == (1, 1) or upper[1] - 1 + ahead * step[1] <= NARROW[1]

    def can_bound(self, loop: Sequence[int]) -> bool:
        """Whether a loop's bounds may be clamped: it then runs as often, which is not at all where
        one is beyond 32 bits."""
        lower, upper, *_ = (self.known[number] for number in loop)
        return lower[0] >= -INDEX_LIMIT_32 and upper[1] <= INDEX_LIMIT_32


def _is_made_in(value: ir.Value, block: ir.Block) -> bool:
    """Whether a value comes of this very block, each time that it runs."""
    made = defining_op(value)
    return made is not None and made.block == block


def _moves_one(op: ir.Operation) -> bool:
    """Whether an op moves a single number, of whose place nobody asks what divides it."""
    view = op.opview
    return isinstance(view, tile.ArrayOp) and is_tile(view.tile) and not shape(view.tile)


def _is_index(value: ir.Value) -> bool:
    return is_index(number_type(value))


def _variable(loop: ir.Operation) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[0]


def _groups(function: ir.Operation) -> list[list[ir.Value]]:
    """The integers that have one type because control flow, or a combination, passes one on as the
    other."""
    found: list[list[ir.Value]] = []

    for op in all_ops(function, inner_first=True):
        blocks = blocks_in(op)
        if op.name == "scf.for":
            columns = [list(op.results), list(blocks[0].arguments)[1:]]
        elif op.name == "scf.while":
            columns = [list(op.results), list(blocks[1].arguments)]
        elif is_of(op, Combining):
            # Several inputs have one type, but for the first.
            mine = [*op.results, *blocks[0].arguments]
            columns = []
            found.append([value for value in mine if _is_index(value)])
        else:
            continue
        found.extend(map(list, zip(*columns, strict=True)))
    return found


def _count_iterations(indices: _Indices) -> bool:
    """Has loops count their iterations where their variable may leave 32 bits, and the number of
    iterations does not. Whether there were any."""
    found = False
    for loop, numbers in indices.loops:
        lower, upper, step = (indices.known[number] for number in numbers[:3])
        if indices.counts_narrowly(numbers) or step[0] != step[1] or step[0] < 2:
            continue
        fits = holds(NARROW, lower) and holds(NARROW, upper)
        if fits and (upper[1] - lower[0]) // step[0] + ITERATIONS_AHEAD < NARROW[1]:
            _count(loop)
            found = True
    return found


def _count(loop: ir.Operation) -> None:
    lower, upper, step, *_ = loop.operands
    variable = _variable(loop)
    with ir.InsertionPoint(loop), loop.location:
        distance = binary("arith.subi", upper, lower)
        loop.operands[1] = binary("arith.ceildivsi", distance, step)
        loop.operands[0] = constant(step.type, 0)
        loop.operands[2] = constant(step.type, 1)
    with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), loop.location:
        there = binary("arith.muli", variable, step)
        value = there if constant_of(lower) == 0 else binary("arith.addi", lower, there)
    variable.replace_all_uses_except(value, there.owner.operation)


def _report(indices: _Indices, context: PassContext) -> None:
    values = [value for value, number in indices.program.values.items() if number in indices.wide]
    places = [defining_op(value) or value.owner.owner for value in values]
    for place in OpSet(place for place in places if place.name != "arith.constant"):
        context.report.add("index", place, "64 bits", "32 bits may not hold it")


class _Widening:
    """Gives the wide values i64, and what they meet casts."""

    def __init__(self, indices: _Indices) -> None:
        values = indices.program.values
        self.known = {value: indices.known[number] for value, number in values.items()}
        self.wide = {value for value, number in values.items() if number in indices.wide}
        self.all = {value for value, number in values.items() if number in indices.all}
        self.i64 = ir.IntegerType.get_signless(64)

    def run(self, function: ir.Operation) -> None:
        """Rewrites the function."""
        touched = list(filter(self._is_touched, all_ops(function, inner_first=True)))
        for value in self.wide:
            value.set_type(self._wide_type(value))
        for op in touched:
            with op.location:
                self._rewrite(op)

    def _is_touched(self, op: ir.Operation) -> bool:
        return any(value in self.wide for value in (*op.operands, *op.results)) or (
            bool(op.regions) and op.name != "func.func"
        )

    def _wide_type(self, value: ir.Value) -> ir.Type:
        return with_element(value, self.i64) if is_tile(value) else self.i64

    def _rewrite(self, op: ir.Operation) -> None:
        view = op.opview
        if op.name in _CASTS:
            self._cast(op)
        elif op.name == "arith.constant":
            self._constant(op)
        elif op.name.startswith("scf."):
            self._control(op)
        elif isinstance(view, tile.InlinePtxOp):
            self._inline_ptx(view)
        elif isinstance(view, TileOp):
            if view.takes(INDEX):
                self._coordinates(op, range(len(op.operands)))
            if not view.takes(ANY):  # whose integers may be of any type
                self._unify(op)
            if isinstance(view, Combining):
                self._match_yield(op, list(map(number_type, op.results)))
        else:
            self._unify(op)

    def _cast(self, op: ir.Operation) -> None:
        """Replaces an index_cast, one side of which is no index now."""
        source, result = op.operands[0], op.results[0]
        if COORDINATE in op.attributes:  # the copy engine's, from a wide index
            self._bound(op, 0)
            return
        from_bits, to_bits = (
            64 if value in self.wide else number_type(value).width for value in (source, result)
        )
        value = source
        with ir.InsertionPoint(op):
            if from_bits > to_bits:
                value = create("arith.trunci", [source], result.type)
            elif from_bits < to_bits:
                extend = "arith.extsi" if op.name == _CASTS[0] else "arith.extui"
                value = create(extend, [source], result.type)
        self._replace(op, value)

    def _replace(self, op: ir.Operation, value: ir.Value) -> None:
        """Has `value` stand for the result of `op`."""
        (result,) = op.results
        for known in (self.wide, self.all):
            if result in known:  # its place in memory will be another's
                known.discard(result)
                known.add(value)
        self.known[value] = self.known.pop(result)
        result.replace_all_uses_with(value)
        op.erase()

    def _constant(self, op: ir.Operation) -> None:
        (result,) = op.results
        known = op.attributes["value"]
        with ir.InsertionPoint(op):
            number = known.get_splat_value() if is_tile(result) else known
            made = constant(result.type, ir.IntegerAttr(number).value)
        self._replace(op, made)

    def _control(self, op: ir.Operation) -> None:
        """Casts what goes into a loop or branch, and out of it, to the types of its arguments and
        results."""
        blocks = blocks_in(op)
        if op.name == "scf.for":
            kinds = [argument.type for argument in blocks[0].arguments]
            if is_index(kinds[0]):
                self._coordinates(op, range(2))
            self._match(op, 0, [kinds[0]] * 3 + kinds[1:])
            self._match_yield(op, kinds[1:])
        elif op.name == "scf.while":
            kinds = [argument.type for argument in blocks[0].arguments]
            self._match(op, 0, kinds)
            self._match(terminator(blocks[0]), 1, [value.type for value in op.results])
            self._match(terminator(blocks[1]), 0, kinds)
        elif op.name == "scf.if":
            self._match_yield(op, [value.type for value in op.results])

    def _match_yield(self, op: ir.Operation, kinds: Sequence[ir.Type]) -> None:
        for block in blocks_in(op):
            self._match(terminator(block), 0, kinds)

    def _match(self, op: ir.Operation, first: int, kinds: Sequence[ir.Type]) -> None:
        for number, kind in enumerate(kinds, first):
            if op.operands[number].type != kind:
                op.operands[number] = self._widened(op, op.operands[number])

    def _widened(self, op: ir.Operation, value: ir.Value) -> ir.Value:
        """A narrow index as i64, in front of `op`."""
        known = constant_of(value)
        with ir.InsertionPoint(op), op.location:
            if known is not None:
                return constant(self.i64, known)
            return as_type(value, self._wide_type(value))

    def _unify(self, op: ir.Operation) -> None:
        """Gives all indices of an op i64 if one of them needs it; a result that fits becomes an
        index again behind the op."""
        mine = [value for value in (*op.operands, *op.results) if value in self.all]
        if not any(value in self.wide for value in mine):
            return
        for number, operand in enumerate(op.operands):
            if operand in self.all and operand not in self.wide:
                op.operands[number] = self._widened(op, operand)
        for result in op.results:
            if result in self.all and result not in self.wide:
                self._narrow_behind(op, result)

    def _narrow_behind(self, op: ir.Operation, result: ir.Value) -> None:
        narrow = result.type
        result.set_type(self._wide_type(result))
        with ir.InsertionPoint(behind(op)), op.location:
            cast = create("arith.index_cast", [result], narrow)
        self.all.add(cast)
        result.replace_all_uses_except(cast, cast.owner.operation)

    def _coordinates(self, op: ir.Operation, numbers: Iterable[int]) -> None:
        """Has operands be indices again: where an op wants an index it wants a coordinate."""
        for number in numbers:
            operand = op.operands[number]
            if operand in self.wide and not is_tile(operand):
                self._bound(op, number)

    def _bound(self, op: ir.Operation, number: int) -> None:
        value = op.operands[number]
        with ir.InsertionPoint(op), op.location:
            terms = self._terms(value) if _moves_one(op) else None
            if terms is not None:
                subtracts = defining_op(value, "arith.subi") is not None
                first, second = terms
                if not subtracts and _is_made_in(second, op.block):
                    first, second = second, first
                known = self.known.get(second, NARROW)
                op.operands[number] = clamped_sum(first, second, known, subtracts=subtracts)
                return
            bounded = clamped(value, *self.known[value])
            op.operands[number] = as_type(bounded, ir.IndexType.get())

    def _terms(self, value: ir.Value) -> tuple[ir.Value, ir.Value] | None:
        """The two narrow indices that a wide one is the sum or difference of."""
        made = defining_op(value, "arith.addi", "arith.subi")
        casts = [] if made is None else [defining_op(v, "arith.index_cast") for v in made.operands]
        found = [cast.operands[0] for cast in casts if cast is not None]
        return (found[0], found[1]) if len(found) == 2 and all(map(_is_index, found)) else None

    def _inline_ptx(self, op: tile.InlinePtxOp) -> None:
        """An index goes into a register of 64 bits as it is, into narrower ones cut."""
        letters = [part.strip() for part in op.constraints.split(",")][len(op.outputs) :]
        index = ir.IndexType.get()
        for number, (value, letter) in enumerate(zip(op.inputs, letters, strict=True)):
            if value in self.wide and letter != "l":
                kind = with_element(value, index) if is_tile(value) else index
                with ir.InsertionPoint(op.operation):
                    op.operation.operands[number] = as_type(value, kind)
