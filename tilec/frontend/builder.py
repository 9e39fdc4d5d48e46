"""Makes ops: the current MLIR location and insertion point, element types, constants.

Constants are made once, at the top of the function; inside the region of a reduction they are made
in place, so that the region is closed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir

from tilec.frontend.code_floats import code_number
from tilec.frontend.values import Mistake
from tilec.terms.dtypes import DType, f32, i1, i32, i64

MOST_STEPS = 2_000_000
"""Ops made and expressions evaluated: where unrolling has clearly gone wrong."""

ELEMENTWISE = ("arith.", "math.")
"""How names of elementwise ops begin."""


class Builder:
    """Creates the ops of one kernel; `entry` is the function's entry block.

    It knows nothing of layouts; `LayoutBuilder` (`tile_layouts.py`), which kernels are built with,
    does.

    `num_warps`: of the kernel, None if its author left them open. `role_warps`: of the role that is
    being built, None outside. `explicit`: whether the kernel has used `tilec.language.gpu`.
    `probes`: whether `tl.auto` constants have values that only show what they are for; `asserts`:
    whether the kernel has static assertions.
    """

    def __init__(self, entry: ir.Block, num_warps: int | None = None) -> None:
        self.entry = entry
        self.num_warps = num_warps
        self.role_warps: int | None = None
        self.explicit = False
        self.probes, self.asserts = False, False
        self.contract = ir.Attribute.parse("#arith.fastmath<contract>")
        self.afn = ir.Attribute.parse("#arith.fastmath<afn>")
        self.arcp = ir.Attribute.parse("#arith.fastmath<arcp,contract>")
        self.in_combine = False
        self._elements: dict[DType, ir.Type] = {}
        self._constants: dict[tuple[ir.Attribute, ir.Type], ir.Value] = {}
        self._last_constant: ir.Operation | None = None
        self._steps = 0

    def element(self, dtype: DType) -> ir.Type:
        """The MLIR type of one element."""
        found = self._elements.get(dtype)
        if found is None:
            found = self._elements[dtype] = ir.Type.parse(dtype.in_ir)
        return found

    def type(
        self, dtype: DType, shape: tuple[int, ...] | None, layout: ir.Attribute | None = None
    ) -> ir.Type:
        """The type of a tile, or of a scalar where `shape` is None."""
        element = self.element(dtype)
        return element if shape is None else ir.RankedTensorType.get(shape, element, layout)

    def op(
        self,
        name: str,
        results: Sequence[ir.Type] = (),
        operands: Sequence[ir.Value] = (),
        regions: int = 0,
        **attributes: ir.Attribute,
    ) -> ir.Operation:
        """Creates an op at the current insertion point and location; `agree` says in which layouts
        an elementwise one has its tiles."""
        self.count()
        if name.startswith(ELEMENTWISE):
            operands, results = self.agree(operands, results)
        return ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes=attributes,
            regions=regions,
        )

    def agree(
        self, operands: Sequence[ir.Value], results: Sequence[ir.Type] = ()
    ) -> tuple[Sequence[ir.Value], Sequence[ir.Type]]:
        """Operands and result types of an op whose tiles have one layout, in that layout. Here as
        they are given."""
        return operands, results

    def value(self, name: str, result: ir.Type, *operands: ir.Value, **attributes: Any) -> ir.Value:
        """Creates an op with one result and gives the result."""
        return self.op(name, [result], operands, **attributes).result

    def count(self) -> None:
        """Counts one step; Mistake when there are absurdly many."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise Mistake(
                f"compiling the kernel takes more than {MOST_STEPS} steps",
                "help: use tl.range, which makes a loop, instead of tl.static_range",
            )

    def constant(self, value: Any, dtype: DType, shape: tuple[int, ...] | None = None) -> ir.Value:
        """A constant scalar or splat tile. Mistake where the number does not fit the dtype."""
        return self.typed_constant(self.number(value, dtype), self.type(dtype, shape))

    def typed_constant(self, number: ir.Attribute, kind: ir.Type) -> ir.Value:
        """A constant of a scalar or tile type from a number of its element type."""
        attribute, key = number, (number, kind)
        if not self.in_combine and key in self._constants:
            return self._constants[key]
        if isinstance(kind, ir.RankedTensorType):
            attribute = ir.DenseElementsAttr.get_splat(kind, number)
        if self.in_combine:
            return self.value("arith.constant", kind, value=attribute)
        with self._constant_place():
            made = self.op("arith.constant", [kind], value=attribute)
        self._last_constant = made
        self._constants[key] = made.result
        return made.result

    def number(self, value: Any, dtype: DType) -> ir.Attribute:
        """A typed number attribute. Mistake where the number does not fit the dtype."""
        element = self.element(dtype)
        if dtype.is_code:
            return ir.IntegerAttr.get(element, code_number(value, dtype))
        if dtype.is_float:
            try:
                number = float(value)
            except OverflowError:
                raise Mistake(f"the constant {value} does not fit {dtype}") from None
            if math.isinf(number) and dtype.encoding and dtype.encoding.infinity is None:
                raise Mistake(f"{dtype} has no infinity")
            return ir.FloatAttr.get(element, number)
        if isinstance(value, float):
            raise Mistake(f"the constant {value} is no {dtype}; round it or use a float dtype")
        if dtype.is_bool:
            if value not in (0, 1):
                raise Mistake(f"the constant {value} is no {dtype}; expected True or False")
            return ir.IntegerAttr.get(element, int(value))
        least, most = dtype.limits
        if not least <= value <= most:
            raise Mistake(f"the constant {value} does not fit {dtype}")
        # MLIR reads back what stands for its bits: of the upper half a negative number.
        upper = dtype.is_unsigned and value > most >> 1
        return ir.IntegerAttr.get(element, int(value) - (most + 1 if upper else 0))

    @contextmanager
    def _constant_place(self) -> Iterator[None]:
        last = self._last_constant
        if last is None:
            place = ir.InsertionPoint.at_block_begin(self.entry)
        else:
            place = ir.InsertionPoint.after(last)
        with place:
            yield

    @contextmanager
    def combining(self) -> Iterator[None]:
        """Builds inside the region of a reduction or scan."""
        before, self.in_combine = self.in_combine, True
        try:
            yield
        finally:
            self.in_combine = before


def constant_dtype(value: bool | int | float) -> DType:
    """The dtype a Python number has where nothing else decides it."""
    if isinstance(value, bool):
        return i1
    if isinstance(value, int):
        return i32 if -(1 << 31) <= value < 1 << 31 else i64
    return f32
