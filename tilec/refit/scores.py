"""How far predictions are off: what choosing by them costs, and their errors as times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf

import numpy as np

from tilec.costs.machine import Machine
from tilec.costs.rates import Rates
from tilec.ops.product_facts import Product
from tilec.ops.tile_choice import TileChoice
from tilec.ops.tile_names import tile_named
from tilec.records import dataclass
from tilec.refit.drawn_products import DrawnProduct
from tilec.refit.drawn_tiles import prediction
from tilec.refit.record import Run


@dataclass(frozen=True)
class Case:
    """One product on one machine, with the logarithms of its tiles' measured microseconds."""

    machine: Machine
    product: Product
    tiles: tuple[TileChoice, ...]
    measured: np.ndarray

    def errors(self, rates: Rates) -> np.ndarray:
        """Logarithms of predicted over measured times."""
        machine = replace(self.machine, other_rates=rates)
        return np.log([prediction(self.product, x, machine) for x in self.tiles]) - self.measured


def cases_of(runs: Sequence[Run], use: str) -> list[Case]:
    """Cases of the runs for one use. Tiles that the model takes for impossible are left out, whose
    numbers are not times."""
    found = []
    for run in (run for run in runs if run.use == use):
        for name, times in run.products.items():
            product = DrawnProduct.named(name).facts
            tiles = {tile_named(tile): us for tile, us in times.items()}
            kept = [x for x in tiles if prediction(product, x, run.machine) < inf]
            if len(kept) > 1:
                measured = np.log([tiles[one] for one in kept])
                found.append(Case(run.machine, product, tuple(kept), measured))
    return found


@dataclass(frozen=True)
class Score:
    """`chosen`: the time of the tile that is first by prediction over that of the fastest one,
    geometric mean over products; `slowest`: its 95th percentile. `error`: root of the mean square
    of the logarithm of predicted over measured times, of all tiles. `losses`: the logarithms that
    the mean is of, a product each."""

    chosen: float
    slowest: float
    error: float
    losses: np.ndarray

    def __str__(self) -> str:
        return (
            f"chosen / best {self.chosen:.4f} (geometric mean of {len(self.losses)}), "
            f"{self.slowest:.3f} (95th percentile); predictions off by {100 * self.error:.1f} %"
        )


def score(cases: Sequence[Case], rates: Rates) -> Score:
    """The score of rates on cases."""
    losses, squares = [], []
    for case in cases:
        errors = case.errors(rates)
        first = int(np.argmin(errors + case.measured))
        losses.append(float(case.measured[first] - case.measured.min()))
        squares += list(errors**2)
    mean = exp(float(np.mean(losses)))
    slowest = exp(float(np.percentile(losses, 95)))
    return Score(mean, slowest, float(np.mean(squares)) ** 0.5, np.array(losses))


def is_better(new: Score, old: Score) -> bool:
    """Whether rates that gave `new` should take the place of those that gave `old`, on the same
    cases: their choices cost no more, and either clearly less (by the standard error of the mean
    of differences) or their times are nearer."""
    gains = old.losses - new.losses
    gain = float(gains.mean())
    clear = float(gains.std()) / len(gains) ** 0.5
    return gain >= 0 and (new.error < old.error or gain > clear)
