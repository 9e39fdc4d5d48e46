"""request-programs: a CTA that is done takes over the program of one that has not started.

Before:   "gpu_tile.role"() ({                       (the same loop in every role, or in the kernel)
            scf.for %p = "gpu_tile.cta_id" to %programs step "gpu_tile.num_ctas" iter_args(%n) {
              ... program %p ...
            }
          }) ...
After:    %answers = "gpu_tile.alloc"()   %ring = "gpu_tile.make_ring"() {slots = 3 ...}
          "gpu_tile.role"() ({
            scf.while (%there = true, %p = "gpu_tile.cta_id", %count = 0, %n) {
              scf.condition(%there) ...
            } do {
              %slot = "gpu_tile.ring_acquire"(%ring, %count)               (the first role only)
              "gpu_tile.ring_announce"(%ring, %slot) {bytes = 16}
              "gpu_tile.next_program"(%answers[%slot], %ring, %slot)
              ... program %p ...
              %slot = "gpu_tile.ring_wait"(%ring, %count)
              %there, %p = "gpu_tile.next_program_read"(%answers[%slot])
              "gpu_tile.ring_release"(%ring, %slot)
            }
          }) ...

Only where the author demands it (`tile.persistent = "dynamic"`): the kernel is launched with a CTA
for each program, in one dimension, so that the place of a CTA is the number of its program.

1. Each role has its own copy of the loop over programs, from specialize-warps. Every copy becomes a
   `while` here and no earlier, so that no pass in front has to know of it.
2. The role that runs ahead of the others asks, when it begins a program, for the one behind it. All
   roles read the answer when they are done with theirs, and release its slot: a warp at a time, or
   once where one thread runs the role.
3. Nobody asks behind the answer that there is none left (PTX ISA 9.0, "clusterlaunchcontrol": the
   behaviour would be undefined): the loop has ended.

In clusters a whole one is taken over. The CTA of rank 0 asks for all of them, when the readers of
all have released the slot; the answer arrives in each of them, which expects it by itself.
Does not handle: kernels whose programs stand in no loop over all of them (schedule-programs makes
it, and reports where it cannot).
"""

from __future__ import annotations

import functools
from math import prod

from mlir import ir

from tilec.dialects.gpu_tile import (
    AllocOp,
    ClusterPositionOp,
    NextProgramOp,
    NextProgramReadOp,
    RingAcquireOp,
    RingAnnounceOp,
    RingReleaseOp,
    RingSlotOp,
    RingWaitOp,
    RoleOp,
    SlotOp,
)
from tilec.dialects.gpu_tile.cluster import cluster_shape
from tilec.dialects.gpu_tile.launch_control import ANSWER_BYTES, answer_buffer
from tilec.dialects.gpu_tile.role import total_warps
from tilec.passes.analysis.role_threads import runs_in_one_thread
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.demands.kernels import is_dynamic
from tilec.passes.programs.answers import SLOTS
from tilec.passes.programs.cluster_alike import runs_in
from tilec.passes.rewriting.control import only_if, while_loop
from tilec.passes.rewriting.loops import (
    behind,
    enclosing_ops,
    find_loops,
    inits_of,
    is_program_loop,
    replace_yield,
    terminator,
)
from tilec.passes.rewriting.rings import make_ring
from tilec.passes.rewriting.scalars import binary, constant, equal, i32_constant
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import is_of
from tilec.records import dataclass


@kernel_pass(
    requires=Level.BUFFERS,
    behind={"alternate-programs": "until then every loop over programs is an scf.for"},
    rings=True,
)
def request_programs(function: ir.Operation, context: PassContext) -> None:
    """Lets CTAs ask for programs where the author wants it."""
    if is_dynamic(function):
        _request(function, context)


@dataclass
class _Reader:
    """A loop over programs, and who arrives when it has read an answer."""

    loop: ir.Operation
    per: str
    arrivals: int


@dataclass
class _Answers:
    """The buffer in which answers lie, and the ring of its slots.

    `ctas` of a cluster; in one of several whether this is the `first`, and a mask of that.
    """

    whole: ir.Value
    ring: ir.Value
    ctas: int
    first: ir.Value | None = None
    mask: ir.Value | None = None


def _request(function: ir.Operation, context: PassContext) -> None:
    warps = total_warps(function, context.num_warps)
    loops = [
        loop for loop in find_loops(function) if loop.name == "scf.for" and is_program_loop(loop)
    ]
    if not loops:  # written by hand, or done already
        return
    shape = cluster_shape(function)
    readers = [_reader(loop, warps) for loop in loops]
    arrivals = sum(reader.arrivals * len(runs_in(reader.loop, shape)) for reader in readers)
    answers = _make_answers(function, arrivals, shape)
    for number, reader in enumerate(readers):
        _rewrite(reader, answers, asks=number == 0)
    why = "the author's demand: cluster launch control hands on what has not started"
    context.report.add("program scheduler", function, "dynamic", why)


def _reader(loop: ir.Operation, warps: int) -> _Reader:
    role = next((op.opview for op in enclosing_ops(loop) if is_of(op, RoleOp)), None)
    if role is None:
        return _Reader(loop, "warp", warps)
    if role.warps == 1 or runs_in_one_thread(role):
        # Fences of tensor memory may yet make it one that all lanes run.
        return _Reader(loop, "once", 1)
    return _Reader(loop, "warp", role.warps)


def _make_answers(function: ir.Operation, releases: int, shape: tuple[int, int, int]) -> _Answers:
    """Makes that buffer and that ring at the kernel's entry."""
    ring = make_ring(function, slots=SLOTS, fills=1, releases=releases)
    with ir.InsertionPoint(behind(ring.owner.operation)), function.location:
        buffer = AllocOp.build(results=[answer_buffer(SLOTS).type()])
        answers = _Answers(buffer, ring, prod(shape))
        if answers.ctas > 1:
            places = [ClusterPositionOp.build(axis=n) for n in range(3) if shape[n] > 1]
            anywhere = functools.reduce(functools.partial(binary, "arith.ori"), places)
            answers.first, answers.mask = equal(anywhere, 0), i32_constant(1)
    return answers


def _rewrite(reader: _Reader, answers: _Answers, *, asks: bool) -> None:
    """Puts a `while` in the place of a loop over programs."""
    loop = reader.loop
    old = loop.regions[0].blocks[0]
    i1, i32 = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(32)
    carried = inits_of(loop)
    types = [i32, i32, *(value.type for value in carried)]
    with ir.InsertionPoint(loop), loop.location:
        inits = [constant(i1, 1), loop.operands[0], i32_constant(0), *carried]
        new, before, after = while_loop(inits, types)
        with ir.InsertionPoint(before):
            ir.Operation.create("scf.condition", operands=list(before.arguments))
    program, count, *kept = after.arguments
    for outside, inside in zip(old.arguments, [program, *kept], strict=True):
        outside.replace_all_uses_with(inside)
    for view in list(old.operations):
        after.append(view.operation)
    with ir.InsertionPoint.at_block_begin(after), loop.location:
        if asks:
            _ask(answers, count)
    end = terminator(after)
    with ir.InsertionPoint(end), loop.location:
        slot = RingWaitOp.build(answers.ring, count)
        there, x, _, _ = NextProgramReadOp.build(SlotOp.build(answers.whole, slot))
        RingReleaseOp.build(answers.ring, slot, answers.mask, by=reader.per)
        if answers.mask is not None:
            # The place of a cluster's first CTA; clusters are numbered.
            x = binary("arith.divui", x, answers.ctas)
        following = binary("arith.addi", count, 1)
    replace_yield(end, [there, x, following, *end.operands])
    replace_op(loop, *list(new.results)[2:])


def _ask(answers: _Answers, count: ir.Value) -> None:
    """Asks for the program behind this one, once all have released the slot of the answer."""
    if answers.first is None:
        slot = RingAcquireOp.build(answers.ring, count)
        RingAnnounceOp.build(answers.ring, slot, bytes=ANSWER_BYTES)
        NextProgramOp.build(SlotOp.build(answers.whole, slot), answers.ring, slot)
        return
    # Every CTA announces its own answer; the first asks, when all have released the slot.
    own = RingSlotOp.build(answers.ring, count)
    RingAnnounceOp.build(answers.ring, own, bytes=ANSWER_BYTES)
    with only_if(answers.first):
        slot = RingAcquireOp.build(answers.ring, count)
        NextProgramOp.build(SlotOp.build(answers.whole, slot), answers.ring, slot)
