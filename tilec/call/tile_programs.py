"""A kernel's programs at tile level, with the choices for its `tl.auto` constants.

The compiler, and with it MLIR, is imported when one is asked for.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilec.call.specialization import Specialization
from tilec.hardware.target import Target

if TYPE_CHECKING:
    from tilec.call.auto_tiles import AutoTiles
    from tilec.compile.row_walks import HeldAxis


class TilePrograms:
    """Builds `mlir.ir.Module`s of a Python function. `grid`, `demands`: of the decorator."""

    def __init__(self, fn: Callable[..., Any], grid: Any, demands: Mapping[str, Any]) -> None:
        self._fn, self._grid, self._demands = fn, grid, demands
        self._known: dict[Any, AutoTiles] = {}

    def module(
        self, wanted: Specialization, target: Target, number: int = 0, *, context: Any = None
    ) -> Any:
        """The program with the compiler's choice of `tl.auto` constants of that number, 0 the
        first; None past the last, where the author chose all. `context`: MLIR's, else one of its
        own."""
        if not wanted.is_open:
            return None if number else self._build(wanted, {}, {}, context)
        tiles = self.choices(wanted, target).choice(wanted.call, number)
        if tiles is None:
            return None
        build = functools.partial(
            self._build,
            holds_rows=tiles.holds_rows,
            held=tiles.held,
            few=tiles.few,
            chosen_demands=tiles.demands,
        )
        return build(wanted, dict(tiles.chosen), tiles.reasons, context)

    @contextmanager
    def lent(self, wanted: Specialization, target: Target) -> Iterator[Any]:
        """The first of these programs, in a context that others have behind."""
        if wanted.is_open:  # chosen in that one, too
            self.choices(wanted, target).choice(wanted.call, 0)
        with importlib.import_module("tilec.dialects.context").lent_context() as context:
            yield self.module(wanted, target, context=context)

    def choices(self, wanted: Specialization, target: Target) -> AutoTiles:
        """The choices, for any class of sizes."""
        key = (target.name, replace(wanted, call=None).key)
        if key not in self._known:
            ranking = importlib.import_module("tilec.call.auto_tiles")
            build = functools.partial(self._build, wanted)
            self._known[key] = ranking.AutoTiles(
                self._fn, wanted, build, target, has_grid=self._grid is not None
            )
        return self._known[key]

    def _build(
        self,
        wanted: Specialization,
        chosen: Mapping[str, Any],
        reasons: Mapping[str, str],
        context: Any = None,
        *,
        holds_rows: bool = False,
        held: Sequence[HeldAxis] = (),
        few: int = 0,
        chosen_demands: Mapping[str, Any] | None = None,
    ) -> Any:
        """The program with constants chosen for those that are left open. `context`: MLIR's, else
        one of its own. `holds_rows`: whether tiles hold the rows that loops walk along, `held`: and
        what these are, where no launch brings longer ones; `few`: how many CTAs may work on a
        row where there are few programs; `chosen_demands`: beside the author's,
        those that were chosen with the constants."""
        return importlib.import_module("tilec.frontend").build_module(
            self._fn,
            wanted.parameters,
            {**dict(wanted.constants), **chosen},
            grid=self._grid,
            index_bits=wanted.index_bits,
            **{**self._demands, **(chosen_demands or {})},
            auto=reasons,
            programs_per_sm=wanted.programs_per_sm,
            holds_rows=holds_rows,
            held=held,
            few=few,
            context=context,
        )
