"""The parts of a kernel that have registers of their own: its roles, or all of it."""

from __future__ import annotations

import functools

from mlir import ir

from tilec.dialects.def_use import of_kind
from tilec.dialects.gpu_tile import RoleOp
from tilec.dialects.gpu_tile.role import ctas_per_sm, entry_registers, total_warps
from tilec.dialects.op import names_where
from tilec.passes.analysis.register_pressure import Peak, peak, tiles_apart
from tilec.passes.analysis.role_threads import runs_in_one_thread
from tilec.passes.contract import PassContext
from tilec.passes.rewriting.walk import ops_named
from tilec.records import dataclass

ROLE_ADDRESSES = 6
"""Of a role, beside what is counted: a 128 x 192 product by two sets of warps in turn (108 of 112)
spills, attention with heads of 64 by three warpgroups (153 of 160) does not."""
BETWEEN_PRODUCTS = 50
"""Of a thread that loads, too, where one asynchronous product's sums wait beside another's: they
stay where the instruction has them. Attention with heads of 256 spills at 212 of 248, with heads of
192 it does not at 180."""


@dataclass(frozen=True)
class Part:
    """What some of a kernel's threads run, with `registers` each; `beside` of them are taken by
    what is not counted, as addresses."""

    name: str
    block: ir.Block
    registers: int
    beside: int

    def peak(self, function: ir.Operation) -> Peak:
        """The op where this part takes the most registers, and how many, `beside` included."""
        found = peak(self.block, tiles_apart(function, self.block))
        return Peak(self.beside + found.registers, found.op)


def parts_of(function: ir.Operation, context: PassContext) -> list[Part]:
    """The parts of a kernel, without roles of one thread, which hold no tiles."""
    threads = total_warps(function, context.num_warps) * context.target.warp_size
    entry = entry_registers(context.target, threads, ctas_per_sm(function))
    body = function.regions[0].blocks[0]
    roles = of_kind(body.operations, RoleOp)
    roles = [role for role in roles if not runs_in_one_thread(role)]
    if roles:
        return [
            Part(f"role '{role.name}'", role.body, role.registers or entry, ROLE_ADDRESSES)
            for role in roles
        ]
    products = [op.block for op in ops_named(function, _asynchronous_products())]
    beside = BETWEEN_PRODUCTS if len(products) > len(set(products)) else 0
    return [Part("a thread", body, entry, beside)]


@functools.cache
def _asynchronous_products() -> frozenset[str]:
    return names_where(lambda kind: kind.PRODUCT and kind.UNTIL is not None)
