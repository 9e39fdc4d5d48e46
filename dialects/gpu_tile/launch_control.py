"""Cluster launch control: a running CTA takes over the program of one that has not started.

PTX ISA 9.0, "clusterlaunchcontrol": the request is asynchronous, its answer 16 bytes of shared
memory that an mbarrier counts. After an answer that there is none left nobody may ask again.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.constraints import BUFFER, COUNTED, I1, I32
from tilec.dialects.gpu_tile.dialect import Op
from tilec.dialects.gpu_tile.mbarrier import CountedCopy
from tilec.dialects.gpu_tile.types import BufferType, buffer_of, wrong_counter
from tilec.dialects.op import Operand, Result
from tilec.hardware.shared_layout import SharedLayout
from tilec.hardware.target import Feature

ANSWER_BYTES = 16
"""What clusterlaunchcontrol.try_cancel writes (PTX ISA 9.0, its section: a 16-byte response)."""
_WORDS = 4
"""Of an answer, 32 bits each: `ANSWER_BYTES` as a buffer of i32."""


def answer_buffer(slots: int = 1) -> BufferType:
    """A buffer for answers: four words each, whose meaning is the hardware's."""
    shape = (_WORDS,) if slots == 1 else (slots, _WORDS)
    i32 = ir.IntegerType.get_signless(32)
    return BufferType(shape, i32, SharedLayout((((_WORDS, 1),),)))


def _check_answer(answer: ir.Value) -> str | None:
    try:
        found = buffer_of(answer)
    except ValueError as error:
        return str(error)
    return None if found == answer_buffer() else f"an answer is a {answer_buffer().type()}"


class NextProgramOp(
    CountedCopy,
    name="next_program",
    needs=Feature.CLUSTER_LAUNCH_CONTROL,
    alone=True,
    reaches=True,
    own_buffers=True,
):
    """One thread asks for a CTA that has not started yet: it will not start, its program is ours.

    The answer's 16 bytes arrive at `barrier[slot]`, which expects them (`barrier_expect`). What
    read the answer before came to `next_program_read`'s end and told this thread so. Only kernels
    with `tile.persistent = "dynamic"`: they are launched with a CTA for each program. In a cluster
    one CTA asks for a cluster; the answer arrives in all of its CTAs, at the same place and barrier.

    Example:
        "gpu_tile.next_program"(%answer, %asked, %slot) : (!gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>, !gpu_tile.barrier, i32) -> ()
    """

    answer = Operand(BUFFER, writes=True)
    barrier = Operand(COUNTED)
    slot = Operand(I32)

    def check(self) -> str | None:
        return wrong_counter(self.barrier) or _check_answer(self.answer)


class NextProgramReadOp(
    Op,
    name="next_program_read",
    needs=Feature.CLUSTER_LAUNCH_CONTROL,
    one_thread=True,
    alone=True,
    own_buffers=True,
):
    """What a request brought, once its barrier was waited for: whether there is a next program, and
    the place of its CTA (of a cluster, the first one) in the launch (`cta_id` is x), undefined where
    there is none.

    Behind it, and an arrival that the asking thread waits for, the answer may be overwritten.

    Example:
        %there, %x, %y, %z = "gpu_tile.next_program_read"(%answer) : (!gpu_tile.buffer<tensor<4xi32>, #gpu_tile.shared<"(4):(1)">>) -> (i1, i32, i32, i32)
    """

    answer = Operand(BUFFER, reads=True)
    there = Result(I1)
    x = Result(I32)
    y = Result(I32)
    z = Result(I32)

    @classmethod
    def infer_types(cls, *_: Any, **__: Any) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(1)] + [ir.IntegerType.get_signless(32)] * 3

    def check(self) -> str | None:
        return _check_answer(self.answer)
