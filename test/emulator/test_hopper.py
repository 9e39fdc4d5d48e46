# ruff: noqa: E501  (lines of PTX)
"""mbarrier, bulk and tensor copies, clusters and wgmma on hand-written PTX."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from tilec.runtime.emulator import EmulatorError, Result, TensorMap, load

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<30>;"
MODES = ["eager", "late", "check"]


def kernel(body: str, shared: int = 32768):
    """s (%r2) is shared memory, aligned to 1024; %rd1 and %rd2 the parameters a and b."""
    return load(
        f"{HEAD}.visible .entry k(.param .align 64 .b8 map[128], .param .u64 a, .param .u64 b) {{\n"
        f"{REGISTERS}\n.shared .align 1024 .b8 s[{shared}];\n.shared .align 8 .b8 bar[64];\n"
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mov.u32 %r2, s;"
        "mov.u32 %r3, bar; setp.eq.u32 %p1, %r1, 0; mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;\n"
        f"{body}\nret;\n}}"
    )


NO_MAP = bytes(128)
WAIT = "{{ .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [{0}], {1}; @!done bra W; }}"
INIT = (
    "@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster; bar.sync 0;"
)
COPY_OUT = (
    "mov.u32 %r80, %r1;\nCOPY: setp.ge.u32 %p7, %r80, {0}; @%p7 bra COPIED; shl.b32 %r81, %r80, 4;"
    "add.u32 %r82, %r2, %r81; ld.shared.v4.b32 {{%r83, %r84, %r85, %r86}}, [%r82];"
    "cvt.u64.u32 %rd20, %r81; add.s64 %rd21, %rd2, %rd20;"
    "st.global.v4.b32 [%rd21], {{%r83, %r84, %r85, %r86}}; mov.u32 %r87, %ntid.x;"
    "add.u32 %r80, %r80, %r87; bra COPY;\nCOPIED:"
)


def errors(result: Result) -> list[str]:
    return [str(finding) for finding in result.findings if finding.severity == "error"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("corner", [(0, 0), (-8, 5), (40, 60), (48, -3), (104, 100)])
def test_tensor_load_places_swizzles_and_fills(
    swizzle: int, corner: tuple[int, int], mode: str
) -> None:
    """Expected bytes computed element by element from the address formula."""
    rng = np.random.default_rng(0)
    tensor = rng.integers(1, 1 << 16, (67, 56), dtype=np.uint16)
    columns = (swizzle or 64) // 2
    tensor_map = TensorMap(tensor, (50, 67), (112,), (columns, 16), swizzle)  # 50 of 56 columns
    out = np.zeros(columns * 16, np.uint16)
    body = INIT + (
        f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {out.nbytes};"
        f"mov.b32 %r10, {corner[0]}; mov.b32 %r11, {corner[1]};"
        "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%r2], [%rd3, {%r10, %r11}], [%r3];"
        + WAIT.format("%r3", 0)
        + COPY_OUT.format(out.nbytes // 16)
    )
    result = kernel(body).run("k", 1, 64, [tensor_map, out, out], mode=mode)
    assert errors(result) == []
    expected = np.zeros_like(out)
    for row, column in itertools.product(range(16), range(columns)):
        x, y = corner[0] + column, corner[1] + row
        value = tensor[y, x] if 0 <= x < 50 and 0 <= y < 67 else 0
        address = 2 * (row * columns + column)
        mask = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
        address ^= ((address >> 7) & mask) << 4
        expected[address // 2] = value
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("row", "inside"), [(0, True), (48, True), (56, False)])
def test_tensor_load_by_a_map_larger_than_the_memory(row: int, inside: bool) -> None:
    """A dimension without bounds: what counts is what a box reads. 64 rows of 4096 are there."""
    tensor = np.arange(1, 64 * 32 + 1, dtype=np.uint16).reshape(64, 32)
    tensor_map = TensorMap(tensor, (32, 4096), (64,), (32, 16))
    out = np.zeros((16, 32), np.uint16)
    body = INIT + (
        f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {out.nbytes};"
        f"mov.b32 %r10, 0; mov.b32 %r11, {row};"
        "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%r2], [%rd3, {%r10, %r11}], [%r3];"
        + WAIT.format("%r3", 0)
        + COPY_OUT.format(out.nbytes // 16)
    )
    if inside:
        kernel(body).run("k", 1, 64, [tensor_map, out, out])
        np.testing.assert_array_equal(out, tensor[row : row + 16])
        return
    with pytest.raises(EmulatorError, match="beyond memory"):
        kernel(body).run("k", 1, 64, [tensor_map, out, out])


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_tensor_store_of_every_rank_skips_what_is_outside(rank: int) -> None:
    dims, box, corner = (24, 5, 4, 3, 6)[:rank], (16, 3, 2, 2, 4)[:rank], (16, 3, 3, 1, 4)[:rank]
    tensor = np.zeros(dims[::-1], np.uint32)
    strides = tuple(int(np.prod(dims[: i + 1])) * 4 for i in range(rank - 1))
    size = int(np.prod(box))
    source = np.arange(1, size + 1, dtype=np.uint32)
    names = ", ".join(f"%r{10 + i}" for i in range(rank))
    moves = "".join(f"mov.b32 %r{10 + i}, {c};" for i, c in enumerate(corner))
    body = moves + (
        "mov.u32 %r80, %r1;\nFILL: setp.ge.u32 %p7, %r80, " + str(size) + "; @%p7 bra FILLED;"
        "shl.b32 %r81, %r80, 2; add.u32 %r82, %r2, %r81; cvt.u64.u32 %rd20, %r81;"
        "add.s64 %rd21, %rd1, %rd20; ld.global.u32 %r83, [%rd21]; st.shared.u32 [%r82], %r83;"
        "add.u32 %r80, %r80, 32; bra FILL;\nFILLED: fence.proxy.async.shared::cta; bar.sync 0;"
        f"@%p1 cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%rd3, {{{names}}}], [%r2];"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;"
    )
    for mode in MODES:
        tensor[...] = 0
        tensor_map = TensorMap(tensor, dims, strides, box)
        result = kernel(body).run("k", 1, 32, [tensor_map, source, source], mode=mode)
        assert errors(result) == []
        expected = np.zeros_like(tensor)
        for place in itertools.product(*(range(b) for b in box[::-1])):
            where = tuple(p + c for p, c in zip(place, corner[::-1], strict=True))
            if all(0 <= w < d for w, d in zip(where, dims[::-1], strict=True)):
                expected[where] = source[np.ravel_multi_index(place, box[::-1])]
        np.testing.assert_array_equal(tensor, expected)


STORE = (
    "mov.b32 %r10, {0}; mov.b32 %r11, {1}; @%p1 cp.async.bulk.tensor.2d.global.shared::cta"
    ".bulk_group [%rd3, {{%r10, %r11}}], [%r2]; cp.async.bulk.commit_group;"
    "cp.async.bulk.wait_group 0;"
)


def test_tensor_store_writes_whole_16_bytes_where_a_row_ends() -> None:
    """As an H200 does: 50 of 56 columns, stored at column 40, change columns 40..51."""
    tensor = np.ones((67, 56), np.float32)
    tensor_map = TensorMap(tensor, (50, 67), (224,), (16, 16))
    kernel(STORE.format(40, 60)).run("k", 1, 32, [tensor_map, tensor, tensor])
    expected = np.ones_like(tensor)
    expected[60:, 40:52] = 0
    np.testing.assert_array_equal(tensor, expected)
    flat = np.ones(2 * 56 - 6, np.float32)  # ends with the last row's 50 columns
    tensor_map = TensorMap(flat, (50, 2), (224,), (16, 16))
    with pytest.raises(EmulatorError, match="beyond memory"):
        kernel(STORE.format(40, 0)).run("k", 1, 32, [tensor_map, flat, flat])


@pytest.mark.parametrize(
    ("corner", "message"), [((-4, 0), "before the tensor"), ((8, -7), "before the tensor"),
                            ((2, 0), "no multiple of 16")],
)  # fmt: skip
def test_tensor_corners_that_an_h200_refuses(corner: tuple[int, int], message: str) -> None:
    tensor = np.zeros((8, 16), np.float32)
    tensor_map = TensorMap(tensor, (16, 8), (64,), (16, 4))
    with pytest.raises(EmulatorError, match=message):
        kernel(STORE.format(*corner)).run("k", 1, 32, [tensor_map, tensor, tensor])


def test_tensor_reduction_and_nan_fill() -> None:
    tensor = np.ones((8, 16), np.float32)
    body = (
        "shl.b32 %r81, %r1, 2; add.u32 %r82, %r2, %r81; cvt.rn.f32.u32 %r83, %r1;"
        "st.shared.u32 [%r82], %r83; fence.proxy.async.shared::cta; bar.sync 0; mov.b32 %r10, 0;"
        "@%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
        "[%rd3, {%r10, %r10}], [%r2]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    )
    tensor_map = TensorMap(tensor, (16, 8), (64,), (16, 4))
    kernel(body).run("k", 1, 64, [tensor_map, tensor, tensor])
    np.testing.assert_array_equal(tensor[:4], np.arange(64).reshape(4, 16) + 1)
    np.testing.assert_array_equal(tensor[4:], 1)
    with pytest.raises(ValueError, match="multiples of 16"):
        TensorMap(tensor, (16, 8), (60,), (16, 4))
    with pytest.raises(ValueError, match="exceeds the swizzle"):
        TensorMap(tensor, (16, 8), (64,), (16, 4), swizzle=32)


def test_linear_bulk_reductions_inc_and_dec() -> None:
    """As atom.inc and atom.dec (PTX ISA cp.reduce.async.bulk)."""
    for operation, want in (("inc", [0, 1, 6, 0]), ("dec", [5, 5, 4, 5])):
        numbers = np.array([9, 0, 5, 6] * 4, np.uint32)
        bounds = np.array([5, 5, 6, 5] * 4, np.uint32)
        body = (
            "shl.b32 %r81, %r1, 2; add.u32 %r82, %r2, %r81; cvt.u64.u32 %rd20, %r81;"
            "add.s64 %rd21, %rd1, %rd20; ld.global.u32 %r83, [%rd21]; st.shared.u32 [%r82], %r83;"
            "fence.proxy.async.shared::cta; bar.sync 0;"
            "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group."
            f"{operation}.u32 [%rd2], [%r2], 64; cp.async.bulk.commit_group;"
            "cp.async.bulk.wait_group 0;"
        )
        kernel(body).run("k", 1, 16, [NO_MAP, bounds, numbers])
        np.testing.assert_array_equal(numbers.reshape(4, 4), [want] * 4)


@pytest.mark.parametrize("mode", MODES)
def test_linear_bulk_copies_there_and_back(mode: str) -> None:
    a = np.random.default_rng(0).integers(0, 256, 2048, dtype=np.uint8)
    out = np.zeros(2048, np.uint8)
    body = INIT + (
        "@!%p1 bra DONE; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 2048;"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 2048, [%r3];"
        + WAIT.format("%r3", 0)
        + "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 2048;"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nDONE:"
    )
    result = kernel(body).run("k", 1, 64, [NO_MAP, a, out], mode=mode)
    assert errors(result) == []
    np.testing.assert_array_equal(out, a)


def test_wrong_transaction_count_hangs_with_a_report() -> None:
    body = INIT + (
        "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 2064;"
        "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 2048, [%r3];"
        + WAIT.format("%r3", 0)
    )
    a = np.zeros(2048, np.uint8)
    with pytest.raises(EmulatorError, match=r"deadlock(.|\n)*waits for parity 0, phase 0 in progress, "
                       r"0 of 1 arrivals missing, 16 transaction bytes missing"):  # fmt: skip
        kernel(body).run("k", 1, 64, [NO_MAP, a, a])


def test_mbarrier_mistakes_are_named() -> None:
    a = np.zeros(4, np.uint8)
    with pytest.raises(EmulatorError, match="no mbarrier was initialised at shared offset 0x8000"):
        kernel("mbarrier.arrive.shared::cta.b64 _, [%r3];").run("k", 1, 32, [NO_MAP, a, a])
    body = INIT + "mbarrier.arrive.shared::cta.b64 _, [%r3];"
    with pytest.raises(EmulatorError, match="more arrivals at an mbarrier than its count"):
        kernel(body).run("k", 1, 64, [NO_MAP, a, a])
    body = "@%p1 mbarrier.init.shared::cta.b64 [%r3], 64; mbarrier.arrive.shared::cta.b64 _, [%r3];"
    found = kernel(body).run("k", 1, 64, [NO_MAP, a, a], mode="check").findings
    assert [f.kind for f in found] == ["race"]  # no barrier between init and the other warp's use


def test_an_mbarrier_that_every_warp_initialises_is_a_race() -> None:
    a = np.zeros(4, np.uint8)
    body = "mbarrier.init.shared::cta.b64 [%r3], 64;"
    found = kernel(body).run("k", 1, 64, [NO_MAP, a, a], mode="check").findings
    assert [f.kind for f in found] == ["race"]


RING = """
    @%p1 mbarrier.init.shared::cta.b64 [%r3], 32; @%p1 mbarrier.init.shared::cta.b64 [%r3+8], 32;
    bar.sync 0; and.b32 %r10, %r1, 31; shl.b32 %r11, %r10, 2; add.u32 %r12, %r2, %r11;
    setp.lt.u32 %p2, %r1, 32; mov.u32 %r20, 0; mov.u32 %r30, 0; @%p2 bra PRODUCE;
CONSUME:
    and.b32 %r21, %r20, 1;
    { .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3], %r21; @!done bra W; }
    ld.shared.u32 %r22, [%r12]; add.u32 %r30, %r30, %r22;
    mbarrier.arrive.shared::cta.b64 _, [%r3+8];
    add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 6; @%p3 bra CONSUME;
    cvt.u64.u32 %rd5, %r11; add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], %r30; bra END;
PRODUCE:
    and.b32 %r21, %r20, 1; xor.b32 %r21, %r21, 1;
    EMPTY
    mad.lo.u32 %r22, %r20, 100, %r10; st.shared.u32 [%r12], %r22;
    mbarrier.arrive.shared::cta.b64 _, [%r3];
    add.u32 %r20, %r20, 1; setp.lt.u32 %p3, %r20, 6; @%p3 bra PRODUCE;
END:
"""
EMPTY = "{ .reg .pred done; W: mbarrier.try_wait.parity.shared::cta.b64 done, [%r3+8], %r21; @!done bra W; }"


@pytest.mark.parametrize("mode", MODES)
def test_mbarrier_ring_of_one_slot(mode: str) -> None:
    out = np.zeros(32, np.uint32)
    result = kernel(RING.replace("EMPTY", EMPTY)).run("k", 3, 64, [NO_MAP, out, out], mode=mode)
    np.testing.assert_array_equal(out, 6 * np.arange(32) + 1500)
    assert [e for e in errors(result) if "global" not in e] == []  # three CTAs write one array


def test_mbarrier_ring_without_the_empty_wait_fails() -> None:
    out = np.zeros(32, np.uint32)
    text = RING.replace("EMPTY", "")
    result = kernel(text).run("k", 1, 64, [NO_MAP, out, out], mode="check")
    assert {f.kind for f in result.findings} & {"race", "deadlock"}  # phases are skipped


TWO_PHASES = """
    @%p1 mbarrier.init.shared::cta.b64 [%r3], 32; bar.sync 0; setp.lt.u32 %p2, %r1, 32; @%p2 bra ARRIVE;
WAITER
    bra END;
ARRIVE:
    mbarrier.arrive.shared::cta.b64 _, [%r3]; bar.sync 0; mbarrier.arrive.shared::cta.b64 _, [%r3];
END:
"""


@pytest.mark.parametrize(
    ("waiter", "kinds"),
    [
        (WAIT.format("%r3", 0) + "bar.sync 0;", []),
        ("bar.sync 0;" + WAIT.format("%r3", 0), ["unwaited phase"]),  # it came in time, by luck
        ("bar.sync 0;", ["unwaited phase"]),
    ],
)
def test_no_phase_passes_unseen(waiter: str, kinds: list[str]) -> None:
    """PTX ISA: a successful wait for each phase comes before the arrivals of the next."""
    a = np.zeros(4, np.uint8)
    text = TWO_PHASES.replace("WAITER", waiter)
    found = kernel(text).run("k", 1, 64, [NO_MAP, a, a], mode="check").findings
    assert [f.kind for f in found] == kinds
    assert all(f.memory == "mbarrier" and f.severity == "error" for f in found)


CLUSTER = """
    mov.u32 %r10, %cluster_ctarank; mov.u32 %r11, %clusterid.x; shl.b32 %r12, %r1, 2;
    add.u32 %r13, %r2, %r12; mad.lo.u32 %r14, %r10, 1000, %r1; st.shared.u32 [%r13], %r14;
    SYNC
    xor.b32 %r15, %r10, 1; mapa.shared::cluster.u32 %r16, %r13, %r15;
    ld.shared::cluster.u32 %r17, [%r16];
    mov.u32 %r18, %ctaid.x; mad.lo.u32 %r19, %r18, 32, %r1; mul.wide.u32 %rd5, %r19, 4;
    add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], %r17;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
SYNC = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"


@pytest.mark.parametrize("mode", MODES)
def test_distributed_shared_memory(mode: str) -> None:
    out = np.zeros((6, 32), np.uint32)
    text = CLUSTER.replace("SYNC", SYNC)
    result = kernel(text).run("k", 6, 32, [NO_MAP, out, out], cluster=2, mode=mode)
    assert errors(result) == []
    rank = np.arange(6) % 2
    np.testing.assert_array_equal(out, (1 - rank)[:, None] * 1000 + np.arange(32))
    if mode == "check":
        racy = kernel(CLUSTER.replace("SYNC", "bar.sync 0;"))
        found = racy.run("k", 6, 32, [NO_MAP, out, out], cluster=2, mode=mode).findings
        assert {f.kind for f in found} == {"race", "early access"}


MEETING = "barrier.cluster.arrive.{0}.aligned; barrier.cluster.wait.aligned;"


@pytest.mark.parametrize(
    ("before", "arrival", "kinds"),
    [
        ("", "release", set()),
        ("fence.mbarrier_init.release.cluster;", "release", set()),
        ("fence.mbarrier_init.release.cluster;", "relaxed", set()),
        ("fence.acq_rel.cluster;", "relaxed", set()),
        ("fence.acq_rel.cta;", "relaxed", {"race"}),
        ("", "relaxed", {"race"}),
    ],
)
def test_a_relaxed_meeting_publishes_what_a_fence_did(
    before: str, arrival: str, kinds: set[str]
) -> None:
    """An mbarrier's initialisation reaches the cluster by the meeting's release, or by the fence."""
    body = (
        f"@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; {before}"
        + MEETING.format(arrival)
        + "mov.u32 %r10, %cluster_ctarank; xor.b32 %r11, %r10, 1;"
        "mapa.shared::cluster.u32 %r13, %r3, %r11;"
        "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13];"
        + MEETING.format("release")
    )
    a = np.zeros(4, np.uint8)
    found = kernel(body).run("k", 2, 32, [NO_MAP, a, a], cluster=2, mode="check").findings
    assert {f.kind for f in found} == kinds


@pytest.mark.parametrize("mode", MODES)
def test_multicast_and_remote_arrival(mode: str) -> None:
    """Rank 0 loads for both CTAs; rank 1 tells rank 0 that it is ready."""
    tensor = np.random.default_rng(0).integers(0, 1 << 16, (16, 64), dtype=np.uint16)
    out = np.zeros((2, 16, 64), np.uint16)
    body = (
        "mov.u32 %r10, %cluster_ctarank; @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;"
        "@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 2; fence.mbarrier_init.release.cluster;"
        + SYNC
        + "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 2048; mov.u32 %r11, 0;"
        "add.u32 %r12, %r3, 8; mapa.shared::cluster.u32 %r13, %r12, %r11;"
        "@%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13];"
        "setp.ne.u32 %p2, %r10, 0; @%p2 bra LOADED; @!%p1 bra LOADED;"
        "{ .reg .pred done; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%r3+8], 0;"
        " @!done bra W; } mov.b16 %h1, 3;"
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%r2], [%rd3, {%r11, %r11}], [%r3], %h1;\nLOADED:"
        + WAIT.format("%r3", 0)
        + "mul.wide.u32 %rd7, %r10, 2048; add.s64 %rd2, %rd2, %rd7;"
        + COPY_OUT.format(128)
        + SYNC
    )
    tensor_map = TensorMap(tensor, (64, 16), (128,), (64, 16))
    result = kernel(body).run("k", 2, 64, [tensor_map, out, out], cluster=(2, 1, 1), mode=mode)
    assert errors(result) == []
    np.testing.assert_array_equal(out, np.stack([tensor, tensor]))


WGMMA = [
    ("f16", np.dtype(np.float16), 16, "f32"), ("f16", np.dtype(np.float16), 16, "f16"),
    ("bf16", np.dtype(ml_dtypes.bfloat16), 16, "f32"), ("tf32", np.dtype(np.float32), 8, "f32"),
    ("e4m3", np.dtype(ml_dtypes.float8_e4m3fn), 32, "f32"), ("s8", np.dtype(np.int8), 32, "s32"),
    ("u8", np.dtype(np.uint8), 32, "s32"),
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "dtype", "k", "result"), WGMMA)
def test_wgmma_without_swizzle(kind: str, dtype: np.dtype, k: int, result: str, mode: str) -> None:
    """K-major core matrices of 8 rows x 16 bytes: LBO between k halves, SBO between row groups."""
    n = 24
    rng = np.random.default_rng(0)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        a, b = (rng.integers(info.min, info.max, (r, k)).astype(dtype) for r in (64, n))
    else:
        a, b = (rng.standard_normal((r, k)).astype(dtype) for r in (64, n))

    def cores(matrix: np.ndarray) -> np.ndarray:
        rows = matrix.view(np.uint8).reshape(matrix.shape[0] // 8, 8, 2, 16)
        return np.ascontiguousarray(rows.transpose(0, 2, 1, 3)).reshape(-1)

    image = np.concatenate([cores(a), cores(b)])
    lbo, sbo, b_start = 128, 256, 64 * 32
    registers = n // (4 if result == "f16" else 2)
    names = ", ".join(f"%r{20 + i}" for i in range(registers))
    extra = {"f16": ", 1, 1, 0, 0", "bf16": ", 1, 1, 0, 0", "s8": "", "u8": ""}.get(kind, ", 1, 1")
    body = (
        f"mov.u32 %r80, %r1;\nFILL: setp.ge.u32 %p7, %r80, {image.size // 16}; @%p7 bra FILLED;"
        "shl.b32 %r81, %r80, 4; add.u32 %r82, %r2, %r81; cvt.u64.u32 %rd20, %r81;"
        "add.s64 %rd21, %rd1, %rd20; ld.global.v4.b32 {%r83, %r84, %r85, %r86}, [%rd21];"
        "st.shared.v4.b32 [%r82], {%r83, %r84, %r85, %r86}; add.u32 %r80, %r80, 128; bra FILL;\n"
        "FILLED: fence.proxy.async.shared::cta; bar.sync 0; setp.eq.u32 %p2, %r1, 9999;"
        f"shr.u32 %r10, %r2, 4; cvt.u64.u32 %rd10, %r10; or.b64 %rd10, %rd10, "
        f"{lbo >> 4 << 16 | sbo >> 4 << 32}; add.s64 %rd11, %rd10, {b_start >> 4};"
        # One warp comes by another way, which stands behind: warps of a group need not keep step.
        "shr.u32 %r88, %r1, 5; setp.eq.u32 %p6, %r88, 2; @%p6 bra DETOUR;\nMEET: "
        "wgmma.fence.sync.aligned;"
        f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{result}.{kind}.{kind} {{{names}}}, %rd10, %rd11, "
        f"%p2{extra}; wgmma.mma_async.sync.aligned.m64n{n}k{k}.{result}.{kind}.{kind} {{{names}}}, "
        f"%rd10, %rd11, 1{extra}; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
        f"mad.wide.u32 %rd5, %r1, {4 * registers}, %rd2;"
    )
    for i in range(registers):
        body += f"st.global.b32 [%rd5+{4 * i}], %r{20 + i};"
    body += "ret;\nDETOUR: mov.u32 %r89, %r88; bra MEET;"
    out = np.zeros((128, registers), np.uint32)
    run = kernel(body).run("k", 1, 128, [NO_MAP, image, out], mode=mode)
    assert errors(run) == []
    values = out.view({"f32": np.float32, "s32": np.int32, "f16": np.float16}[result])
    got = np.zeros((64, n))
    for t, i in itertools.product(range(128), range(n // 2)):
        w, lane = divmod(t, 32)
        got[16 * w + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2] = values[
            t, i
        ]
    left, right = a.astype(np.float64), b.astype(np.float64)
    if kind == "tf32":
        left, right = ((v.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(float)
                       for v in (a, b))  # fmt: skip
    tolerance = {"s32": 0, "f16": 3e-3}.get(result, 1e-5)
    np.testing.assert_allclose(got, 2 * left @ right.T, rtol=tolerance, atol=tolerance * 10)
    if mode == "check":
        racy = kernel(body.replace("fence.proxy.async.shared::cta;", ""))
        found = racy.run("k", 1, 128, [NO_MAP, image, out], mode=mode).findings
        assert {f.kind for f in found} == {"missing proxy fence"}
