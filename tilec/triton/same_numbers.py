"""Scalars that are computed alike, of the same, become one.

    for tile in range(start, tiles, programs):          tile_c = start - programs in front
        pid_m = first_m + tile % size                   loads rows from pid_m * 128 on
        tile_c += programs
        pid_c = first_c + tile_c % size                 stores rows from pid_c * 128 on
After:  ... pid_c is pid_m

Authors count the tiles that are stored apart from those that are loaded, so that their compiler may
overlap the two. A quotient, remainder, minimum or maximum is a number of its own to `forms.py`; of
two whose operands have the same forms the second is the first. So it is seen that rows which loads
clamp are rows which the store masks off. Sums and products in between are taken to be exact, as
those of addresses.

Does not handle what stands in two branches, or behind a loop and in it.
"""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from tilec.triton.forms import LAUNCH_OPS, Forms
from tilec.triton.program import Block, Function, Value, replace_values


def merge_numbers(function: Function) -> None:
    """Reads the first of such scalars in the place of the others."""
    forms = Forms(function)
    found: dict[Value, Value] = {}
    for block in function.blocks:
        _block(block, forms, ChainMap(), found)
        replace_values(block, found)


def _block(
    block: Block, forms: Forms, known: ChainMap[Any, Value], found: dict[Value, Value]
) -> None:
    for op in block.ops:
        for region in op.regions:
            _block(region, forms, known.new_child(), found)
        if op.name not in LAUNCH_OPS or op.result.type.shape is not None:
            continue
        key = (op.name, op.result.type, *map(forms.integer, op.operands))
        first = known.setdefault(key, op.result)
        if None not in key and first is not op.result:
            found[op.result] = first
            forms.equate(op.result, first)
