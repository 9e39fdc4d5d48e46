"""Tiles of a product by name, as drawn among those near the best, and their predicted time."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from math import inf

from tilec.costs.machine import Machine
from tilec.costs.model import predict
from tilec.costs.tail_model import predict_with_tail
from tilec.costs.work import SUM_BYTES
from tilec.ops.product_facts import Product
from tilec.ops.product_work import ALONE, predicted, work_of
from tilec.ops.tile_choice import TURN_WARPS, TileChoice, completed, tile_choices

NEAR = 1.6
"""Times the shortest predicted time that a drawn tile may take: predictions are off by 20 %, tiles
are wanted on both sides of the best one, and slow ones say nothing of the choice."""
MOST_SUMS_BYTES = 1 << 28
"""Of a drawn tile's partial sums, which every process that compiles makes."""

_NAME = re.compile(r"(\d+)x(\d+)x(\d+)((?:/(?:T|c\d\d|s\d+|t\d+|p\d|pp|q\d+|1))*)")


def name_of(choice: TileChoice) -> str:
    """Rows x columns x depth, then what is unusual: T, of the transposed product; c21, clusters of
    2 down and 1 across; s4, k in 4 parts; t3, the last round in 3; p4, k in 4 parts by a cluster;
    pp, sets of warps in turn; q4, a ring of 4 slots; 1, no CTA stays for a second program."""
    down, across = choice.cluster
    words = (
        (choice.is_transposed, "T"),
        (choice.cluster != ALONE, f"c{down}{across}"),
        (choice.splits > 1, f"s{choice.splits}"),
        (choice.tail > 1, f"t{choice.tail}"),
        (choice.parts > 1, f"p{choice.parts}"),
        (choice.in_turn, "pp"),
        (choice.stages is not None, f"q{choice.stages}"),
        (choice.is_single, "1"),
    )
    tile = f"{choice.rows}x{choice.columns}x{choice.depth}"
    return "/".join((tile, *(word for is_there, word in words if is_there)))


def tile_named(name: str) -> TileChoice:
    """Reads the name that `name_of` gives; the tile's time is 0. ValueError for others."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"no tile: {name!r}; expected e.g. '128x160x64/T/c41/1'")
    words = found[4].split("/")
    numbers = {word[0]: int(word[1:]) for word in words if word[1:].isdecimal()}
    down, across = divmod(numbers.get("c", 11), 10)
    return TileChoice(
        *(int(found[1]), int(found[2]), int(found[3])),
        splits=numbers.get("s", 1),
        us=0.0,
        is_transposed="T" in words,
        is_single="1" in words,
        cluster=(down, across),
        tail=numbers.get("t", 1),
        in_turn="pp" in words,
        stages=numbers.get("q"),
        parts=numbers.get("p", 1),
    )


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
