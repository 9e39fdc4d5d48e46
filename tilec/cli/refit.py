"""Times products on the GPU at hand and fits to them what autotuning and `tilec.ops` predict with.

Products and tiles are drawn by a seed, each result is checked before it is timed; others, drawn by
the next seed, judge the fit. Timings are written to DIR/products-TARGET-DATE.json, and where the
fit is better than the rates that stand in tilec, it is written to DIR/TARGET.py. With --table
nothing is fitted: products that many programs compute are timed in the tiles nearest the model's
choice, and where one of those is over 3 % faster it goes into DIR/DEVICE.json, which `tilec.ops`
consults (tilec/ops/tables). Rows hold for the code that was timed: --table --record FILE keeps
those whose code this version still has, and needs no GPU. All of these belong to tilec
(CONTRIBUTING.md, "Changing a target's rates"), so send them. Nothing else should run on the GPU
meanwhile.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

import tilec
from tilec.call.device_target import target_of
from tilec.cli.parser import AT_FAULT, DONE
from tilec.cli.streams import pass_on
from tilec.costs.machine import Machine, machine_of
from tilec.costs.rates import rates_of
from tilec.messages.diagnostics import CompileError
from tilec.ops.measured_tiles import TileTable, file_name, read_table
from tilec.refit.fitting import ROUNDS, fit, names_of, value_of
from tilec.refit.measuring import Draw, measure
from tilec.refit.rates_file import rates_text
from tilec.refit.record import FIT, TEST, RecordError, Run, check_runs, read_record, record_text
from tilec.refit.scores import cases_of, is_better, score
from tilec.refit.tile_code import of_today
from tilec.refit.tile_table import measure_table
from tilec.runtime.arrays import CUDA
from tilec.runtime.cuda.driver import check, load_driver
from tilec.runtime.device import device as find_device
from tilec.runtime.errors import DeviceError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec refit`."""
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("refit"))
    parser.add_argument("--device", metavar="NAME", default="cuda", help="cuda or cuda:N")
    parser.add_argument(
        "--record",
        metavar="FILE",
        type=Path,
        help="fit to this, or keep of this table what holds for this version; measure nothing",
    )
    parser.add_argument(
        "--table", action="store_true", help="time common products for tilec/ops/tables instead"
    )
    parser.add_argument("--minutes", type=float, default=8.0, help="at most, about (8)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (1)")
    parser.add_argument("--products", type=int, default=600, help="drawn (600)")
    parser.add_argument("--tiles", type=int, help="of each (6; with --table 20)")


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec refit`; the exit code."""
    today = datetime.date.today().isoformat()
    wrong: list[str] = []
    try:
        if arguments.table:
            return _tabled(arguments, today)
        if arguments.record is not None:
            runs, versions = read_record(arguments.record), _versions()
            record = arguments.record.name
        else:
            runs, wrong, versions = _measured(arguments)
            record = f"products-{runs[0].machine.target.name}-{today}.json"
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / record).write_text(record_text(runs, today, versions))
            print(f"timings: {arguments.out / record}")
        check_runs(runs)
    except (RecordError, DeviceError) as error:
        raise CompileError(str(error)) from None
    path = _refitted(runs, record, today, versions, arguments.out)
    print(f"rates: {path}" if path else "no better than those that stand in tilec: these stay")
    return _ended(wrong)


def _tabled(arguments: argparse.Namespace, today: str) -> int:
    """Measures a table of tiles, or compares one with the code of today, and writes it; the exit
    code."""
    if arguments.record is not None:
        return _compared(arguments.record, arguments.out)
    device, machine = _machine(arguments.device)
    tiles = 20 if arguments.tiles is None else arguments.tiles
    rows, count, wrong = measure_table(
        device, machine, tiles, arguments.seed, arguments.minutes, _complain
    )
    for name, row in rows.items():
        gain = row.model_us / row.us
        print(f"{name:30} {row.model:20} {row.model_us:9.2f} us  {row.tile:20} {gain:.3f}")
    print(f"{len(rows)} of {count} products are faster in another tile than the model's")
    told = tilec.__version__, today, count, rows
    table = TileTable(machine.name, machine.target.name, machine.multiprocessors, *told)
    _write_table(table, arguments.out)
    return _ended(wrong)


def _compared(record: Path, out: Path) -> int:
    """Writes the rows of a table whose code is still what was measured; the exit code."""
    try:
        before = read_table(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CompileError(f"{record}: no table of tiles: {error}") from None
    table = of_today(before)
    for name in before.rows.keys() - table.rows.keys():
        print(f"left out: {name}: measured with other code than tilec {tilec.__version__} has")
    print(f"{len(table.rows)} of {len(before.rows)} rows are of the code of today")
    _write_table(table, out)
    return DONE


def _write_table(table: TileTable, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    path = out / file_name(table.device)
    path.write_text(table.text())
    print(f"table: {path}")


def _ended(wrong: Sequence[str]) -> int:
    """The exit code; says what was wrong."""
    for message in wrong:
        pass_on(f"wrong, and left out: {message}\n")
    return AT_FAULT if wrong else DONE


def _machine(name: str) -> tuple[Any, Machine]:
    """The GPU of that name, and what predictions go by. DeviceError for what is none."""
    device = find_device(name)
    if device.kind != CUDA:
        raise DeviceError(f"{device.name} has no speed to be measured: name a GPU, or --record")
    machine = machine_of(device, target_of(device))
    print(f"{machine.name}, {machine.target.name}: {machine.figures}", flush=True)
    return device, machine


def _complain(text: str) -> None:
    pass_on(f"left out: {text}\n")


def _measured(arguments: argparse.Namespace) -> tuple[list[Run], list[str], dict[str, str]]:
    """Measures: gives what was timed, what was wrong, and with which versions."""
    device, machine = _machine(arguments.device)
    tiles = 6 if arguments.tiles is None else arguments.tiles
    what = Draw(arguments.seed, arguments.products, tiles)
    runs, wrong = measure(device, machine, what, arguments.minutes, _complain)
    timed = [len(tiles) for run in runs for tiles in run.products.values()]
    print(f"{len(timed)} of {what.products} products timed, in {sum(timed)} tiles")
    number = check(load_driver().cuDriverGetVersion(), "asking the driver for its version")
    return (
        runs,
        wrong,
        {**_versions(), "CUDA of the driver": f"{number // 1000}.{number % 100 // 10}"},
    )


def _versions() -> dict[str, str]:
    return {"tilec": tilec.__version__, "Python": platform.python_version()}


def _refitted(
    runs: Sequence[Run], record: str, today: str, versions: Mapping[str, str], folder: Path
) -> Path | None:
    """Fits, prints how it does, and writes the rates' file; None where the fit is no better."""
    target = runs[0].machine.target
    cases = {use: cases_of(runs, use) for use in (FIT, TEST)}
    before = rates_of(target)
    with tqdm(total=ROUNDS, desc="fitting", unit="round", leave=False, file=sys.stderr) as bar:
        after = fit(cases[FIT], before, step=bar.update)
    scores = {use: [score(cases[use], rates) for rates in (before, after)] for use in cases}
    for use, pair in scores.items():
        for word, one in zip(("before", "now"), pair, strict=True):
            print(f"{use:5} {word:7} {one}")
    for name in names_of(before):
        print(f"  {name:18} {value_of(before, name):10.4g} {value_of(after, name):10.4g}")
    old, new = scores[TEST]
    if not is_better(new, old):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{target.name}.py"
    path.write_text(rates_text(after, runs, record, today, versions, old, new))
    return path
