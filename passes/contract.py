"""What a pass is: one function `(module, context)`, or `(function, context)` a kernel, a level it
reads and a level it leaves.

`@tile_pass` or `@kernel_pass` names the pass after its function and gives it its contract. Levels
are legality sets, checked between passes when `PassContext.verify` is set.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from mlir import ir

from tilec.hardware.ptx_version import NEWEST
from tilec.hardware.sizes import WARP_SIZE
from tilec.hardware.target import Feature, Target
from tilec.messages.diagnostics import CompileError, InternalError
from tilec.passes.rewriting.locations import error_at, source_location
from tilec.passes.rewriting.walk import kernels
from tilec.records import dataclass


class Level(Enum):
    """What a module may contain, as `checks/levels.py` checks. Each pass requires one and ensures
    one."""

    TILE = "tile"
    """Tile programs without layouts."""
    SELECTED = "selected"
    """As TILE; every dot names its instruction and has element types it takes."""
    LAYOUTS = "layouts"
    """Every tile has a layout; conversions are explicit."""
    BUFFERS = "buffers"
    """No op moves elements across warps but through a buffer."""
    ALLOCATED = "allocated"
    """Every buffer has an offset."""
    NVVM = "nvvm"
    """Only llvm, nvvm, and scalar ops."""


@dataclass
class Report:
    """The decision report: what the compiler chose by itself, and why not otherwise.

    `decisions`: one record per choice, `{"about", "at", "chosen", "why", ...}`, in compile order.
    """

    decisions: list[dict[str, Any]] = field(default_factory=list)

    def add(self, about: str, op: ir.Operation | None, chosen: str, why: str, **facts: Any) -> None:
        """Records one decision about `op`."""
        entry: dict[str, Any] = {
            "about": about,
            "at": show_location(op),
            "chosen": chosen,
            "why": why,
        }
        entry.update(facts)
        self.decisions.append(entry)

    def has(self, about: str, op: ir.Operation, chosen: str) -> bool:
        """Whether this was decided about `op`, or what stood at its place before a pass."""
        found = (about, show_location(op), chosen)
        return any((one["about"], one["at"], one["chosen"]) == found for one in self.decisions)


def show_location(op: ir.Operation | None) -> str:
    """`file:line:column` of an op, or "" where it has none."""
    location = None if op is None else source_location(op.location)
    return "" if location is None else str(location)


@dataclass(frozen=True)
class Allowance:
    """What of a CTA's memory the compiler's own choices may take. An author's demand is met or
    refused whatever this says.

    `stages`: the most that a loop has. `copies`: whether tiles may have buffers ahead of their use,
    by asynchronous copies, or to leave by. `tensor_memory`: whether sums may lie there.
    """

    stages: int = 1 << 16
    copies: bool = True
    tensor_memory: bool = True


@dataclass
class PassContext:
    """What a pass may ask: the target, the CTA's warps, the index width, what its own choices may
    take, and where to report.

    `lanes`: how many of each warp run a program; fewer than all only of a program of one warp.

    `ptx_version`: the newest, times ten, whose instructions the program may use.
    `given`: the level of the program that came in; behind TILE somebody else ran the passes before.
    `verify`: check the program and its level after each pass (environment: TILEC_CHECK=1).
    """

    target: Target
    num_warps: int = 4
    index_bits: int = 64
    report: Report = field(default_factory=Report)
    allowance: Allowance = field(default_factory=Allowance)
    ptx_version: int = NEWEST
    given: Level = Level.TILE
    verify: bool = field(default_factory=lambda: os.environ.get("TILEC_CHECK") == "1")
    lanes: int = WARP_SIZE

    @property
    def num_threads(self) -> int:
        """Threads of a program."""
        return self.num_warps * self.lanes

    def broken(self, op: ir.Operation, message: str) -> CompileError | InternalError:
        """The error for a program that is not what passes before this one leave: its author's where
        it came in between passes, ours otherwise."""
        if self.given is not Level.TILE:
            return error_at(op, message)
        return InternalError(f"{show_location(op)}: {message}")


PassFunction = Callable[[ir.Module, PassContext], None]


@dataclass(frozen=True)
class TilePass:
    """A pass with its contract; call it like the function it wraps.

    `behind`: passes that come in front of it wherever both run, and why. Either may run alone.
    `rings`: whether it makes, moves or changes turns of rings, whose protocol is verified then.
    """

    name: str
    run: PassFunction
    requires: Level
    ensures: Level | None
    behind: tuple[tuple[str, str], ...] = ()
    rings: bool = False

    @property
    def summary(self) -> str:
        """First line of the pass's documentation."""
        return (self.run.__doc__ or "").strip().split("\n")[0]

    def __call__(self, module: ir.Module, context: PassContext) -> None:
        self.run(module, context)


def tile_pass(
    *,
    requires: Level,
    ensures: Level | None = None,
    keeps: bool = False,
    behind: Mapping[str, str] | None = None,
    rings: bool = False,
) -> Callable[[PassFunction], TilePass]:
    """Declares a pass; its name is the function's in kebab case.

    It leaves the level that it `requires`, but where it `ensures` another, or `keeps` the one it
    finds, which may be a later one. `behind`, `rings`: see `TilePass`.
    """

    left = None if keeps else ensures or requires
    reasons = tuple((behind or {}).items())

    def declare(run: PassFunction) -> TilePass:
        return TilePass(run.__name__.replace("_", "-"), run, requires, left, reasons, rings)

    return declare


def kernel_pass(
    *, needs: Feature | None = None, **contract: Any
) -> Callable[[Callable[[ir.Operation, PassContext], None]], TilePass]:
    """Declares a pass that looks at one kernel after the other, on targets that have what it
    `needs`. `contract`: see `tile_pass`."""

    def declare(run: Callable[[ir.Operation, PassContext], None]) -> TilePass:
        @functools.wraps(run)
        def run_all(module: ir.Module, context: PassContext) -> None:
            if needs is None or context.target.supports(needs):
                for function in kernels(module):
                    run(function, context)

        return tile_pass(**contract)(run_all)

    return declare
