"""Measures a record on the GPU at hand: draws products and tiles, compiles them, times them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from time import monotonic
from typing import Any

from tqdm import tqdm

from tilec.costs.machine import Machine
from tilec.ops.tile_choice import TileChoice
from tilec.ops.tile_names import name_of
from tilec.records import dataclass
from tilec.refit.compile_ahead import compile_all
from tilec.refit.drawn_products import DrawnProduct, draw
from tilec.refit.drawn_tiles import draw_tiles
from tilec.refit.product_timing import ProductTimer, WrongResult
from tilec.refit.record import FIT, LEAST_TILES, TEST, Run
from tilec.runtime.cuda.driver import CudaError

COMPILING = 0.5
"""Part of the time at most that compiling takes; what is not done then is not timed."""
MEASURING = 0.8
"""Part of the time after which no other product is begun: the rest is the fit's."""


@dataclass(frozen=True)
class Draw:
    """The products to be measured: `products` in all, two of three to fit to, drawn by `seed`, the
    others by the next seed; in `tiles` each."""

    seed: int
    products: int
    tiles: int


Drawn = tuple[str, DrawnProduct, Sequence[TileChoice]]
"""What a product is for, and its tiles."""


def measure(
    device: Any, machine: Machine, what: Draw, minutes: float, complain: Callable[[str], None]
) -> tuple[list[Run], list[str]]:
    """A run to fit to and one to test by, of what could be timed in so many minutes, less the fit;
    and which tiles computed something else or failed, if any: after a failure no more are timed.
    `complain` hears of what does not compile."""
    begun = monotonic()
    drawn = _drawn(machine, what)
    jobs = [(product, tiles) for _, product, tiles in drawn]
    with _bar("compiling", len(jobs)) as bar:
        until = begun + 60 * minutes * COMPILING
        failures = compile_all(jobs, device.name, until, bar.update)
    for product, reasons in failures.items():
        for tile, reason in reasons.items():
            complain(f"{product} in tiles of {tile}: {reason}")
    found: dict[str, dict[str, dict[str, float]]] = {FIT: {}, TEST: {}}
    wrong: list[str] = []
    compiled = list(_usable(drawn, failures))
    with ProductTimer(device, machine, what.seed) as timer, _bar("timing", len(compiled)) as bar:
        for use, product, tiles in compiled:
            if monotonic() > begun + 60 * minutes * MEASURING:
                break
            try:
                found[use][product.name] = timer.times(product, tiles)
            except WrongResult as error:
                wrong.append(str(error))
            except CudaError as error:  # after it nothing runs on that GPU in this process
                names = ", ".join(map(name_of, tiles))
                wrong.append(f"{product.name} in one of {names}: {error}")
                break
            bar.update()
    seeds = {FIT: what.seed, TEST: what.seed + 1}
    runs = [Run(machine, seeds[use], use, products) for use, products in found.items()]
    return runs, wrong


def _drawn(machine: Machine, what: Draw) -> list[Drawn]:
    """Products with their tiles, those to test by among the others."""
    count = what.products // 3
    parts = ((FIT, what.seed, what.products - count), (TEST, what.seed + 1, count))
    found: list[tuple[float, Drawn]] = []
    for use, seed, wanted in parts:
        rng = random.Random(seed)
        for number, product in enumerate(islice(draw(seed, machine.target), wanted)):
            tiles = draw_tiles(product.facts, machine, what.tiles, rng)
            found.append((number / wanted, (use, product, tiles)))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _usable(drawn: Sequence[Drawn], failures: Mapping[str, Mapping[str, str]]) -> Iterator[Drawn]:
    """Products that were compiled, in tiles that were."""
    for use, product, tiles in drawn:
        if product.name in failures:
            kept = [x for x in tiles if name_of(x) not in failures[product.name]]
            if len(kept) >= LEAST_TILES:
                yield use, product, kept


@contextmanager
def _bar(what: str, total: int) -> Iterator[Any]:
    with tqdm(total=total, desc=what, unit="product", leave=False, file=sys.stderr) as bar:
        yield bar
