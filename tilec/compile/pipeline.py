"""The passes in order: the file to read first. Upstream's canonicalize and cse run inside
`simplify`."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.passes.align_loads import align_loads
from tilec.passes.allocate_shared import allocate_shared
from tilec.passes.allocate_tensor_memory import allocate_tensor_memory
from tilec.passes.alternate_programs import alternate_programs
from tilec.passes.await_arrivals import await_arrivals
from tilec.passes.carry_partials import carry_partials
from tilec.passes.contract import Level, TilePass
from tilec.passes.convert_floats import convert_floats
from tilec.passes.count_loops import count_loops
from tilec.passes.delay_waits import delay_waits
from tilec.passes.dissolve_windows import dissolve_windows
from tilec.passes.estimate_registers import estimate_registers
from tilec.passes.expand_math import expand_math
from tilec.passes.expand_rings import expand_rings
from tilec.passes.fence_tensor_memory import fence_tensor_memory
from tilec.passes.fill_piecewise import fill_piecewise
from tilec.passes.hoist_addresses import hoist_addresses
from tilec.passes.hoist_loads import hoist_loads
from tilec.passes.infer_layouts import infer_layouts
from tilec.passes.insert_async_copies import insert_async_copies
from tilec.passes.insert_barriers import insert_barriers
from tilec.passes.insert_fences import insert_fences
from tilec.passes.insert_tensor_stores import insert_tensor_stores
from tilec.passes.join_loads import join_loads
from tilec.passes.keep_accumulators import keep_accumulators
from tilec.passes.keep_explicit import keep_explicit
from tilec.passes.load_ahead import load_ahead
from tilec.passes.load_early import load_early
from tilec.passes.load_next_programs import load_next_programs
from tilec.passes.lower_to_nvvm import lower_to_nvvm
from tilec.passes.multiply_out import multiply_out
from tilec.passes.open_loops import open_loops
from tilec.passes.overlap_launches import overlap_launches
from tilec.passes.overlap_mma import overlap_mma
from tilec.passes.pack_programs import pack_programs
from tilec.passes.pair_products import pair_products
from tilec.passes.pipeline_loops import pipeline_loops
from tilec.passes.prefetch_fragments import prefetch_fragments
from tilec.passes.prefetch_loads import prefetch_loads
from tilec.passes.reduce_divisions import reduce_divisions
from tilec.passes.remove_layout_conversions import remove_layout_conversions
from tilec.passes.request_programs import request_programs
from tilec.passes.room_for_loads import room_for_loads
from tilec.passes.rotate_dots import rotate_dots
from tilec.passes.schedule_programs import schedule_programs
from tilec.passes.select_mma import select_mma
from tilec.passes.send_sums import send_sums
from tilec.passes.share_copies import share_copies
from tilec.passes.simplify import simplify
from tilec.passes.sink_scalars import sink_scalars
from tilec.passes.skip_scaling import skip_scaling
from tilec.passes.specialize_warps import specialize_warps
from tilec.passes.split_atomics import split_atomics
from tilec.passes.split_conversions import split_conversions
from tilec.passes.split_edges import split_edges
from tilec.passes.split_reductions import split_reductions
from tilec.passes.split_sums import split_sums
from tilec.passes.spread_rows import spread_rows
from tilec.passes.stage_operands import stage_operands
from tilec.passes.sum_in_steps import sum_in_steps
from tilec.passes.transpose_products import transpose_products
from tilec.passes.widen_indices import widen_indices
from tilec.passes.wrap_rows import wrap_rows
from tilec.passes.write_out_steps import write_out_steps

TILE_PIPELINE: tuple[TilePass, ...] = (
    simplify,
    # Behind it all accesses are of whole arrays.
    dissolve_windows,
    count_loops,
    write_out_steps,
    widen_indices,
    spread_rows,
    wrap_rows,
    multiply_out,
    transpose_products,
    select_mma,
    split_sums,
    sum_in_steps,
    open_loops,
    infer_layouts,
    remove_layout_conversions,
    carry_partials,
    simplify,
    join_loads,
    align_loads,
    load_ahead,
    send_sums,
    schedule_programs,
    insert_tensor_stores,
    stage_operands,
    keep_accumulators,
    insert_async_copies,
    pipeline_loops,
    prefetch_fragments,
    # These three turn what crosses warps into traffic through buffers.
    split_reductions,
    split_atomics,
    split_conversions,
    # Rings take what shared memory the buffers so far leave.
    specialize_warps,
    pair_products,
    rotate_dots,
    overlap_mma,
    delay_waits,
    skip_scaling,
    prefetch_loads,
    # What a set of warps does is whole by now: there may be a second set that does the same.
    alternate_programs,
    fill_piecewise,
    estimate_registers,
    # A program of one warp is whole by now: others may run beside it.
    pack_programs,
    hoist_loads,
    load_next_programs,
    # Until here every loop over programs is an scf.for.
    request_programs,
    allocate_tensor_memory,
    # Buffers that share memory depend on each other, so addresses come before barriers.
    allocate_shared,
    insert_fences,
    insert_barriers,
    fence_tensor_memory,
    # Nothing that orders memory inside a CTA depends on who loaded it.
    share_copies,
    overlap_launches,
    load_early,
    await_arrivals,
    # Until here rings are values; what they are made of is the last thing said.
    expand_rings,
    split_edges,
    room_for_loads,
    # No pass behind looks for what an index is computed of.
    reduce_divisions,
)
"""From `tile` to `gpu_tile`: everything explicit."""

EXPLICIT_PIPELINE: tuple[TilePass, ...] = (
    simplify,
    dissolve_windows,
    widen_indices,
    keep_explicit,
    allocate_tensor_memory,
    allocate_shared,
    expand_rings,
)
"""The same for a kernel whose author wrote all that (`tilec.language.gpu`): nothing is added."""

LLVM_PIPELINE: tuple[TilePass, ...] = (
    lower_to_nvvm,
    # Scalar math after lowering: one expansion serves tiles and scalars alike.
    expand_math,
    convert_floats,
    hoist_addresses,
    sink_scalars,
)
"""From `gpu_tile` to scalar ops that LLVM's back end knows."""

UPSTREAM_LOWERING = (
    "builtin.module(cse,loop-invariant-code-motion,convert-scf-to-cf,convert-math-to-llvm,convert-arith-to-llvm,"
    "convert-cf-to-llvm,convert-nvvm-to-llvm,reconcile-unrealized-casts,"
    # The source lines of the author, as .loc; other kinds of debug info forbid ptxas to optimise.
    "ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly})"
)
"""From there to the llvm dialect, by upstream's conversions."""


def passes_from(level: Level, *, explicit: bool = False) -> tuple[TilePass, ...]:
    """The part of TILE_PIPELINE a program at `level` still needs; all of it is safe to repeat.

    `explicit`: the kernel has the attribute `tile.explicit`.
    """
    if explicit:
        return EXPLICIT_PIPELINE
    if level is Level.TILE:
        return TILE_PIPELINE
    return TILE_PIPELINE[TILE_PIPELINE.index(schedule_programs) :]


def check_order(passes: Sequence[TilePass]) -> None:
    """Raises ValueError, with the reason, where one of several passes has to run behind a later
    one."""
    for number, early in enumerate(passes):
        later = {tile_pass.name for tile_pass in passes[number + 1 :]}
        for name, reasons in _in_front_of(early).items():
            if name in later and name != early.name:
                raise ValueError(f"'{early.name}' runs behind '{name}': {'; '.join(reasons)}")


def _in_front_of(tile_pass: TilePass) -> dict[str, tuple[str, ...]]:
    """The passes that run in front of one, and why, by way of others as well."""
    found: dict[str, tuple[str, ...]] = {}
    for name, reason in tile_pass.behind:
        found[name] = (f"'{tile_pass.name}' behind '{name}', {reason}",)
    for name, reasons in list(found.items()):
        for other, more in _in_front_of(_BY_NAME[name]).items():
            found.setdefault(other, (*reasons, *more))
    return found


ALL_PASSES: tuple[TilePass, ...] = tuple(
    dict.fromkeys((*TILE_PIPELINE, *EXPLICIT_PIPELINE, *LLVM_PIPELINE))
)
"""Every pass by name, for `tilec opt`."""

_BY_NAME = {tile_pass.name: tile_pass for tile_pass in ALL_PASSES}
for _pipeline in (TILE_PIPELINE, EXPLICIT_PIPELINE, LLVM_PIPELINE):
    check_order(_pipeline)
