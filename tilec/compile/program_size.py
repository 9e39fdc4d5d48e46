"""How many warps a kernel gets when its author does not say.

The rules are what was best or within a percent of it on an H200 for vector addition, softmax, layer
normalisation and row sums over rows of 1024 to 32768 elements in 2 and 4 bytes (test/bench).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.tile import ArrayOp, Atomic, Combining
from tilec.dialects.types import bit_width, element, is_tile, shape
from tilec.hardware.mma_shapes import MMA_M, WGMMA_M
from tilec.hardware.sizes import WARPGROUP_WARPS, WORD_BITS
from tilec.hardware.target import Feature, Target
from tilec.passes.analysis.index_runs import Indexed
from tilec.passes.analysis.vector_width import contiguous_dim
from tilec.passes.contract import Report
from tilec.passes.layouts.components import depth_factor
from tilec.passes.layouts.op_costs import issue_slots
from tilec.passes.layouts.product_rows import keeps_rows
from tilec.passes.rows.stripes import count_stripes

ACCUMULATORS_PER_THREAD = 128
"""Of the largest accumulator on tensor cores: half of a thread's registers, since a larger part of
a warp reuses fragments more."""
SMALL_SUMS = 512
"""Of a product of 16 rows that two warps share: products of chunks of 16 rows by 16 or 32 columns
took 0.73 to 0.89 of the time in four warps, an eighth kernel 1.13; by 64 columns 0.91 and 1.24
(linear attention on an H200)."""
MOST_WITH_DOTS = 8
"""Warps of a CTA that multiplies, but where the rows are three warpgroups'."""
FMA_ACCUMULATORS_PER_THREAD = 64
"""Of the largest accumulator of dots by fma: each thread's operands take registers, too."""
STREAMED_PER_THREAD = 8
"""Elements of a tile that is loaded in a loop: short tiles in many threads hide latency best."""
WAITED_PER_THREAD = 16
"""Of all that an iteration loads, or of the tile that it reduces, where threads exchange results in
each: fewer warps meet sooner, and other programs compute meanwhile (cross-entropy and gradients of
norms, H200)."""
GATHERED_PER_THREAD = 64
"""The same where a loop gathers rows and reduces them: each warp looks up the numbers of its rows,
and reduces what it has of them. Attention of 32 requests to paged keys, four kernels of lightllm
(H200): in 2, 2, 8 and 4 warps 131, 98, 75 and 97 us, in 8, 8, 16 and 16 337, 125, 144 and 168."""
CARRIED_PER_THREAD, CARRIED_MORE = 4, 4
"""The same of a tile that a loop carries, where it has at least the second times as many elements
as any that it loads: what is computed of it is what an iteration takes (selective scans of 32
channels with 16 states each on an H200: 161 us in 4 warps, 230 in 2, 395 in one)."""
RECURRENT_WARPS = 4
"""Of a loop that computes a tile from itself, if each lane has an element: an iteration waits for
that of one element, and a multiprocessor issues for four warps at once. RWKV-4 over 1024 steps of 8
x 2048 channels in tiles of 128 takes 149 us in 4 warps, 216 in 2, 368 in one; backward 266, 429 and
1614 (H200)."""
ELEMENTWISE_BYTES_PER_THREAD = 16
"""Of the largest tile where no threads meet: one access each."""
FEW_READ, SPREAD_BYTES_PER_THREAD = 8, 64
"""The second of a tile that is stored where none that is loaded has more than the first's part of
its elements: threads wait for the little that they read before they store. Rows of a mean spread
over tiles of 64 x 64 bf16: 9.5 us with 64 to 256, 10.2 with 32, 12.4 with 16 (H200)."""
BYTES_PER_THREAD = 32
"""Of the largest tile otherwise; twice as many where it has more than the first of MANY_ELEMENTS,
and again for the second."""
ACROSS_BYTES = 64
"""Of the largest tile where elements meet across its rows in memory: each thread holds so much of a
column that few threads meet. Means of 64 rows of 64 bf16 take 10.6 us, with 128 or 256 12.1, with
32 23.6 (H200)."""
SCANNED = 2
"""Times as many bytes where a scan is among what meets, and again of MANY_ELEMENTS themselves: a
scan waits for all before it twice. Running sums of 64 columns of 64 f32 take 34.4 us for 88.8 in 16
warps, of 32 columns 9.6, with half as many bytes 11.5; rows of 16384 34.5 for 40.7; sparsemax of
rows of 4096 36.3, in twice as many warps 38.5, in four times 44.5 (H200)."""
MANY_ELEMENTS = (4096, 8192)
"""Of 4 bytes, the first fills `MOST_WARPS` with `BYTES_PER_THREAD` each, the second with twice as
many."""
MOST_WARPS, MOST_REDUCING = 16, 32
"""Of a CTA; the second of one whose threads meet, which a tile of 128 KiB takes, or of whose tiles
threads of the first would hold `COMPUTED_PER_THREAD` elements: in 16 warps each thread would hold
64 words of it, and with what it is scaled by all the registers it may have. Either fills a
multiprocessor. On an H200 Liger's cross-entropy in tiles of 32768 takes 419 us for 424, with all
its options 2009 for 2615, fla's gradient of GRPO 88 for 100."""
SCALED_WARPS = 16
"""Of a row of more than the first of MANY_ELEMENTS that is loaded with others as long, as what it
is scaled with: in 8 warps RMS norms of 64 to 938 rows of 8192 and 16384 bf16 took 1.02 to 1.27
times as long, layer norms 1.04 to 1.21, 4000 and 8000 rows 0.99 to 1.01; softmax, which loads
nothing beside, 0.94 to 1.01 (H200)."""
MET_PER_WARP = (128, 1024)
"""Elements that a warp has at least, and at most, of those that exchange places with each other:
between lanes that takes a shuffle, between warps a buffer and two barriers."""
MET_OF_SEVERAL = 512
"""Elements that a warp has of a tile that is reduced often, of which several are loaded: each is in
registers while others are. Backward of attention over residuals, 2048 bf16: 173 us, with 1024 209,
with 256 224 (H200)."""
MET_WORDS = 2
"""Words of such an element at most, of which a thread has 32 then; of wider ones it has fewer."""
MANY_MOVES = 50
"""Times that an element changes places, from which on two warps share what fills one: a sort of
1024 f32 then takes 57 us for 54 in 8192 programs and 3.3 for 5.9 in 64, with places 167 for 164 and
8.1 for 19.9; the 64 largest, which move half as often, 26 for 24 (H200)."""
SUMS = ("arith.addf", "arith.addi")
"""Ops that add what an iteration brings to what those before did: no iteration waits for that."""
MANY_MEETINGS = 6
"""Reductions of one tile, outside of loops, whose threads wait for each other more than they read:
they get as many elements a warp as exchanges."""
COMPUTED_PER_THREAD = 64
"""Of the largest tile, at most, where the ones in memory are smaller (an outer product): a quarter
of the registers, of which an expression holds two or three tiles."""
SLOTS_PER_THREAD, LEAST_COMPUTING, LEAST_PER_LANE = 512, 4, 2
"""Instructions of a thread where tiles that nobody loads are computed and reduced, and the fewest
warps for a program of more than one, in which lanes have at least so many elements each. Integrals
and hits of 256 to 4096 points (H200): in 4 warps 5 programs take 0.39 to 0.97 of the time of
one warp, 60000 programs 0.83 to 1.17; 4096 points of sines take 8 or more. What one warp does in
the time in which a multiprocessor begins a CTA stays in one (`passes/pack_programs.py`)."""


@dataclass
class _Program:
    """What the rules look at. `accumulators`: of the `products` dots that share a block, where they
    are most; `row_warps`: that have rows of a product of their own, 8 where those may be shared;
    `blocks`: those of every block. `meetings`: reductions that run once; `streamed`: elements that
    blocks of loops load, `largest` the most of one tile; `carried`: of the largest tile that a loop
    carries; `waited`: of the largest that a loop reduces whose result it needs, 0 without;
    `gathers`: whether a loop loads rows by number. `slots`: of the instructions of all elements.
    `exchanged`: by shapes of tiles, the axes along which their elements exchange places; `steps`:
    by shapes, axes and masks, the words of what exchanges places together, by dtypes; `moved`:
    elements, as often as they change places; `loaded`: those of each load that runs once. `scans`:
    whether there is a scan; `recurs`: whether a loop computes a tile from itself; `rows_along`: by
    shapes of tiles that are loaded, the dimensions along which elements are neighbours in memory;
    `met_along`: shapes, and axes of reductions and scans."""

    elements: int = 1
    bytes: int = 1
    accumulators: int = 0
    products: int = 0
    rows: int = 0
    row_warps: int = 0
    blocks: dict[ir.Block, list[int]] = field(default_factory=dict)
    uses_fma: bool = False
    reduces: bool = False
    meetings: int = 0
    streamed: dict[ir.Block, int] = field(default_factory=dict)
    largest: int = 0
    carried: int = 0
    waited: int = 0
    gathers: bool = False
    slots: int = 0
    exchanged: dict[tuple[int, ...], set[int]] = field(default_factory=dict)
    steps: dict[tuple[tuple[int, ...], int, int], dict[str, int]] = field(default_factory=dict)
    moved: int = 0
    loaded: list[int] = field(default_factory=list)
    recurs: bool = False
    scans: bool = False
    rows_along: dict[tuple[int, ...], set[int | None]] = field(default_factory=dict)
    met_along: set[tuple[tuple[int, ...], int]] = field(default_factory=set)

    @property
    def meets_across(self) -> bool:
        """Whether the largest tiles are loaded, and their elements meet along another dimension
        than the one in which they are neighbours in memory, and only so."""
        largest = [each for each in self.met_along if prod(each[0]) == self.elements]
        return bool(largest) and all(
            sizes in self.rows_along and axis not in self.rows_along[sizes]
            for sizes, axis in largest
        )

    @property
    def rows_loaded(self) -> int:
        """Loads, outside of loops, of tiles as large as the largest."""
        return self.loaded.count(self.elements)

    @property
    def words(self) -> int:
        """Of the elements that exchange places together, a power of two."""
        return _power_above(max((sum(each.values()) for each in self.steps.values()), default=1))

    @property
    def met(self) -> int:
        """Elements that exchange places with each other, of the tile where they are most."""
        axes: dict[int, set[int]] = {}
        for sizes, along in self.exchanged.items():
            axes.setdefault(len(sizes), set()).update(along)
        return max(
            (prod(sizes[axis] for axis in axes[len(sizes)]) for sizes in self.exchanged), default=0
        )


def choose_num_warps(function: ir.Operation, target: Target, report: Report) -> int:
    """A power of two, 1 to 32 warps, with dots 4 to 8, of few rows 2; or three warpgroups."""
    program = _look_at(function)
    stripes, _ = count_stripes(function, target, 1)
    program.elements //= stripes
    program.bytes //= stripes
    lanes = target.warp_size
    if program.accumulators:
        each = FMA_ACCUMULATORS_PER_THREAD if program.uses_fma else ACCUMULATORS_PER_THREAD
        # What several products of one loop hold at once must fit; one may be spread less evenly.
        room, least = each * lanes, 4
        wanted = program.accumulators // room
        if program.products > 1:
            wanted = _power_above(-(-program.accumulators // room))
        # One warpgroup multiplies while another does what stands between two products, or issues.
        by_warpgroups = target.supports(Feature.WGMMA) and not program.uses_fma
        # So do two sets of warps beside one that loads, of a CTA that fills a multiprocessor.
        beside_loads = target.copies_fragments and not program.uses_fma
        if (by_warpgroups or beside_loads) and program.rows >= 2 * WGMMA_M:
            least = 8
        # Of 16 rows a warp has all, and hands them to who multiplies what it made of them.
        is_small = program.products > 1 or program.accumulators <= SMALL_SUMS
        if is_small and program.rows <= MMA_M:
            least = 2
        # More warps than rows of theirs would compute them again, and all that follows a product.
        elif not program.uses_fma:
            least = min(least, max(2, program.row_warps))
        warps, why = _power(wanted, least, MOST_WITH_DOTS), f"{program.accumulators} accumulators"
        if by_warpgroups and program.products > 1 and program.rows == 3 * WGMMA_M:
            # What lies between two products wants whole rows.
            warps, why = 3 * WARPGROUP_WARPS, f"{program.rows} rows"
    else:
        wanted, why = _memory_bound(program, lanes)
        alone = program.streamed or not program.reduces
        held = program.elements // (MOST_WARPS * lanes)
        most = MOST_WARPS if alone and held < COMPUTED_PER_THREAD else MOST_REDUCING
        warps = _power(wanted, 1, most)
    report.add("warps", function, str(warps), why, num_warps=warps)
    return warps


def _memory_bound(program: _Program, lanes: int) -> tuple[int, str]:
    size = f"the largest tile has {program.elements} elements"
    if program.exchanged or (program.meetings >= MANY_MEETINGS and not program.streamed):
        return _meeting_often(program), f"{size}, whose threads meet often"
    looping = _looping(program, lanes, size)
    if looping is not None:
        return looping
    wanted, why = _once(program, lanes, size)
    return max(program.elements // (COMPUTED_PER_THREAD * lanes), wanted), why


def _meeting_often(program: _Program) -> int:
    low, high = MET_PER_WARP
    high //= -(-program.words // MET_WORDS)
    if not program.exchanged and program.rows_loaded > 1:
        high = MET_OF_SEVERAL
    each = max(low, min(high, program.met or high))
    wanted = program.elements // each
    if wanted == 1 and each == high and program.moved > MANY_MOVES * program.elements:
        wanted = 2
    return wanted


def _looping(program: _Program, lanes: int, size: str) -> tuple[int, str] | None:
    """Of a program that loads tiles in a loop; None of others."""
    if program.carried >= CARRIED_MORE * program.largest > 0:
        return program.elements // (CARRIED_PER_THREAD * lanes), f"{size}, of few loaded in a loop"
    if program.streamed and program.gathers and program.reduces:
        loaded = max(program.streamed.values())
        why = f"{loaded} elements loaded in a loop that gathers rows"
        return loaded // (GATHERED_PER_THREAD * lanes), why
    if program.streamed and program.waited:
        loaded = max(program.streamed.values())
        did = "loaded" if loaded >= program.waited else "reduced"
        most = max(loaded, program.waited)
        why = f"{most} elements {did} in a loop whose threads meet"
        return most // (WAITED_PER_THREAD * lanes), why
    if not program.streamed:
        return None
    wanted = program.elements // (STREAMED_PER_THREAD * lanes)
    if program.recurs and not program.reduces:
        several = min(RECURRENT_WARPS, program.elements // lanes)
        return max(wanted, several), f"{size}, each iteration computed from the last"
    return wanted, f"{size}, loaded in a loop"


def _once(program: _Program, lanes: int, size: str) -> tuple[int, str]:
    """Of a program that loads all before it computes."""
    if not program.reduces:
        spread = program.loaded and FEW_READ * max(program.loaded) <= program.elements
        each = SPREAD_BYTES_PER_THREAD if spread else ELEMENTWISE_BYTES_PER_THREAD
        return program.bytes // (each * lanes), f"{size}, elementwise"
    if program.bytes < program.elements:
        wanted = program.slots // (SLOTS_PER_THREAD * lanes)
        most = min(MOST_WARPS, program.elements // (LEAST_PER_LANE * lanes))
        return min(max(LEAST_COMPUTING, wanted), most) if wanted else 1, f"{size}, computed"
    more = SCANNED if program.scans else 1
    if program.meets_across:
        return program.bytes // (more * ACROSS_BYTES * lanes), f"{size}, whose rows meet"
    # A scan's rows are long from MANY_ELEMENTS on, others' from one more.
    length = program.elements + (1 if program.scans else 0)
    each = more * BYTES_PER_THREAD << sum(length > many for many in MANY_ELEMENTS)
    wanted = program.bytes // (each * lanes)
    if program.elements > MANY_ELEMENTS[0] and program.rows_loaded > 1:
        wanted = max(wanted, min(2 * wanted, SCALED_WARPS))
    return wanted, f"{size}, {program.bytes} bytes"


def _look_at(function: ir.Operation) -> _Program:
    program = _Program()

    def visit(op: ir.Operation) -> ir.WalkResult:
        view = op.opview
        for result in op.results:
            if is_tile(result):
                program.elements = max(program.elements, prod(shape(result)))
                program.slots += issue_slots(op) * prod(shape(result))
                program.carried = max(program.carried, _carried(op, result))
        if isinstance(view, tile.DotOp):
            together = program.blocks.setdefault(op.block, [])
            together.append(prod(shape(view.acc)))
            if sum(together) > program.accumulators:
                program.accumulators, program.products = sum(together), len(together)
                program.rows = shape(view.acc)[-2]
            rows = _power_above(-(-shape(view.acc)[-2] // MMA_M))
            program.row_warps = max(program.row_warps, rows if keeps_rows(view) else MOST_WITH_DOTS)
            exact = view.options.get("precision") != "tf32"
            program.uses_fma |= str(element(view.lhs)) == "f32" and exact
        elif op.name == "scf.for":
            program.recurs |= _recurs(op)
        elif isinstance(view, Combining):
            program.reduces = True
            program.scans |= isinstance(view, tile.ScanOp)
            program.met_along.add((shape(view.inputs[0]), view.axis))
            program.meetings += depth_factor(op) == 1
            program.waited = max(program.waited, _waited(op))
        elif isinstance(view, tile.ExchangeOp):
            program.reduces = True
            program.exchanged.setdefault(shape(view.src), set()).add(view.axis)
            step = program.steps.setdefault((shape(view.src), view.axis, view.mask), {})
            step[str(element(view.src))] = -(-bit_width(element(view.src)) // WORD_BITS)
            program.moved += prod(shape(view.src)) * depth_factor(op)
        elif isinstance(view, ArrayOp) and not isinstance(view, Atomic):
            _look_at_access(op, program)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return program


def _waited(reduction: ir.Operation) -> int:
    """Elements of the tile that a loop reduces and needs the result of, 0 where it does not."""
    needed = depth_factor(reduction) > 1 and is_needed(reduction)
    return prod(shape(reduction.operands[0])) if needed else 0


def _carried(op: ir.Operation, result: ir.Value) -> int:
    """Elements of a tile that a loop hands on, 0 of other ops' results."""
    return prod(shape(result)) if op.name in ("scf.for", "scf.while") else 0


def _look_at_access(op: ir.Operation, program: _Program) -> None:
    view, moved = op.opview, op.opview.tile
    elements, width = prod(shape(moved)), max(8, bit_width(element(moved)))
    program.bytes = max(program.bytes, elements * width // 8)
    if not view.is_load:
        return
    if not isinstance(view, Indexed):
        along = program.rows_along.setdefault(shape(moved), set())
        along.add(contiguous_dim(view.array, view.dims))
    if op.parent is None or op.parent.name not in ("scf.for", "scf.while"):
        program.loaded.append(elements)
        return
    program.streamed[op.block] = program.streamed.get(op.block, 0) + elements
    program.largest = max(program.largest, elements)
    has_rows = sum(size > 1 for size in shape(moved)) > 1
    program.gathers |= has_rows and isinstance(view, tile.GatherOp)


def _recurs(loop: ir.Operation) -> bool:
    """Whether an iteration computes with a tile of the one before, other than adding to it."""
    body = loop.regions[0].blocks[0]
    *_, last = body.operations
    for argument, yielded in zip(list(body.arguments)[1:], last.operation.operands, strict=True):
        users = [use.owner.operation for use in argument.uses]
        added = len(users) == 1 and users[0].name in SUMS and users[0].results[0] == yielded
        if is_tile(argument) and users and not added:
            return True
    return False


def is_needed(reduction: ir.Operation) -> bool:
    """Whether more is done with a result than adding it to something, which can wait."""
    users = [use.owner.operation for result in reduction.results for use in result.uses]
    extracted = [user for user in users if user.name == "tensor.extract"]
    users += [use.owner.operation for user in extracted for use in user.results[0].uses]
    return any(user.name not in ("tensor.extract", "arith.addf", "arith.addi") for user in users)


def _power_above(wanted: int) -> int:
    """The power of two at or above `wanted`."""
    return 1 << max(0, wanted - 1).bit_length()


def _power(wanted: int, least: int, most: int) -> int:
    """The power of two at or below `wanted`, within bounds."""
    power = 1 << (max(1, wanted).bit_length() - 1)
    return max(least, min(most, power))
