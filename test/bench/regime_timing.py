"""Times peers on a power-limited card, in regimes that say which clock they ran at.

- burst: the card idles, one untimed launch, then three timed ones inside a CUDA graph: the clock is
  near its highest. Peers take turns, in an order drawn anew each round.
- sustained: one peer alone, back to back for over a second; only the last part counts, when the
  power limit has set the clock.
- interleaved (`timing.time_peers`): peers take turns launch by launch and share one clock; for
  kernels so short that a burst would measure a cold chip.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from timing import GRAPH_US, Peer, Timing, estimate, graph_of, summary

BURST_LAUNCHES = 3
BURST_STARTS = 2
"""Graphs a peer, beginning at different input sets."""
CHUNK_US = 40_000.0
"""About this much work lies between two marks of a sustained run."""
TAIL = 2 / 3
"""The part of a sustained run that counts."""
WARM_S = 0.6
"""Work before the first sustained run, so that the first peer finds the card as the others do."""


@dataclass(frozen=True)
class Duration:
    """How long to measure: bursts a peer and the idle seconds before each; seconds and passes of
    sustained work a peer; milliseconds of interleaved work for all. `few`: of the other compilers'
    kernels only the fastest."""

    bursts: int = 12
    idle_s: float = 0.025
    sustained_s: float = 1.2
    passes: int = 2
    interleaved_ms: float = 500.0
    few: bool = False


@dataclass(frozen=True)
class SustainedTiming(Timing):
    """`us` is a mean. SM clock (MHz) and power (W) while it ran; NaN where unreadable."""

    clock_mhz: float = field(default=float("nan"), kw_only=True)
    power_w: float = field(default=float("nan"), kw_only=True)


def burst(
    peers: Mapping[str, Peer], clock: Any, *, sets: int, duration: Duration
) -> dict[str, Timing]:
    """A timing a peer; each has run before."""
    graphs = {name: _burst_graphs(peer, sets) for name, peer in peers.items()}
    times: dict[str, list[float]] = {name: [] for name in peers}
    order = list(peers)
    for turn in range(duration.bursts):
        random.shuffle(order)
        for name in order:
            first, timed = graphs[name][turn % len(graphs[name])]
            clock.wait()
            time.sleep(duration.idle_s)
            first.replay()
            start = clock.mark()
            timed.replay()
            end = clock.mark()
            clock.wait()
            times[name].append(clock.microseconds(start, end))
    return {name: summary(found, BURST_LAUNCHES) for name, found in times.items()}


def _burst_graphs(peer: Peer, sets: int) -> list[tuple[Any, Any]]:
    """(the launch that warms up, the launches that count), from different input sets on."""
    return [
        (
            captured(peer, [start % sets]),
            captured(peer, [(start + i) % sets for i in range(1, BURST_LAUNCHES + 1)]),
        )
        for start in range(min(sets, BURST_STARTS))
    ]


def captured(peer: Peer, numbers: Sequence[int]) -> Any:
    """A CUDA graph of launches on these input sets, replayed once."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in numbers:
            peer(number)
    graph.replay()
    torch.cuda.synchronize()
    return graph


def sustained(
    peers: Mapping[str, Peer], clock: Any, *, sets: int, duration: Duration
) -> dict[str, Timing]:
    """A timing a peer alone: the mean of the last two thirds of each pass, their median.

    A mean, because under a power limit the clock swings between steps.
    """
    times: dict[str, list[float]] = {name: [] for name in peers}
    means: dict[str, list[float]] = {name: [] for name in peers}
    states: dict[str, tuple[float, float]] = {}
    chunks = {name: _chunk(peer, clock, sets) for name, peer in peers.items()}
    order = list(peers)
    _back_to_back(chunks[order[0]], clock, sets, WARM_S)
    for _ in range(duration.passes):
        random.shuffle(order)
        for name in order:
            found, states[name] = _back_to_back(chunks[name], clock, sets, duration.sustained_s)
            times[name] += found
            means[name].append(statistics.mean(found) / chunks[name].launches)
    return {
        name: SustainedTiming(
            **vars(summary(found, chunks[name].launches)) | {"us": statistics.median(means[name])},
            clock_mhz=states[name][0],
            power_w=states[name][1],
        )
        for name, found in times.items()
    }


@dataclass(frozen=True)
class _Chunk:
    """`runs` calls of `run`, that together are `launches` launches."""

    run: Peer
    runs: int
    launches: int


def _chunk(peer: Peer, clock: Any, sets: int) -> _Chunk:
    """About `CHUNK_US` of work."""
    microseconds = estimate(peer, clock, sets)
    run, inner = peer, 1
    if clock.graphs and microseconds < GRAPH_US:
        run, inner = graph_of(peer, microseconds, sets)
    runs = max(1, round(CHUNK_US / (microseconds * inner)))
    return _Chunk(run, runs, runs * inner)


def _back_to_back(
    chunk: _Chunk, clock: Any, sets: int, seconds: float
) -> tuple[list[float], tuple[float, float]]:
    """Microseconds of each chunk that ended in the counted part; clock and power."""
    begin, turn = time.perf_counter(), 0
    state = (float("nan"), float("nan"))
    found = []
    while (now := time.perf_counter() - begin) < seconds or not found:
        start = clock.mark()
        for _ in range(chunk.runs):
            chunk.run(turn % sets)
            turn += 1
        end = clock.mark()
        if now > 0.8 * seconds:
            state = card_state()
        clock.wait()
        if time.perf_counter() - begin > (1 - TAIL) * seconds:
            found.append(clock.microseconds(start, end))
    return found, state


_card: list[Any] = []


def card_state() -> tuple[float, float]:
    """SM clock in MHz and power in W now; NaN without NVML."""
    try:
        import pynvml

        if not _card:
            pynvml.nvmlInit()
            _card.append(pynvml.nvmlDeviceGetHandleByIndex(0))
        megahertz = pynvml.nvmlDeviceGetClockInfo(_card[0], pynvml.NVML_CLOCK_SM)
        return float(megahertz), pynvml.nvmlDeviceGetPowerUsage(_card[0]) / 1000.0
    except Exception:  # no NVML, no driver, no permission: a timing is no worse for it
        return float("nan"), float("nan")
