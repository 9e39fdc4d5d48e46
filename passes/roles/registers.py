"""Which warps a kernel's roles have, how they share the register file, and what forbids two sets of
warps."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.gpu_tile import MakeRingOp, Tcgen05MmaOp, WgmmaOp
from tilec.dialects.gpu_tile.role import entry_registers
from tilec.dialects.gpu_tile.types import is_buffer
from tilec.hardware.mma_shapes import WGMMA_M, find_instruction
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.hardware.target import Target
from tilec.passes.analysis.register_pressure import most_live_registers
from tilec.passes.contract import PassContext
from tilec.passes.demands.kernels import (
    is_dynamic,
    programs_per_sm,
    settled_arrays,
    teams_of,
)
from tilec.passes.rewriting.loops import enclosing_ops, is_program_loop
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.walk import find_ops
from tilec.passes.roles.rings import Ring
from tilec.records import dataclass

LOAD_REGISTERS = 40
"""Of the one thread that issues tensor copies: coordinates, slots and parities of some rings, as in
CUTLASS's load warps (40)."""
TIGHT_REGISTERS = 32
"""The same where 8 fewer give those who compute 8 more: three warpgroups then have 160, and a
64 x 256 product needs 154."""
LEAST_REGISTERS = 24
"""The same where two warpgroups need all that they can get: they have 240 then, for 232, as in
FlashAttention-3's (24, 240). Its load warps need no more, by ptxas's count."""
FILL_REGISTERS = 64
"""Of a thread that fills its part of buffers, beside tiles: addresses and bounds of each vector.
Checked against ptxas (test/bench/register_verdicts.py)."""
FEWEST_FILLING = 24
"""The same below which it spills, about: 19 of 22 drawn roles took up to 40 beside tiles, half of
them up to 13, three more than 100 (ptxas 13.0)."""
COMPUTE_REGISTERS = 40
"""Of a thread that computes, beside tiles: addresses, indices, parities. Checked against ptxas
(test/bench/register_verdicts.py)."""
FEWEST_COMPUTING = 20
"""The same below which it spills, about: 192, 128 and 64 sums of e4m3 and i8 took 17 or 18 beside
what is counted, and with 15 ptxas 13.0 moves every sum to memory and back."""
COPYING_WARPS = 2
"""Whose threads copy beside a multiply role: both fill one warpgroup then, by which registers are
dealt."""
MOST_REGISTERS = 240
"""Of a thread that computes: two warpgroups of them and one that loads with 32 take what a
multiprocessor has, 2 x 240 + 32 = 65536 / 128."""


PRODUCT_REGISTERS = 26
"""What ptxas 13.0 wants beside the accumulators of an instruction: 154 for m64n256, else C7602."""
FRAGMENT_REGISTERS = 4
"""Of its lhs, where that is in registers: 94 for m64n128."""


@dataclass(frozen=True)
class RoleShape:
    """Warps [first_warp, first_warp + warps); `registers` of each thread from then on, 0: as is."""

    first_warp: int
    warps: int
    registers: int

    @property
    def end(self) -> int:
        """The first warp past it."""
        return self.first_warp + self.warps


def plan_roles(
    target: Target,
    warps: int,
    load_least: int = LOAD_REGISTERS,
    live: int = 0,
    *,
    multiply: bool = False,
    copying: bool = False,
    early: bool = False,
    teams: int = 1,
    ctas: int = 1,
) -> dict[str, RoleShape]:
    """The shapes of "compute" (`warps` of them), "load" and, where wanted, "multiply". `teams`: how
    often there will be the warps that compute, one set behind the other; `ctas`: how many CTAs
    share a multiprocessor and its registers.

    Beside a multiply role nobody holds accumulators, so registers stay where they are, and both
    roles take one warp; the load role `COPYING_WARPS` where its threads copy (`copying`). Otherwise
    what the load role gives up the others get: registers move between whole warpgroups in multiples
    of 8 (PTX ISA 9.0, "setmaxnreg"), so the one warp that loads brings three idle ones. Where all
    have what they can use from the start none move, and it comes alone, or with one for arrays that
    are loaded `early` (`load_early.py`), unless a warpgroup copies: a multiprocessor then has
    registers for more CTAs.
    `load_least`: what a thread of the load role wants; `live`: what the others' tiles take at once.
    Where both do not fit the others come first. CTAs beside others move them only where what they
    begin with does not suffice: a load role that holds tiles has its part as well (fla's gradient
    of states in chunks, abc: 62 us, moved 104; H200).
    """
    if multiply:
        loading = COPYING_WARPS if copying else 1
        return {
            "compute": RoleShape(0, warps, 0),
            "load": RoleShape(warps, loading, 0),
            "multiply": RoleShape(warps + loading, 1, 0),
        }
    load, compute = _registers(target, teams * warps, load_least, live, ctas)
    loading = WARPGROUP_WARPS if load or copying else 1 + early
    return {
        "compute": RoleShape(0, warps, compute),
        "load": RoleShape(teams * warps, loading, load),
    }


def _registers(
    target: Target, warps: int, load_least: int, live: int, ctas: int
) -> tuple[int, int]:
    """Gives (registers that a thread of the load role keeps, those that a thread of the others
    gets); 0, 0: no change."""
    lanes = target.warp_size
    threads = (warps + WARPGROUP_WARPS) * lanes
    entry = entry_registers(target, threads, ctas)
    alone = entry if ctas == 1 else entry_registers(target, (warps + 1) * lanes, ctas)
    if alone >= (MOST_REGISTERS if ctas == 1 else live + COMPUTE_REGISTERS):
        return 0, 0

    def left(load: int) -> int:
        rest = entry * threads - load * WARPGROUP_WARPS * lanes
        return min(MOST_REGISTERS, rest // (warps * lanes)) // 8 * 8

    load = -(-load_least // 8) * 8
    while load > LOAD_REGISTERS and (load > entry or left(load) < live + COMPUTE_REGISTERS):
        load -= 8
    if load == LOAD_REGISTERS and left(TIGHT_REGISTERS) > left(load):
        load = TIGHT_REGISTERS
    if load_least <= LOAD_REGISTERS and left(load) < live + COMPUTE_REGISTERS:
        load = LEAST_REGISTERS if left(LEAST_REGISTERS) > left(load) else load
    return load, left(load)


def ctas_by_registers(
    function: ir.Operation, context: PassContext, needed: int, most: int, *, meet: bool = False
) -> int:
    """CTAs, `most` at most, for which a multiprocessor has programs, and registers, `needed` of
    them in each thread that computes, and at the kernel's start what its products want. One where
    it has not even those for two, or where two sets of warps compute that do not `meet`: one of
    them works while the other waits."""
    target, teams = context.target, teams_of(function)
    if teams * context.num_warps > WARPGROUP_WARPS and not meet:
        return 1
    most = min(most, programs_per_sm(function) or most)
    early, products = bool(settled_arrays(function)), _entry_for_products(function)
    for ctas in range(most, 1, -1):
        shapes = plan_roles(
            target, context.num_warps, live=needed, early=early, teams=teams, ctas=ctas
        )
        threads = max(shape.end for shape in shapes.values()) * target.warp_size
        entry = entry_registers(target, threads, ctas)
        there = shapes["compute"].registers or entry
        if ctas * threads <= target.threads_per_sm and products <= entry and needed <= there:
            return ctas
    return 1


def _entry_for_products(function: ir.Operation) -> int:
    """The registers of a thread at a kernel's start that ptxas wants for its widest product."""
    most = 0
    for op in find_ops(function, WgmmaOp):
        row = find_instruction(op.opview.instruction)
        fragment = 0 if is_buffer(op.opview.lhs) else FRAGMENT_REGISTERS
        most = max(most, row.n * WGMMA_M // row.threads + fragment + PRODUCT_REGISTERS)
    return most


def why_too_large(function: ir.Operation, context: PassContext, teams: int) -> str | None:
    """Says why a kernel's tiles fit no thread of roles that were asked for, or None. Of several
    teams each has the registers for a tile of its own, or nothing is gained."""
    live = most_live_registers(function.regions[0].blocks[0])
    most = context.target.registers_per_thread
    if teams > 1:
        shapes = plan_roles(context.target, context.num_warps, teams=teams)
        most = shapes["compute"].registers or most
    if live <= most:
        return None
    return f"its tiles take {live} registers a thread at once, which has {most}"


def why_not_in_turn(function: ir.Operation, rings: list[Ring], *, multiply: bool) -> str | None:
    """Says why no two teams can take the programs of a kernel in turn, or None.

    `rings`: what its load role fills. `multiply`: whether its products get a role of their own.
    """
    if is_dynamic(function):
        return 'CTAs ask for their programs (persistent="dynamic")'
    if multiply:
        return "products in tensor memory run under the end of the program before without it"
    if find_ops(function, Tcgen05MmaOp):
        return "its products in tensor memory are counted through all programs of a CTA"
    for ring in rings:
        around = enclosing_ops(ring.wait.operation)
        if not any(is_program_loop(op) for op in around):
            return "the kernel is not persistent: a CTA has one program only"
    filled = OpSet(ring.made.operation for ring in rings)
    others = [made for made in find_ops(function, MakeRingOp) if made not in filled]
    if any(made.opview.fills for made in others):  # slots without a barrier each set counts itself
        return "the warps that compute arrive at a barrier of theirs, which two sets would share"
    return None
