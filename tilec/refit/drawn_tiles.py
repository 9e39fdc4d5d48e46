"""Tiles of a product as drawn among those near the best, and their predicted time."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf

from tilec.costs.machine import Machine
from tilec.costs.model import predict
from tilec.costs.tail_model import predict_with_tail
from tilec.costs.work import SUM_BYTES
from tilec.ops.product_facts import Product
from tilec.ops.product_work import predicted, work_of
from tilec.ops.tile_choice import TURN_WARPS, TileChoice, completed, tile_choices
from tilec.ops.tile_names import name_of

NEAR = 1.6
"""Times the shortest predicted time that a drawn tile may take: predictions are off by 20 %, tiles
are wanted on both sides of the best one, and slow ones say nothing of the choice."""
MOST_SUMS_BYTES = 1 << 28
"""Of a drawn tile's partial sums, which every process that compiles makes."""


def prediction(product: Product, choice: TileChoice, machine: Machine) -> float:
    """Microseconds of a tile; infinite for what the model takes for impossible."""
    tile = choice.rows, choice.columns, choice.depth
    product = product.transposed() if choice.is_transposed else product
    if choice.tail > 1:
        work = work_of(product, tile, 1, choice.cluster, machine)
        return predict_with_tail(work, [choice.tail], machine).get(choice.tail, inf)
    if choice.in_turn:
        work = work_of(product, tile, 1, choice.cluster, machine)
        return predict(replace(work, teams=2, warps=TURN_WARPS), machine).us
    how = choice.splits, choice.cluster, machine, choice.stages, choice.parts
    return predicted(product, tile, *how)[0]


def draw_tiles(
    product: Product, machine: Machine, count: int, rng: random.Random
) -> list[TileChoice]:
    """The best by prediction, and others `NEAR` it, at most `count` in all."""
    choices = {name_of(one): one for one in tile_choices(product, machine) if one.us < inf}
    sums = product.m * product.n * SUM_BYTES
    ordered = sorted(
        (x for x in choices.values() if x.splits == 1 or x.splits * sums <= MOST_SUMS_BYTES),
        key=lambda one: one.us,
    )
    near = [one for one in ordered if one.us <= NEAR * ordered[0].us]
    drawn = [*near[:1], *rng.sample(near[1:], min(count, len(near)) - 1)]
    return [completed(one, product, machine) for one in drawn]
