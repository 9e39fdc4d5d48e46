"""A warp-specialised product whose sets of warps take programs in turn, with the turns broken.

Twelve programs on three CTAs: each set has two of its CTA's four. A program fills a number of slots
that is no multiple of the ring's, so that each begins at another slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hopper_kernels import demanded
from mlir import ir
from pipelined_mutants import Verdict
from role_mutants import RoleMutant, RoleProduct, changed, drop, flip, twice
from shares import share_of_each

from tilec.dialects.gpu_tile import BarrierArriveOp, BarrierInitOp, BarrierWaitOp, RoleOp
from tilec.passes.rewriting.loops import is_program_loop
from tilec.passes.rewriting.walk import find_ops

Mutate = Callable[[ir.Operation, int], None]
OFTEN = 3
"""A run that takes shares takes the first of each kind, and one of so many."""


def _before_the_loop(op: ir.Operation, slots: int) -> None:
    """The next program may begin when this one does."""
    op.move_before(next(v.operation for v in op.block.operations if v.operation.name == "scf.for"))


def _behind_the_loop(op: ir.Operation, slots: int) -> None:
    """The products are issued first, then the turn is waited for."""
    op.move_after(next(v.operation for v in op.block.operations if v.operation.name == "scf.for"))


class TurnsProduct(RoleProduct):
    """The product, taken in turn by two sets of warps."""

    kernel = demanded.demanding(num_warps=4, consumers="pingpong")
    programs = 12

    def mutants(self, *, everything: bool = True) -> Iterator[Verdict]:
        """Every mutant, or the share of each kind, judged: in check mode, and in late mode
        where that schedule hides it."""
        every = [
            (name, find, mutate, number)
            for name, find, mutate in BREAKS
            for number in range(len(find(self.job.module)))
        ]
        taken = share_of_each(every, OFTEN, lambda one: one[0], everything=everything)
        for name, find, mutate, number in taken:
            job = self.copy()
            with job.module.context:
                mutate(find(job.module)[number], self.slots)
            verdict = self.judge(job)
            if verdict[0] == "survived":
                verdict = self.judge(job, "late")
            yield Verdict(RoleMutant(name, number), *verdict)


def _order(module: ir.Module) -> BarrierInitOp:
    """The barrier by which sets of warps wait for their turn."""
    (found,) = [
        op.opview for op in find_ops(module.operation, BarrierInitOp) if op.opview.slots == 1
    ]
    return found


def _at_order(kind: type) -> Callable[[ir.Module], list[ir.Operation]]:
    def find(module: ir.Module) -> list[ir.Operation]:
        order = _order(module).result
        return [op for op in find_ops(module.operation, kind) if op.opview.barrier == order]

    return find


def _branches(module: ir.Module) -> list[ir.Operation]:
    """Where a role has its own program, or counts what the other's fills."""
    loops = [
        view.operation
        for role in find_ops(module.operation, RoleOp)
        for view in role.opview.body.operations
        if is_program_loop(view.operation)
    ]
    bodies = [loop.regions[0].blocks[0] for loop in loops]
    return [v.operation for body in bodies for v in body.operations if v.operation.name == "scf.if"]


def _counts_more(op: ir.Operation, slots: int) -> None:
    """Who passes by a program takes it for one that fills a slot more."""
    *_, end = op.regions[1].blocks[0].operations
    with ir.InsertionPoint(end.operation), op.location:
        count = end.operation.operands[0]
        one = ir.Operation.create(
            "arith.constant",
            results=[count.type],
            attributes={"value": ir.IntegerAttr.get(count.type, 1)},
        )
        more = ir.Operation.create(
            "arith.addi", results=[count.type], operands=[count, one.results[0]]
        )
        end.operation.operands[0] = more.results[0]


def _counts_nothing(op: ir.Operation, slots: int) -> None:
    """Who passes by a program goes on where he was."""
    *_, end = op.regions[1].blocks[0].operations
    _, count, _ = op.block.arguments
    end.operation.operands[0] = count


def _takes_the_others(op: ir.Operation, slots: int) -> None:
    """Both sets of warps take the same programs."""
    team = op.operands[0].owner.operands[1].owner
    old = team.attributes["value"]
    team.attributes["value"] = ir.IntegerAttr.get(old.type, 1 - old.value)


def _only_order(module: ir.Module) -> list[ir.Operation]:
    return [_order(module).operation]


BREAKS: tuple[tuple[str, Callable[[ir.Module], list[ir.Operation]], Mutate], ...] = (
    ("does not wait for its turn", _at_order(BarrierWaitOp), drop),
    ("waits for another turn", _at_order(BarrierWaitOp), flip),
    ("waits for its turn too late", _at_order(BarrierWaitOp), _behind_the_loop),
    ("never hands on", _at_order(BarrierArriveOp), drop),
    ("hands on twice", _at_order(BarrierArriveOp), twice),
    ("hands on before its products", _at_order(BarrierArriveOp), _before_the_loop),
    ("counts one arrival more", _only_order, changed("count", 1)),
    ("counts one arrival less", _only_order, changed("count", -1)),
    ("skips a slot too many", _branches, _counts_more),
    ("skips nothing", _branches, _counts_nothing),
    ("takes the other's programs", _branches, _takes_the_others),
)


def main() -> None:
    """Prints every verdict."""
    for verdict in TurnsProduct(3).mutants():
        print(f"{verdict.mutation}: {verdict.outcome} {verdict.detail}")


if __name__ == "__main__":
    main()
