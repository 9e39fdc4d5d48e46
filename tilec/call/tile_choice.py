"""A choice of tiles: values of the `tl.auto` constants, and what is asked of the compiler with
them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilec.call.ranked_tiles import Ranked
from tilec.compile.row_walks import HeldAxis
from tilec.costs.work import ALONE
from tilec.records import dataclass
from tilec.terms.demands import CHOSEN_CLUSTER, CHOSEN_WARPS, CLUSTER, NUM_WARPS, SUM_PARTS

Constants = tuple[tuple[str, int], ...]
Point = tuple[Constants, int]
"""Values of the constants, and in how many parts programs are summed."""


@dataclass(frozen=True)
class Tiles:
    """Values of the `tl.auto` constants, and for each the reason; in the report as it stands.
    `holds_rows`: whether they hold the rows that loops walk along; `held`: what these are, where no
    launch brings longer ones and loops go round once; `few`: how many CTAs may work on a row of
    its few programs; `parts`: in how many parts the
    loop of each program is summed; `cluster`: programs that load together what they share; `warps`:
    of a program, None where rules say."""

    chosen: Constants
    reasons: Mapping[str, str]
    holds_rows: bool = False
    held: tuple[HeldAxis, ...] = ()
    few: int = 0
    parts: int = 1
    cluster: tuple[int, int] = ALONE
    warps: int | None = None

    @property
    def demands(self) -> dict[str, Any]:
        """What is asked of the compiler beside the constants."""
        parts = {SUM_PARTS.name: self.parts} if self.parts > 1 else {}
        cluster = {CLUSTER.name: self.cluster} if self.cluster != ALONE else {}
        return parts | cluster | ({NUM_WARPS.name: self.warps} if self.warps is not None else {})


def tiles_of(
    point: Point, reasons: dict[str, str], ranked: Ranked | None, holds_rows: bool = False
) -> Tiles:
    """A candidate, in the cluster that makes it faster by more than the model errs, if any."""
    tiles, parts = point
    found = Tiles(tiles, reasons, holds_rows=holds_rows, parts=parts)
    if ranked is not None and ranked.warps is not None:
        told = {CHOSEN_WARPS: f"{ranked.warps}: fastest by prediction"}
        return replace(found, reasons={**reasons, **told}, warps=ranked.warps)
    if ranked is None or ranked.cluster == ALONE:
        return found
    down, across = ranked.cluster
    gain = ranked.predictions[ALONE] / ranked.predictions[ranked.cluster]
    why = f"{down} x {across}: they load together what they share, {gain:.2f} times as fast"
    told = {CHOSEN_CLUSTER: f"{why} by prediction"}
    return replace(found, reasons={**reasons, **told}, cluster=ranked.cluster)


def label_of(point: Point) -> str:
    """As in "128x256 in 2 parts"."""
    tiles, parts = point
    sizes = "x".join(str(value) for _, value in tiles)
    return f"{sizes} in {parts} parts" if parts > 1 else sizes
