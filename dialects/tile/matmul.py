"""Matrix products of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir import ir

from tilec.dialects.attributes import STRING, one_of, options
from tilec.dialects.constraints import TILE
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.tile.dialect import Op
from tilec.dialects.traits import Groups
from tilec.dialects.types import element, shape, show
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.target import Feature
from tilec.records import dataclass

ACCUMULATORS = {
    "f64": ("f64",),
    "f32": ("f32",),
    "f16": ("f32", "f16"),
    "bf16": ("f32",),
    "f8E4M3FN": ("f32", "f16"),
    "f8E5M2": ("f32", "f16"),
    "i8": ("i32",),
}
"""Accumulator element types allowed per input element type."""

PRECISIONS = ("tf32", "ieee")


class DotOp(Op, name="dot", pure=True, lowered=False):
    """Matrix multiply-accumulate: result = lhs @ rhs + acc; leading dimensions are a batch.

    `options.precision` says how f32 inputs multiply: "tf32" keeps 10 of their mantissa bits, what the
    tensor cores read, "ieee" (the default) keeps all 23. `options.instruction` is filled in by
    select-mma.

    Example:
        %d = "tile.dot"(%a, %b, %c) {options = {}} : (tensor<128x64xf16>, tensor<64x128xf16>, tensor<128x128xf32>) -> tensor<128x128xf32>
    """

    lhs = Operand(TILE)
    rhs = Operand(TILE)
    acc = Operand(TILE)
    result = Result(TILE)
    options = Attribute(options(precision=one_of(*PRECISIONS), instruction=STRING), default={})

    @classmethod
    def infer_types(cls, lhs: Any, rhs: Any, acc: Any, **_: Any) -> list[ir.Type]:
        return [acc.type]

    @property
    def scales(self) -> list[ir.Value]:
        """The scales of its operands, the lhs's first; none of a plain dot."""
        return []

    def feature(self) -> Feature | None:
        """The feature that the instruction needs, once one is chosen."""
        named = self.options.get("instruction")
        return None if named is None else find_instruction(named).feature

    def alike(self) -> Groups:
        """See `OpTraits`."""
        return [[self.result, self.acc]]

    def check(self) -> str | None:
        if self.result.type != self.acc.type:
            return f"result type {self.result.type} differs from the accumulator's {self.acc.type}"
        return self._check_shapes() or self._check_elements() or self._check_instruction()

    def _check_shapes(self) -> str | None:
        lhs, rhs, acc = shape(self.lhs), shape(self.rhs), shape(self.acc)
        if not len(lhs) == len(rhs) == len(acc) >= 2:
            found = ", ".join(map(show, (lhs, rhs, acc)))
            return f"lhs, rhs and acc must have one rank of at least 2: {found}"
        if not lhs[:-2] == rhs[:-2] == acc[:-2]:
            return f"batch sizes differ: {show(lhs[:-2])}, {show(rhs[:-2])}, {show(acc[:-2])}"
        if lhs[-1] != rhs[-2]:
            return f"contraction sizes differ: lhs has K={lhs[-1]}, rhs has K={rhs[-2]}"
        if (lhs[-2], rhs[-1]) != acc[-2:]:
            return f"accumulator must be {lhs[-2]}x{rhs[-1]}, found {show(acc[-2:])}"
        return None

    def _check_elements(self) -> str | None:
        lhs, rhs, acc = (str(element(v)) for v in (self.lhs, self.rhs, self.acc))
        eight_bit_floats = {"f8E4M3FN", "f8E5M2"}
        if lhs != rhs and not {lhs, rhs} <= eight_bit_floats:
            return f"lhs and rhs element types differ: {lhs}, {rhs}"
        if lhs not in ACCUMULATORS:
            return f"no dot for {lhs}; known: {', '.join(ACCUMULATORS)}"
        if acc not in ACCUMULATORS[lhs]:
            return f"{lhs} accumulates in {' or '.join(ACCUMULATORS[lhs])}, not {acc}"
        if "precision" in self.options and lhs != "f32":
            return f"option 'precision' is for f32 inputs, found {lhs}"
        return None

    def _check_instruction(self) -> str | None:
        """Says what keeps the op from being done by the instruction it names, if it names one."""
        if "instruction" not in self.options:
            return None
        try:
            row = find_instruction(self.options["instruction"])
        except ValueError as error:
            return str(error)
        if row.is_scaled != isinstance(self, DotScaledOp):
            return f"{row.name} {'takes' if row.is_scaled else 'has no'} scales"
        found = tuple(str(element(v)) for v in (self.lhs, self.rhs, self.acc))
        if found != (row.lhs, row.rhs, row.acc):
            expected = f"{row.lhs}, {row.rhs} and {row.acc}"
            return f"{row.name} multiplies {expected}, found {', '.join(found)}"
        formats = (self.lhs_format, self.rhs_format) if row.is_scaled else ("", "")
        if row.formats != formats:
            wanted, given = (" by ".join(names) for names in (row.formats, formats))
            return f"{row.name} multiplies {wanted}, found {given}"
        sizes = (*shape(self.acc), shape(self.lhs)[-1])
        whole = (row.m, row.n, row.depth)
        if row.reads_buffers and (
            len(sizes) != 3 or any(size % part for size, part in zip(sizes, whole, strict=True))
        ):
            return f"{row.name} does {show(whole)} at once, which do not make up {show(sizes)}"
        return None


@dataclass(frozen=True)
class Format:
    """The format of an operand with scales: the type of its elements, and how many numbers each
    holds."""

    element: str
    pack: int = 1


FORMATS: Mapping[str, Format] = {
    "e4m3": Format("f8E4M3FN"),
    "e5m2": Format("f8E5M2"),
    "e2m3": Format("i8"),
    "e3m2": Format("i8"),
    "e2m1": Format("i8", 2),
    "f16": Format("f16"),
    "bf16": Format("bf16"),
}
"""Formats of operands with scales; of 4 bits two stand in a byte, the first in the low half, of 6
bits one in the low bits (OCP Microscaling Formats v1.0)."""
SCALE_ELEMENTS = ("i8", "f8E4M3FN")
"""Scales: exponents of 2 with a bias of 127, of which 255 is no number; or floats."""


class DotScaledOp(DotOp, name="dot_scaled"):
    """A dot whose operands have scales: result = (lhs * lhs_scale) @ (rhs * rhs_scale) + acc.

    `lhs`: (m, k) numbers of `lhs_format`, `lhs_scale`: (m, k / block); `rhs`: (k, n), `rhs_scale`:
    (k / block, n). Operands of 4 bits have half as many elements along k. `options.instruction`
    is filled in by multiply-out, which makes a dot of every other one.

    Example:
        %d = "tile.dot_scaled"(%a, %b, %c, %sa, %sb) {lhs_format = "e2m1", options = {}, rhs_format = "e4m3"} : (tensor<128x64xi8>, tensor<128x64xf8E4M3FN>, tensor<128x64xf32>, tensor<128x4xi8>, tensor<4x64xi8>) -> tensor<128x64xf32>
    """

    lhs = Operand(TILE)
    rhs = Operand(TILE)
    acc = Operand(TILE)
    lhs_scale = Operand(TILE)
    rhs_scale = Operand(TILE)
    result = Result(TILE)
    lhs_format = Attribute(one_of(*FORMATS))
    rhs_format = Attribute(one_of(*FORMATS))
    options = Attribute(options(instruction=STRING), default={})

    @classmethod
    def infer_types(cls, lhs: Any, rhs: Any, acc: Any, *_: Any, **__: Any) -> list[ir.Type]:
        return [acc.type]

    @property
    def scales(self) -> list[ir.Value]:
        """See `DotOp`."""
        return [self.lhs_scale, self.rhs_scale]

    @property
    def depth(self) -> int:
        """The number of elements along k."""
        return shape(self.lhs)[1] * FORMATS[self.lhs_format].pack

    def check(self) -> str | None:
        if self.result.type != self.acc.type:
            return f"result type {self.result.type} differs from the accumulator's {self.acc.type}"
        sizes = [shape(v) for v in (self.lhs, self.rhs, self.acc, self.lhs_scale, self.rhs_scale)]
        if any(len(size) != 2 for size in sizes):
            return f"operands have two dimensions: {', '.join(map(show, sizes))}"
        (m, n), depth = shape(self.acc), shape(self.rhs)[0] * FORMATS[self.rhs_format].pack
        if self.depth != depth:
            return f"contraction sizes differ: lhs has K={self.depth}, rhs has K={depth}"
        if (shape(self.lhs)[0], shape(self.rhs)[1]) != (m, n):
            return f"accumulator must be {shape(self.lhs)[0]}x{shape(self.rhs)[1]}, found {m}x{n}"
        return self._check_types() or self._check_scales(m, n) or self._check_instruction()

    def _check_types(self) -> str | None:
        for side, value, name in (
            ("lhs", self.lhs, self.lhs_format),
            ("rhs", self.rhs, self.rhs_format),
        ):
            expected = FORMATS[name].element
            if str(element(value)) != expected:
                return f"{side} of {name} is a tile of {expected}, found {element(value)}"
        if str(element(self.acc)) != "f32":
            return f"products with scales accumulate in f32, not {element(self.acc)}"
        return None

    def _check_scales(self, m: int, n: int) -> str | None:
        for side, value, axis, rows in (
            ("lhs", self.lhs_scale, 1, m),
            ("rhs", self.rhs_scale, 0, n),
        ):
            blocks = shape(value)[axis]
            if shape(value)[1 - axis] != rows or self.depth % blocks:
                return (
                    f"{side}_scale has a scale per {'row' if axis else 'column'} and block of "
                    f"{self.depth} numbers, found {show(shape(value))}"
                )
            if str(element(value)) not in SCALE_ELEMENTS:
                return f"{side}_scale is of {' or '.join(SCALE_ELEMENTS)}, found {element(value)}"
        return None
