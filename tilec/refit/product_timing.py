"""Times a product's tiles side by side: checked first, then interleaved replays of graphs."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from tilec.costs.machine import Machine
from tilec.ops.launch_steps import Step
from tilec.ops.tile_choice import TileChoice
from tilec.ops.tile_names import name_of
from tilec.refit.drawn_products import KINDS, DrawnProduct
from tilec.refit.matrices import Matrices
from tilec.refit.tile_launches import moved, steps_of, views_at
from tilec.runtime.cuda.driver import check
from tilec.runtime.cuda.graph import Graph
from tilec.runtime.cuda.stopwatch import Stopwatch

ROOM_BYTES = 1 << 30
"""For operands, and for results: a GPU of 8 GB has that."""
BUSY_BYTES = 1 << 29
"""Written before each replay: takes the GPU longer, 0.1 ms and more, than the CPU to queue one, so
that launches follow each other from the first on."""
GRAPH_US = 1500.0
"""About so much work is in a graph: events tell 0.5 us apart."""
MOST_LAUNCHES = 400
"""Of a graph: what recording costs on the CPU."""
ROUNDS = 7
"""Replays of each tile, of which the median counts: 3 may be disturbed."""


class WrongResult(RuntimeError):
    """A tile computed something else than the product: a mistake of tilec's, or of the GPU."""


class ProductTimer:
    """Times tiles on one GPU; use it as a context, which frees what it takes."""

    def __init__(self, device: Any, machine: Machine, seed: int) -> None:
        self._device = device
        self._rng = np.random.default_rng(seed)
        self._order = random.Random(seed)
        self._l2_bytes = machine.l2_bytes

    def __enter__(self) -> ProductTimer:
        context = self._device.context
        driver = context.driver
        with ExitStack() as stack, context.entered():
            flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
            self._stream = int(check(driver.cuStreamCreate(flags), "creating a stream"))
            stack.callback(driver.cuStreamDestroy, self._stream)
            self._watch = stack.enter_context(Stopwatch(context, self._stream, BUSY_BYTES))
            self._matrices = Matrices(self._device, ROOM_BYTES, self._l2_bytes)
            stack.callback(self._matrices.free)
            self._taken = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        with self._device.context.entered():
            self._taken.close()

    def times(self, product: DrawnProduct, tiles: Sequence[TileChoice]) -> dict[str, float]:
        """Microseconds of each tile, by name. WrongResult where one's elements are not the
        product's."""
        self._matrices.fill(product.kind, self._rng)
        sets = self._matrices.sets(product)
        with ExitStack() as stack:
            replays: dict[str, tuple[Graph, int]] = {}
            for tile in tiles:
                steps = self._steps(product, tile)
                us = self._checked(product, name_of(tile), steps)
                count = max(1, min(MOST_LAUNCHES, int(GRAPH_US / us)) // sets) * sets
                graph = stack.enter_context(self._graph(product, steps, sets, count))
                replays[name_of(tile)] = graph, count
            return self._interleaved(replays)

    def _steps(self, product: DrawnProduct, tile: TileChoice) -> list[Step]:
        addresses = self._matrices.addresses(product, 0)
        views = views_at(product, addresses, self._device.index)
        return steps_of(product, tile, views, self._device, self._stream)

    def _checked(self, product: DrawnProduct, tile: str, steps: Sequence[Step]) -> float:
        """Microseconds of one launch, roughly, whose result is right."""
        self._matrices.poison(product)
        self._launch(steps)
        self._device.synchronize()
        error = self._matrices.error(product, self._rng)
        if not error <= KINDS[product.kind].tolerance:
            raise WrongResult(f"{product.name} in tiles of {tile}: an error of {error:.1e}")
        return max(1.0, self._watch.measure(lambda: self._launch(steps)))

    def _launch(self, steps: Sequence[Step]) -> None:
        for step in steps:
            step.launch(self._stream)

    def _graph(self, product: DrawnProduct, steps: Sequence[Step], sets: int, count: int) -> Graph:
        """Records a graph of so many launches, which take all sets of matrices one after the
        other."""
        first = self._matrices.addresses(product, 0)
        turns = []
        for number in range(sets):
            there = self._matrices.addresses(product, number)
            turns.append(moved(steps, {name: there[name] - first[name] for name in first}))

        def record() -> None:
            for number in range(count):
                self._launch(turns[number % sets])

        return Graph(self._device.context, self._stream, record)

    def _interleaved(self, replays: dict[str, tuple[Graph, int]]) -> dict[str, float]:
        """Medians of rounds over all, in an order drawn anew each time; the first is not timed."""
        found: dict[str, list[float]] = {name: [] for name in replays}
        names = list(replays)
        for graph, _ in replays.values():
            graph.launch()
        for _ in range(ROUNDS):
            self._order.shuffle(names)
            for name in names:
                graph, count = replays[name]
                found[name].append(self._watch.measure(graph.launch) / count)
        return {name: round(statistics.median(times), 2) for name, times in found.items()}
