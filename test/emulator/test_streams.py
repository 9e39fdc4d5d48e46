# ruff: noqa: E501  (lines of PTX)
"""Launches that overlap: what a kernel does before griddepcontrol.wait, against the launch before."""

from __future__ import annotations

import numpy as np
import pytest

from tilec.runtime.emulator import Result, Run, TensorMap, load, run_stream

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .align 64 .b8 map[128]) {
    .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
    .shared .align 1024 .b8 s[1024]; .shared .align 8 .b8 bar[8];
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p2, %r1, 32;
    mov.u32 %r5, s; mov.u32 %r6, bar; mov.b64 %rd6, map; cvta.param.u64 %rd6, %rd6; mov.u32 %r7, 0;
    shl.b32 %r8, %r1, 2; add.u32 %r8, %r8, %r5;
BODY
    ret;
}"""
NEXT, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"
LOAD, STORE = "ld.global.u32 %r9, [%rd4]; add.u32 %r9, %r9, 1;", "st.global.u32 [%rd5], %r9;"
COPY = (
    "@%p1 mbarrier.init.shared::cta.b64 [%r6], 1; bar.sync 0; @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 256;"
    "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd6, {%r7, %r7}], [%r6];"
    "{ .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [%r6], 0; @!done bra W; }"
    "ld.shared.u32 %r9, [%r8]; add.u32 %r9, %r9, 1;"
)
ASYNC = "cp.async.ca.shared.global [%r8], [%rd4], 4; cp.async.wait_all; ld.shared.u32 %r9, [%r8]; add.u32 %r9, %r9, 1;"
FIRST = NEXT + WAIT + LOAD + STORE


def stream(
    *bodies: str, grid: int = 2, mode: str = "check", seed: int | None = None
) -> tuple[list[Result], list[np.ndarray]]:
    """Launches of CTAs of 64 threads, each from the array that the one before it has written."""
    arrays = [np.zeros(grid * 64, np.uint32) for _ in range(len(bodies) + 1)]
    runs = [
        Run(
            load(KERNEL.replace("BODY", body)), "k", grid, 64,
            [x, y, TensorMap(x, (64, grid), (256,), (64, 1))],
        )
        for body, x, y in zip(bodies, arrays, arrays[1:], strict=False)
    ]  # fmt: skip
    return run_stream(runs, mode, seed=seed), arrays


def findings(*bodies: str, grid: int = 2) -> list[list[str]]:
    return [[f.missing for f in result.findings] for result in stream(*bodies, grid=grid)[0]]


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_launches_that_wait_see_what_was_written(mode: str) -> None:
    results, arrays = stream(FIRST, FIRST, FIRST, mode=mode)
    assert [result.findings for result in results] == [[], [], []]
    for number, array in enumerate(arrays):
        assert (array == number).all()


EARLY = {
    "load": LOAD + WAIT + STORE,
    "tensor copy": COPY + WAIT + STORE,
    "cp.async": ASYNC + WAIT + STORE,
    "a warp that does not wait": f"@%p2 {WAIT}" + LOAD + STORE,
}


@pytest.mark.parametrize("what", EARLY)
@pytest.mark.parametrize("first", [FIRST, WAIT + NEXT + LOAD + STORE, WAIT + LOAD + STORE + NEXT])
def test_what_is_read_before_the_wait_is_found(what: str, first: str) -> None:
    """Wherever the launch before lets it begin: it may be long before it ends."""
    one, other = findings(first, NEXT + EARLY[what], grid=1)
    assert one + other
    assert all("does not wait for this write" in text for text in one)
    assert all("may still run at this read" in text for text in other)


def test_values_are_those_of_the_schedule() -> None:
    """The second launch runs as soon as it may: it reads what the first has not written yet."""
    _, arrays = stream(FIRST, EARLY["load"], mode="eager")
    assert (arrays[1] == 1).all()
    assert (arrays[2] == 1).all()
    _, arrays = stream(FIRST, WAIT + LOAD + STORE, mode="eager")
    assert (arrays[2] == 2).all()


def test_what_is_written_before_the_wait_is_found() -> None:
    """The launch before still reads it."""
    x, y = np.zeros((2, 64), np.uint32)
    program = load(KERNEL.replace("BODY", FIRST))
    early = load(KERNEL.replace("BODY", STORE + WAIT))
    tensor = TensorMap(x, (64, 1), (256,), (64, 1))
    runs = [Run(program, "k", 1, 64, [x, y, tensor]), Run(early, "k", 1, 64, [y, x, tensor])]
    one, other = run_stream(runs)
    found = one.findings + other.findings
    assert found
    assert all(f.kind == "race" and f.memory == "global" for f in found)


def test_a_thread_waits_for_its_cta_if_they_meet() -> None:
    alone = f"@%p2 {WAIT} " + LOAD + STORE
    together = f"@%p2 {WAIT} bar.sync 0;" + LOAD + STORE
    assert any(findings(FIRST, alone))
    assert findings(FIRST, together) == [[], []]


def test_what_no_launch_writes_may_be_read_early() -> None:
    """`settled`: the array is as it was before."""
    array = np.arange(64, dtype=np.uint32)
    x, y, z = np.zeros((3, 64), np.uint32)
    tensor = TensorMap(array, (64, 1), (256,), (64, 1))
    early = load(KERNEL.replace("BODY", COPY + WAIT + STORE))
    first = load(KERNEL.replace("BODY", FIRST))
    runs = [Run(first, "k", 1, 64, [x, y, tensor]), Run(early, "k", 1, 64, [y, z, tensor])]
    assert [result.findings for result in run_stream(runs)] == [[], []]
    np.testing.assert_array_equal(z, array + 1)


def test_a_launch_that_does_not_wait_hides_the_one_before_it() -> None:
    """The third waits for the second, which may be over before the first: a wait that no thread
    runs lets it."""
    skipped = NEXT + "setp.eq.u32 %p3, %r1, 999; @%p3 " + WAIT
    x, y, z = np.zeros((3, 64), np.uint32)
    tensor = TensorMap(x, (64, 1), (256,), (64, 1))
    bodies = (FIRST, skipped, WAIT + LOAD + STORE)
    programs = [load(KERNEL.replace("BODY", body)) for body in bodies]
    pairs = ((x, y), (z, z), (y, z))
    runs = [
        Run(program, "k", 1, 64, [*pair, tensor])
        for program, pair in zip(programs, pairs, strict=True)
    ]
    found = [finding for result in run_stream(runs) for finding in result.findings]
    assert found
    assert {f.kind for f in found} == {"race"}


def test_kernels_that_do_not_wait_begin_when_all_is_over() -> None:
    """One kernel twice, and what waits for the second is behind all before it."""
    plain = LOAD + STORE
    results, arrays = stream(plain, plain, FIRST, plain, FIRST)
    assert [result.findings for result in results] == [[]] * 5
    assert (arrays[5] == 5).all()


def test_a_wait_for_a_kernel_that_began_late_is_a_wait_for_all_before_it() -> None:
    x, y, z = np.zeros((3, 64), np.uint32)
    tensor = TensorMap(x, (64, 1), (256,), (64, 1))
    plain, waiting = (load(KERNEL.replace("BODY", body)) for body in (LOAD + STORE, FIRST))
    runs = [
        Run(program, "k", 1, 64, [*pair, tensor])
        for program, pair in ((plain, (x, y)), (plain, (x, z)), (waiting, (y, x)))
    ]
    assert [result.findings for result in run_stream(runs)] == [[], [], []]
    assert (x == 2).all()
