"""Tiles of a product by name, as records and tables have them."""

from __future__ import annotations

import re

from tilec.costs.work import ALONE
from tilec.ops.tile_choice import TileChoice

_NAME = re.compile(r"(\d+)x(\d+)x(\d+)((?:/(?:T|c\d\d|s\d+|t\d+|p\d+|pp|q\d+|1))*)")


def name_of(choice: TileChoice) -> str:
    """Rows x columns x depth, then what is unusual: T, of the transposed product; c21, clusters of
    2 down and 1 across; s4, k in 4 parts; t3, the last round in 3; p4, k in 4 parts by a cluster;
    pp, sets of warps in turn; q4, a ring of 4 slots; 1, no CTA stays for a second program."""
    down, across = choice.cluster
    words = (
        (choice.is_transposed, "T"),
        (choice.cluster != ALONE, f"c{down}{across}"),
        (choice.splits > 1, f"s{choice.splits}"),
        (choice.tail > 1, f"t{choice.tail}"),
        (choice.parts > 1, f"p{choice.parts}"),
        (choice.in_turn, "pp"),
        (choice.stages is not None, f"q{choice.stages}"),
        (choice.is_single, "1"),
    )
    tile = f"{choice.rows}x{choice.columns}x{choice.depth}"
    return "/".join((tile, *(word for is_there, word in words if is_there)))


def tile_named(name: str) -> TileChoice:
    """Reads the name that `name_of` gives; the tile's time is 0. ValueError for others."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"no tile: {name!r}; expected e.g. '128x160x64/T/c41/1'")
    words = found[4].split("/")
    numbers = {word[0]: int(word[1:]) for word in words if word[1:].isdecimal()}
    down, across = divmod(numbers.get("c", 11), 10)
    return TileChoice(
        *(int(found[1]), int(found[2]), int(found[3])),
        splits=numbers.get("s", 1),
        us=0.0,
        is_transposed="T" in words,
        is_single="1" in words,
        cluster=(down, across),
        tail=numbers.get("t", 1),
        in_turn="pp" in words,
        stages=numbers.get("q"),
        parts=numbers.get("p", 1),
    )


def words_of(choice: TileChoice) -> str:
    """A tile in words, for people: `tiles of 128 x 192 x 64, sets of warps in turn`."""
    down, across = choice.cluster
    words = (
        (choice.is_vector, "a matrix times a vector, by threads"),
        (choice.is_transposed, "of the transposed product"),
        (choice.cluster != ALONE, f"clusters of {down} x {across}"),
        (choice.splits > 1, f"k in {choice.splits} parts"),
        (choice.tail > 1, f"k of the last round in {choice.tail} parts"),
        (choice.parts > 1, f"k in {choice.parts} parts, by the CTAs of a cluster"),
        (choice.in_turn, "sets of warps in turn"),
        (choice.stages is not None, f"{choice.stages} stages"),
        (choice.is_single, "a CTA a program"),
    )
    tile = f"tiles of {choice.rows} x {choice.columns} x {choice.depth}"
    return ", ".join((tile, *(word for is_there, word in words if is_there)))
