"""Lanes as pieces that one compiled block runs: rectangles of warps and CTAs, and single lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilec.runtime.emulator.writing.binding import Rectangle


@dataclass
class Piece:
    """Lanes that run together: a rectangle, or an array of flat lane numbers."""

    rectangle: Rectangle | None
    lanes: np.ndarray | None

    def mask(self, shape: tuple[int, int, int]) -> np.ndarray:
        mask = np.zeros(shape, np.bool_)
        if self.rectangle is not None:
            mask[self.rectangle.slices] = True
        else:
            mask.reshape(-1)[self.lanes] = True
        return mask


def pieces(mask: np.ndarray) -> list[Piece]:
    """Rectangles of whole warps, and the lanes that are in none of them."""
    whole = mask.all(2)
    found: list[Piece] = []
    if whole.all():
        return [Piece(Rectangle(0, mask.shape[0], 0, mask.shape[1]), None)]
    left = whole.copy()
    while left.any() and len(found) < 8:
        rectangle = _largest_from_first(left)
        left[rectangle.slices] = False
        found.append(Piece(rectangle, None))
    rest = mask & (left | ~whole)[:, :, None]
    if rest.any():
        found.append(Piece(None, np.flatnonzero(rest)))
    return found


def _largest_from_first(left: np.ndarray) -> Rectangle:
    """The first run of CTAs in the first warp, widened over the warps that have it all."""
    warp, cta = (int(part[0]) for part in np.nonzero(left))
    end = cta
    while end < left.shape[1] and left[warp, end]:
        end += 1
    last = warp
    while last < left.shape[0] and left[last, cta:end].all():
        last += 1
    return Rectangle(warp, last, cta, end)
