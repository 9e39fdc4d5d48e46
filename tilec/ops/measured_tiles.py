"""Tiles that were measured, for products of which the model's choice is known to be slower.

One file a GPU, made by `tilec refit --table`, which `tilec.ops` looks into behind the model. A row
says which tile the model chose when it was measured: where it chooses another one today, or the
file was never compared with this version's code, the row is stale and the model's choice stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import tilec
from tilec.costs.dot_work import LINE_BYTES
from tilec.costs.machine import Machine
from tilec.ops.product_facts import Product
from tilec.ops.tile_choice import TileChoice, completed
from tilec.ops.tile_names import name_of, tile_named, words_of
from tilec.records import dataclass

FORMAT = "tilec tiles 2"
FOLDER = Path(__file__).parent / "tables"
"""Where the files lie that come with tilec."""


@dataclass(frozen=True)
class MeasuredTile:
    """A row: the faster tile and the model's, by name, and the microseconds of each. `code`: the
    digest of what both are in PTX (`tilec.refit.tile_code`)."""

    tile: str
    us: float
    model: str
    model_us: float
    code: str = ""


@dataclass(frozen=True)
class TileTable:
    """The rows of one GPU, by product. `version`: of tilec, whose code is what was measured;
    `measured`: the day, `products`: how many were timed."""

    device: str
    target: str
    multiprocessors: int
    version: str
    measured: str
    products: int
    rows: Mapping[str, MeasuredTile]

    @property
    def stale(self) -> str:
        """Says why no row counts any more; empty where they do."""
        if self.version != tilec.__version__:
            return f"of the code of tilec {self.version}, this is {tilec.__version__}"
        return ""

    def text(self) -> str:
        """The table as a file, which `read_table` reads."""
        fields = {**asdict(self), "rows": {n: asdict(row) for n, row in sorted(self.rows.items())}}
        return json.dumps({"format": FORMAT, **fields}, indent=1) + "\n"


def read_table(path: Path) -> TileTable:
    """The table of a file. ValueError or KeyError where it is none."""
    found: dict[str, Any] = json.loads(path.read_text())
    if found.pop("format") != FORMAT:
        raise ValueError(f"{path}: no {FORMAT!r} file")
    rows = {name: MeasuredTile(**row) for name, row in found.pop("rows").items()}
    return TileTable(**found, rows=rows)


def file_name(device: str) -> str:
    """The name of a GPU's file: `nvidia-h200.json`."""
    return f"{'-'.join(device.lower().split())}.json"


def path_of(device: str) -> Path:
    """Where tilec looks for a GPU's file."""
    return FOLDER / file_name(device)


@cache
def table_of(device: str, multiprocessors: int) -> TileTable | None:
    """The table that comes with tilec for a GPU; None where there is none for one with so many
    multiprocessors."""
    path = path_of(device)
    if not path.exists():
        return None
    found = read_table(path)
    return found if found.multiprocessors == multiprocessors else None


def measured_choice(
    model: TileChoice, product: Product, machine: Machine
) -> tuple[TileChoice, str] | None:
    """The tile of the table for a product of which the model chooses `model`, and why in words;
    None where the model's stands."""
    table = table_of(machine.name, machine.multiprocessors)
    name = product_name(product)
    if table is None or table.stale or name is None:
        return None
    row = table.rows.get(name)
    if row is None or row.model != name_of(model):
        return None
    found = completed(tile_named(row.tile), product, machine)
    why = (
        f"{words_of(found)}: from the table that comes with tilec, {row.us:.1f} us on "
        f"{table.measured}, where the model's choice ({words_of(model)}) took {row.model_us:.1f}"
    )
    return found, why


def product_name(product: Product) -> str | None:
    """What rows call a product, `bf16 4096x4096x4096 NT`: N row-major or T column-major, of a and
    of b; None for those that no table has: batches, results of another dtype than usual, and arrays
    with rows that are not whole lines."""
    memories = (product.a, product.b, product.c)
    aligned = all(x.alignment >= LINE_BYTES and x.contiguous is not None for x in memories)
    is_usual = product.stored_width == product.usual_width and product.c.contiguous == 1
    if product.batch != 1 or product.keeps_sums or not aligned or not is_usual:
        return None
    layout = "".join("TN"[x.contiguous or 0] for x in (product.a, product.b))
    return f"{product.kind} {product.m}x{product.n}x{product.k} {layout}"
