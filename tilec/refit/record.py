"""The record of a measurement: products, and the microseconds of each of their tiles."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from tilec.costs.machine import Machine
from tilec.hardware.target import find_target
from tilec.ops.tile_names import tile_named
from tilec.records import dataclass
from tilec.refit.drawn_products import DrawnProduct

FIT, TEST = "fit", "test"
"""What a run is for: rates are fitted to the one, judged by the other, of another seed."""
LEAST_TILES = 2
"""Of a product, for there to be a choice."""
LEAST_PRODUCTS = 20
"""Of each use: the 95th percentile of fewer is the slowest one alone."""
COPIED = "+copy"
"""Ends the name of a tile whose operands were copied first, which the model does not time."""

_FIGURES = re.compile(r"(\d+) multiprocessors at (\d+) MHz, DRAM of (\d+) GB/s, (\d+) MB of L2.*")


class RecordError(ValueError):
    """A record that rates cannot be fitted to; says which part, and why."""


@dataclass(frozen=True)
class Run:
    """Products that one device was timed at. `use`: FIT or TEST. `products`: by name, microseconds
    by the name of the tile."""

    machine: Machine
    seed: int
    use: str
    products: Mapping[str, Mapping[str, float]]


def read_record(path: Path) -> list[Run]:
    """The runs of a record. RecordError where something in it cannot be."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: {error}") from None
    runs = found.get("runs") if isinstance(found, dict) else None
    if not isinstance(runs, list) or not runs:
        raise RecordError(f"{path}: expected an object with a list of 'runs'")
    return [_run(run, f"{path}: run {number}") for number, run in enumerate(runs)]


def _run(run: Any, where: str) -> Run:
    wanted = {"device": str, "target": str, "figures": str, "seed": int, "use": str}
    for name, kind in {**wanted, "products": dict}.items():
        if not isinstance(run, dict) or not isinstance(run.get(name), kind):
            raise RecordError(f"{where}: expected {name!r}, a {kind.__name__}")
    if run["use"] not in (FIT, TEST):
        raise RecordError(f"{where}: expected 'use' to be {FIT} or {TEST}, found {run['use']!r}")
    try:
        machine = _machine(run["device"], run["target"], run["figures"])
        products = {name: _tiles(name, found) for name, found in run["products"].items()}
    except ValueError as error:
        raise RecordError(f"{where}: {error}") from None
    return Run(machine, run["seed"], run["use"], {n: x for n, x in products.items() if x})


def _machine(device: str, target: str, figures: str) -> Machine:
    found = _FIGURES.fullmatch(figures)
    if found is None:
        raise ValueError(f"expected 'figures' as `tilec doctor` shows them, found {figures!r}")
    multiprocessors, clock, memory, l2_mb = map(int, found.groups())
    if 0 in (multiprocessors, clock, memory):
        raise ValueError(f"'figures' of nothing: {figures!r}")
    return Machine(device, find_target(target), multiprocessors, clock, memory, l2_mb << 20)


def _tiles(name: str, found: Any) -> dict[str, float]:
    """The timed tiles of a product that the model predicts, {} where there are too few."""
    DrawnProduct.named(name)
    tiles = found.get("tiles") if isinstance(found, dict) else None
    if not isinstance(tiles, dict):
        raise ValueError(f"{name}: expected 'tiles'")
    for tile, us in tiles.items():
        tile_named(tile.removesuffix(COPIED))
        if not isinstance(us, (int, float)) or isinstance(us, bool) or not isfinite(us) or us <= 0:
            raise ValueError(f"{name}: {tile}: expected microseconds, found {us!r}")
    kept = {tile: float(us) for tile, us in tiles.items() if not tile.endswith(COPIED)}
    return kept if len(kept) >= LEAST_TILES else {}


def check_runs(runs: Sequence[Run]) -> None:
    """Raises RecordError unless there are enough products of both uses, of one target, by other
    seeds."""
    targets = {run.machine.target.name for run in runs}
    if len(targets) != 1:
        raise RecordError(f"timings of several targets: {', '.join(sorted(targets))}")
    for use in (FIT, TEST):
        count = sum(len(run.products) for run in runs if run.use == use)
        if count < LEAST_PRODUCTS:
            raise RecordError(
                f"{count} products to {use}; expected {LEAST_PRODUCTS} with {LEAST_TILES} tiles"
            )
    seeds = [{run.seed for run in runs if run.use == use} for use in (FIT, TEST)]
    if seeds[0] & seeds[1]:
        raise RecordError(f"fitted to and judged by the same seeds: {sorted(seeds[0] & seeds[1])}")


def record_text(runs: Sequence[Run], date: str, versions: Mapping[str, str]) -> str:
    """A record as JSON, a line a product; `read_record` reads it."""
    about = (
        "Products drawn by a seed in tiles of tilec.ops.matmul: microseconds, medians of "
        "interleaved graph replays on rotating inputs; each result first compared with float64. "
        "Names of products and tiles are those of tilec/refit."
    )
    head = {"about": about, "date": date, "versions": dict(versions)}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    return "{\n" + "\n".join(lines) + '\n"runs": [\n' + ",\n".join(map(_run_text, runs)) + "\n]}\n"


def _run_text(run: Run) -> str:
    machine = run.machine
    head = {"device": machine.name, "target": machine.target.name, "figures": machine.figures}
    head |= {"seed": run.seed, "use": run.use}
    products = (
        f"{json.dumps(name)}: {json.dumps({'tiles': tiles})}"
        for name, tiles in run.products.items()
    )
    return json.dumps(head)[:-1] + ', "products": {\n' + ",\n".join(products) + "\n}}"
