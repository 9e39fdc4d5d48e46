"""Fits rates to timings: damped least squares in logarithms (Levenberg and Marquardt).

What is squared, for each tile: the logarithm of predicted over measured time, and the same less
its mean over the product's tiles, which is what a choice goes by. Errors above `ROBUST` count
linearly (Huber): a kernel that a formula knows nothing of does not bend all rates. Each rate is
held to where it was as by one measurement with a spread of `HELD`, so what no timing says anything
about stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from math import exp, isfinite, log

import numpy as np

from tilec.costs.rates import Rates
from tilec.refit.scores import Case

ROBUST = 0.3
"""About twice the spread of errors, 16 to 19 % (test/bench/results)."""
NOISE = 0.17
"""That spread: an error's weight beside a rate's."""
HELD = 0.5
"""Spread of a rate about where it was, as a logarithm: rates of two generations of GPUs differ by
less than half or twice."""
STEP = 0.02
"""Of a logarithm, for slopes: large enough to see past what is rounded to whole clocks."""
LONGEST_STEP = 0.3
"""Of a rate's logarithm at once: beyond, another unit is the busiest, and slopes say nothing."""
ROUNDS = 12
"""Steps at most: fits to 387 and to 97 drawn products took 8 and 11."""
ENOUGH = 1e-3
"""Part of the sum of squares that a step must take off for another one."""
DIGITS = 3
"""Of a fitted number: timings differ by 1 % from run to run."""

KEPT = {
    *("record", "streams", "even_cluster", "evenly_idle", "clustered", "lockstep_rounds"),
    *("other_registers", "loaded_registers", "spilled", "copied_product", "copied_uses"),
    "prepared_overlap",
}
"""What is not fitted: counts of the device and of compiled code, what clocks of a card do over many
rounds, which short runs do not show, and when to copy operands, and what computing them hides,
which no tile's time says."""
PARTS = {"tensor_efficiency", "warp_mma_speed", "dram_efficiency", "dram_threads"}
"""Rates that are parts of something, so at most 1."""
SHIFTED = "shifted"

Errors = Callable[[np.ndarray], np.ndarray]


def names_of(rates: Rates) -> list[str]:
    """The names of what is fitted: fields of rates, and "shifted 16" and so on. An infinite one
    stays, which no step changes: groups of multiprocessors whose reads do not merge."""
    plain = [x.name for x in fields(rates) if x.name not in KEPT and x.name != SHIFTED]
    names = [*plain, *(f"{SHIFTED} {alignment}" for alignment in rates.shifted)]
    return [name for name in names if isfinite(value_of(rates, name))]


def value_of(rates: Rates, name: str) -> float:
    """The value of one of the numbers that are fitted."""
    if name.startswith(f"{SHIFTED} "):
        return rates.shifted[int(name.split()[1])]
    return getattr(rates, name)


def with_values(rates: Rates, names: Sequence[str], values: Iterable[float]) -> Rates:
    """Rates with other numbers, each within what it may be."""
    shifted, changed = dict(rates.shifted), {}
    for name, number in zip(names, values, strict=True):
        if name.startswith(f"{SHIFTED} "):
            shifted[int(name.split()[1])] = max(1.0, number)
        else:
            changed[name] = min(1.0, number) if name in PARTS else number
    return replace(rates, **changed, shifted=shifted)


def fit(
    cases: Sequence[Case],
    start: Rates,
    names: Sequence[str] | None = None,
    step: Callable[[], object] = lambda: None,
) -> Rates:
    """The rates that fit best, from `start` on. `names`: what may change, all that is fitted where
    it is None. `step` is called once a round. Numbers are rounded to `DIGITS`."""
    names = names_of(start) if names is None else list(names)
    before = np.array([log(value_of(start, name)) for name in names])

    def errors(logs: np.ndarray) -> np.ndarray:
        rates = with_values(start, names, map(exp, logs))
        found = [case.errors(rates) for case in cases]
        return np.concatenate([*found, *(one - one.mean() for one in found)])

    logs = _least_squares(errors, before, step)
    return with_values(start, names, (float(f"{exp(x):.{DIGITS}g}") for x in logs))


def _least_squares(errors: Errors, before: np.ndarray, step: Callable[[], object]) -> np.ndarray:
    logs, damping = before, 1.0
    found = errors(logs)
    cost = _cost(found, logs - before)
    for _ in range(ROUNDS):
        step()
        slopes = _slopes(errors, logs, found)
        weights = np.minimum(1.0, ROBUST / np.maximum(np.abs(found), 1e-9))
        held = (NOISE / HELD) ** 2
        square = slopes.T @ (weights[:, None] * slopes) + held * np.eye(len(logs))
        wanted = slopes.T @ (weights * found) + held * (logs - before)
        taken = cost
        while damping < LARGEST_DAMPING:
            damped = square + damping * np.diag(np.diag(square))
            moved = logs - np.clip(np.linalg.solve(damped, wanted), -LONGEST_STEP, LONGEST_STEP)
            there = errors(moved)
            now = _cost(there, moved - before)
            if now < cost:
                logs, found, cost, damping = moved, there, now, damping / 4
                break
            damping *= 4
        if taken - cost < ENOUGH * taken:
            break
    return logs


LARGEST_DAMPING = 1e6
"""Where a step is a millionth of what slopes say, there is no way down."""


def _slopes(errors: Errors, logs: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The slope of each error along each rate."""
    columns = []
    for number in range(len(logs)):
        moved = logs.copy()
        moved[number] += STEP
        columns.append((errors(moved) - found) / STEP)
    return np.stack(columns, axis=1)


def _cost(errors: np.ndarray, moved: np.ndarray) -> float:
    """The cost of errors: half the sum of squares, where large ones count linearly beyond
    `ROBUST`."""
    sizes = np.abs(errors)
    huber = np.where(sizes <= ROBUST, 0.5 * sizes**2, ROBUST * (sizes - 0.5 * ROBUST))
    return float(huber.sum() + 0.5 * (NOISE / HELD) ** 2 * (moved**2).sum())
