# ruff: noqa: E501  (lines of PTX)
"""Warp exchange, divergence, loops and CTA barriers."""

from __future__ import annotations

import numpy as np
import pytest
from elementwise_ptx import evaluate, integers, same

from tilec.runtime.emulator import EmulatorError, load

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def shuffle(mode: str, values: np.ndarray, b: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    """shfl.sync as the PTX ISA's pseudo code says, lane by lane."""
    result, valid = values.copy(), np.zeros(values.size, bool)
    segment, clamp = c >> 8 & 31, c & 31
    for i in range(values.size):
        lane, base = i % 32, i // 32 * 32
        highest = (lane & segment) | (clamp & ~segment)
        lowest = lane & segment
        j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b,
             "idx": lowest | (b & ~segment & 31)}[mode]  # fmt: skip
        valid[i] = j >= highest if mode == "up" else j <= highest
        result[i] = values[base + j] if valid[i] else values[i]
    return result, valid


@pytest.mark.parametrize(
    ("mode", "b", "c"),
    [("bfly", 16, 31), ("bfly", 1, 31), ("up", 3, 0), ("down", 5, 31), ("idx", 7, 31),
     ("idx", 9, 0x181F), ("up", 2, 0x1800), ("down", 2, 0x181F), ("bfly", 8, 0x181F)],
)  # fmt: skip
@pytest.mark.parametrize("literal", [True, False])
def test_shuffles(mode: str, b: int, c: int, literal: bool) -> None:
    a = integers("uint32", seed=1)
    sources = f"{b}, {c}" if literal else "%r10, %r11"
    body = (
        f"mov.u32 %r10, {b}; mov.u32 %r11, {c};"
        f"shfl.sync.{mode}.b32 {{o0}}|%p1, {{0}}, {sources}, -1; selp.u32 {{o1}}, 1, 0, %p1;"
    )
    value, valid = evaluate(body, a, out=("uint32", "uint32"))
    want, good = shuffle(mode, a, b, c)
    same(valid, good.astype(np.uint32))
    same(value, want)


def test_votes_and_ballot() -> None:
    a = integers("int32", seed=1)
    body = (
        "setp.lt.s32 %p1, {0}, 0; vote.sync.ballot.b32 {o0}, %p1, -1;"
        "vote.sync.any.pred %p2, %p1, 0xff; vote.sync.all.pred %p3, !%p1, 3;"
        "selp.u32 {o1}, 1, 0, %p2; selp.u32 {o2}, 1, 0, %p3; activemask.b32 {o3};"
    )
    ballot, any_, all_, active = evaluate(body, a, out=("uint32",) * 4)
    warps = (a < 0).reshape(-1, 32)
    weights = 1 << np.arange(32, dtype=np.uint64)
    same(ballot, np.repeat((warps * weights).sum(1), 32).astype(np.uint32))
    same(any_, np.repeat(warps[:, :8].any(1), 32).astype(np.uint32))
    same(all_, np.repeat((~warps[:, :2]).all(1), 32).astype(np.uint32))
    same(active, np.full(a.size, 0xFFFFFFFF, np.uint32))


def test_match_redux_elect() -> None:
    a = integers("uint32", seed=1) % 5
    signed = integers("int32", seed=2)
    body = (
        "match.any.sync.b32 {o0}, {0}, -1; redux.sync.add.s32 {o1}, {1}, -1;"
        "redux.sync.min.s32 {o2}, {1}, 0xffff; redux.sync.xor.b32 {o3}, {1}, -1;"
        "elect.sync %r20|%p1, 0xfffffff0; selp.u32 {o4}, 1, 0, %p1; add.u32 {o4}, {o4}, %r20;"
        "and.b32 %r21, {0}, 0; match.all.sync.b32 %r22|%p2, %r21, -1; selp.u32 {o5}, %r22, 0, %p2;"
    )
    out = ("uint32", "int32", "int32", "uint32", "uint32", "uint32")
    match, total, least, mixed, leader, every = evaluate(body, a, signed, out=out)
    for warp in range(a.size // 32):
        part = slice(warp * 32, warp * 32 + 32)
        mine, numbers = a[part], signed[part]
        want = [(int(sum(1 << j for j in range(32) if mine[j] == mine[i]))) for i in range(32)]
        assert match[part].tolist() == want
        assert (total[part] == numbers.sum(dtype=np.int32)).all()
        assert (least[part][:16] == numbers[:16].min()).all()
        assert (mixed[part] == np.bitwise_xor.reduce(numbers).view(np.uint32)).all()
        assert leader[part].tolist()[4:] == [5] + [4] * 27
    assert (every == 0xFFFFFFFF).all()


COLLATZ = """
    setp.eq.u32 %p1, {0}, 1; mov.u32 {o0}, 0; mov.u32 %r10, {0}; @%p1 bra END;
LOOP:
    and.b32 %r11, %r10, 1; setp.eq.u32 %p2, %r11, 0; @%p2 bra EVEN;
    mad.lo.u32 %r10, %r10, 3, 1; bra.uni NEXT;
EVEN:
    shr.u32 %r10, %r10, 1;
NEXT:
    add.u32 {o0}, {o0}, 1; setp.ne.u32 %p3, %r10, 1; @%p3 bra LOOP;
END:
    bar.warp.sync -1; shfl.sync.bfly.b32 {o1}, {o0}, 1, 31, -1;
"""


def test_divergent_loops_meet_again() -> None:
    a = np.arange(1, 257, dtype=np.uint32)
    steps, neighbour = evaluate(COLLATZ, a, out=("uint32", "uint32"), block=128)

    def collatz(n: int) -> int:
        count = 0
        while n != 1:
            n = 3 * n + 1 if n % 2 else n // 2
            count += 1
        return count

    want = np.array([collatz(int(n)) for n in a], np.uint32)
    same(steps, want)
    same(neighbour, want.reshape(-1, 2)[:, ::-1].reshape(-1).copy())


def test_lanes_with_masks_of_their_own_meet_alone() -> None:
    """Eight lanes each: as many rounds as they say, in each of which they exchange, four later."""
    rounds = np.repeat(np.random.default_rng(3).integers(0, 6, 32), 8).astype(np.uint32)
    body = """
    and.b32 %r10, %r52, 24; mov.b32 %r11, 255; shl.b32 %r11, %r11, %r10; and.b32 {o0}, %r52, 7;
    mov.u32 %r12, {0}; setp.eq.u32 %p1, %r12, 0; @%p1 bra END;
LOOP:
    and.b32 %r14, %r52, 4; and.b32 %r15, %r12, %r14; setp.ne.u32 %p3, %r15, 0; @%p3 bra LATER;
MEET:
    shfl.sync.idx.b32 %r13, {o0}, 3, 0x181f, %r11; add.u32 {o0}, {o0}, %r13;
    sub.u32 %r12, %r12, 1; setp.ne.u32 %p2, %r12, 0; @%p2 bra LOOP;
    bra END;
LATER:
    bra MEET;
END:
    bar.warp.sync %r11;
"""
    # Lane 3 doubles what it has, 3 at first, and all add that.
    want = np.arange(256, dtype=np.uint32) % 8 + 3 * ((1 << rounds) - 1)
    same(evaluate(body, rounds, out="uint32", block=128), want.astype(np.uint32))


def test_lanes_with_different_masks_wait_for_ever() -> None:
    """Lane 9 names half of those that name it, or leaves itself out."""
    body = (
        "setp.lt.u32 %p1, %r1, 16; @!%p1 exit; setp.eq.u32 %p2, %r1, 9; selp.b32 %r2, {},"
        " 0xffff, %p2; bar.warp.sync %r2;"
    )
    kernel(body.format("0xffff")).run("k", 1, 32, [np.zeros(1, np.uint32)])
    for other in ("0xff00", "0xfdff"):
        with pytest.raises(EmulatorError, match="divergent"):
            kernel(body.format(other)).run("k", 1, 32, [np.zeros(1, np.uint32)])


def test_indexed_branch() -> None:
    a = np.arange(96, dtype=np.uint32) % 3
    body = (
        "ts: .branchtargets L0, L1, L2;\n brx.idx {0}, ts;\nL0: mov.u32 {o0}, 10; bra E;\n"
        "L1: mov.u32 {o0}, 20; bra E;\nL2: mov.u32 {o0}, 30;\nE:"
    )
    same(evaluate(body, a, out="uint32", block=32), (a + 1) * 10)


def test_partial_warps_and_early_exit() -> None:
    a = integers("uint32", seed=1, size=64)
    body = (
        "mov.u32 {o0}, 0; setp.gt.u32 %p1, %r52, 19; @%p1 bra OUT; vote.sync.ballot.b32 {o0}, 1, -1;"
        "activemask.b32 {o1};\nOUT:"
    ).replace("1, -1", "%p2, -1").replace("mov.u32 {o0}, 0;", "mov.u32 {o0}, 0; mov.u32 {o1}, 0;"
                                            "setp.eq.u32 %p2, %r52, %r52;")  # fmt: skip
    got, active = evaluate(
        body.replace("-1;", "0xfffff;", 1), a, out=("uint32", "uint32"), block=32
    )
    assert (got.reshape(2, 32)[:, :20] == 0xFFFFF).all()
    assert (active.reshape(2, 32)[:, :20] == 0xFFFFF).all()
    assert (got.reshape(2, 32)[:, 20:] == 0).all()


def kernel(body: str):
    registers = ".reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;"
    text = (
        f"{HEAD}.visible .entry k(.param .u64 a) {{\n{registers}\n.shared .align 4 .b8 s[4096];\n"
    )
    return load(text + f"ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x;\n{body}\nret;\n}}")


TREE = """
    mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;
    mov.u32 %r20, %ctaid.x; mad.lo.u32 %r21, %r20, 128, %r1; mul.wide.u32 %rd2, %r21, 4;
    add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r5, [%rd3]; st.shared.u32 [%r4], %r5;
    mov.u32 %r6, 64;
LOOP:
    bar.sync 0; setp.ge.u32 %p1, %r1, %r6; @%p1 bra SKIP;
    shl.b32 %r7, %r6, 2; add.u32 %r8, %r4, %r7; ld.shared.u32 %r9, [%r8];
    ld.shared.u32 %r10, [%r4]; add.u32 %r10, %r10, %r9; st.shared.u32 [%r4], %r10;
SKIP:
    shr.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra LOOP;
    bar.sync 0; ld.shared.u32 %r11, [%r2]; st.global.u32 [%rd3], %r11;
"""


def test_tree_reduction_with_barriers() -> None:
    a = integers("uint32", seed=1, size=128 * 40)
    want = np.repeat(a.reshape(40, 128).sum(1, dtype=np.uint32), 128)
    kernel(TREE).run("k", 40, 128, [a])
    np.testing.assert_array_equal(a, want)


def test_named_barriers_pair_producer_and_consumer() -> None:
    body = """
    mov.u32 %r2, s; shr.u32 %r3, %r1, 5; and.b32 %r4, %r1, 31; shl.b32 %r5, %r4, 2;
    add.u32 %r6, %r2, %r5; setp.eq.u32 %p1, %r3, 0; mov.u32 %r10, 0; mul.wide.u32 %rd2, %r5, 1;
    add.s64 %rd3, %rd1, %rd2;
    @%p1 bra PRODUCER;
CONSUMER:
    bar.sync 1, 64; ld.shared.u32 %r7, [%r6]; bar.arrive 2, 64;
    red.global.add.u32 [%rd3], %r7; add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 5;
    @%p2 bra CONSUMER; bra.uni END;
PRODUCER:
    add.u32 %r11, %r10, %r4; st.shared.u32 [%r6], %r11; bar.arrive 1, 64; bar.sync 2, 64;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 5; @%p3 bra PRODUCER;
END:
    """
    out = np.zeros(32, np.uint32)
    kernel(body).run("k", 1, 64, [out])
    np.testing.assert_array_equal(out, 5 * np.arange(32) + 10)


def test_barrier_reductions() -> None:
    body = """
    setp.lt.u32 %p1, %r1, 37; barrier.cta.red.popc.aligned.u32 %r2, 3, %p1;
    bar.red.or.pred %p2, 0, %p1; barrier.sync.aligned 4; selp.u32 %r3, 100, 0, %p2; add.u32 %r4, %r2, %r3;
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r4;
    """
    out = np.zeros(96, np.uint32)
    kernel(body).run("k", 1, 96, [out])
    assert (out == 137).all()


def test_deadlock_names_the_waiters() -> None:
    body = "setp.lt.u32 %p1, %r1, 32; @%p1 bra W; bar.sync 1, 128;\nW: bar.sync 0;"
    with pytest.raises(EmulatorError, match=r"deadlock(.|\n)*CTAs 0, 1: warps 1, 2 at barrier 1 "
                       r"for 4 warps, 2 came(.|\n)*PTX line 8"):  # fmt: skip
        kernel(body).run("k", 2, 96, [np.zeros(1, np.uint32)])


def test_barrier_count_mismatch_and_bad_count() -> None:
    body = "setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1, 64; bra E;\nA: bar.sync 1, 32;\nE:"
    with pytest.raises(EmulatorError, match="different thread counts"):
        kernel(body).run("k", 1, 64, [np.zeros(1, np.uint32)])
    with pytest.raises(EmulatorError, match="not a positive multiple of 32"):
        kernel("bar.sync 1, 40;").run("k", 1, 64, [np.zeros(1, np.uint32)])


def test_divergent_aligned_barrier_hangs_loudly() -> None:
    body = "setp.lt.u32 %p1, %r1, 7; @%p1 bra A; bar.sync 0; bra E;\nA: bar.sync 0;\nE:"
    with pytest.raises(EmulatorError, match="divergent"):
        kernel(body).run("k", 1, 32, [np.zeros(1, np.uint32)])


def test_trap() -> None:
    with pytest.raises(EmulatorError, match=r"trap.*PTX line 8"):
        kernel("setp.eq.u32 %p1, %r1, 5; @%p1 trap;").run("k", 1, 32, [np.zeros(1, np.uint32)])


def test_spin_lock_between_ctas_makes_progress() -> None:
    body = """
    setp.ne.u32 %p1, %r1, 0; @%p1 bra END;
SPIN: atom.acquire.gpu.global.cas.b32 %r2, [%rd1], 0, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra SPIN;
    ld.volatile.global.u32 %r3, [%rd1+4]; add.u32 %r3, %r3, 1; st.volatile.global.u32 [%rd1+4], %r3;
    fence.acq_rel.gpu; atom.release.gpu.global.exch.b32 %r4, [%rd1], 0;
END:
    """
    a = np.zeros(2, np.uint32)
    kernel(body).run("k", 20, 64, [a])
    assert a.tolist() == [0, 20]


def test_inline_assembly_scopes_keep_their_names_apart() -> None:
    body = """
    // begin inline asm
    { .reg .pred p; .reg .b32 t; add.u32 t, {0}, 1; setp.gt.u32 p, t, 10; @p bra DONE; add.u32 t, t, 5;
    DONE: mov.u32 %r10, t; }
    // end inline asm
    { .reg .pred p; .reg .b32 t; add.u32 t, %r10, 1; setp.gt.u32 p, t, 100; @p bra DONE; add.u32 t, t, 7;
    DONE: mov.u32 {o0}, t; }
    """
    a = np.arange(128, dtype=np.uint32)
    first = np.where(a + 1 > 10, a + 1, a + 6) + 1
    same(evaluate(body, a, out="uint32"), np.where(first > 100, first, first + 7).astype(np.uint32))
