"""How many slots rings have that the copy engine fills or empties, where the author does not say.

Apart from the passes, so that predictions know it without MLIR.
"""

from __future__ import annotations

from tilec.hardware.target import Target

USUAL_STAGES = 6
MOST_STAGES = 12
"""Where no second CTA fits anyway: 8 stages for 6 gave 64 x 128 tiles 7 to 18 % on an H200, while
two CTAs with 6 stages were up to 30 % faster than one with 12."""


def ring_stages(slot_bytes: int, other_bytes: int, target: Target) -> int:
    """Slots of `slot_bytes` beside `other_bytes` of shared memory; 0 where not even one fits."""
    fitting = min(MOST_STAGES, (target.shared_bytes - other_bytes) // slot_bytes)
    if target.fits_twice(other_bytes + USUAL_STAGES * slot_bytes):
        return min(fitting, USUAL_STAGES)
    return max(fitting, 0)


MOST_AHEAD = 1 << 14
"""Bytes a warp's next panel may wait in beside the one on its way: loads want the memory, too."""


def store_slots(panels: int, panel_bytes: int) -> int:
    """Slots of the ring through which a tile of so many panels leaves by the engine. The next
    program's first panel goes to the slot that was left longest, so they divide the panels."""
    fits = (n for n in (2, 3) if panels % n == 0 and (n - 1) * panel_bytes <= MOST_AHEAD)
    return next(fits, 1)
