"""Conversions inside warps: which lane and which register each element comes from, by bits.

Lanes are a power of two, so each bit of a lane's number is one bit of the element's number, or
tells copies apart; what is odd of a size of registers or warps is a digit of its own, which stays
where it is. A conversion permutes these bits (Triton converts linear layouts so, too). A bit may
stay a bit of the register; move from one lane bit to another; leave the registers for a lane bit,
or a lane bit for the registers. Bits that leave are paired with bits that enter. Of a pair, in
round k (0, 1), the lane whose bit is b sends register b ^ k, and the lane whose bit is c gets
c ^ k: all lanes send and get in every round, so a move takes as many shuffles as there are
registers, less those rounds in which all lanes would send to themselves.

1. Registers change places along each pair's leaving bit by the sender's bit: two selects a pair.
2. Along a bit that leaves to where the source has copies, each copy picks its half: one select.
   Copies in different warps get theirs from different lanes, where a lane bit tells halves apart.
3. Shuffles: a butterfly where only pairs' bits differ, else from a computed lane.
4. Registers change places along each pair's entering bit by the receiver's bit.

Where a tile overhangs, phantoms move as elements do: the layouts are those of a larger tile.

Does not handle: phantoms of one layout alone, odd digits that lie elsewhere, elements that leave
their warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tilec.hardware.layout import Layout, Mode
from tilec.hardware.sizes import WARP_SIZE, WORD_BITS
from tilec.records import dataclass

LANE_BITS = WARP_SIZE.bit_length() - 1
Bit = tuple[int, int, int]
"""A digit of an element's coordinates: (dimension, stride, how many it counts: mostly two)."""


@dataclass(frozen=True)
class Exchange:
    """A pair of element bits (masks): `leaving` the registers to lane bit `receiver`, `entering`
    them from lane bit `sender`."""

    leaving: int
    entering: int
    sender: int
    receiver: int


@dataclass(frozen=True)
class LaneMove:
    """A conversion inside warps. Masks have a bit for each bit of an element's number.

    `source`, `result`: the element bits of each register. `staying`: masks of bits of registers on
    both sides, fastest first. `picked`: (mask, bit of the thread number by which each copy picks
    its half). `entering`: masks without a partner, with their sender's lane bit. `lanes`: for each
    bit of the sending lane's number the bit of the receiving thread's, None where rounds count it.
    """

    source: tuple[int, ...]
    result: tuple[int, ...]
    staying: tuple[int, ...]
    exchanges: tuple[Exchange, ...]
    picked: tuple[tuple[int, int], ...]
    entering: tuple[tuple[int, int], ...]
    lanes: tuple[int | None, ...]

    @property
    def is_in_place(self) -> bool:
        """Whether the first round moves nothing, and each other one is a butterfly."""
        return self.lanes == tuple(range(LANE_BITS))

    def packed(self, bits: int) -> tuple[int, ...]:
        """The element bits that tell elements of one word apart; `bits` (at least 8): of an
        element."""
        return self.staying[: max(0, (WORD_BITS // bits).bit_length() - 1)]

    def counts(self, bits: int) -> tuple[int, int]:
        """Gives (shuffles, other instructions) of a warp; the others are selects, and packing and
        unpacking of words.

        A word of neighbours on both sides needs no unpacking: who takes them takes words, as wide
        stores and conversions of pairs do (none of it is left in the PTX of an epilogue).
        """
        packed = self.packed(bits)
        together = 1 << len(packed)
        words = max(1, bits * together // WORD_BITS)
        held = len(self.source) // together
        others = 0
        if together > 1:
            places = [sum(b for n, b in enumerate(packed) if k >> n & 1) for k in range(together)]
            side_by_side = all(list(s[:together]) == places for s in (self.source, self.result))
            others = held if side_by_side else 2 * len(self.source)
        others += held * len(self.exchanges) * words
        for _ in self.picked:
            held //= 2
            others += held * words
        rounds = 1 << (len(self.exchanges) + len(self.entering))
        full, rest = divmod((held >> len(self.exchanges)) * bits * together, WORD_BITS)
        each = full + (rest // bits).bit_count()  # what fills no word goes by powers of two
        moved = (rounds - self.is_in_place) * each
        others += len(self.result) // together * len(self.exchanges) * words
        return moved, others + (0 if self.is_in_place else 2 * LANE_BITS)


@lru_cache(maxsize=4096)
def lane_move(source: Layout, result: Layout, shape: tuple[int, ...]) -> LaneMove | str:
    """Says how shuffles convert a tile of `shape` from `source` to `result`, or why they cannot."""
    reach = source.extents(len(shape))
    if not (source.is_exact(reach) and result.is_exact(reach)):
        return "the layouts reach past the tile's edge in different ways"
    if any(m.size & (m.size - 1) for side in (source, result) for m in side.threads[:-1]):
        return "a size of threads is no power of two"
    have, want = _Places(source), _Places(result)
    if have.odd != want.odd:
        return "a size that is no power of two lies elsewhere"
    length = max(len(have.threads), len(want.threads), LANE_BITS)
    return _match(have.reaching(length), want.reaching(length))


class _Places:
    """The bits of the element's number that a layout's bits of the register's and of the thread's
    number stand for."""

    def __init__(self, layout: Layout) -> None:
        self.registers = [bit for bit in _bits(layout.values) if bit is not None]
        self.threads = _bits(layout.threads)

    @property
    def odd(self) -> tuple[set[Bit], list[tuple[int, Bit]]]:
        """The digits that are no bits, of registers, and of threads with their places."""
        threads = [(n, bit) for n, bit in enumerate(self.threads) if bit and bit[2] > 2]
        return {bit for bit in self.registers if bit[2] > 2}, threads

    def reaching(self, length: int) -> _Places:
        """Threads past the last one hold copies."""
        self.threads += [None] * (length - len(self.threads))
        return self

    @property
    def lanes(self) -> list[Bit | None]:
        return self.threads[:LANE_BITS]

    @property
    def warps(self) -> list[Bit | None]:
        return self.threads[LANE_BITS:]


def _bits(modes: Sequence[Mode]) -> list[Bit | None]:
    return [
        (digit.dim, digit.stride, digit.size) if digit.stride else None
        for digit in digits_of(modes)
    ]


def digits_of(modes: Sequence[Mode]) -> list[Mode]:
    """Modes of two that make up others, each with an odd one behind them where its size is no power
    of two."""
    found = []
    for mode in modes:
        bits = (mode.size & -mode.size).bit_length() - 1
        found += [Mode(2, mode.stride << bit, mode.dim) for bit in range(bits)]
        if mode.size >> bits > 1:
            found.append(Mode(mode.size >> bits, mode.stride << bits, mode.dim))
    return found


def _match(have: _Places, want: _Places) -> LaneMove | str:
    masks: dict[Bit | None, int] = {}
    place = 0
    for bit in filter(None, (*have.registers, *have.threads)):
        masks[bit] = 1 << place
        place += (bit[2] - 1).bit_length()
    picked: list[tuple[int, int]] = []
    for number, (old, new) in enumerate(zip(have.warps, want.warps, strict=True), LANE_BITS):
        if old == new:
            continue
        if old is not None or new not in (*have.registers, *have.lanes):
            return "elements leave their warp"
        if new in have.registers:
            picked.append((masks[new], number))
    leaving = [i for i, bit in enumerate(want.lanes) if bit in have.registers]
    entering = [i for i, bit in enumerate(have.lanes) if bit in want.registers]
    lanes: list[int | None] = [
        i if bit is None else want.threads.index(bit) if bit in want.threads else None
        for i, bit in enumerate(have.lanes)
    ]
    exchanges = []
    for receiver, sender in _pairs(leaving, entering):
        lanes[sender] = receiver
        pair = masks[want.lanes[receiver]], masks[have.lanes[sender]]
        exchanges.append(Exchange(*pair, sender, receiver))
    senders = {exchange.sender for exchange in exchanges}
    receivers = {exchange.receiver for exchange in exchanges}
    rest = [i for i in leaving if i not in receivers]
    copied = [i for i, bit in enumerate(have.lanes) if bit is None]
    if len(rest) > len(copied):
        return "a lane would send different registers at once"
    for receiver, copy in _pairs(rest, copied):
        lanes[copy] = receiver
        picked.append((masks[want.lanes[receiver]], copy))
    return LaneMove(
        sums([masks[bit] for bit in have.registers], [size for _, _, size in have.registers]),
        sums([masks[bit] for bit in want.registers], [size for _, _, size in want.registers]),
        tuple(masks[b] for b in have.registers if b in want.registers and b[2] == 2),
        tuple(exchanges),
        tuple(picked),
        tuple((masks[have.lanes[i]], i) for i in entering if i not in senders),
        tuple(lanes),
    )


def _pairs(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs the numbers of two lists as far as both reach: equal ones with each other, the others
    in order."""
    both = [i for i in first if i in second]
    others = zip(
        (i for i in first if i not in both), (i for i in second if i not in both), strict=False
    )
    return [*((i, i) for i in both), *others]


def sums(masks: Sequence[int], sizes: Sequence[int] = ()) -> tuple[int, ...]:
    """Gives, for each number of as many digits as there are masks, the sum of the masks times its
    digits. `sizes`: what the digits count, two without."""
    found = [0]
    for mask, size in zip(masks, sizes or [2] * len(masks), strict=True):
        found = [number + digit * mask for digit in range(size) for number in found]
    return tuple(found)
