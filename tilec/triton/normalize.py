"""Brings a kernel, as it is read, into the form that is planned and built: one block of structured
control flow, no calls, pointers and numbers for arguments, no regions that map elements, no loops
that are two in one, no scalars that are computed twice, no accesses by descriptor but loads and
stores of rectangles, no pointers made of numbers, each pointer from one argument where that can be,
none cast to larger elements, and quotients of where programs begin or of groups, those that 32 bits
hold marked.
"""

from __future__ import annotations

from dataclasses import replace

from tilec.triton.cast_pointers import split_casts
from tilec.triton.descriptor_accesses import expand_descriptor_accesses
from tilec.triton.descriptor_arguments import without_descriptors
from tilec.triton.flat_loops import nest_flat_loops
from tilec.triton.grouped_quotients import group_quotients
from tilec.triton.inline import inline_calls
from tilec.triton.lift import lift
from tilec.triton.map_elementwise import expand_maps
from tilec.triton.narrow_quotients import mark_narrow_quotients
from tilec.triton.number_pointers import number_pointers
from tilec.triton.pointer_choices import split_choices
from tilec.triton.pointer_numbers import resolve_numbers
from tilec.triton.program import Function
from tilec.triton.quotients import split_quotients
from tilec.triton.same_numbers import merge_numbers


def normalized(
    function: Function,
    nan: frozenset[str] = frozenset(),
    nonnegative: frozenset[str] = frozenset(),
) -> Function:
    """The same kernel in that form; `function` is used up. CompileError for what cannot be. `nan`:
    the arguments that are descriptors padded with NaN; `nonnegative`: those that are not
    negative."""
    function = lift(function)
    (body,) = function.blocks
    if body.terminator.operands:
        raise body.terminator.error("a kernel returns nothing")
    body.ops = body.ops[:-1]
    inline_calls(function)
    expand_maps(function)
    notes = nest_flat_loops(function, nonnegative)
    merge_numbers(function)
    function = without_descriptors(function, nan)
    expand_descriptor_accesses(function)
    resolve_numbers(function)
    number_pointers(function)
    split_choices(function)
    split_casts(function)
    split_quotients(function)
    mark_narrow_quotients(function)
    group_quotients(function)
    return replace(function, notes=notes)
