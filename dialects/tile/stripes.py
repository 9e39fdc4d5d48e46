"""Programs that several CTAs run, each its stripe of the tiles (pass spread-rows) or its part of a
loop (pass split-sums): `tile.stripes` of the kernel says how many, `tile.parts` into how many parts
such a loop is cut where clusters of so many share it."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.attributes import INT, STRINGS
from tilec.dialects.constraints import INDEX, TILE
from tilec.dialects.merges import wrong_merge
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.tile.dialect import Op
from tilec.dialects.types import count_stripes, element, shape, show


class StripeIdOp(Op, name="stripe_id", pure=True, one_thread=True, in_cta=True, least=0):
    """Gives which stripe of its program this CTA runs: 0 to `tile.stripes` - 1.

    Example:
        %stripe = "tile.stripe_id"() : () -> index
    """

    result = Result(INDEX)

    @classmethod
    def infer_types(cls, **_: Any) -> list[ir.Type]:
        return [ir.IndexType.get()]


class PartIdOp(Op, name="part_id", pure=True, one_thread=True, in_cta=True, least=0):
    """Gives which part of its program's loop this CTA runs: 0 to `tile.parts` - 1. CTAs of a
    cluster have neighbouring ones, in the order of their stripes.

    Example:
        %part = "tile.part_id"() : () -> index
    """

    result = Result(INDEX)

    @classmethod
    def infer_types(cls, **_: Any) -> list[ir.Type]:
        return [ir.IndexType.get()]


class GatherStripesOp(Op, name="gather_stripes", lowered=False):
    """Gives all stripes what each stripe of the program has for `value`, by its number.

    Example:
        %all = "tile.gather_stripes"(%mine) : (tensor<f32>) -> tensor<8xf32>
    """

    value = Operand(TILE)
    result = Result(TILE)

    def check(self) -> str | None:
        if shape(self.value):
            return f"value must be one element, found {show(shape(self.value))}"
        if len(shape(self.result)) != 1 or element(self.value) != element(self.result):
            return f"result must be a row of {element(self.value)}, found {self.result.type}"
        return None


class SumStripesOp(Op, name="sum_stripes", lowered=False):
    """Merges what the CTAs that run a program have for `values`: each gets its stripe, by its
    number, of the sums along `axis`.

    `merges` says how, for each value: by an op of what an earlier and a later CTA have, or, as in
    `olt 0`, the later one where the later of value 0 compares so with the earlier.

    Example:
        %s = "tile.sum_stripes"(%mine) {axis = 0 : i32, merges = ["arith.addf"]}
            : (tensor<64x32xf32>) -> tensor<16x32xf32>
    """

    values = Operand(TILE, variadic=True, mixed=True)
    sums = Result(TILE, variadic=True, mixed=True)
    axis = Attribute(INT)
    merges = Attribute(STRINGS)

    def check(self) -> str | None:
        if not len(self.values) == len(self.sums) == len(self.merges):
            counts = f"{len(self.sums)} sums and {len(self.merges)} merges"
            return f"{len(self.values)} values have {counts}"
        wrong = next(filter(None, (wrong_merge(x, len(self.merges)) for x in self.merges)), None)
        if wrong is not None:
            return wrong
        for value, total in zip(self.values, self.sums, strict=True):
            if not 0 <= self.axis < len(shape(value)):
                return f"axis {self.axis} is out of range for rank {len(shape(value))}"
            if element(value) != element(total):
                return f"sums of {element(value)} are {element(total)}"
            if not count_stripes(shape(value), shape(total), self.axis):
                return f"{show(shape(total))} is no stripe of {show(shape(value))}"
        return None
