"""One compiled kernel for all classes of sizes whose tiles are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilec.costs.work import ALONE
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.sizes import WARP_SIZE

if TYPE_CHECKING:
    from tilec.call.tile_choice import Tiles


class SharedCode:
    """Compiled kernels of one Python kernel, by the choices of tiles that led to them."""

    def __init__(self) -> None:
        self._known: dict[Any, CompiledKernel] = {}
        self._same: dict[str, CompiledKernel] = {}

    def one_of(self, kernel: CompiledKernel) -> CompiledKernel:
        """The first kernel that was the same but for its report: devices load each once. What a
        launch asks of its arguments is a part of it, though the code may not need it."""
        return self._same.setdefault(repr(replace(kernel, report={})), kernel)

    def find(
        self, key: Any, order: Sequence[Tiles], compiled: Callable[[], CompiledKernel]
    ) -> CompiledKernel:
        """The kernel for choices in this order: one that was compiled for the first of them, and
        for those behind it that were refused then, or a new one. Its report gives the reasons of
        this order. `key`: what else the code depends on."""
        points = [
            (tiles.chosen, tiles.held, tiles.few, tiles.parts, tiles.cluster, tiles.warps)
            for tiles in order
        ]
        prefixes = [tuple(points[: n + 1]) for n in range(len(order))]
        in_parts = any(tiles.parts > 1 for tiles in order)
        in_clusters = any(tiles.cluster != ALONE for tiles in order)
        for prefix, tiles in zip(prefixes, order, strict=True):
            if (key, prefix) in self._known:
                return _retold(self._known[key, prefix], tiles)
        found = compiled()
        for prefix, tiles in zip(prefixes, order, strict=True):
            same = all(found.constants[name] == value for name, value in tiles.chosen)
            same &= not in_parts or found.stripes == tiles.parts
            same &= not in_clusters or found.cluster == (*tiles.cluster, 1)
            warps = found.threads // (WARP_SIZE * found.programs_per_cta)
            same &= tiles.warps in (None, warps)
            if same:
                self._known[key, prefix] = found
                break
        return found


def _retold(kernel: CompiledKernel, tiles: Tiles) -> CompiledKernel:
    """The same with these reasons for its constants."""
    reasons = dict(tiles.reasons)
    decisions = []
    for entry in kernel.report["decisions"]:
        if entry["about"] == "constant":
            entry = {**entry, "why": reasons.pop(entry["chosen"], entry["why"])}
        decisions.append(entry)
    return replace(kernel, report={**kernel.report, "decisions": decisions})
