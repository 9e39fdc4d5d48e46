"""Tiles measured for common products: the command that finds them, and products that take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fake_driver import uninstall
from simulated_gpu import SimulatedGpu, install_gpu

import tilec
from tilec.cli.command import main
from tilec.cli.doctor import findings
from tilec.costs.machine import machine_of, usual_machine
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import find_target
from tilec.ops import measured_tiles, plain_product
from tilec.ops.known_calls import KnownCalls
from tilec.ops.measured_tiles import (
    MeasuredTile,
    TileTable,
    file_name,
    measured_choice,
    product_name,
    read_table,
)
from tilec.ops.tile_choice import completed
from tilec.ops.tile_names import name_of, tile_named
from tilec.refit import product_timing, tile_code, tile_table
from tilec.refit.common_products import common_products
from tilec.refit.compile_ahead import compile_tiles
from tilec.refit.drawn_products import DrawnProduct
from tilec.refit.tile_code import of_today, with_code
from tilec.refit.tile_table import near_tiles

HOPPER = usual_machine(find_target("sm_90a"), "NVIDIA H200")
PRODUCT = DrawnProduct("bf16", 64, 64, 64, "NT")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SimulatedGpu]:
    """Tables lie in a folder of the test's; what is compiled is compiled in this process."""
    monkeypatch.setenv("TILEC_CACHE", "0")
    monkeypatch.setattr(product_timing, "BUSY_BYTES", 1 << 12)
    monkeypatch.setattr(product_timing, "ROUNDS", 2)
    monkeypatch.setattr(product_timing, "ROOM_BYTES", 64 << 10)
    monkeypatch.setattr(measured_tiles, "FOLDER", tmp_path)
    monkeypatch.setattr(plain_product, "_known", KnownCalls())  # put back behind the test
    monkeypatch.setattr(tile_table, "common_products", lambda _: [PRODUCT])
    monkeypatch.setattr(
        tile_table, "compile_all", lambda jobs, device, *_: {
            product.name: compile_tiles(product, tiles, device) for product, tiles in jobs
        })  # fmt: skip
    measured_tiles.table_of.cache_clear()
    yield install_gpu(monkeypatch, lambda kernel: 700.0)
    uninstall()
    measured_tiles.table_of.cache_clear()


def costs(model: tuple[int, int], others: float) -> Any:
    """Launches take 1000 us in the model's tile, `others` in others."""

    def cost(kernel: CompiledKernel) -> float:
        tile = kernel.constants["BM"], kernel.constants["BN"]
        return 1000.0 if tile == model else others

    return cost


def multiplied(gpu: SimulatedGpu) -> tuple[int, int]:
    """The tile in which `tilec.ops.matmul` multiplies matrices like `PRODUCT`'s."""
    rng = np.random.default_rng(5)
    there = tilec.device("cuda:0")
    a, bt = (rng.standard_normal((64, 64)).astype(ml_dtypes.bfloat16) for _ in range(2))
    b = there.array(bt)
    gpu.ran.clear()
    plain_product._known = KnownCalls()
    c = tilec.ops.matmul(there.array(a), replace(b, strides=(1, 64)))
    expected = a.astype(np.float64) @ bt.T.astype(np.float64)
    np.testing.assert_allclose(c.numpy().astype(np.float64), expected, rtol=0.02, atol=0.1)
    (ran,) = gpu.ran
    return ran["BM"], ran["BN"]


def test_a_table_is_measured_and_taken(gpu: SimulatedGpu, tmp_path: Path, capsys: Any) -> None:
    model = multiplied(gpu)
    gpu.cost = costs(model, 900.0)
    assert main(["refit", "--table", "--tiles", "2", "--out", str(tmp_path)]) == 0
    assert "1 of 1 products are faster in another tile than the model's" in capsys.readouterr().out
    (path,) = tmp_path.glob("*.json")
    assert path.name == "simulated-gpu.json"
    ((name, row),) = read_table(path).rows.items()
    assert (name, row.us, row.model_us) == ("bf16 64x64x64 NT", 900.0, 1000.0)
    measured_tiles.table_of.cache_clear()
    chosen = multiplied(gpu)
    assert chosen != model
    assert row.tile.startswith(f"{chosen[0]}x{chosen[1]}x")
    assert {f.text[:28] for f in findings() if f.subject == "cuda:0 tiles"} == {
        "measured ones for 1 of 1 com"
    }


def test_reports_say_where_a_tile_is_from(gpu: SimulatedGpu, tmp_path: Path) -> None:
    there = tilec.device("cuda:0")
    a = there.empty((64, 64), "bfloat16")
    memory, bias = there.empty((64, 64), "bfloat16"), there.empty((64,), "f32")
    b = replace(memory, strides=(1, 64))
    by_model = tilec.ops.matmul_report(a, b)
    assert ": the model's choice" in by_model.splitlines()[0]
    assert "dot instruction: mma" in by_model  # what the compiler says of its kernel
    choices = near_tiles(PRODUCT, machine_of(there, find_target("sm_80")), 2)
    names = [name_of(one) for one in choices]
    rows = {"bf16 64x64x64 NT": MeasuredTile(names[1], 5.0, names[0], 6.0)}
    found = TileTable("Simulated GPU", "sm_80", 108, tilec.__version__, "2026-11-23", 7, rows)
    (tmp_path / "simulated-gpu.json").write_text(found.text())
    measured_tiles.table_of.cache_clear()
    assert "from the table that comes with tilec" in tilec.ops.matmul_report(a, b).splitlines()[0]
    assert ": the model's" in tilec.ops.matmul_report(a, b, bias=bias).splitlines()[0]
    assert tilec.ops.matmul_report(there.empty((0, 64), "bfloat16"), b).startswith("nothing is")
    assert not gpu.ran
    (tmp_path / "simulated-gpu.json").write_text(replace(found, version="0.0.1").text())
    measured_tiles.table_of.cache_clear()
    assert ": the model's" in tilec.ops.matmul_report(a, b).splitlines()[0]
    (said,) = (f for f in findings() if f.subject == "cuda:0 tiles")
    path = tmp_path / "simulated-gpu.json"
    assert (said.state, said.remedy) == ("missing", f"tilec refit --table --record {path}")
    assert "stale, so that the model's choices stand: of the code of tilec 0.0.1" in said.text


def test_less_than_3_percent_is_no_row(gpu: SimulatedGpu, tmp_path: Path) -> None:
    gpu.cost = costs(multiplied(gpu), 980.0)
    assert main(["refit", "--table", "--tiles", "2", "--out", str(tmp_path)]) == 0
    table = read_table(tmp_path / "simulated-gpu.json")
    assert (table.products, table.rows) == (1, {})


def test_one_lucky_timing_is_no_row(gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = replace(HOPPER, target=find_target("sm_80"))
    choices = near_tiles(PRODUCT, machine, 3)
    names = [name_of(one) for one in choices]

    rounds = [dict(zip(names, us, strict=True)) for us in ((10.0, 8.0, 9.0), (10.0, 9.9, 9.8))]

    class Timer:
        def times(self, product: DrawnProduct, tiles: Any) -> dict[str, float]:
            return rounds.pop(0)

    assert tile_table._faster(Timer(), PRODUCT, choices) is None  # pyright: ignore


def test_what_is_wrong_is_said(
    gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setattr(gpu, "cuLaunchKernel", lambda *_: (0,))
    assert main(["refit", "--table", "--tiles", "2", "--out", str(tmp_path)]) == 1
    assert "wrong, and left out: bf16 64x64x64 NT in tiles of" in capsys.readouterr().err


def table(rows: dict[str, MeasuredTile], version: str = tilec.__version__) -> TileTable:
    told = HOPPER.multiprocessors, version, "2026-11-23", 9, rows
    return TileTable("NVIDIA H200", "sm_90a", *told)


@pytest.mark.parametrize("stale", ["", "version", "model", "multiprocessors", "device", "product"])
def test_a_row_counts_where_it_was_measured(
    stale: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On such a device, by this version, for a product of which the model chose the same tile."""
    product = DrawnProduct("bf16", 4096, 4096, 4096, "NT")
    model, other = near_tiles(product, HOPPER, 2)
    name = product_name(product.facts)
    row = MeasuredTile(
        name_of(other), 90.0, "64x64x64" if stale == "model" else name_of(model), 99.0
    )
    found = table({"bf16 1x1x1 NT" if stale == "product" else str(name): row})
    found = replace(found, version="0.0.1") if stale == "version" else found
    found = replace(found, multiprocessors=78) if stale == "multiprocessors" else found
    monkeypatch.setattr(measured_tiles, "FOLDER", tmp_path)
    device = "NVIDIA H100" if stale == "device" else HOPPER.name
    (tmp_path / file_name(device)).write_text(found.text())
    measured_tiles.table_of.cache_clear()
    chosen = measured_choice(model, product.facts, HOPPER)
    measured_tiles.table_of.cache_clear()
    if stale:
        assert chosen is None
    else:
        assert chosen is not None
        assert name_of(chosen[0]) == name_of(other)
        assert "from the table that comes with tilec, 90.0 us on 2026-11-23" in chosen[1]


def test_names_are_of_plain_products_alone() -> None:
    facts = PRODUCT.facts
    assert product_name(facts) == "bf16 64x64x64 NT"
    assert product_name(replace(facts, batch=2)) is None
    assert product_name(replace(facts, keeps_sums=True)) is None
    for odd in (DrawnProduct("bf16", 64, 64, 72, "NT"), DrawnProduct("bf16", 64, 72, 64, "NT")):
        assert product_name(odd.facts) is None


def test_tiles_that_were_timed_are_those_that_a_name_gives() -> None:
    seen: set[str] = set()
    for product in list(common_products(HOPPER.target))[::8]:
        for one in near_tiles(product, HOPPER, 12):
            seen |= {word[0] for word in name_of(one).split("/")[1:]}
            again = completed(tile_named(name_of(one)), product.facts, HOPPER)
            assert replace(again, us=0.0) == replace(one, us=0.0)
    assert seen >= set("Tcsq1p")


@pytest.mark.parametrize(
    "path", sorted(measured_tiles.FOLDER.glob("*.json")), ids=lambda path: path.stem
)
def test_a_table_that_comes_with_tilec(path: Path) -> None:
    """It is of this version, of its file's device, and names tiles and products; its rows were
    measured with the code of today. Where they were not, `tilec refit --table --record` drops
    them."""
    found = read_table(path)
    assert path.name == file_name(found.device)
    assert not found.stale
    assert found.products >= len(found.rows)
    for row in found.rows.values():
        assert name_of(tile_named(row.tile)) == row.tile
        assert row.us * tile_table.GAIN < row.model_us
    assert set(of_today(found).rows) == set(found.rows)


def written(path: Path) -> TileTable:
    """A table of an older version: a row of the code of today, and one of other code."""
    rows = {}
    for side in (64, 128):
        product = DrawnProduct("bf16", side, side, side, "NT")
        model, other = near_tiles(product, HOPPER, 2)
        row = MeasuredTile(name_of(other), 90.0, name_of(model), 99.0)
        rows[product.name] = with_code(row, product, HOPPER)
    old = "bf16 128x128x128 NT"
    rows[old] = replace(rows[old], code=rows["bf16 64x64x64 NT"].code)
    path.write_text(table(rows, "0.0.1").text())
    return table(rows)


def test_rows_of_the_code_of_today_go_on_with_another_version(tmp_path: Path, capsys: Any) -> None:
    found = written(tmp_path / "old.json")
    command = ["refit", "--table", "--record", str(tmp_path / "old.json"), "--out", str(tmp_path)]
    assert main(command) == 0
    name = "bf16 64x64x64 NT"
    assert read_table(tmp_path / "nvidia-h200.json") == replace(
        found, rows={name: found.rows[name]}
    )
    said = capsys.readouterr().out
    assert "left out: bf16 128x128x128 NT: measured with other code than" in said
    assert "1 of 2 rows are of the code of today" in said


def test_what_is_no_table_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    command = ["refit", "--table", "--record", str(tmp_path / "t.json"), "--out", str(tmp_path)]
    assert main(command) == 1
    (tmp_path / "t.json").write_text('{"format": "tilec tiles 1"}')
    assert main(command) == 1
    assert capsys.readouterr().err.count("t.json: no table of tiles: ") == 2
    written(tmp_path / "t.json")
    monkeypatch.setenv("TILEC_TARGET", "sm_80")
    assert main(command) == 1
    assert "TILEC_TARGET: this is about code for sm_90a" in capsys.readouterr().err


def test_files_and_lines_of_the_source_are_no_code() -> None:
    lines = (".version 9.0", '\t.file\t1 "k.py"', "\t.loc\t1 2 3", "// %bb.0:")
    assert all(map(tile_code._NO_CODE.match, lines))  # pyright: ignore[reportPrivateUsage]
    for line in (".target sm_90a", "\tadd.s32 %r1, %r2, 1; // twice"):
        assert not tile_code._NO_CODE.match(line)  # pyright: ignore[reportPrivateUsage]
