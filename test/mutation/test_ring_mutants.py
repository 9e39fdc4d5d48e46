"""Turns of rings that a pass has dropped or misplaced are found on the IR, before any code is made.

Every op of a ring in whole kernels, as the passes leave them, is broken in every way below, and
verify-rings looks at the result. Left out are ops that no sizes reach, and what is no change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from mlir import ir
from shares import share_of_each

from tilec.compile import compiler
from tilec.compile.compiler import Compilation, lower_to
from tilec.compile.source import parse_source
from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile import RingTurn
from tilec.examples.matmul import matmul
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops.attention_kernel import attention
from tilec.ops.gradient_kernels import key_gradients
from tilec.passes.checks.ring_play import play
from tilec.passes.checks.verify_ops import verify_ops
from tilec.passes.checks.verify_rings import MOST_SEEDS, STEPS, verify_rings
from tilec.passes.contract import PassContext
from tilec.passes.rewriting.op_tables import OpSet
from tilec.passes.rewriting.scalars import binary, i32_constant
from tilec.passes.rewriting.walk import find_ops, kernels

SQUARE = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
HEADS = [f"{name}:bf16[?,?,?,64;?:8,?:8,?:8,1]" for name in ("q", "k", "v", "o")]
TILE = {"BM": 128, "BN": 128, "BK": 64}


def _gradients() -> list[str]:
    names = ("q", "k", "v", "do", "dk", "dv")
    rows = [f"{name}:f32[?,?,?;?,?,1]" for name in ("logs", "delta")]
    heads = [f"{name}:bf16[?,?,?,64;?:8,?:8,?:8,1]" for name in names]
    return [*heads[:4], *rows, *heads[4:], "scale:f32"]


KERNELS: dict[str, tuple[Any, list[str], dict[str, Any], str]] = {
    "product": (matmul, SQUARE, TILE, "sm_90a"),
    "product in tensor memory": (matmul, SQUARE, TILE, "sm_100a"),
    "cluster": (matmul.demanding(cluster=(2, 1)), SQUARE, TILE, "sm_90a"),
    "pair": (matmul.demanding(cluster=(2, 1)), SQUARE, TILE, "sm_100a"),
    "ping-pong": (matmul.demanding(consumers="pingpong"), SQUARE, TILE, "sm_90a"),
    "dynamic": (matmul.demanding(persistent="dynamic"), SQUARE, TILE, "sm_100a"),
    "attention": (attention, [*HEADS, "scale:f32"], {"D": 64, "CAUSAL": True}, "sm_90a"),
    "gradients": (key_gradients, _gradients(), {"D": 64}, "sm_100a"),
}


@dataclass(frozen=True)
class Lowered:
    """A kernel whose rings are whole, as text, and what its passes knew."""

    text: str
    context: PassContext

    def parsed(self, within: ir.Context) -> ir.Module:
        return ir.Module.parse(self.text, within)


def lowered(name: str) -> tuple[Lowered, ir.Context]:
    """What stands in front of expand-rings."""
    kernel, specs, constants, target = KERNELS[name]
    kept: list[Compilation] = []
    run_pass = compiler.run_pass

    def keep(tile_pass: Any, job: Compilation) -> None:
        if tile_pass.name == "expand-rings":
            kept.append(job)
            texts.append(str(job.module))
        run_pass(tile_pass, job)

    texts: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "run_pass", keep)
        kernel.compile(specs, constants, target=target)
    return Lowered(texts[-1], kept[-1].context), kept[-1].module.context


# Broken -------------------------------------------------------------------------------------------


def as_slot(op: ir.Operation) -> None:
    """Nobody waits for the slot."""
    with ir.InsertionPoint(op), op.location:
        op.results[0].replace_all_uses_with(gpu_tile.RingSlotOp.build(*list(op.operands)))
    op.erase()


def too_late(op: ir.Operation) -> None:
    """The wait stands behind what it is for."""
    users = OpSet(_in_block(use.owner.operation, op.block) for use in op.results[0].uses)
    order = [view.operation for view in op.block.operations]
    last = max((order.index(user) for user in users), default=-1)
    views = [
        order.index(_in_block(u.owner.operation, op.block))
        for v in users
        for r in v.results
        for u in r.uses
        if isinstance(v.opview, gpu_tile.SlotOp)
    ]
    with ir.InsertionPoint(order[max([last, *views]) + 1]), op.location:
        op.clone()
    as_slot(op)


def next_turn(op: ir.Operation) -> None:
    """Another turn's slot."""
    with ir.InsertionPoint(op), op.location:
        op.operands[1] = binary("arith.addi", op.operands[1], i32_constant(1))


def drop(op: ir.Operation) -> None:
    op.erase()


def twice(op: ir.Operation) -> None:
    op.clone(ir.InsertionPoint(op))


def too_early(op: ir.Operation) -> None:
    """Behind the turn that it belongs to."""
    op.move_after(op.operands[1].owner.operation)


def changed(name: str, by: int) -> Callable[[ir.Operation], None]:
    def mutate(op: ir.Operation) -> None:
        old = op.attributes[name]
        op.attributes[name] = ir.IntegerAttr.get(old.type, old.value + by)

    return mutate


def _in_block(op: ir.Operation, block: ir.Block) -> ir.Operation:
    while op.block != block:
        op = op.parent
    return op


BREAKS: dict[type, dict[str, Callable[[ir.Operation], None]]] = {
    gpu_tile.RingAcquireOp: {"drop": as_slot, "late": too_late, "next turn": next_turn},
    gpu_tile.RingWaitOp: {"drop": as_slot, "late": too_late, "next turn": next_turn},
    gpu_tile.RingAnnounceOp: {
        "drop": drop,
        "twice": twice,
        "more": changed("bytes", 16),
        "less": changed("bytes", -16),
    },
    gpu_tile.RingPublishOp: {"drop": drop, "twice": twice, "early": too_early},
    gpu_tile.RingReleaseOp: {"drop": drop, "twice": twice, "early": too_early},
    gpu_tile.MakeRingOp: {
        "fill more": changed("fills", 1),
        "fill less": changed("fills", -1),
        "release more": changed("releases", 1),
        "release less": changed("releases", -1),
    },
}


def mutants(module: ir.Module, context: PassContext) -> Iterator[tuple[type, int, str]]:
    """What can be broken: the class of op, its number, how."""
    (function,) = kernels(module)
    reached = OpSet()
    for seed in range(1, MOST_SEEDS + 1):
        reached.update(play(function, context, seed, STEPS))
    for kind, ways in BREAKS.items():
        for number, op in enumerate(find_ops(function, kind)):
            if kind is not gpu_tile.MakeRingOp and op not in reached:
                continue
            for way in ways:
                if not _is_no_change(op, way):
                    yield kind, number, way


def _is_no_change(op: ir.Operation, way: str) -> bool:
    """What breaks nothing here: a wait at a role's end, whose slot is not used (what ends too early
    the emulator finds); a release that follows its turn."""
    if isinstance(op.opview, RingTurn):
        unused = not list(op.results[0].uses)
        return unused and way != "next turn"
    if isinstance(op.opview, gpu_tile.MakeRingOp):
        count = op.attributes["fills" if way.startswith("fill") else "releases"].value
        return count == 0
    order = [view.operation for view in op.block.operations]
    turn = op.operands[1].owner.operation
    return way == "early" and (turn not in order or order.index(op) == order.index(turn) + 1)


@pytest.mark.parametrize("name", KERNELS)
def test_the_unbroken_kernel_agrees(name: str) -> None:
    whole, within = lowered(name)
    verify_rings(whole.parsed(within), whole.context)


@pytest.mark.parametrize("name", KERNELS)
def test_every_broken_turn_is_named(name: str, every_mutant: bool) -> None:
    whole, within = lowered(name)
    every = list(mutants(whole.parsed(within), whole.context))
    assert {kind for kind, _, _ in every} >= {gpu_tile.RingAcquireOp, gpu_tile.RingReleaseOp}
    survivors = []
    for kind, number, way in share_of_each(
        every, 8, lambda one: (one[0], one[2]), everything=every_mutant
    ):
        module = whole.parsed(within)
        with within, ir.Location.unknown():
            BREAKS[kind][way](find_ops(module.operation, kind)[number])
        try:
            verify_ops(module)
            verify_rings(module, whole.context)
        except CompileError:
            continue
        survivors.append(f"{kind.__name__} #{number}: {way}")
    assert survivors == []


def test_a_program_that_comes_in_broken_is_an_error_at_its_line() -> None:
    whole, within = lowered("product")
    kept = [line for line in whole.text.splitlines() if "gpu_tile.ring_release" not in line]
    module = parse_source("\n".join(kept), "dump.mlir", within, survives=True)
    wrong = r"^dump\.mlir:\d+:\d+: error: 'gpu_tile.ring_acquire' op waits for a slot that nobody"
    with pytest.raises(CompileError, match=wrong):
        lower_to(module, find_target("sm_90a"), "gpu_tile")
