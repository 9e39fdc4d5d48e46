"""Times peers side by side: interleaved, on rotating inputs, medians with percentiles.

A launch longer than `GRAPH_US` is timed by a pair of CUDA events; shorter ones as replays of a CUDA
graph that holds many, so that neither the launch nor a warm L2 cache enters. The order of the peers
is drawn anew in every round.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

GRAPH_US = 150.0
GRAPH_TOTAL_US = 1500.0
"""About this much work goes into one graph."""
ROTATED_BYTES = 256_000_000
"""Inputs rotate over sets that together exceed four times the L2 cache of an H200."""
WARM_MS = 15.0
"""Work done before measuring, so that the clocks are where this work takes them."""

Peer = Callable[[int], Any]
"""Launches on input set i."""


@dataclass(frozen=True)
class Timing:
    """Microseconds a launch: median, 10th and 90th percentile of `rounds`, `launches` in each."""

    us: float
    low: float
    high: float
    rounds: int
    launches: int


class CudaClock:
    """Times on the current stream with CUDA events."""

    graphs = True

    def mark(self) -> Any:
        """A point in the stream's work."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def microseconds(self, start: Any, end: Any) -> float:
        """Between two marks, after `wait`."""
        return 1000.0 * start.elapsed_time(end)

    def wait(self) -> None:
        """Until all work is done; raises what went wrong in it."""
        torch.cuda.synchronize()


class HostClock:
    """Times blocking work on the CPU: for dry runs."""

    graphs = False

    def mark(self) -> float:
        """Now."""
        return time.perf_counter()

    def microseconds(self, start: float, end: float) -> float:
        """Between two marks."""
        return 1e6 * (end - start)

    def wait(self) -> None:
        """Nothing runs in the background."""


Clock = CudaClock | HostClock


def rotated_sets(nbytes: int, most: int = 160) -> int:
    """How many input sets of `nbytes` to rotate over."""
    return 1 if nbytes >= ROTATED_BYTES else min(most, ROTATED_BYTES // nbytes + 2)


def time_peers(
    peers: Mapping[str, Peer],
    clock: Clock,
    *,
    sets: int,
    budget_ms: float,
    least_rounds: int,
    most_rounds: int = 400,
) -> dict[str, Timing]:
    """A timing a peer. All must have run once. `budget_ms`: time for the measured rounds."""
    estimates = {name: estimate(peer, clock, sets) for name, peer in peers.items()}
    runs, inner = dict(peers), dict.fromkeys(peers, 1)
    for name, peer in peers.items():
        if clock.graphs and estimates[name] < GRAPH_US:
            runs[name], inner[name] = graph_of(peer, estimates[name], sets)
    round_ms = sum(estimates[name] * inner[name] for name in peers) / 1000.0
    turn = _warm(runs, round_ms) if clock.graphs else 0
    rounds = int(min(most_rounds, max(least_rounds, budget_ms / max(round_ms, 1e-3))))
    marks: dict[str, list[tuple[Any, Any]]] = {name: [] for name in peers}
    order = list(peers)
    for _ in range(rounds):
        random.shuffle(order)
        turn += 1
        for name in order:
            start = clock.mark()
            runs[name](turn % sets)
            marks[name].append((start, clock.mark()))
    clock.wait()
    return {
        name: summary([clock.microseconds(*pair) for pair in marks[name]], inner[name])
        for name in peers
    }


def time_restored(
    peers: Mapping[str, Peer],
    clock: Clock,
    *,
    sets: int,
    restore: Callable[[], None],
    budget_ms: float,
    least_rounds: int,
    most_rounds: int = 400,
) -> dict[str, Timing]:
    """`time_peers` of launches that change what they read, as counters: one launch on each of the
    sets, all of which `restore` makes anew in front, untimed. A graph holds a launch a set."""
    runs = {name: _once_each(peer, clock, sets, restore) for name, peer in peers.items()}
    marks: dict[str, list[tuple[Any, Any]]] = {name: [] for name in peers}
    order, rounds, stop = list(peers), 0, time.perf_counter() + budget_ms / 1000.0
    while rounds < least_rounds or (rounds < most_rounds and time.perf_counter() < stop):
        random.shuffle(order)
        rounds += 1
        for name in order:
            restore()
            start = clock.mark()
            runs[name]()
            marks[name].append((start, clock.mark()))
        clock.wait()
    return {
        name: summary([clock.microseconds(*pair) for pair in marks[name]], sets) for name in peers
    }


def _once_each(
    peer: Peer, clock: Clock, sets: int, restore: Callable[[], None]
) -> Callable[[], None]:
    """A launch on each set, which has run once."""

    def run() -> None:
        for i in range(sets):
            peer(i)

    restore()
    run()
    clock.wait()
    if not clock.graphs:
        return run
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def estimate(peer: Peer, clock: Clock, sets: int) -> float:
    """Microseconds a launch, roughly; also warms up."""
    for i in range(2):
        peer(i % sets)
    clock.wait()
    start = clock.mark()
    for i in range(3):
        peer(i % sets)
    end = clock.mark()
    clock.wait()
    return clock.microseconds(start, end) / 3


def graph_of(peer: Peer, microseconds: float, sets: int) -> tuple[Peer, int]:
    """A replay of launches over all input sets, and their number."""
    wanted = int(GRAPH_TOTAL_US / max(microseconds, 3.0))
    launches = max(1, min(400, wanted) // sets) * sets
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            peer(i % sets)
    graph.replay()
    torch.cuda.synchronize()
    return lambda i: graph.replay(), launches


def _warm(runs: Mapping[str, Peer], round_ms: float) -> int:
    """Gives the number of rounds done."""
    rounds = max(1, min(200, round(WARM_MS / max(round_ms, 0.05))))
    for _ in range(rounds):
        for run in runs.values():
            run(0)
    return rounds


def summary(times: list[float], launches: int) -> Timing:
    """Of rounds that took `times` microseconds for `launches` each."""
    ordered = sorted(t / launches for t in times)
    last = len(ordered) - 1
    return Timing(
        statistics.median(ordered),
        ordered[round(0.1 * last)],
        ordered[round(0.9 * last)],
        len(ordered),
        launches,
    )
