"""Control flow is no wall: products, attention and grouped products in many spellings keep
asynchronous copies, rings and roles, and are right where rings come round and CTAs stay for several
programs.

`TABLE` says what each spelling gets. Its kernels: `guarded_products.py`, `guarded_kernels.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import guarded_kernels as others
import guarded_products as products
import ml_dtypes
import numpy as np
import pytest
from hopper_kernels import decisions
from shares import modes
from target_names import MAIN

import tilec
import tilec.language as tl
from tilec.call.jit import Kernel
from tilec.examples.running import poisoned
from tilec.executable.kernel import CompiledKernel
from tilec.messages.diagnostics import CompileError

BF16 = ml_dtypes.bfloat16
USUAL = ("cp.async 2", "TMA 6 persistent overlapped", "TMA 6 persistent multiplying")
GUARDED = ("cp.async 2", "TMA 6 overlapped", "TMA 7 multiplying")
"""Programs of which a guard leaves some without work are not persistent."""
OWN = ("cp.async 2", "TMA 5 overlapped", "TMA 7 multiplying")
"""Nothing but copies is left of the shared memory where stores are no tensor stores."""
SKIPPED = ("cp.async 2", "TMA 6 persistent overlapped", "TMA 6 persistent")
ATTENTION = ("cp.async 4", "TMA 9 persistent overlapped", "TMA 9 persistent overlapped")
GUARDED_ATTENTION = ("cp.async 4", "TMA 12 overlapped", "TMA 12 overlapped")
GROUPED = ("cp.async 2", "TMA 7 overlapped", "TMA 7 multiplying")
TABLE = {
    "straight": USUAL,
    "guard": GUARDED,
    "early_return": GUARDED,
    "two_guards": GUARDED,
    "guarded_loop": ("cp.async 2", "TMA 6 overlapped", "TMA 6 multiplying"),
    "zero_trips": GUARDED,
    "bounds_from_if": GUARDED,
    "address_from_if": USUAL,
    "counting_while": USUAL,
    "searching_while": USUAL,
    "jumping_while": ("cp.async", "TMA 6 persistent overlapped", "TMA 6 persistent multiplying"),
    "breaking_loop": USUAL,
    "skipped_blocks": SKIPPED,
    "continuing_loop": SKIPPED,
    "skipped_product": ("cp.async 2", "TMA 6 persistent", "TMA 6 persistent"),
    "either_loop": USUAL,
    "own_programs": OWN,
    "own_programs_while": OWN,
    "attention_straight": ATTENTION,
    "attention_guard": GUARDED_ATTENTION,
    "attention_return": GUARDED_ATTENTION,
    "attention_while": ATTENTION,
    "attention_skips": ("cp.async 4", "TMA 9 persistent", "TMA 9 persistent"),
    "attention_breaks": ("cp.async 4", "TMA 5 persistent overlapped", ATTENTION[2]),
    "grouped_zero_trips": GROUPED,
    "grouped_guard": GROUPED,
    "grouped_return": GROUPED,
    "grouped_searching": GROUPED,
}
"""By spelling, for each of `MAIN`: what copies, into how many slots; "overlapped": products stay in
flight, or are rotated; "multiplying": they have a role of their own."""
KERNELS = {k.name: k for k in (*products.PRODUCTS, *others.ATTENTION, *others.GROUPED)}
MATRIX = "bf16[?,?:8;?:8,1]"
CUBE = "bf16[?,?,?:8;?:8,?:8,1]"


def shown(kernel: CompiledKernel) -> str:
    """What a kernel got, as `TABLE` says it."""
    copies = {d.split(" (")[0].split(" of ")[0] for d in decisions(kernel, "asynchronous copy")}
    roles = [d.split(" stages")[0] for d in decisions(kernel, "warp specialisation")]
    loops = [d.split(" stages")[0] for d in decisions(kernel, "pipeline") if " stages" in d]
    groups = ("one group in flight", "rotated")
    there = {
        "persistent": any(d.startswith("persistent") for d in decisions(kernel, "programs")),
        "overlapped": any(d.startswith(groups) for d in decisions(kernel, "matrix instructions")),
        "multiplying": any("1 multiplying" in role for role in roles),
    }
    ahead = [role.rsplit(" ", 1)[1] for role in roles] or loops[:1]
    return " ".join([*copies, *ahead, *(word for word, holds in there.items() if holds)])


@pytest.mark.share(9)
@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("name", TABLE)
def test_the_table(name: str, target: str) -> None:
    """Tiles of which every target holds two stages, and only sm_100a many."""
    constants = {}
    if name.startswith("attention"):
        specs = [*(f"{array}:{CUBE}" for array in "qkvo"), "keep:i32[?]", "rows:i32"]
        constants = {"BM": 64, "BN": 64, "D": 64}
    elif name.startswith("grouped"):
        specs = [f"a:{MATRIX}", f"b:{CUBE}", f"c:{MATRIX}", "ends:i32[?]"]
    else:
        specs = [*(f"{array}:{MATRIX}" for array in "abc"), "keep:i32[?]", "rows:i32"]
    kernel = KERNELS[name].compile(specs, constants, target=target)
    assert shown(kernel) == TABLE[name][MAIN.index(target)]


# -- Results --------------------------------------------------------------------------------------

BLOCKS, TILES, LIVE = 9, 9, 5
"""Blocks of k, tiles of rows, and those of `rows`: rings of 4 slots come round twice, and each of
the emulator's 3 persistent CTAs takes three programs."""
Visit = Callable[[int, np.ndarray], tuple[int, list[int]] | None]
"""By the number of a tile of rows: which rows of a, and which blocks of k, it adds up; None where
its program does nothing."""


def _all(tile: int, keep: np.ndarray) -> tuple[int, list[int]]:
    return tile, list(range(BLOCKS))


def _live(tile: int, keep: np.ndarray) -> tuple[int, list[int]] | None:
    return _all(tile, keep) if tile < LIVE else None


def _live_and_kept(tile: int, keep: np.ndarray) -> tuple[int, list[int]] | None:
    return _live(tile, keep) if keep[tile] else None


def _kept(tile: int, keep: np.ndarray) -> tuple[int, list[int]]:
    return tile, [block for block in range(BLOCKS) if keep[block]]


def _leading(tile: int, keep: np.ndarray) -> tuple[int, list[int]]:
    return tile, list(range(int(np.argmin(keep > 0))))


def _listed(tile: int, keep: np.ndarray) -> tuple[int, list[int]]:
    blocks, at = [], keep[0]
    while at >= 0:
        blocks.append(int(at))
        at = keep[at]
    return tile, blocks


def _either(tile: int, keep: np.ndarray) -> tuple[int, list[int]]:
    return tile, list(range(BLOCKS if tile < LIVE else 1))


def _chosen(tile: int, keep: np.ndarray) -> tuple[int, list[int]] | None:
    if tile >= LIVE:
        return None
    row = int(keep[tile])
    return row, [block if row else int(keep[block]) for block in range(BLOCKS)]


VISITS: dict[str, Visit] = {
    "straight": _all,
    "counting_while": _all,
    "two_guards": _live_and_kept,
    "bounds_from_if": _live_and_kept,
    "address_from_if": _chosen,
    "searching_while": _leading,
    "jumping_while": _listed,
    "breaking_loop": _leading,
    "skipped_blocks": _kept,
    "continuing_loop": _kept,
    "skipped_product": _kept,
    "either_loop": _either,
}
"""`_live` where it is not said."""


def visited(
    name: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, keep: np.ndarray, sizes: tuple[int, ...]
) -> np.ndarray:
    """What a spelling of the product leaves in `c`, in float64."""
    rows, depth = sizes
    a = np.pad(a.astype(np.float64), ((0, rows), (0, BLOCKS * depth - a.shape[1])))
    b = np.pad(b.astype(np.float64), ((0, BLOCKS * depth - b.shape[0]), (0, 0)))
    result = np.pad(c.astype(np.float64), ((0, rows), (0, 0)))
    for tile in range(TILES):
        found = VISITS.get(name, _live)(tile, keep)
        if found is None:
            continue
        row, blocks = found
        k = np.concatenate([np.arange(block * depth, (block + 1) * depth) for block in blocks])
        result[tile * rows :][:rows] = a[row * rows :][:rows][:, k] @ b[k]
    return result[: len(c)]


def assert_near(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-2) -> None:
    """Equal but for rounding, and poisoned where nobody was to store."""
    found = found.astype(np.float64)
    most = np.nanmax(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * most, equal_nan=True)


def drawn(*shape: int, scale: float = 1.0) -> np.ndarray:
    """Random bf16 numbers."""
    return (np.random.default_rng(shape).standard_normal(shape) * scale).astype(BF16)


def run_product(kernel: Kernel, sizes: tuple[int, int, int]) -> CompiledKernel:
    """Runs a spelling of the product on shapes that fill no tile; returns what ran."""
    rows, columns, depth = sizes
    a = drawn(TILES * rows - 13, BLOCKS * depth - 40)
    b = drawn(len(a[0]), columns + 8)
    leaves = kernel.name in ("searching_while", "breaking_loop")
    keep = np.array([1] * 6 + [0, 1, 1] if leaves else [0, 1, 0, 1, 1, 0, 0, 1, 1], np.int32)
    if kernel.name == "jumping_while":
        keep = np.array([3, -1, 8, 2, 6, 0, 1, 5, 4], np.int32)
    constants = dict(zip(("BM", "BN", "BK"), sizes, strict=True))
    for mode in modes():
        c = poisoned((len(a), len(b[0])), BF16)
        expected = visited(kernel.name, a, b, c, keep, (rows, depth))
        there = kernel.on(f"emulator:{mode}")
        there(a, b, c, keep, LIVE * rows - 1, **constants)
        assert_near(c, expected)
    return there.compiled(a, b, c, keep, LIVE * rows - 1, **constants)


@pytest.mark.share(20)
@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("kernel", products.PRODUCTS, ids=lambda kernel: kernel.name)
def test_products(kernel: Kernel, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guarded, skipped and counted ones."""
    monkeypatch.setenv("TILEC_TARGET", target)
    assert shown(run_product(kernel, (64, 128, 128))).startswith(("TMA", "cp.async"))


@tilec.kernel(grid=lambda c, BM: (tl.cdiv(c.shape[0], BM),))
def counted(a: tl.array, b: tl.array, c: tl.array, keep: tl.array, turns: tl.array,
            BM: tl.const = 64, BK: tl.const = 64):  # fmt: skip
    """A product that leaves its loop, and how often it began an iteration."""
    m, begun = tl.program_id(0) * BM, 0
    acc = tl.zeros((BM, BM), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        begun = begun + 1
        if tl.load(keep, (k // BK,), ()) == 0:
            break
        acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, 0), (BK, BM)), acc)
    tl.store(c, (m, 0), acc.to(c.dtype))
    tl.store(turns, (tl.program_id(0),), begun)


@pytest.mark.share(3)
@pytest.mark.parametrize("target", MAIN)
def test_what_the_last_iteration_does(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The iteration that only leaves is one where somebody reads what it has done."""
    monkeypatch.setenv("TILEC_TARGET", target)
    a, b, turns = drawn(72, 320), drawn(320, 64), np.zeros(2, np.int32)
    c = poisoned((72, 64), BF16)
    counted.on("emulator:check")(a, b, c, np.array([1, 1, 1, 0, 1], np.int32), turns)
    assert_near(c, a[:, :192].astype(np.float64) @ b[:192].astype(np.float64))
    assert turns.tolist() == [4, 4]


@pytest.mark.share(9)
@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("kernel", others.ATTENTION, ids=lambda kernel: kernel.name)
def test_attention(kernel: Kernel, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three heads, of which one sees nothing where memory is asked."""
    monkeypatch.setenv("TILEC_TARGET", target)
    q, k, v = drawn(3, 158, 64, scale=0.5), drawn(3, 443, 64), drawn(3, 443, 64, scale=0.9)
    keep = np.array([1, 0, 1, 1, 0, 1, 1], np.int32)
    if kernel.name == "attention_breaks":
        keep = np.array([1, 1, 1, 1, 1, 0, 1], np.int32)
    for mode in modes():
        o = poisoned(q.shape, BF16)
        expected = attended(kernel.name, q, k, v, o, keep)
        kernel.on(f"emulator:{mode}")(q, k, v, o, keep, 128, BM=64, BN=64, D=64)
        assert_near(o, expected, 1.5e-2)


def attended(name: str, *arrays: np.ndarray) -> np.ndarray:
    """What a spelling of attention leaves in `o`, in float64; tiles of 64."""
    q, k, v, o = (array.astype(np.float64) for array in arrays[:4])
    keep = arrays[4] > 0
    if name == "attention_breaks":
        keep = np.arange(len(keep)) < np.argmin(keep)
    elif name != "attention_skips":
        keep = np.ones(len(keep), bool)
    seen = np.repeat(keep, 64)[: k.shape[1]]
    score = np.where(seen, q @ np.swapaxes(k, 1, 2), -np.inf)
    weight = np.exp(score - score.max(-1, keepdims=True))
    found = weight / weight.sum(-1, keepdims=True) @ v
    if name in ("attention_guard", "attention_return"):
        found[:, 128:] = o[:, 128:]
    if name == "attention_return":
        idle = arrays[4][: len(q)] == 0
        found[idle] = o[idle]
    return found


@pytest.mark.share(6)
@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize("kernel", others.GROUPED, ids=lambda kernel: kernel.name)
def test_grouped_products(kernel: Kernel, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that fill no tile, one of them empty."""
    monkeypatch.setenv("TILEC_TARGET", target)
    ends = np.cumsum((70, 0, 129, 64, 5)).astype(np.int32)
    a, b = drawn(ends[-1], 648), drawn(len(ends), 648, 72)
    parts = zip(np.split(a.astype(np.float64), ends[:-1]), b.astype(np.float64), strict=True)
    expected = np.concatenate([rows @ matrix for rows, matrix in parts])
    for mode in modes():
        c = poisoned(expected.shape, BF16)
        kernel.on(f"emulator:{mode}")(a, b, c, ends, BM=64, BN=64, BK=128)
        assert_near(c, expected)


# -- Clusters, and what stays a wall --------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize("kernel", [products.early_return, products.skipped_blocks])
def test_guards_in_clusters(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTAs that take a guard alike share what they load alike."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    pairs = kernel.demanding(cluster=(1, 2))
    found = decisions(run_product(pairs, (64, 64, 128)), "cluster copy")
    assert [one.split(" (")[0] for one in found] == ["1/2 a CTA, multicast", "each CTA its own"]


TEAMS = [products.early_return, products.skipped_blocks, products.either_loop]


@pytest.mark.share(3)
@pytest.mark.parametrize("kernel", TEAMS)
def test_guards_with_two_teams(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who passes a program by counts what its guards let it fill, and the guard passes the turn."""
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")
    teams = kernel.demanding(consumers="pingpong", num_warps=4, persistent=True)
    (found,) = decisions(run_product(teams, (64, 64, 128)), "consumers")
    assert found.startswith("ping-pong")


def test_a_guard_that_parts_a_cluster() -> None:
    """Who multicasts to a CTA that does nothing would wait for it: a demand is refused."""
    specs = [*(f"{array}:{MATRIX}" for array in "abc"), "keep:i32[?]", "rows:i32"]
    with pytest.raises(CompileError, match="no copy is shared") as caught:
        products.guard.demanding(cluster=2).compile(specs, {}, target="sm_90a")
    assert "depends on where in the cluster a CTA is" in str(caught.value)


@tilec.kernel(grid=lambda c, BM: (tl.cdiv(c.shape[0], BM),))
def until_large(a: tl.array, c: tl.array, BM: tl.const = 64):
    """Ends where the sum says so."""
    acc = tl.zeros((BM, BM), tl.f32)
    k = 0
    while (k < a.shape[1]) & (tl.max(acc) < 1e3):
        tile = tl.load(a, (tl.program_id(0) * BM, k), (BM, BM))
        acc = tl.dot(tile, tile.T, acc)
        k += BM
    tl.store(c, (tl.program_id(0) * BM, 0), acc.to(c.dtype))


def test_an_end_that_a_tile_decides() -> None:
    """The report says which loop stays a while loop, and why."""
    kernel = until_large.compile([f"a:{MATRIX}", f"c:{MATRIX}"], {}, target="sm_90a")
    (found,) = decisions(kernel, "loop")
    assert found.startswith("no end known ahead (its end depends on 'tile.reduce'; a 'for' to the")
