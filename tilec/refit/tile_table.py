"""Finds tiles that are faster than the model's choice for common products, on the GPU at hand.

Both are timed side by side, twice: the second time decides among few, so that none wins by one
lucky round among many.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any

from tqdm import tqdm

from tilec.costs.machine import Machine
from tilec.ops.measured_tiles import MeasuredTile, product_name
from tilec.ops.tile_choice import TileChoice, completed, preference, tile_choices
from tilec.ops.tile_names import name_of
from tilec.refit.common_products import common_products
from tilec.refit.compile_ahead import compile_all
from tilec.refit.drawn_products import DrawnProduct
from tilec.refit.drawn_tiles import NEAR
from tilec.refit.measuring import COMPILING
from tilec.refit.product_timing import ProductTimer, WrongResult
from tilec.refit.tile_code import with_code
from tilec.runtime.cuda.driver import CudaError

GAIN = 1.03
"""Times that a tile must be faster than the model's, in both timings, to be kept."""
FINALISTS = 3
"""Tiles beside the model's that are timed again."""


def measure_table(
    device: Any,
    machine: Machine,
    tiles: int,
    seed: int,
    minutes: float,
    complain: Callable[[str], None],
) -> tuple[dict[str, MeasuredTile], int, list[str]]:
    """The rows of a table, by product, where another tile than the model's was faster by `GAIN`; of
    how many products; and which computed something else or failed: after a failure no more are
    timed.

    Of each product the best `tiles` by prediction are timed. `complain` hears of what does not
    compile, and of products that `minutes` do not suffice for.
    """
    begun = monotonic()
    until = begun + 60 * minutes
    products = dict.fromkeys(common_products(machine.target))
    jobs = [(product, near_tiles(product, machine, tiles)) for product in products]
    with _bar("compiling", len(jobs)) as bar:
        failures = compile_all(jobs, device.name, begun + 60 * minutes * COMPILING, bar.update)
    found: dict[str, MeasuredTile] = {}
    wrong: list[str] = []
    count = 0
    with ProductTimer(device, machine, seed) as timer, _bar("timing", len(jobs)) as bar:
        for product, choices in jobs:
            bar.update()
            if product.name not in failures or monotonic() > until:
                complain(f"{product.name}: no time left")
                continue
            for tile, reason in failures[product.name].items():
                complain(f"{product.name} in tiles of {tile}: {reason}")
            usable = [one for one in choices if name_of(one) not in failures[product.name]]
            try:
                row = _faster(timer, product, usable) if usable[:1] == choices[:1] else None
            except WrongResult as error:
                wrong.append(str(error))
                continue
            except CudaError as error:  # after it nothing runs on that GPU in this process
                wrong.append(f"{product.name}: {error}")
                break
            count += 1
            if row is not None:
                found[_name(product)] = with_code(row, product, machine)
    return found, count, wrong


def _name(product: DrawnProduct) -> str:
    name = product_name(product.facts)
    if name is None:
        raise ValueError(f"{product.name} is no product that a table can have")
    return name


def near_tiles(product: DrawnProduct, machine: Machine, count: int) -> list[TileChoice]:
    """The model's choice, and the next ones by prediction, at most `count` in all."""
    facts = product.facts
    ordered = sorted(tile_choices(facts, machine), key=preference)
    near = [one for one in ordered if one.us < inf and one.us <= NEAR * ordered[0].us]
    found: dict[str, TileChoice] = {}
    for one in near:
        whole = completed(one, facts, machine)
        found.setdefault(name_of(whole), whole)
        if len(found) == count:
            break
    return list(found.values())


def _faster(
    timer: ProductTimer, product: DrawnProduct, choices: Sequence[TileChoice]
) -> MeasuredTile | None:
    """The fastest tile where it beats the first, the model's, twice."""
    model, *others = choices
    first = timer.times(product, choices)
    own = name_of(model)
    others.sort(key=lambda one: first[name_of(one)])
    finalists = [x for x in others[:FINALISTS] if first[own] > GAIN * first[name_of(x)]]
    if not finalists:
        return None
    again = timer.times(product, [model, *finalists])
    best = min(map(name_of, finalists), key=again.__getitem__)
    if again[own] <= GAIN * again[best]:
        return None
    return MeasuredTile(best, again[best], own, again[own])


@contextmanager
def _bar(what: str, total: int) -> Iterator[Any]:
    with tqdm(total=total, desc=what, unit="product", leave=False, file=sys.stderr) as bar:
        yield bar
