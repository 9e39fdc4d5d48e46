"""The model's order of tiles beside what was measured: the record that its rates were fitted to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from math import exp, inf, log
from pathlib import Path
from statistics import fmean

import pytest

import tilec.language as tl
from tilec.hardware.target import find_target
from tilec.ops.product_facts import Product
from tilec.ops.product_work import predicted, work_of
from tilec.ops.tile_choice import TURN_WARPS, TileChoice, choose_tiles
from tilec.runtime.device import device
from tilec.tuning.dot_work import Memory
from tilec.tuning.machine import Machine, machine_of
from tilec.tuning.model import predict
from tilec.tuning.tail_model import predict_with_tail

HOPPER = machine_of(device("emulator"), find_target("sm_90a"))
RECORD = Path(__file__).parents[1] / "bench" / "results" / HOPPER.rates.record
RUNS = {(run["device"], run["seed"]): run for run in json.loads(RECORD.read_text())["runs"]}
MACHINES = {
    "NVIDIA H200": replace(HOPPER, memory_gb_per_s=4814),
    "NVIDIA H100 80GB HBM3": replace(HOPPER, memory_gb_per_s=3352, l2_bytes=50 << 20),
}
WIDTHS = {"bf16": 2, "f16": 2, "fp8": 1, "tf32": 4}
COPIED = "+copy"


def product_of(name: str) -> Product:
    """As in "bf16 300x7000x3000 NT", rows or columns of a and b without gaps."""
    dtype, sizes, layout = name.split()
    m, n, k = map(int, sizes.split("x"))
    width = WIDTHS[dtype]
    a = Memory.of(0, (m, k), (1, m) if layout[0] == "T" else (k, 1), width)
    b = Memory.of(0, (k, n), (1, k) if layout[1] == "T" else (n, 1), width)
    kind = "f8" if dtype == "fp8" else dtype
    c = Memory.of(0, (m, n), (n, 1), 2 if kind == "f8" else width)
    return Product(m, n, k, 1, kind, width, a, b, c=c)


def choice_of(label: str) -> TileChoice:
    """As in "128x160x64/T/c41/1"."""
    tile, *words = label.split("/")
    numbers = {word[0]: int(word[1:]) for word in words if re.fullmatch(r"[st]\d+", word)}
    cluster = next((tuple(map(int, w[1:])) for w in words if re.fullmatch(r"c\d\d", w)), (1, 1))
    return TileChoice(
        *map(int, tile.split("x")),  # type: ignore[arg-type]
        splits=numbers.get("s", 1),
        us=0.0,
        is_turned="T" in words,
        cluster=cluster,  # type: ignore[arg-type]
        tail=numbers.get("t", 1),
        in_turn="pp" in words,
    )


def prediction(product: Product, choice: TileChoice, machine: Machine) -> float:
    """Microseconds; infinite for what the model takes for impossible."""
    tile = choice.rows, choice.columns, choice.depth
    product = product.turned() if choice.is_turned else product
    work = work_of(product, tile, 1, choice.cluster, machine)
    if choice.tail > 1:
        return predict_with_tail(work, [choice.tail], machine).get(choice.tail, inf)
    if choice.in_turn:
        return predict(replace(work, teams=2, warps=TURN_WARPS), machine).us
    return predicted(product, tile, choice.splits, choice.cluster, machine)[0]


def compared(device_name: str, seed: int) -> Iterator[tuple[list[tuple[float, float]], str]]:
    """For each product, without copies of operands: predicted and measured times of its tiles."""
    machine = MACHINES[device_name]
    for name, found in RUNS[device_name, seed]["products"].items():
        tiles = {x: us for x, us in found["tiles"].items() if not x.endswith(COPIED)}
        if "pad" in name or len(tiles) < 2:
            continue
        product = product_of(name)
        pairs = [(prediction(product, choice_of(x), machine), us) for x, us in tiles.items()]
        yield [pair for pair in pairs if pair[0] < inf], name


@pytest.mark.parametrize(
    ("device_name", "seed"),
    [
        *(("NVIDIA H200", 202), ("NVIDIA H200", 303)),
        *(("NVIDIA H200", 505), ("NVIDIA H100 80GB HBM3", 404)),  # not fitted to
    ],
)
def test_what_is_first_by_prediction_is_among_the_first_by_the_clock(
    device_name: str, seed: int
) -> None:
    losses, errors = [], []
    for pairs, _ in compared(device_name, seed):
        least = min(us for _, us in pairs)
        losses.append(log(min(pairs)[1] / least))
        errors += [log(expected / us) for expected, us in pairs]
    assert len(losses) > 100
    assert exp(fmean(losses)) < 1.08
    assert sum(loss < log(1.1) for loss in losses) > 0.72 * len(losses)
    assert abs(fmean(errors)) < 0.05
    assert fmean(error**2 for error in errors) ** 0.5 < 0.19


def test_rows_shifted_against_lines_are_shared_by_clusters_in_rounds() -> None:
    """Each half of what L2 is too slow for: 44 to 48 us for 63, cuBLAS 47."""
    product = product_of("bf16 8672x1152x1320 NT")
    found = chosen(product)
    assert found.cluster in ((2, 1), (1, 2))
    assert not found.is_single


def test_sides_between_tiles_are_covered_by_those_of_the_transposed_product() -> None:
    """300 rows by two tiles of 160 columns: 23 us for 30 by three of 128 rows, cuBLAS 21.6."""
    found = chosen(product_of("bf16 300x7000x3000 NT"))
    assert found.is_turned
    assert -(-300 // found.columns) * found.columns <= 320


def test_long_k_in_few_rounds_is_not_rated_by_its_shifted_rows() -> None:
    """137 us for 189 of 256 x 112 with a tail, cuBLAS 134."""
    found = chosen(product_of("bf16 1280x3904x10208 NT"))
    assert (found.rows, found.columns, found.tail) == (128, 160, 1)


def test_rows_that_begin_anywhere_get_tiles_as_large_as_registers_hold() -> None:
    """With a copy of a, as the call makes it: 26.6 us by tiles of 128 x 112, 43.9 by 64 x 112."""
    product = product_of("bf16 256x13888x670 NT")
    found = chosen(replace(product, a=Memory(1, 128)))
    assert found.rows >= 128
    assert found.rows * found.columns >= 128 * 112


def chosen(product: Product) -> TileChoice:
    """For a plain product of bf16 on an H200."""
    sizes = product.m, product.n, product.k, 1
    machine = MACHINES["NVIDIA H200"]
    memories = product.a, product.b
    found = choose_tiles(*sizes, tl.bf16, "ieee", machine, 16, *memories, 4, True, product.c)
    assert found is not None
    return found
