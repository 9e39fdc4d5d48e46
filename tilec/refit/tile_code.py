"""The code that rows of a table of tiles were measured with: whether it is still the same.

What a table says holds for the code that was timed, whatever tilec's version is. So each row has
the digest of what both its tiles are in PTX, which any machine can compile again in a second.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

import tilec
from tilec.costs.machine import Machine, usual_machine
from tilec.hardware.target import Target, find_target
from tilec.messages.diagnostics import CompileError
from tilec.ops.measured_tiles import MeasuredTile, TileTable
from tilec.ops.tile_choice import TileChoice, completed
from tilec.ops.tile_names import tile_named
from tilec.refit.compile_ahead import SOMEWHERE
from tilec.refit.drawn_products import DrawnProduct
from tilec.refit.tile_launches import steps_of, views_at
from tilec.runtime.arrays import HOST
from tilec.runtime.emulator_device import EmulatorDevice

DIGITS = 16
"""Of a digest, as a table has it: two kernels of 2^32 are alike in so many by chance."""
_NO_CODE = re.compile(r"\s*(//|\.(version|file|loc)\b)")
"""Lines that no GPU runs: the PTX version is the driver's, files and lines are the source's."""


class TargetDevice(EmulatorDevice):
    """The emulator in the place of a target's own GPU: what is compiled for it, is for that."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.compute_capability = target.compute_capability
        self.shared_bytes = target.shared_bytes


def code_of(product: DrawnProduct, tiles: Sequence[TileChoice], target: Target) -> str:
    """The digest of the kernels that compute a product in these tiles. CompileError where one does
    not compile, or the environment asks for another target."""
    device, digest = TargetDevice(target), hashlib.sha256()
    views = views_at(product, dict.fromkeys(product.shapes, SOMEWHERE), 0)
    views = {x: replace(v, device=(HOST, 0), framework="numpy") for x, v in views.items()}
    for tile in tiles:
        for step in steps_of(product, tile, views, device, 0):
            kernel = step.kernel.compiled(*step.values, **step.constants)
            if kernel.target != target.name:
                raise CompileError(f"TILEC_TARGET: this is about code for {target.name}; unset it")
            code = [line for line in kernel.ptx.splitlines() if not _NO_CODE.match(line)]
            digest.update("\n".join(code).encode())
    return digest.hexdigest()[:DIGITS]


def with_code(row: MeasuredTile, product: DrawnProduct, machine: Machine) -> MeasuredTile:
    """A row with the digest of the code of today."""
    tiles = [completed(tile_named(x), product.facts, machine) for x in (row.tile, row.model)]
    return replace(row, code=code_of(product, tiles, machine.target))


def of_today(table: TileTable) -> TileTable:
    """The table of this version of tilec, with the rows whose code is what was measured."""
    machine = usual_machine(find_target(table.target), table.device)
    rows = {
        name: row
        for name, row in table.rows.items()
        if with_code(row, DrawnProduct.named(name), machine) == row
    }
    return replace(table, version=tilec.__version__, rows=rows)
