"""schedule-programs: which CTA works on which program, and when.

Before:   %m = "tile.program_id"() {axis = 0 : i32}   %n = "tile.program_id"() {axis = 1 : i32}
After:    %row, %column = "gpu_tile.tile_order"(%linear, %rows, %columns)
              {order = "grouped", group = 8 : i32}
          with %linear = program_id(0) + program_id(1) * num_programs(0)
Persistent:
          scf.for %linear = "gpu_tile.cta_id" to the product of num_programs
                  step "gpu_tile.num_ctas" { ... the whole kernel ... }

With clusters of 2 x 1 programs (`tile.cluster`), each CTA its own of the two:
          scf.for %pair = "gpu_tile.cluster_id" to the number of pairs
                  step "gpu_tile.num_clusters" {
            %i = 2 * pair's row + "gpu_tile.cluster_position"() {axis = 0}
            ... the kernel for %i, or %i - 1 past the end, its stores if %i < rows ... }

Persistent, programs whose lengths grow along the grid (`program_relations.py`): from both ends, a
round of CTAs each in turn. Persistent, a loop with `tile.any_order`: every second program runs it
from the end (`mirror_rounds.py`).

1. Programs are independent, so any permutation of them computes the same, unless they order memory
   for each other: those begin in ascending order, so that one may wait for what lower ones do. The
   grouped order keeps the operands of a two-dimensional grid of dots in the L2 cache. Kernels
   without a dot in a loop, or whose loads are not shared by rows of programs and others by columns,
   keep theirs. An operand that a comparison or a load chooses (the matrix of a group of rows) is
   taken to be mostly the same for neighbours.
2. A kernel is persistent where its author demands it (`tile.persistent`; if it is "dynamic",
   request-programs rewrites the loop later), else where matrix instructions that read shared
   memory multiply in a loop: the copies for the next program then run under this one's end. Not
   so programs that find in memory how long they take, or of which a guard leaves some without work:
   equal numbers of them are unequal work (groups of rows, searched, on an H200: 64 of 256 rows
   258 us, persistent 329; half of a product of 4096^3 behind a guard: 88 us, persistent 126), nor
   programs that several CTAs run, which are too few for a second round, nor those whose loops
   multiply what goes through registers (recomputed rows of delta rules: 71 us, persistent 97, and
   42, persistent 50).
3. All CTAs of a cluster run as often, so that they may wait for each other. One whose program is
   outside the grid repeats the cluster's first and stores nothing.
4. Clusters that are not persistent (the author's demand) are as many as the grid needs, in one
   dimension all the same; what is above inside the loop stands in front of the kernel then.
Does not handle: an order for the third axis of a grid (it is the slowest), clusters of kernels that
have effects besides stores, or read what they store.
"""

from __future__ import annotations

import functools
from dataclasses import field

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.demands import is_demanded
from tilec.dialects.effects import whole_of
from tilec.dialects.gpu_tile import (
    ClusterIdOp,
    ClusterPositionOp,
    CtaIdOp,
    LaunchCount,
    MmaOp,
    NumClustersOp,
    NumCtasOp,
    TileOrderOp,
)
from tilec.dialects.tile import ArrayOp, Atomic, DotOp, NumProgramsOp, ProgramIdOp
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.powers import power_below
from tilec.hardware.target import Feature, Groups
from tilec.passes.analysis.hazards import may_wait, may_write
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import (
    ALONE,
    DYNAMIC,
    PERSISTENT,
    chose_cluster,
    ctas_of,
    demanded_cluster,
    is_dynamic,
    is_in_line,
    is_persistent,
    teams_of,
)
from tilec.passes.programs.mirror_rounds import loops_in_any_order, mirror
from tilec.passes.programs.program_order import ProgramOrder, program_order
from tilec.passes.programs.program_relations import (
    bring_operands,
    differ_in_length,
    from_both_ends,
    leave_some_out,
    read_their_length,
    shares_rows_and_columns,
)
from tilec.passes.rewriting.control import for_loop, run_only_if
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import innermost_loop
from tilec.passes.rewriting.scalars import as_type, binary, less, select
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import all_ops
from tilec.records import dataclass
from tilec.terms.demands import ORDER

DEMAND = "the author's demand"


@kernel_pass(requires=Level.LAYOUTS)
def schedule_programs(function: ir.Operation, context: PassContext) -> None:
    """Puts programs of kernels with dots in grouped order, or in a loop that CTAs share."""
    found = _look_at(function)
    loops = loops_in_any_order(function)
    demanded = _demanded(function, found, context)
    grouped = _is_grouped(function, found)
    if found.ordered or found.persistent:
        return
    cluster = _cluster(function, found, context)
    persistent = _stays(function, found, cluster, context) if demanded is None else demanded
    uneven = persistent and differ_in_length(function) and not is_dynamic(function)
    uneven = uneven and not found.waits
    usual = _group(context.target.speed.groups, cluster, persistent)
    order = program_order(function, usual, context.target.speed.groups.square) if grouped else None
    entry = function.regions[0].blocks[0]
    with ir.InsertionPoint.at_block_begin(entry), function.location:
        if persistent or cluster != ALONE:
            turning = _turning(function, loops, persistent, context)
            places = _in_line(entry, order, cluster, found.stores, persistent, uneven, turning)
        elif order is not None:
            places = _grouped(order)
        else:
            return
    for axis, place in enumerate(places):
        for op in found.ids[axis]:
            replace_op(op, place)
    if persistent:
        _mark(function, context)
        why = DEMAND if demanded else "copies for the next program run ahead"
        context.report.add("programs", function, "persistent CTAs share them", why)
    in_line = is_in_line(function)
    if in_line and context.target.supports(Feature.CLUSTERS):
        _report_cluster(cluster, function, context)
    if uneven:
        why = "some take longer: each CTA gets long and short ones"
        context.report.add("program order", function, "from both ends in turn", why)
    if order is not None:
        why = DEMAND if order.demanded else "a grid of dots shares operands in L2"
        context.report.add("program order", function, order.text, why)


@dataclass
class _Programs:
    """How a kernel uses its programs."""

    ids: dict[int, list[ir.Operation]] = field(default_factory=lambda: {0: [], 1: [], 2: []})
    multiplies: bool = False
    from_buffers: bool = False
    dots: bool = False
    ordered: bool = False
    waits: bool = False
    persistent: bool = False
    stores: list[ir.Operation] = field(default_factory=list)
    loads: list[ir.Operation] = field(default_factory=list)
    effects: list[ir.Operation] = field(default_factory=list)
    """Other ops that other programs or the host could tell if they ran twice."""


def _stays(
    function: ir.Operation,
    found: _Programs,
    cluster: tuple[int, int, int],
    context: PassContext,
) -> bool:
    """Whether a kernel becomes persistent although its author leaves that open."""
    if cluster != ALONE or not found.from_buffers or teams_of(function) > 1:
        return cluster != ALONE or found.from_buffers
    if ctas_of(function) > 1:
        why = "each is run by several"
    elif read_their_length(function):
        why = "memory says how long each takes: the launch gives the next to whoever is done"
    elif found.dots and not bring_operands(function):
        why = "what their loops multiply goes through registers, which nothing runs ahead of"
    elif leave_some_out(function):
        why = "a guard leaves some without work: the launch gives the next to whoever is done"
    else:
        return True
    context.report.add("programs", function, "one a CTA", why)
    return False


def _turning(
    function: ir.Operation, loops: list[ir.Operation], persistent: bool, context: PassContext
) -> list[ir.Operation]:
    """The loops that programs run from the front and from the end in turn, among `loops`, which may
    run in any order: all of a persistent kernel whose programs come in a known order."""
    if not loops or not persistent or is_dynamic(function):
        return []
    why = "L2 holds what the program before read last"
    context.report.add("loops in any order", loops[0], "from both ends in turn", why)
    return loops


def _is_grouped(function: ir.Operation, found: _Programs) -> bool:
    """Whether the kernel's programs may run in another order. CompileError where one is demanded
    that they cannot have."""
    grouped = found.multiplies and bool(found.ids[0] and found.ids[1])
    grouped = grouped and not (found.waits or found.ordered or found.persistent)
    if not is_demanded(function, ORDER):
        return grouped and shares_rows_and_columns(found.loads)
    if not grouped:
        why = "only grids of dots in two dimensions, whose programs wait for none, have an order"
        raise error_at(function, f"an order of programs was asked for, but {why}")
    return True


def _demanded(function: ir.Operation, found: _Programs, context: PassContext) -> bool | None:
    """Whether the author wants the kernel persistent, None if that is left open."""
    if is_dynamic(function):
        _check_dynamic(function, found, context)
    return is_persistent(function) if PERSISTENT in function.attributes else None


def _check_dynamic(function: ir.Operation, found: _Programs, context: PassContext) -> None:
    """CompileError where CTAs cannot ask for programs."""
    reason = None
    if not context.target.supports(Feature.CLUSTER_LAUNCH_CONTROL):
        reason = f"{context.target.name} has no cluster launch control"
    elif found.waits:
        reason = "programs that order memory for each other must begin in order"
    elif found.ordered and not found.persistent:
        reason = "the kernel orders its programs itself"
    if reason is not None:
        note = "help: persistent=True shares the programs without asking"
        raise error_at(function, f'persistent="{DYNAMIC}" was asked for, but {reason}', note)


def _mark(function: ir.Operation, context: PassContext) -> None:
    """Says that a kernel is persistent, and by which scheduler if there are two."""
    if is_dynamic(function):
        return
    function.attributes[PERSISTENT] = ir.BoolAttr.get(True)
    if context.target.supports(Feature.CLUSTER_LAUNCH_CONTROL):
        why = f'nobody has measured persistent="{DYNAMIC}", which asks for programs, to be faster'
        context.report.add("program scheduler", function, "static", why)


def _cluster(
    function: ir.Operation, found: _Programs, context: PassContext
) -> tuple[int, int, int]:
    """The programs of a cluster. CompileError where the author's demand cannot be met."""
    shape = demanded_cluster(function)
    if shape == ALONE:
        return shape
    if not context.target.supports(Feature.CLUSTERS):
        why = f"{context.target.name} has no clusters"
        raise error_at(function, f"cluster={shape} was asked for, but {why}")
    if found.effects:
        twice = f"'{found.effects[0].name}' would run twice where the grid is no multiple of it"
        raise error_at(found.effects[0], f"cluster={shape} was asked for, but {twice}")
    written = [whole_of(store.opview.dst) for store in found.stores]
    for load in found.loads:
        if whole_of(load.opview.src) in written:
            race = "a CTA past the end of the grid would read this while its neighbour writes it"
            raise error_at(load, f"cluster={shape} was asked for, but {race}")
    return shape


def _report_cluster(
    cluster: tuple[int, int, int], function: ir.Operation, context: PassContext
) -> None:
    if cluster == ALONE:
        why = "neighbours' common reads merge on their way to L2: no faster where measured"
        context.report.add("clusters", function, "no", why)
    else:
        shape = " x ".join(map(str, cluster))
        why = "they load together what they share" if chose_cluster(function) else DEMAND
        context.report.add("clusters", function, f"{shape} programs", why)


def _look_at(function: ir.Operation) -> _Programs:
    found = _Programs()

    for op in all_ops(function):
        view = op.opview
        if isinstance(view, ProgramIdOp):
            found.ids[view.axis].append(op)
        found.ordered |= isinstance(view, TileOrderOp)
        found.persistent |= isinstance(view, LaunchCount)
        found.waits |= may_wait(view)
        if isinstance(view, (Atomic, tile.FenceOp, tile.PrintOp)) or may_write(view):
            found.effects.append(op)
        elif isinstance(view, ArrayOp):
            (found.loads if view.is_load else found.stores).append(op)
        if isinstance(view, (DotOp, MmaOp)) and innermost_loop(op) is not None:
            found.multiplies = True
            found.dots |= isinstance(view, DotOp)
            name = view.instruction if isinstance(view, MmaOp) else view.options["instruction"]
            found.from_buffers |= find_instruction(name).reads_buffers
    return found


def _in_line(
    entry: ir.Block,
    order: ProgramOrder | None,
    cluster: tuple[int, int, int],
    stores: list[ir.Operation],
    persistent: bool,
    uneven: bool,
    turning: list[ir.Operation],
) -> list[ir.Value]:
    """The programs' ids in a launch of one dimension. A persistent kernel moves into a loop over
    programs, where they stand in front; every second program runs the loops of `turning` from the
    end."""
    i32 = ir.IntegerType.get_signless(32)
    kept = [view.operation for view in entry.operations]
    *body, _ = kept
    programs = [as_type(NumProgramsOp.build(axis=axis), i32) for axis in range(3)]
    sizes = [_ceil(size, part) for size, part in zip(programs, cluster, strict=True)]
    plane = binary("arith.muli", sizes[0], sizes[1])
    if persistent:
        total = binary("arith.muli", plane, sizes[2])
        first, step = (CtaIdOp, NumCtasOp) if cluster == ALONE else (ClusterIdOp, NumClustersOp)
        bounds = [first.build(), total, step.build()]
        _, block = for_loop(bounds)
        inner = ir.InsertionPoint(block)
        (linear,) = block.arguments
    else:
        linear, inner = ClusterIdOp.build(), ir.InsertionPoint.current
    with inner:
        if uneven:
            linear = from_both_ends(linear, *bounds[1:])
        z = binary("arith.divui", linear, plane)
        rest = binary("arith.remui", linear, plane)
        if order is not None:
            places = list(_order(rest, sizes[0], sizes[1], order, cluster[0]))
        else:
            y = binary("arith.divui", rest, sizes[0])
            places = [binary("arith.remui", rest, sizes[0]), y]
        places.append(z)
        inside = [_own(places, programs, cluster, axis) for axis in range(3) if cluster[axis] > 1]
        places = [as_type(place, ir.IndexType.get()) for place in places]
    if persistent:
        with inner:
            end = ir.Operation.create("scf.yield")
        for op in body:
            op.move_before(end)
        with ir.InsertionPoint.at_block_begin(block):
            mirror(turning, lambda: binary("arith.divui", block.arguments[0], bounds[2]))
    if inside:
        for store in stores:
            _guard(store, inside)
    return places


def _group(groups: Groups, cluster: tuple[int, int, int], persistent: bool) -> int:
    """Rows of tiles per group."""
    if cluster != ALONE:
        return groups.cluster
    return groups.persistent if persistent else groups.alone


def _own(
    places: list[ir.Value], programs: list[ir.Value], cluster: tuple[int, int, int], axis: int
) -> ir.Value:
    """Replaces the cluster's place along `axis`, in `places`, by this CTA's program.

    A CTA whose program lies outside the grid gets that of the cluster's first CTA. Returns an i1:
    whether its own lies inside.
    """
    first = binary("arith.muli", places[axis], cluster[axis])
    own = binary("arith.addi", first, ClusterPositionOp.build(axis=axis))
    inside = less(own, programs[axis])
    places[axis] = select(inside, own, first)
    return inside


def _guard(store: ir.Operation, inside: list[ir.Value]) -> None:
    """Lets a store run where all of `inside` hold."""
    with ir.InsertionPoint(store), store.location:
        all_inside = functools.reduce(functools.partial(binary, "arith.andi"), inside)
    run_only_if(all_inside, store)


def _ceil(size: ir.Value, part: int) -> ir.Value:
    """The number of parts of `part` programs each that hold `size`."""
    if part == 1:
        return size
    more = binary("arith.addi", size, part - 1)
    return binary("arith.divui", more, part)


def _grouped(order: ProgramOrder) -> list[ir.Value]:
    i32, index = ir.IntegerType.get_signless(32), ir.IndexType.get()
    x, y = (as_type(ProgramIdOp.build(axis=axis), i32) for axis in (0, 1))
    rows, columns = (as_type(NumProgramsOp.build(axis=axis), i32) for axis in (0, 1))
    linear = binary("arith.addi", x, binary("arith.muli", y, rows))
    return [as_type(value, index) for value in _order(linear, rows, columns, order)]


def _order(
    linear: ir.Value, rows: ir.Value, columns: ir.Value, order: ProgramOrder, height: int = 1
) -> list[ir.Value]:
    """The row and column, among clusters of `height` rows, of the cluster with this number."""
    group = max(1, order.group // height)
    if order.name == "hilbert":
        group = power_below(group)
    return TileOrderOp.build(linear, rows, columns, order=order.name, group=group)
