"""Ops about the program itself: its place in the grid, facts, assertions, printing, inline PTX."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from mlir import ir

from tilec.dialects.attributes import BOOL, INT, STRING, options
from tilec.dialects.constraints import ANY, INDEX
from tilec.dialects.inline_text import wrong_text
from tilec.dialects.op import Attribute, Operand, Result
from tilec.dialects.tile.dialect import Op
from tilec.dialects.types import is_integer, is_tile, number_type, shape


class GridAxis(Op, pure=True, one_thread=True, in_cta=True):
    """An index of the launch grid along `axis`."""

    LEAST: ClassVar[int]
    result = Result(INDEX)
    axis = Attribute(INT)

    @classmethod
    def infer_types(cls, **attributes: Any) -> list[ir.Type]:
        return [ir.IndexType.get()]

    def check(self) -> str | None:
        return None if 0 <= self.axis <= 2 else f"axis must be 0, 1 or 2, found {self.axis}"


class ProgramIdOp(GridAxis, name="program_id", least=0):
    """Position of this program in the launch grid along `axis`.

    Example:
        %m = "tile.program_id"() {axis = 0 : i32} : () -> index
    """


class NumProgramsOp(GridAxis, name="num_programs", least=1):
    """Size of the launch grid along `axis`.

    Example:
        %n = "tile.num_programs"() {axis = 0 : i32} : () -> index
    """


class AssumeOp(Op, name="assume", one_thread=True, in_cta=True):
    """States a fact about a scalar integer: the compiler relies on it, nothing checks it.

    `facts` may hold multiple_of, min and max.

    Example:
        "tile.assume"(%n) {facts = {multiple_of = 16 : i32}} : (index) -> ()
    """

    value = Operand(ANY)
    facts = Attribute(options(multiple_of=INT, min=INT, max=INT))

    def check(self) -> str | None:
        if is_tile(self.value) or not is_integer(self.value.type):
            return f"value must be a scalar integer, found {self.value.type}"
        facts = self.facts
        if facts.get("multiple_of", 1) < 1:
            return f"multiple_of must be positive, found {facts['multiple_of']}"
        if "min" in facts and "max" in facts and facts["min"] > facts["max"]:
            return f"contradictory facts: min {facts['min']} is above max {facts['max']}"
        return None


class AssertOp(Op, name="assert"):
    """Stops the launch with `message` and the source line where a condition is false.

    Example:
        "tile.assert"(%ok) {message = "negative index"} : (tensor<128xi1>) -> ()
    """

    condition = Operand(ANY)
    message = Attribute(STRING)

    def check(self) -> str | None:
        scalar = number_type(self.condition)
        if str(scalar) != "i1":
            return f"condition must be i1 or a tile of i1, found {self.condition.type}"
        return None


_PLACEHOLDER = re.compile(r"\{(.*?)\}")


class PrintOp(Op, name="print", one_layout=True):
    """Prints `format` with each `{}` replaced by a value, eight at most, and each `{u}` by an integer
    without a sign; a tile prints a line per element.

    Example:
        "tile.print"(%x, %n) {format = "x = {}, n = {}", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, i32) -> ()
    """

    values = Operand(ANY, each=8)
    format = Attribute(STRING)

    def check(self) -> str | None:
        placeholders = _PLACEHOLDER.findall(self.format)
        if not {"", "u"}.issuperset(placeholders):
            return "format placeholders must be empty braces '{}', or '{u}'"
        if len(placeholders) != len(self.values):
            return f"format has {len(placeholders)} placeholders for {len(self.values)} values"
        for placeholder, value in zip(placeholders, self.values, strict=True):
            scalar = number_type(value)
            if placeholder and not is_integer(scalar):
                return f"placeholder 'u' is for integers, found {scalar}"
        tiles = {shape(v) for v in self.values if is_tile(v)}
        if len(tiles) > 1:
            return "all printed tiles must have one shape"
        return None


class InlinePtxOp(Op, name="inline_ptx", one_layout=True):
    """PTX text run once per element; `$0 ...` name results, then inputs, as in `constraints`.

    Up to sixteen inputs and eight results. `constraints` are LLVM's: one letter per value (h 16, r 32,
    l 64 bits, f f32, d f64), results with `=`. `pure` text may be merged and dropped. All tiles
    have one shape; scalars stay scalars.

    Example:
        %y = "tile.inline_ptx"(%x) {text = "ex2.approx.f32 $0, $1;", constraints = "=f,f", pure = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>) -> tensor<8xf32>
    """

    inputs = Operand(ANY, each=16)
    outputs = Result(ANY, each=8)
    text = Attribute(STRING)
    constraints = Attribute(STRING)
    pure = Attribute(BOOL)

    def check(self) -> str | None:
        letters = [c.strip() for c in self.constraints.split(",")] if self.constraints else []
        outputs = [c for c in letters if c.startswith("=")]
        if len(outputs) != len(self.outputs) or letters[: len(outputs)] != outputs:
            return f"{len(self.outputs)} results need as many leading '=' constraints"
        if len(letters) - len(outputs) != len(self.inputs):
            return f"{len(self.inputs)} inputs but {len(letters) - len(outputs)} input constraints"
        for number, letter in enumerate(letters):
            mark = "=&?" if number < len(outputs) else ""
            if not re.fullmatch(f"{mark}[hrlfd]", letter):
                return f"unknown constraint '{letter}'; use h, r, l, f or d"
        if wrong := wrong_text(self.text, len(letters)):
            return wrong
        shapes = {shape(v) for v in [*self.inputs, *self.outputs] if is_tile(v)}
        if len(shapes) > 1:
            return "all tiles must have one shape"
        return None
