"""Pointers whose memory overlaps become one pointer, and numbers.

Before:   @k(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>)
After:    @k(%a: !tt.ptr<f32>, %a_at: i64, %b_at: i64)
          every %a is now tt.addptr %a, %a_at ; every %b is tt.addptr %a, %b_at

What is left points to the first byte of all that was joined, and a launch says how many elements
behind it each pointer was. So both halves of a `torch.cat` are accesses to one array, in the order
in which they are written. Does not handle pointers to elements of different types.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tilec.runtime.arrays import ArrayView
from tilec.triton.memory_of import memory_behind, span_of
from tilec.triton.program import Function, Op, Type, Value, replace_values

Group = tuple[str, ...]
"""The names of pointers that are joined, in the order of the arguments; the first stays."""


def joined(function: Function, groups: Sequence[Group]) -> Function:
    """The same function of fewer pointers. `function`: of one block, its arguments pointers and
    numbers; it is used up."""
    (body,) = function.blocks
    arguments = {argument.name: argument for argument in function.arguments}
    given = dict(zip(function.arguments, function.given, strict=True))
    for names in groups:
        base = arguments[names[0]]
        for name in names:
            number = Value(distance_name(arguments, name), Type("i64"), body, len(given))
            given[number] = {}
            moved = Op("tt.addptr", [base, number], function.location)
            moved.results = [Value(name, base.type, moved, 0)]
            moved.block = body
            replace_values(body, {arguments[name]: moved.result})
            moved.operands[0] = base
            body.ops = [moved, *body.ops]
    gone = {arguments[name] for names in groups for name in names[1:]}
    kept = [argument for argument in given if argument not in gone]
    body.arguments = kept
    return replace(function, arguments=kept, given=[given[argument] for argument in kept])


def distance_name(taken: Collection[str], pointer: str) -> str:
    """The name of the number that says where a joined pointer is. `taken`: the arguments'."""
    found = f"{pointer}_at"
    while found in taken:
        found += "_"
    return found


def can_join(function: Function, pointers: Mapping[str, ArrayView], names: Group) -> bool:
    """Whether pointers are to elements of one type, and in a launch whole elements apart.
    `pointers`: the launch's, by name."""
    first = pointers[names[0]]
    kinds = {argument.type for argument in function.arguments if argument.name in names}
    apart = [pointers[name].pointer - first.pointer for name in names]
    return len(kinds) == 1 and not any(bytes_ % first.element_bytes for bytes_ in apart)


def joined_views(
    function: Function, pointers: Mapping[str, ArrayView], groups: Sequence[Group]
) -> tuple[dict[str, ArrayView], dict[str, int]]:
    """What a launch gives for joined pointers: of each group its memory under the first name, and
    how many elements behind its start each pointer was. `function`: as it was."""
    views, distances = dict(pointers), {}
    taken = [argument.name for argument in function.arguments]
    for names in groups:
        given = [pointers[name] for name in names]
        ends = [span_of(view) for view in given]
        start, end = min(low for low, _ in ends), max(high for _, high in ends)
        memories = [memory_behind(view) for view in given]
        bytes_ = given[0].element_bytes
        views[names[0]] = replace(
            given[0],
            pointer=start,
            shape=((end - start) // bytes_,),
            strides=(1,),
            memory=(min(low for low, _ in memories), max(high for _, high in memories)),
        )
        for name, view in zip(names, given, strict=True):
            distances[distance_name(taken, name)] = (view.pointer - start) // bytes_
    return views, distances
