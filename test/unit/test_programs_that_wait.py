"""Programs of a launch that wait for each other by flags, counters and locks in memory: right, and
without an alarm of the checker, on the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checked_calls import assert_right, empty

import tilec
import tilec.language as tl
from tilec.runtime.emulator_device import FindingsError

WARPS = (1, 8)
NUMBERS = np.random.default_rng(0).integers(-5, 6, 400).astype(np.float32)


@pytest.fixture(params=["sm_80", "sm_90a"], autouse=True)
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TILEC_TARGET", request.param)
    return request.param


@tilec.kernel(grid=5)
def in_a_lock(c: tl.array, lock: tl.array, ACQUIRE: tl.const = "acq_rel"):
    """Adds to an array under a spin lock; a count beside it says who is first."""
    while tl.atomic_cas(lock, 0, 0, 1, order=ACQUIRE) == 1:
        pass
    n = tl.load(lock, 1, ())
    if n == 0:
        tl.store(c, 0, tl.arange(64))
    else:
        tl.store(c, 0, tl.load(c, 0, 64) + tl.arange(64))
    tl.store(lock, 1, n + 1)
    tl.atomic_xchg(lock, 0, 0, order="acq_rel")


@pytest.mark.parametrize("warps", WARPS)
def test_a_lock(warps: int) -> None:
    arguments = [empty(64, dtype=np.int32), np.zeros(2, np.int32)]
    expected = {0: 5 * np.arange(64), 1: np.array([0, 5])}
    assert_right(in_a_lock.demanding(num_warps=warps), arguments, expected, 0)


def test_a_lock_that_acquires_nothing() -> None:
    """The alarm that it gives is the one that a right lock does not."""
    with pytest.raises(FindingsError, match="two CTAs, and nothing orders this"):
        in_a_lock.check(empty(64, dtype=np.int32), np.zeros(2, np.int32), ACQUIRE="relaxed")


@tilec.kernel(grid=5)
def by_tickets(t: tl.array, log: tl.array, N: tl.const = 32):
    """Programs in the order of their tickets; each reads what the one before wrote."""
    me = tl.atomic_add(t, 0, 1)
    while tl.atomic_add(t, 1, 0, order="acquire") != me:
        pass
    before = tl.load(log, (me - 1, 0), (1, N))
    tl.store(log, (me, 0), before + 1 + tl.sum(before))
    tl.atomic_add(t, 1, 1, order="release")


def test_tickets() -> None:
    log = np.zeros((6, 32))
    for i in range(5):
        log[i] = log[i - 1] + 1 + log[i - 1].sum()
    arguments = [np.zeros(2, np.int32), np.zeros((5, 32), np.float32)]
    assert_right(by_tickets, arguments, {0: np.array([5, 5]), 1: log[:5]}, 1e-6)


@tilec.kernel(grid=lambda x, N: tl.cdiv(x.shape[0], N))
def look_back(x: tl.array, y: tl.array, sums: tl.array, flag: tl.array, N: tl.const = 64):
    """Prefix sums in one launch: a program adds up those in front of it, back to the first that
    knows its own prefix."""
    p = tl.program_id(0)
    t = tl.load(x, p * N, N)
    before, j = 0.0, p - 1
    tl.store(sums, (p, 0), tl.sum(t))
    if p > 0:
        tl.atomic_xchg(flag, p, 1, order="release")
        known = 1
        while known != 2:
            known = tl.atomic_add(flag, j, 0, order="acquire")
            if known > 0:
                before = before + tl.load(sums, (j, known - 1), ())
                j = j - 1
    tl.store(sums, (p, 1), before + tl.sum(t))
    tl.atomic_xchg(flag, p, 2, order="release")
    tl.store(y, p * N, tl.cumsum(t) + before)


@pytest.mark.parametrize("warps", WARPS)
def test_prefix_sums_that_look_back(warps: int) -> None:
    arguments = [NUMBERS, empty(400), np.zeros((7, 2), np.float32), np.zeros(7, np.int32)]
    expected = {1: np.cumsum(NUMBERS.astype(float)), 3: np.full(7, 2)}
    assert_right(look_back.demanding(num_warps=warps), arguments, expected, 0)


@tilec.kernel(grid=lambda x, N: tl.cdiv(x.shape[0], N))
def last_adds(x: tl.array, part: tl.array, count: tl.array, y: tl.array, N: tl.const = 64):
    """The last program adds up what all have stored."""
    p = tl.program_id(0)
    tl.store(part, (p, 0), tl.load(x, p * N, N)[None, :])
    tl.fence()
    if tl.atomic_add(count, 0, 1) == tl.num_programs(0) - 1:
        tl.fence()
        tl.store(y, 0, tl.sum(tl.load(part, (0, 0), (8, N)), 0))


def test_who_is_last_adds_up() -> None:
    expected = np.append(NUMBERS, np.zeros(48)).reshape(7, 64).sum(0)
    arguments = [NUMBERS, np.zeros((7, 64), np.float32), np.zeros(1, np.int32), empty(64)]
    assert_right(last_adds, arguments, {3: expected}, 0)


@tilec.kernel(grid=lambda x: x.shape[0])
def neighbours(x: tl.array, count: tl.array, ROUNDS: tl.const = 4, N: tl.const = 64):
    """A row is its neighbours' sum without itself, round after round: all meet in between."""
    p = tl.program_id(0)
    for r in tl.range(ROUNDS):
        now, then = r % 2 * N, (r + 1) % 2 * N
        above, below = (tl.load(x, (p + d, now), (1, N)) for d in (-1, 1))
        tl.store(x, (p, then), above + below - tl.load(x, (p, now), (1, N)))
        tl.atomic_add(count, 0, 1, order="acq_rel")
        while tl.atomic_add(count, 0, 0, order="acquire") < (r + 1) * tl.num_programs(0):
            pass


def test_a_barrier_of_the_grid() -> None:
    x = NUMBERS[: 5 * 64].reshape(5, 64)
    rows = x.astype(float)
    history = [rows]
    for _ in range(4):
        wide = np.pad(rows, ((1, 1), (0, 0)))
        rows = wide[:-2] + wide[2:] - wide[1:-1]
        history.append(rows)
    arguments = [np.concatenate([x, empty(5, 64)], 1), np.zeros(1, np.int32)]
    assert_right(neighbours, arguments, {0: np.concatenate([history[4], history[3]], 1)}, 0)


@tilec.kernel(grid=lambda x: (2, tl.cdiv(x.shape[1], 64)))
def ring_in_memory(
    x: tl.array, ring: tl.array, flag: tl.array, y: tl.array, SLOTS: tl.const = 2, N: tl.const = 64
):
    """One program of a pair fills slots, the other empties them: flags both ways."""
    who, j = tl.program_id(0), tl.program_id(1)
    if who == 0:
        for k in tl.range(x.shape[0]):
            while tl.atomic_add(flag, (j, 1), 0, order="acquire") + SLOTS <= k:
                pass
            tl.store(ring, (j, k % SLOTS * N), tl.load(x, (k, j * N), (1, N)) * 2.0)
            tl.atomic_add(flag, (j, 0), 1, order="release")
    else:
        acc = tl.zeros((1, N), tl.f32)
        for k in tl.range(x.shape[0]):
            while tl.atomic_add(flag, (j, 0), 0, order="acquire") <= k:
                pass
            acc = acc * 0.5 + tl.load(ring, (j, k % SLOTS * N), (1, N))
            tl.atomic_add(flag, (j, 1), 1, order="release")
        tl.store(y, (0, j * N), acc)


@pytest.mark.parametrize("warps", WARPS)
def test_a_ring_between_programs(warps: int) -> None:
    """Three pairs stand at many places at once, some of them asking again and again."""
    x = NUMBERS[:396].reshape(3, 132).repeat(2, 0)
    acc = np.zeros((1, 132))
    for row in x.astype(float):
        acc = acc * 0.5 + 2 * row
    arguments: list[Any] = [x, np.zeros((3, 128), np.float32), np.zeros((3, 2), np.int32)]
    arguments.append(empty(1, 132))
    assert_right(ring_in_memory.demanding(num_warps=warps), arguments, {3: acc}, 0)
