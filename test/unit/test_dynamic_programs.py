"""CTAs that ask for programs (cluster launch control): on the emulator, whole and broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from broken_products import LaunchedProduct, launched
from hopper_kernels import batched, decisions, demanded
from shares import MODES, modes

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.compile.assembler import assemble
from tilec.examples import attention as attention_example
from tilec.examples.matmul import matmul
from tilec.examples.running import poisoned
from tilec.executable.kernel import MOST_PROGRAMS, CompiledKernel
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops.attention_kernel import attention

BF16 = ml_dtypes.bfloat16
TARGET = find_target("sm_100a")
TILES = {"BM": 128, "BN": 64, "BK": 32}


@pytest.fixture(autouse=True)
def on_blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything here is compiled for the target with cluster launch control."""
    monkeypatch.setenv("TILEC_TARGET", TARGET.name)


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Random bf16."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(BF16)


def dynamic(kernel: Kernel) -> Kernel:
    """The same kernel, whose CTAs ask for programs."""
    return kernel.demanding(persistent="dynamic")


def multiply(kernel: Kernel, a: np.ndarray, b: np.ndarray, **constants: Any) -> CompiledKernel:
    """Runs a product in `modes()`, against float64; returns what ran."""
    expected = a.astype(np.float64) @ b.astype(np.float64)
    most = np.abs(expected).max(initial=1)
    for mode in modes():
        c = poisoned((*expected.shape,), BF16)
        there = dynamic(kernel).on(f"emulator:{mode}")
        there(a, b, c, **constants)
        np.testing.assert_allclose(c.astype(np.float64), expected, rtol=0, atol=1e-2 * most)
    return there.compiled(a, b, c, **constants)


# Products ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (1024, 192, 96),  # 24 programs, of which the emulator starts 6 side by side
        (520, 72, 40),  # 10, ragged
        (128, 64, 64),  # one
        (0, 64, 64),  # none
        (640, 128, 0),  # loops over K that never run
    ],
)
def test_products(m: int, n: int, k: int) -> None:
    compiled = multiply(matmul, draw(m, k), draw(k, n), **TILES)
    assert compiled.persistent
    assert compiled.dynamic
    (roles,) = decisions(compiled, "warp specialisation")
    assert roles.startswith("1 loading warp, 1 multiplying, 4 computing")
    (scheduler,) = decisions(compiled, "program scheduler")
    assert scheduler.startswith("dynamic (the author's demand")


@pytest.mark.parametrize(
    ("cluster", "m", "n"),
    [
        ((2, 1), 1152, 192),  # 15 clusters, of which the emulator starts 3 side by side
        ((1, 2), 520, 136),  # ragged along both
        ((2, 2), 640, 200),
        ((2, 1), 128, 64),  # one, half of which is outside the grid
        ((2, 1), 0, 64),  # none
    ],
)
def test_clusters_ask_together(cluster: tuple[int, int], m: int, n: int) -> None:
    kernel = matmul.demanding(cluster=cluster)
    compiled = multiply(kernel, draw(m, 96), draw(96, n), **TILES)
    assert compiled.dynamic
    assert compiled.cluster == (*cluster, 1)
    assert bool(decisions(compiled, "CTA pair")) == (cluster[0] == 2)


def test_batches() -> None:
    """A grid of three dimensions is launched in one."""
    a, b = draw(5, 128, 64), draw(5, 64, 96)
    compiled = multiply(batched, a, b, BM=128, BN=64, BK=32)
    assert compiled.launched((2, 3, 5), 1) == (30, 1, 1)


def test_without_roles() -> None:
    """All warps read answers, and one thread of them asks."""
    compiled = multiply(demanded, draw(512, 64), draw(64, 128), **TILES, WARP_SPECIALIZE=False)
    assert decisions(compiled, "warp specialisation") == []


def test_attention() -> None:
    """Loops whose length differs from program to program, and from CTA to CTA of a cluster."""
    q, k, v = (draw(1, 3, 136, 32, seed=seed) for seed in range(3))
    expected = attention_example.reference(q, k, v, causal=True, scale=0.125)
    for mode in modes():
        o = poisoned(q.shape, BF16)
        there = dynamic(attention).on(f"emulator:{mode}")
        there(q, k, v, o, 0.125, D=32, CAUSAL=True, BM=64, BN=32)
        np.testing.assert_allclose(o.astype(np.float64), expected, rtol=0, atol=2e-2)


# What is not a product ---------------------------------------------------------------------------


@tilec.kernel(persistent="dynamic")
def count(counts: tl.array):
    """counts[i, j, l] += 1 by program (i, j, l)."""
    at = (tl.program_id(0), tl.program_id(1), tl.program_id(2))
    tl.atomic_add(counts, at, tl.full((1, 1, 1), 1, tl.i32))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("grid", [(1,), (2,), (7, 5, 3), (1, 1, 41)])
def test_each_program_runs_once(grid: tuple[int, ...], mode: str) -> None:
    sizes = (*grid, 1, 1)[:3]
    counts = np.zeros(sizes, np.int32)
    count.on(f"emulator:{mode}")[grid](counts)
    np.testing.assert_array_equal(counts, 1)


@tilec.kernel(persistent="dynamic", num_warps=2)
def held_rows(a: tl.array, b: tl.array, c: tl.array):
    """c = a @ b by two warps (no tensor copies); a program keeps its rows of a."""
    m = tl.program_id(0) * 64
    rows = tl.load(a, (m, 0), (64, 64))
    acc = tl.zeros((64, 32), tl.f32)
    for n in tl.range(0, b.shape[1], 32):
        acc = tl.dot(rows, tl.load(b, (0, n), (64, 32)), acc)
    tl.store(c, (m, 0), acc)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_copied_for_a_program_nobody_knows_yet(mode: str) -> None:
    a, b, c = draw(320, 64), draw(64, 32), poisoned((320, 32), np.float32)
    held_rows.on(f"emulator:{mode}")[(5,)](a, b, c)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-4)


# Demands -----------------------------------------------------------------------------------------


def compiled_for(target: str, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> CompiledKernel:
    """The kernel for a product of one tile."""
    monkeypatch.setenv("TILEC_TARGET", target)
    a, b, c = draw(128, 64), draw(64, 64), poisoned((128, 64), BF16)
    return kernel.on("emulator").compiled(a, b, c, **TILES)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_target_without_it(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompileError, match=f'"dynamic" was asked for, but {target} has no cluster'):
        compiled_for(target, dynamic(matmul), monkeypatch)


@pytest.mark.parametrize("wrong", ["static", 1, ("dynamic",)])
def test_a_demand_nobody_knows(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompileError, match='persistent must be True, False or "dynamic", found'):
        compiled_for(TARGET.name, matmul.demanding(persistent=wrong), monkeypatch)


def test_static_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiled_for(TARGET.name, matmul, monkeypatch)
    assert not compiled.dynamic
    (scheduler,) = decisions(compiled, "program scheduler")
    assert scheduler.startswith('static (nobody has measured persistent="dynamic"')
    assert decisions(compiled_for("sm_90a", matmul, monkeypatch), "program scheduler") == []


def test_more_programs_than_a_launch_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compiled_for(TARGET.name, dynamic(matmul), monkeypatch)
    assert compiled.launched((MOST_PROGRAMS, 1, 1), 1) == (MOST_PROGRAMS, 1, 1)
    with pytest.raises(ValueError, match="has more than 2147483647 programs"):
        compiled.launched((1 << 16, 1 << 15, 1), 1)


def test_ptxas_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compiled_for(TARGET.name, dynamic(matmul), monkeypatch)
    assert assemble(kernel.ptx, TARGET).spills == 0


# Broken ------------------------------------------------------------------------------------------

_WAIT = re.compile(r"\{\s*\.reg \.pred complete;\s*again:[^}]*\}")
_ANSWER = re.compile(r"\{\s*\.reg \.b128 answer;[^@]*@there[^}]*\}, answer;[^}]*\}")
_ARRIVE = "mbarrier.arrive.shared::cta.b64 _"
_FENCE = "fence.proxy.async.shared::cta;\n\t}"


def _wait_before(ptx: str, place: int) -> str:
    """The last wait in front of `place` goes."""
    *_, last = _WAIT.finditer(ptx, 0, place)
    return ptx[: last.start()] + ptx[last.end() :]


def _reader(ptx: str, number: int) -> re.Match[str]:
    return list(_ANSWER.finditer(ptx))[number]


def _not_awaited(number: int) -> Callable[[str], str]:
    return lambda ptx: _wait_before(ptx, _reader(ptx, number).start())


def _not_given_back(number: int) -> Callable[[str], str]:
    def broken(ptx: str) -> str:
        at = ptx.index(_ARRIVE, _reader(ptx, number).end())
        return ptx[:at] + "// " + ptx[at:]

    return broken


def _not_fenced(number: int) -> Callable[[str], str]:
    def broken(ptx: str) -> str:
        at = ptx.index(_FENCE, _reader(ptx, number).start())
        return ptx[:at] + "}" + ptx[at + len(_FENCE) :]

    return broken


def _read_late(number: int) -> Callable[[str], str]:
    """The answer is read again behind the arrival."""

    def broken(ptx: str) -> str:
        read = _reader(ptx, number)
        end = ptx.index("\n", ptx.index(_ARRIVE, read.end()))
        return ptx[:end] + "\n" + read[0] + ptx[end:]

    return broken


def _asked_unguarded(ptx: str) -> str:
    """Whoever asks does not wait until all have read."""
    return _wait_before(ptx, ptx.index("clusterlaunchcontrol.try_cancel"))


def _no_bytes_expected(ptx: str) -> str:
    return re.sub(r"(mbarrier\.arrive)\.expect_tx(\S* _, \[[^]]*\]), 16;", r"\1\2;", ptx)


def _answer_ignored(ptx: str) -> str:
    """One role ends behind its first program."""
    read = _reader(ptx, 0)
    text = read[0].replace("1, 0, there", "0, 0, there")
    return ptx[: read.start()] + text + ptx[read.end() :]


ROLES = ("load", "multiply", "compute")
BREAKS: dict[str, tuple[Callable[[str], str], str]] = {
    "asked unguarded": (_asked_unguarded, "race on shared memory|deadlock"),
    "no bytes expected": (_no_bytes_expected, "race on shared memory|more bytes|deadlock"),
    "answer ignored": (_answer_ignored, "deadlock"),
}
for _number, _name in enumerate(ROLES):
    BREAKS[f"{_name}: not awaited"] = _not_awaited(_number), "race on shared memory|uninitialised"
    BREAKS[f"{_name}: not given back"] = _not_given_back(_number), "deadlock"
    BREAKS[f"{_name}: not fenced"] = _not_fenced(_number), "missing proxy fence"
    if _number:  # who asks knows what it has read
        BREAKS[f"{_name}: read late"] = _read_late(_number), "race on shared memory"


@pytest.fixture(scope="module")
def asking() -> LaunchedProduct:
    """A product whose CTAs ask often enough for the ring of answers to come round."""
    return asks(matmul)


def asks(kernel: Kernel) -> LaunchedProduct:
    a, b = draw(2048, 32), draw(32, 128)
    return launched(dynamic(kernel), TARGET.name, a, b, (16, 2, 1), **TILES)


def test_the_asking_kernel_is_right(asking: LaunchedProduct) -> None:
    assert len(_ANSWER.findall(asking.kernel.ptx)) == len(ROLES)
    asking.check()


@pytest.mark.parametrize("name", BREAKS)
def test_what_is_broken_is_found(asking: LaunchedProduct, name: str) -> None:
    asking.assert_found(*BREAKS[name])


# Broken clusters ---------------------------------------------------------------------------------


def _asks_for_itself(ptx: str) -> str:
    return ptx.replace(".multicast::cluster::all", "")


def _reads_unfenced(ptx: str) -> str:
    return _not_fenced(0)(ptx)


def _counts_one_cta(ptx: str) -> str:
    """The load and the multiply role, and four warps of each of two CTAs: 2 + 1 + 8."""
    return re.sub(r"(mbarrier\.init\S* \[[^]]*\], )11;", r"\g<1>6;", ptx)


def _second_does_not_expect(ptx: str) -> str:
    """Bytes arrive that its barrier knows nothing of."""
    return re.sub(r"(mbarrier\.arrive)\.expect_tx(\S* _, \[[^]]*\]), 16;", r"\1\2;", ptx)


CLUSTER_BREAKS: dict[Callable[[str], str], str] = {
    _asks_for_itself: "deadlock",
    _reads_unfenced: "missing proxy fence",
    _counts_one_cta: "more arrivals|race on shared memory|deadlock",
    _second_does_not_expect: "race on shared memory|more bytes|deadlock",
    _asked_unguarded: "race on shared memory|deadlock",
}


@pytest.fixture(scope="module")
def pair_asking() -> LaunchedProduct:
    """The same product by pairs."""
    return asks(matmul.demanding(cluster=2))


def test_the_asking_pair_is_right(pair_asking: LaunchedProduct) -> None:
    pair_asking.check()
    assert assemble(pair_asking.kernel.ptx, TARGET).spills == 0


@pytest.mark.parametrize("broken", CLUSTER_BREAKS, ids=lambda f: f.__name__.strip("_"))
def test_a_broken_pair_is_found(pair_asking: LaunchedProduct, broken: Callable[[str], str]) -> None:
    pair_asking.assert_found(broken, CLUSTER_BREAKS[broken])
