"""Warp specialisation: parts of a kernel that run side by side on warps of their own."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from tilec.dialects.attributes import INT, STRING
from tilec.dialects.gpu_tile.barrier import SyncOp
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.op import Attribute, Region
from tilec.hardware.sizes import WARPGROUP_WARPS
from tilec.hardware.target import Feature, Target

TOTAL_WARPS = "tile.total_warps"
"""Kernel attribute: warps of the CTA, where roles have warps beside those that layouts count."""


def total_warps(function: ir.Operation, num_warps: int) -> int:
    """Warps of a kernel's CTA, `num_warps` unless it says otherwise."""
    written = function.attributes
    return written[TOTAL_WARPS].value if TOTAL_WARPS in written else num_warps


CTAS_PER_SM = "tile.ctas_per_sm"
"""Kernel attribute: CTAs for which a multiprocessor has room, each thread so few registers."""


def ctas_per_sm(function: ir.Operation) -> int:
    """CTAs of a kernel that a multiprocessor shall have room for, one unless it says otherwise."""
    written = function.attributes
    return written[CTAS_PER_SM].value if CTAS_PER_SM in written else 1


def entry_registers(target: Target, threads: int, ctas: int = 1) -> int:
    """Registers of each thread when CTAs of `threads` begin, `ctas` of them on a multiprocessor: as
    many as ptxas gives a kernel with `.minnctapersm` of so many. Each of the four parts of a
    multiprocessor has a quarter of them for its warps."""
    part = WARPGROUP_WARPS * target.warp_size
    spread = -(-ctas * threads // part) * part
    return min(target.registers_per_sm // spread, target.registers_per_thread) // 8 * 8


class RoleOp(Op, name="role"):
    """Warps [`first_warp`, `first_warp` + `warps`) run the body, the others pass by.

    Neighbouring roles run side by side. `registers`: what each of their threads may hold from here
    on (`setmaxnreg`: whole warpgroups, a multiple of 8 from 24 to 256), 0 to leave it. Copies by the
    tensor memory accelerator and `barrier_expect` are issued by the role's first thread.

    Example:
        "gpu_tile.role"() ({
          gpu.yield
        }) {name = "load", first_warp = 8 : i32, warps = 4 : i32, registers = 40 : i32} : () -> ()
    """

    body = Region()
    name = Attribute(STRING)
    first_warp = Attribute(INT)
    warps = Attribute(INT)
    registers = Attribute(INT)

    def feature(self) -> Feature | None:
        """See `OpTraits`."""
        return Feature.SETMAXNREG if self.registers else None

    def check(self) -> str | None:
        if self.first_warp < 0 or self.warps < 1 or self.first_warp + self.warps > 32:
            return f"a CTA has 32 warps, found {self.warps} from {self.first_warp} on"
        if not self.registers:
            return None
        if self.registers % 8 or not 24 <= self.registers <= 256:
            return f"registers must be a multiple of 8 from 24 to 256, found {self.registers}"
        if self.first_warp % WARPGROUP_WARPS or self.warps % WARPGROUP_WARPS:
            return "registers are given to whole warpgroups of 4 warps"
        return None


def roles_beside(views: Iterable[ir.OpView]) -> list[list[ir.Operation]]:
    """The roles among the ops of a block, in groups that run side by side: no barrier of the whole
    CTA stands between those of one."""
    groups: list[list[ir.Operation]] = [[]]
    for view in views:
        if isinstance(view, RoleOp):
            groups[-1].append(view.operation)
        elif isinstance(view, SyncOp) and view.barrier == 0:
            groups.append([])
    return [group for group in groups if group]
