"""Lists of arrays: as many as the launch brings, chosen by a number that the kernel computes.

A list is a memref of memrefs, `memref<?xmemref<?xf32, strided<[1]>>>`: its members have one type,
and the facts of the parameter (`tile.facts`) hold for each of them.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.attributes import BOOL, INT, options
from tilec.dialects.constraints import ARRAY, INDEX, LIST
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.tile.dialect import Op
from tilec.dialects.types import is_list

MOST_PART = 1 << 16
"""Elements of a part: the launcher sees to it that all members of a list end so far before what an
index holds, since the number of the first element of a part may lie behind its array."""


class ListOp(Op, pure=True, one_thread=True):
    """An op that reads what the launcher wrote of the members of a list, which stays as it is while
    the kernel runs."""

    src = Operand(LIST)

    def check(self) -> str | None:
        return None if is_list(self.src) else f"expected a list of arrays, found {self.src.type}"


class ArrayAtOp(ListOp, name="array_at"):
    """The array of a list at `position`, counted from 0.

    Where the list has none there it is the list's first, so that nothing wild is read: who may ask
    for one asserts in front that it is there. `options.inside`: it is, as the position of a part of
    this list. Arrays of one list may be the same; arrays of different lists do not overlap.

    Example:
        %p = "tile.array_at"(%ps, %i) {options = {}} : (memref<?xmemref<?xf32, strided<[1]>>>, index) -> memref<?xf32, strided<[1]>>
    """

    position = Operand(INDEX)
    result = Result(ARRAY)
    options = Attribute(options(inside=BOOL), default={})

    @classmethod
    def infer_types(cls, src: Any, position: Any, **_: Any) -> list[ir.Type]:
        return [src.type.element_type]

    def check(self) -> str | None:
        wrong = super().check()
        if wrong is None and self.result.type != self.src.type.element_type:
            one = self.src.type.element_type
            wrong = f"the result is {self.result.type}, arrays of the list are {one}"
        return wrong


class FindPartOp(ListOp, name="find_part", least=0):
    """The place of a part among the arrays of a list: its array's position, and the number of its
    first element there.

    Arrays are cut into parts of `elements`, each from its beginning. With e elements in front of it
    in the list, the parts of the array at position i are those from e // elements + i on, up to the
    next array's. So they need no table that depends on `elements`, and a list has (all elements) //
    elements + (its length) of them: as many as its arrays have, and at most one more for each, that
    begins behind the array's end. `part` must be below that.

    Example:
        %i, %start = "tile.find_part"(%ps, %pid) {elements = 4096 : i32} : (memref<?xmemref<?xf32, strided<[1]>>>, index) -> (index, index)
    """

    part = Operand(INDEX)
    position = Result(INDEX)
    start = Result(INDEX)
    elements = Attribute(INT)

    @classmethod
    def infer_types(cls, src: Any, part: Any, **_: Any) -> list[ir.Type]:
        return [ir.IndexType.get()] * 2

    def check(self) -> str | None:
        wrong = super().check()
        if wrong is None and not 1 <= self.elements <= MOST_PART:
            wrong = f"a part has 1 to {MOST_PART} elements, found {self.elements}"
        return wrong
