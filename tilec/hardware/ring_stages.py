"""How many slots rings have where the author does not say: those that the copy engine fills or
empties, and those that threads fill by cp.async.

Apart from the passes, so that predictions know it without MLIR.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.hardware.sizes import SECTOR_BYTES, SWIZZLE_BITS, SWIZZLED_ROWS
from tilec.hardware.target import Target

USUAL_STAGES = 6
"""Of a ring that leaves room for a second CTA: two of them with 6 stages were up to 30 % faster on
an H200 than one with 12 (64 x 128 tiles)."""
MOST_STAGES = 12
"""Where no second CTA fits anyway: 8 stages for 6 gave 64 x 128 tiles 7 to 18 % on an H200."""
OUTER_SLOTS = (2, 1)
"""Of rings around loops: the next turn's tiles arrive while a loop runs, or, where only one slot
fits so, while another CTA's does."""
MANY_SLOTS = 4
"""With fewer those of loops have the memory that more than two around them would take; with so many
short loops are served better by tiles of more than one turn ahead. Not timed by itself."""
BARRIER_BYTES = 8
"""Of an mbarrier object, and its alignment (PTX ISA 9.0, "Size and alignment of mbarrier
object")."""


def most_slots(slot_bytes: int, other_bytes: int, target: Target) -> int:
    """Slots of `slot_bytes` beside `other_bytes` of shared memory, as many as a ring may have."""
    return max(0, min(MOST_STAGES, (target.shared_bytes - other_bytes) // slot_bytes))


def ring_stages(slot_bytes: int, other_bytes: int, target: Target) -> int:
    """The same, but fewer where a second CTA then fits on the multiprocessor."""
    fitting = most_slots(slot_bytes, other_bytes, target)
    if target.fits_twice(other_bytes + USUAL_STAGES * slot_bytes):
        return min(fitting, USUAL_STAGES)
    return fitting


def barrier_bytes(rings: int) -> int:
    """The shared memory for the mbarriers of so many rings, whatever their slots: two for each."""
    return 2 * BARRIER_BYTES * MOST_STAGES * rings


def around_ring() -> int:
    """The shared memory that a ring takes beside its slots: its barriers, and up to where a swizzle
    begins."""
    return barrier_bytes(1) + max(SWIZZLE_BITS) * SWIZZLED_ROWS


TOGETHER_BYTES = 64 * 1024
"""Of sums that CTAs send each other at once: what they take, rings beside them lack."""


def sent_together(sums: Sequence[int]) -> bool:
    """Whether sums of so many bytes are sent at once, else one after the other. Each CTA gets as
    many bytes as it sends."""
    return sum(sums) <= TOGETHER_BYTES


LEAST_EXCHANGED = 32
"""Sums of a thread that lanes exchange, to send 16 bytes of neighbours at a time: of 128 x 128 bf16
tiles in 8 parts 256 x 256 x 32768 takes 24.8 us so for 28.5, of 128 x 224 fp8 352 x 1120 x 11856
22.7 for 25.7, of 64 x 64 (32 sums) 64 x 1360 x 4096 6.4 for 6.5; of 64 x 32 it took 6.6 for 6.4, of
64 x 16 16 x 1024 x 8192 8.7 for 8.3 (H200)."""


def sent_in_vectors(sums: int) -> bool:
    """Whether threads that hold so many sums each send them 16 bytes at a time, along whichever
    side the result is stored."""
    return sums >= LEAST_EXCHANGED


MOST_COPIED = 4
"""Slots of a loop pipelined by cp.async: one is multiplied from while three are on their way, as in
CUTLASS's products for sm_80 (3 to 5 stages)."""
CTAS = 2
"""CTAs for which such rings leave room on a multiprocessor, if its registers do: one multiplies
while the other waits or stores."""
FEW_WARPS = 8
"""Warps for which they do where CTAs have few, if two slots remain: decoding from pages in 2 warps
was as fast as any with 3 slots of 16 kB, 2 or 3 of 32 kB, 3 or 4 of 8 kB (an H200; 4 of 32 kB, one
CTA a multiprocessor, took 1.3 times as long)."""
REGISTERS_PER_ACCUMULATOR = 2
"""What a loop of mma instructions takes for each register of its sum, fragments and addresses
included: 244 registers a thread with 128 accumulators."""


def copied_stages(slot_bytes: int, accumulators: int, warps: int, target: Target) -> int:
    """Slots of a loop pipelined by cp.async, one at least. `accumulators`: registers, of all
    threads of a CTA of so many `warps`, that the sums of mma instructions take."""
    registers = REGISTERS_PER_ACCUMULATOR * accumulators
    fitting_ctas = max(1, target.registers_per_sm // max(1, registers))
    many = target.shared_bytes // min(max(CTAS, FEW_WARPS // warps), fitting_ctas)
    few = target.shared_bytes // min(CTAS, fitting_ctas)
    share = max(many, min(few, 2 * slot_bytes))
    return max(1, min(MOST_COPIED, share // max(1, slot_bytes)))


MOST_PANEL = 1 << 15
"""Bytes of a panel without a swizzle, where its rows can be cut."""


def panel_bytes(rows: int, row_bytes: int) -> int:
    """Bytes of a row of the panels in which a tile with so many rows of so many bytes leaves by the
    engine: the widest swizzle that they are a multiple of, 0 if there is none. Where that is the
    narrowest, a copy of it would take as long as one of a wide panel, which a warp waits for: whole
    rows then, an odd number of sectors, of which no more than two lie in the same banks without a
    swizzle; or a third or fifth of rows that are long. Parts of sectors would be written twice."""
    span = next((span for span in SWIZZLE_BITS if row_bytes % span == 0), 0)
    if span != min(SWIZZLE_BITS):
        return span
    sectors = row_bytes // SECTOR_BYTES
    parts = [n for n in range(1, sectors) if sectors % n == 0]
    fitting = (n for n in parts if rows * row_bytes <= n * MOST_PANEL)
    return row_bytes // next(fitting, parts[0]) if parts else span


MOST_AHEAD = 1 << 14
"""Bytes a warp's next panel may wait in beside the one on its way: loads want the memory, too."""


def store_slots(panels: int, panel_bytes: int) -> int:
    """Slots of the ring through which a tile of so many panels leaves by the engine: two, or three
    where only these divide the panels, so that a tile's first panel finds its slot left longest."""
    fitting = [n for n in (2, 3) if n <= panels and (n - 1) * panel_bytes <= MOST_AHEAD]
    return next((n for n in fitting if panels % n == 0), min(fitting, default=1))


def pending_stores(number: int, panels: int, slots: int) -> int:
    """Of the groups of stores that a warp began last, a panel a group, those that may still read
    when its tile's panel `number` is written: those behind the one that had its slot last, maybe of
    the tile before."""
    last = panels - 1 - (panels - 1 - number) % slots  # of those that take the same slot
    before = number - slots if number >= slots else last - panels
    return number - before - 1


FILLING_PART, OTHER_PART = 6, 2
"""What of shared memory, a part of so many, buffers may take for stores that fill their sectors: 32
KiB of an H200's 227, where that was measured, and not of 99, where rings would lose a slot or two
of their few. Other stores may take half: what they save is traffic."""


def most_store_bytes(target: Target, *, fills_sectors: bool) -> int:
    """The shared memory that buffers of stores may take."""
    return target.shared_bytes // (FILLING_PART if fills_sectors else OTHER_PART)
