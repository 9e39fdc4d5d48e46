"""Clusters of CTAs that multicast what they load alike: on the emulator, whole and broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from broken_products import LaunchedProduct, launched, output
from hopper_kernels import batched, decisions, demanded
from shares import modes

from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble
from tilec.dialects.gpu_tile import NextProgramOp, Op, RingHandover, TmaPairLoadOp
from tilec.examples import attention as attention_example
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops.attention_kernel import attention
from tilec.runtime.emulator import EmulatorError
from tilec.runtime.emulator_device import EmulatorDevice

BF16 = ml_dtypes.bfloat16
TARGET = find_target("sm_90a")
OWN, HALF = "each CTA its own", "1/2 a CTA, multicast"


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with clusters."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Random bf16."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(BF16)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b in float64."""
    return a.astype(np.float64) @ b.astype(np.float64)


def shared(kernel: CompiledKernel) -> list[str]:
    """What became of each copy, without the reason."""
    return [chosen.split(" (")[0] for chosen in decisions(kernel, "cluster copy")]


def run(
    kernel: Kernel, arguments: list[Any], expected: np.ndarray, **constants: Any
) -> CompiledKernel:  # fmt: skip
    """Runs in check mode, by turns in late mode; within 1 % of the largest. Returns what ran."""
    for mode in modes():
        c = poisoned(expected.shape, BF16)
        there = kernel.on(f"emulator:{mode}")
        there(*arguments, c, **constants)
        most = np.abs(expected).max()
        np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=1e-2 * most)
    return there.compiled(*arguments, c, **constants)


CLUSTERS = {
    2: [OWN, HALF],
    (1, 2): [HALF, OWN],
    (2, 2): [HALF, HALF],
    (4, 1): [OWN, "1/4 a CTA, multicast"],
}


@pytest.mark.parametrize(
    ("cluster", "order"), [(2, "CC"), (2, "CF"), ((1, 2), "FC"), ((2, 2), "CF"), ((4, 1), "CC")]
)
def test_neighbours_share_an_operand(cluster: Any, order: str) -> None:
    """3 x 2 programs, so that clusters reach past the grid, and the ring comes round in each."""
    a, b = (
        np.asarray(x, order=side)
        for x, side in zip((draw(136, 520), draw(520, 192)), order, strict=True)
    )
    kernel = run(demanded.demanding(cluster=cluster), [a, b], product(a, b), BN=128, STAGES=3)
    assert shared(kernel) == CLUSTERS[cluster]
    shape = cluster if isinstance(cluster, tuple) else (cluster, 1)
    assert kernel.cluster == (*shape, 1)


@pytest.mark.parametrize("cluster", [2, (1, 2), (2, 2)])
def test_clusters_that_do_not_stay(cluster: Any) -> None:
    """As many as the grid needs, past its end, too, in one dimension."""
    a, b = draw(136, 200), draw(200, 192)
    once = demanded.demanding(cluster=cluster, persistent=False)
    kernel = run(once, [a, b], product(a, b), BN=128, STAGES=3)
    assert shared(kernel) == CLUSTERS[cluster]
    assert kernel.dynamic
    assert kernel.persistent
    assert kernel.launched((3, 2, 1), 0) == (6 if cluster == (1, 2) else 8, 1, 1)


@pytest.mark.parametrize("depth", [0, 8, 200, 264])
def test_rings_that_hardly_turn(depth: int) -> None:
    """No turn, one, as many as slots, one more: the load role's last wait is for what has come."""
    a, b = draw(128, depth), draw(depth, 64)
    kernel = run(demanded.demanding(cluster=2), [a, b], product(a, b), STAGES=4)
    assert decisions(kernel, "cluster's end") == [
        "each CTA by itself (what reaches a CTA is awaited there)"
    ]


def test_parts_are_of_any_number_of_rows() -> None:
    """48 of 96 columns: a part begins where the swizzle repeats, at no power of two."""
    a, b = draw(136, 200), np.asarray(draw(200, 192), order="F")
    once = demanded.demanding(cluster=2, persistent=False)
    assert shared(run(once, [a, b], product(a, b), BN=96, STAGES=3)) == [OWN, HALF]


@pytest.mark.parametrize("cluster", [2, (1, 1, 2)])
def test_batches(cluster: Any) -> None:
    """Along the batch nothing is shared: each program has operands of its own."""
    a, b = draw(3, 72, 128), draw(3, 128, 64)
    kernel = batched.demanding(cluster=cluster)
    if cluster == 2:
        run(kernel, [a, b], product(a, b))
        return
    with pytest.raises(CompileError, match=r"cluster=\(1, 1, 2\) was asked for, but no copy is"):
        kernel.on("emulator").compiled(a, b, poisoned((3, 72, 64), BF16))


def test_blocks_of_queries_share_keys_and_values() -> None:
    """Neighbours of one head read the same keys and values, as often as each other."""
    q, k, v = (draw(1, 2, 200, 64, seed=seed) for seed in range(3))
    scale = 0.125
    expected = attention_example.reference(q, k, v, False, scale)
    there = attention.demanding(cluster=2)
    for mode in modes():
        o = poisoned(q.shape, BF16)
        there.on(f"emulator:{mode}")(q, k, v, o, scale, D=64, BM=64, BN=64, CAUSAL=False)
        np.testing.assert_allclose(o.astype(np.float64), expected, rtol=0, atol=3e-2)
    kernel = there.on("emulator").compiled(q, k, v, o, scale, D=64, BM=64, BN=64, CAUSAL=False)
    assert shared(kernel) == [OWN, *[HALF] * 4]  # queries; keys and values, with and without a mask


def test_rows_that_see_other_keys_share_none() -> None:
    """How far a causal block looks depends on where it is, so its neighbour's slots come round
    at other times."""
    q = draw(1, 1, 128, 64)
    with pytest.raises(CompileError, match="no copy is shared") as caught:
        attention.demanding(cluster=2).on("emulator").compiled(
            q, q, q, q.copy(), 0.125, D=64, BM=64, BN=64, CAUSAL=True
        )
    assert any("depends on where in the cluster a CTA is" in note for note in caught.value.notes)


def test_ptxas_keeps_the_products_asynchronous() -> None:
    a, b, c = draw(256, 128), draw(128, 512), poisoned((256, 512), BF16)
    sizes = {"BM": 128, "BN": 256, "BK": 64}
    kernel = demanded.demanding(cluster=2, num_warps=8).on("emulator").compiled(a, b, c, **sizes)
    found = assemble(kernel.ptx, TARGET)
    assert not [message for message in found.messages if "C75" in message]
    assert found.spills == 0
    assert ".reqnctapercluster 2, 1, 1" in kernel.ptx


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        (0, "or one for each axis of the grid, found the constant 0"),
        ((1, 1, 1, 1), "cluster must be a number of programs, or one for each axis"),
        (True, "cluster must be a number of programs, or one for each axis"),
        (3, "a cluster has 1, 2, 4 or 8 CTAs, found 3 x 1 x 1"),
        ((4, 4), "a cluster has 1, 2, 4 or 8 CTAs, found 4 x 4 x 1"),
    ],
)
def test_what_is_no_cluster(demand: Any, message: str) -> None:
    x = draw(64, 64)
    with pytest.raises(CompileError, match=re.escape(message)):
        demanded.demanding(cluster=demand).on("emulator").compiled(x, x, x.copy())


def test_what_names_other_ctas_reaches_them() -> None:
    """The ops whose rings decide whether a cluster meets at its end."""
    operands = {op: {operand.name for operand in op.OPERANDS} for op in Op.ALL}
    named = {op for op, names in operands.items() if names >= {"barrier", "mask"}}
    assert {op for op in Op.ALL if op.REACHES} == named | {NextProgramOp, TmaPairLoadOp}
    handed = {op for op, names in operands.items() if names >= {"ring", "mask"}}
    assert handed == {op for op in Op.ALL if issubclass(op, RingHandover)}


# Broken ------------------------------------------------------------------------------------------

_REMOTE = re.compile(r"mapa\.shared::cluster\.u32 remote, (%\w+), (%\w+);")
_BEGIN = "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"
_FREE = re.compile(r"(mbarrier\.try_wait\.parity\.relaxed\.cluster\S* complete, \[%\w+\], )(%\w+);")
_LATE = "CTAs 0, 1 of the cluster may have ended when this arrives"


def _own_only(ptx: str) -> str:
    """Everybody gives slots back to the own CTA alone."""
    own = "{ .reg .b32 own; mov.u32 own, %cluster_ctarank; "
    return _REMOTE.sub(own + r"mapa.shared::cluster.u32 remote, \1, own; }", ptx)


def _first_meeting(ptx: str) -> str:
    return ptx.replace(_BEGIN[0], "", 1).replace(_BEGIN[1], "", 1)


def _cta_alone(ptx: str) -> str:
    """Where the barriers are made only the CTA meets."""
    return ptx.replace(_BEGIN[0], "", 1).replace(_BEGIN[1], "bar.sync 0;", 1)


def _unfenced(ptx: str) -> str:
    """A relaxed meeting alone does not show the others that the barriers are made."""
    return ptx.replace("fence.mbarrier_init.release.cluster;", "")


def _last_wait(ptx: str, becomes: str) -> str:
    """The load role's wait at its end, for a slot to be given back, becomes something else."""
    *_, last = _FREE.finditer(ptx)
    return ptx[: last.start()] + last.expand(becomes) + ptx[last.end() :]


def _ends_at_once(ptx: str) -> str:
    return _last_wait(ptx, "setp.eq.u32 complete, 0, 0;")


def _awaits_the_phase_before(ptx: str) -> str:
    return _last_wait(ptx, r"{ .reg .b32 other; xor.b32 other, \2, 1; \1other; }")


def _awaits_one_slot_less(ptx: str) -> str:
    *_, last = _FREE.finditer(ptx)
    behind = re.sub(r"(setp\.lt\.s32\s+%p\d+, %r\d+, )2;", r"\g<1>1;", ptx[last.end() :], count=1)
    return ptx[: last.end()] + behind


def _relaxed_end(ptx: str) -> str:
    """What an H200 stopped at: arrivals hit the next launch."""
    before, after = _ends_at_once(ptx).rsplit("ret;", 1)
    return f"{before}{' '.join(_BEGIN)} ret;{after}"


def _one_reader(ptx: str) -> str:
    return re.sub(r"(mbarrier\.init\S* \[[^]]*\], )2;", r"\g<1>1;", ptx)


def _half_the_bytes(ptx: str) -> str:
    return re.sub(r"(expect_tx\S* _, \[[^]]*\], )16384;", r"\g<1>12288;", ptx)


def _to_itself(ptx: str) -> str:
    """Each CTA multicasts to the first one."""
    return re.sub(r"(mov\.b16\s+%rs\d+, )3;", r"\g<1>1;", ptx)


BREAKS: dict[Callable[[str], str], str] = {
    _own_only: "race on shared memory",
    _first_meeting: "race on shared memory",
    _cta_alone: "race on shared memory",
    _unfenced: "race on shared memory",
    _ends_at_once: _LATE,
    _awaits_the_phase_before: _LATE,
    _awaits_one_slot_less: _LATE,
    _relaxed_end: _LATE,
    _one_reader: "more arrivals at an mbarrier than its count",
    _half_the_bytes: "race on shared memory",
    _to_itself: "deadlock",
}


@pytest.fixture(scope="module")
def pair() -> LaunchedProduct:
    """Two CTAs that share an operand: the ring comes round."""
    kernel = demanded.demanding(cluster=2)
    return launched(kernel, TARGET.name, draw(128, 512), draw(512, 64), (2, 1, 1), STAGES=2)


def test_the_pair_is_right(pair: LaunchedProduct) -> None:
    pair.check()


@pytest.mark.parametrize("broken", BREAKS, ids=lambda f: f.__name__.strip("_"))
def test_what_is_broken_is_found(pair: LaunchedProduct, broken: Callable[[str], str]) -> None:
    pair.assert_found(broken, BREAKS[broken])


def test_late_mode_lets_the_last_arrivals_hit_a_cta_that_has_ended(pair: LaunchedProduct) -> None:
    device, c = EmulatorDevice("late"), output(pair.a, pair.b)
    arguments = [pair.a, pair.b, c]
    device.launch(device.load(pair.kernel), arguments, pair.programs)
    broken = replace(pair.kernel, ptx=_relaxed_end(pair.kernel.ptx))
    with pytest.raises(EmulatorError, match="of the cluster is accessed, which has ended"):
        device.launch(device.load(broken), arguments, pair.programs)
