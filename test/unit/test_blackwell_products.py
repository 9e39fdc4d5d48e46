"""Dot loops on tensor memory: one CTA and pairs, on the emulator, whole and broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from broken_products import LaunchedProduct, launched
from hopper_kernels import decisions, demanded
from hopper_kernels import gated as two_products
from shares import modes

import tilec
from tilec import language as tl
from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble
from tilec.examples.matmul import PRECISIONS, matmul, reference
from tilec.examples.matmul import draw as draw_inputs
from tilec.examples.running import poisoned
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError

BF16 = ml_dtypes.bfloat16
TARGET = find_target("sm_100a")
ROLES = re.compile(r"\d+ loading warps?, 1 multiplying, \d+ computing, (\d+) stages")


@pytest.fixture(autouse=True)
def on_blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with tensor memory."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Random bf16."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(BF16)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b in float64."""
    return a.astype(np.float64) @ b.astype(np.float64)


def run(kernel: Kernel, arguments: list[Any], expected: np.ndarray, **constants: Any) -> Any:
    """Runs in check mode, by turns in late mode; within 1 % of the largest. Returns what ran."""
    for mode in modes():
        c = poisoned(expected.shape, BF16)
        there = kernel.on(f"emulator:{mode}")
        there(*arguments, c, **constants)
        most = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=1e-2 * most)
    return there.compiled(*arguments, c, **constants)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", sorted(set(PRECISIONS) - {"f32", "f64"}))
@pytest.mark.parametrize("cluster", [1, 2])
def test_every_type_adds_up_in_tensor_memory(name: str, cluster: int) -> None:
    """k-contiguous operands, which the copy engine moves in every type."""
    types = PRECISIONS[name]
    rng = np.random.default_rng(7)
    a, b = draw_inputs(rng, (264, 192), types.inputs), draw_inputs(rng, (72, 192), types.inputs).T
    expected = reference(a, b)
    there = matmul.demanding(cluster=cluster)
    sizes = {"BM": 128, "BN": 64, "PRECISION": types.dot}
    for mode in modes():
        c = poisoned(expected.shape, types.output)
        there.on(f"emulator:{mode}")(a, b, c, **sizes)
        bound = 1e-2 * np.abs(expected).max() if np.dtype(types.output).kind != "i" else 0
        np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=bound)
    kernel = there.on("emulator").compiled(a, b, c, **sizes)
    (chosen,) = decisions(kernel, "dot instruction")
    assert chosen.startswith("tcgen05.m128n64")
    assert bool(decisions(kernel, "CTA pair")) == (cluster == 2)


@pytest.mark.share(2)
@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("order", ["CC", "FC", "CF", "FF"])
def test_rings_come_round_in_ragged_programs(cluster: int, order: str) -> None:
    """Three programs along m: a pair reaches past the grid. More k than the ring is long."""
    a, b = (
        np.asarray(x, order=side)
        for x, side in zip((draw(264, 520), draw(520, 136)), order, strict=True)
    )
    kernel = run(matmul.demanding(cluster=cluster), [a, b], product(a, b), BM=128, BN=128, BK=64)
    (roles,) = decisions(kernel, "warp specialisation")
    assert ROLES.match(roles)
    assert (kernel.cluster == (2, 1, 1)) == (cluster == 2)


@pytest.mark.parametrize("cluster", [1, 2])
def test_without_iterations_the_sum_is_its_start(cluster: int) -> None:
    a, b = draw(136, 0), draw(0, 64)
    run(matmul.demanding(cluster=cluster), [a, b], np.zeros((136, 64)), BM=128, BN=64, BK=64)


@pytest.mark.parametrize("rows", [64, 256])
def test_half_the_lanes_and_two_blocks_of_them(rows: int) -> None:
    a, b = draw(rows + 8, 72), draw(72, 96)
    run(matmul, [a, b], product(a, b), BM=rows, BN=96, BK=64)


def test_rows_that_no_copy_engine_reads() -> None:
    """Odd strides: threads fill the buffers, and one of them multiplies."""
    a, b = draw(150, 99), draw(99, 131)
    run(matmul, [a, b], product(a, b), BM=128, BN=64, BK=64)


@pytest.mark.parametrize("depth", [8, 27])
def test_an_operand_in_tensor_memory_is_no_copys(depth: int) -> None:
    """fp8 along M: the left operand goes from registers to tensor memory, which no copy fills."""
    a, b = (x.astype(ml_dtypes.float8_e4m3fn) for x in (draw(depth, 104).T, draw(depth, 64)))
    run(demanded.demanding(num_warps=4), [a, b], product(a, b), BM=128, BN=64, BK=32)


@pytest.mark.parametrize(("m", "k"), [(99, 130), (105, 2), (131, 67)])
def test_an_odd_operand_in_tensor_memory_is_no_roles(m: int, k: int) -> None:
    """Along M, in rows that no tensor copy brings, beside an operand that one does."""
    a, b = draw(k, m).T, draw(k, 72)
    run(matmul, [a, b], product(a, b), BM=128, BN=64, BK=64)
    kernel = matmul.compiled(a, b, poisoned((m, 72), BF16), BM=128, BN=64, BK=64)
    (lhs, _), (copied,) = decisions(kernel, "dot operand"), decisions(kernel, "asynchronous copy")
    assert "columns of tensor memory" in lhs
    assert copied.startswith("TMA")


@tilec.kernel(grid=(2, 1))
def gated(a: tl.array, b: tl.array, c: tl.array, bias: tl.array, o: tl.array):
    """Two products of one lhs, and a start that is not zero."""
    m, n = tl.program_id(0) * 128, tl.program_id(1) * 64
    row = tl.load(bias, (n,), (64,))
    left = tl.zeros((128, 64), tl.f32) + row.to(tl.f32)[None, :]
    right = tl.zeros((128, 64), tl.f32)
    for k in tl.range(0, a.shape[1], 64):
        x = tl.load(a, (m, k), (128, 64))
        left = tl.dot(x, tl.load(b, (k, n), (64, 64)), left)
        right = tl.dot(x, tl.load(c, (k, n), (64, 64)), right)
    tl.store(o, (m, n), (left * right).to(o.dtype))


def test_two_sums_side_by_side() -> None:
    a, b, c, bias = draw(136, 200), draw(200, 64, seed=1), draw(200, 64, seed=2), draw(64)
    expected = (product(a, b) + bias.astype(np.float64)) * product(a, c)
    for mode in modes():
        o = poisoned(expected.shape, BF16)
        gated.on(f"emulator:{mode}")(a, b, c, bias, o)
        most = np.abs(expected).max()
        np.testing.assert_allclose(o.astype(np.float64), expected, rtol=0, atol=1e-2 * most)


@tilec.kernel(grid=lambda c, BM: (tl.cdiv(c.shape[0], BM),))
def weighted(a: tl.array, b: tl.array, c: tl.array, BM: tl.const = 64, BK: tl.const = 64):
    """c = a @ b times a number that the loop adds up beside its product."""
    m = tl.program_id(0) * BM
    acc, weight = tl.zeros((BM, BM), tl.f32), 0
    for k in tl.range(0, a.shape[1], BK):
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, 0), (BK, BM)), acc)
        weight = weight + k // BK + 1
    tl.store(c, (m, 0), (acc * weight).to(c.dtype))


def test_a_scalar_that_the_loop_adds_up() -> None:
    """The products have a role of their own; who stores still needs the loop's scalars."""
    a, b = draw(72, 200), draw(200, 64)
    kernel = run(weighted, [a, b], product(a, b) * (1 + 2 + 3 + 4))
    (roles,) = decisions(kernel, "warp specialisation")
    assert ROLES.match(roles), roles


def test_ptxas_keeps_all_in_registers() -> None:
    a, b, c = draw(256, 128), draw(128, 512), poisoned((256, 512), BF16)
    for cluster in (1, 2):
        kernel = matmul.demanding(cluster=cluster).on("emulator").compiled(a, b, c)
        assert assemble(kernel.ptx, TARGET).spills == 0


def test_a_pair_has_room_for_more_stages() -> None:
    a, b, c = draw(256, 128), draw(128, 512), poisoned((256, 512), BF16)
    alone, paired = (
        matmul.demanding(cluster=cluster).on("emulator").compiled(a, b, c, BM=128, BN=256, BK=64)
        for cluster in (1, 2)
    )
    (roles,) = decisions(alone, "warp specialisation")
    (found,) = decisions(paired, "CTA pair")
    stages = re.search(r"(\d+) stages", found)
    assert stages
    assert int(stages[1]) > int(ROLES.match(roles)[1])


@pytest.mark.parametrize("cluster", [(1, 2), (2, 2), (4, 1), (4, 2)])
def test_larger_clusters_multicast(cluster: tuple[int, int]) -> None:
    """What CTAs of a row or a column both read, each loads a part of; pairs multiply together."""
    a, b = draw(520, 200), draw(200, 136)  # 5 x 3 programs: past the grid along both
    kernel = run(matmul.demanding(cluster=cluster), [a, b], product(a, b), BM=128, BN=64, BK=32)
    assert kernel.cluster == (*cluster, 1)
    assert any("multicast" in what for what in decisions(kernel, "cluster copy"))
    assert bool(decisions(kernel, "CTA pair")) == (cluster[0] > 1)
    assert (".multicast::cluster.cta_group::2" in kernel.ptx) == (cluster[0] > 1)
    assert assemble(kernel.ptx, TARGET).spills == 0


def test_tiles_that_fall_into_no_parts() -> None:
    a, b, c = draw(256, 128), draw(128, 512), poisoned((256, 512), BF16)
    there = matmul.demanding(cluster=(8, 1)).on("emulator")
    with pytest.raises(CompileError, match=r"cluster=\(8, 1, 1\) was asked for, but no copy"):
        there.compiled(a, b, c, BM=64, BN=64, BK=32)


# Broken ------------------------------------------------------------------------------------------


def _one_cta_announced(ptx: str) -> str:
    return re.sub(r"(expect_tx\S* _, \[[^]]*\], )49152;", r"\g<1>24576;", ptx)


def _own_barriers(ptx: str) -> str:
    """Commits tell the even CTA alone."""
    return re.sub(r"(mov\.b16\s+%rs\d+, )3;", r"\g<1>1;", ptx)


def _one_reader(ptx: str) -> str:
    """The even CTA's own warps are enough to take a sum."""
    return re.sub(r"(mbarrier\.init\S* \[[^]]*\], )8;", r"\g<1>4;", ptx)


def _never_waits(ptx: str) -> str:
    """Loads of the sum are not waited for."""
    return re.sub(r"tcgen05\.wait::ld\.sync\.aligned;", "", ptx)


BREAKS: dict[Callable[[str], str], str] = {
    _one_cta_announced: "race on shared memory",
    _own_barriers: "deadlock",
    _one_reader: "more arrivals at an mbarrier than its count",
    _never_waits: "race on registers",
}


@pytest.fixture(scope="module")
def pair() -> LaunchedProduct:
    """A kernel of a pair whose ring comes round."""
    kernel = demanded.demanding(cluster=2, num_warps=4)
    sizes = {"BM": 128, "BN": 128, "BK": 64, "STAGES": 2}
    return launched(kernel, TARGET.name, draw(256, 512), draw(512, 128), (2, 1, 1), **sizes)


def test_the_pair_is_right(pair: LaunchedProduct) -> None:
    pair.check()


@pytest.mark.parametrize("broken", BREAKS, ids=lambda f: f.__name__.strip("_"))
def test_what_is_broken_is_found(pair: LaunchedProduct, broken: Callable[[str], str]) -> None:
    pair.assert_found(broken, BREAKS[broken])


def test_two_products_of_a_loop_share_one_copy_of_the_lhs() -> None:
    a, b, g = draw(256, 200), draw(200, 120), draw(200, 120, seed=1)
    expected = product(a, b) * product(a, g)
    tiles = {"BM": 128, "BN": 64, "BK": 64}
    compiled = run(two_products.demanding(cluster=2), [a, b, g], expected, **tiles)
    assert [found.partition(",")[0] for found in decisions(compiled, "CTA pair")] == [
        "tcgen05.pair.m256n64k16.f32.bf16.bf16"
    ]
