"""Programs that several CTAs run, each its stripe of the tiles (pass spread-rows) or its part of a
loop (pass split-sums): `tile.stripes` of the kernel says how many."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects.constraints import INDEX, TILE
from tilec.dialects.op import Operand, Result
from tilec.dialects.tile.dialect import Op
from tilec.dialects.types import element, shape, show


class StripeIdOp(Op, name="stripe_id", pure=True, one_thread=True, in_cta=True, least=0):
    """Gives which stripe of its program this CTA runs: 0 to `tile.stripes` - 1.

    Example:
        %stripe = "tile.stripe_id"() : () -> index
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
