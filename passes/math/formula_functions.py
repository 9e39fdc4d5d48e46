"""Formulas as functions: each is written once per symbol table, op and types, then called."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.passes.math.expansions import EXPANSIONS, IN_PLACE, Formula
from tilec.passes.math.kinds import F32, Kind, Vocabulary
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder

PREFIX = "__tilec_"
"""Starts the name of every function made here; no other function may have it."""

_FUNCTION_ATTRIBUTES = {
    "linkage": "#llvm.linkage<internal>",
    "sym_visibility": '"private"',
    "always_inline": "unit",
    "no_unwind": "unit",
    "will_return": "unit",
    "memory_effects": "#llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none, "
    "errnoMem = none, targetMem0 = none, targetMem1 = none>",
}


class FormulaFunctions:
    """Applies formulas at a builder's place, in place or through a function of `block`.

    `block` is the body of the symbol table around the builder's place. `call_count` is the number
    of calls written so far.
    """

    def __init__(self, block: ir.Block, vocabulary: Vocabulary) -> None:
        self._block = block
        self._vocabulary = vocabulary
        self.call_count = 0
        self._names = {
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in block.operations
            if op.operation.name == "llvm.func"
        }

    def apply(
        self, b: ScalarBuilder, op_name: str, operands: Sequence[Scalar], *, approximate: bool
    ) -> Scalar:
        """The value of the op `op_name` (a key of EXPANSIONS) on `operands`."""
        kind = operands[0].kind
        expansion = EXPANSIONS[op_name]
        formula = expansion.formula(kind, approximate=approximate)
        if formula in IN_PLACE:
            return _in_working_kind(b, formula, operands)
        suffix = "_afn" if formula is expansion.approximate else ""
        kinds = "_".join(operand.kind.name for operand in operands)
        name = f"{PREFIX}{op_name.split('.')[1]}_{kinds}{suffix}"
        if name not in self._names:
            self._define(name, formula, [operand.kind for operand in operands])
        self.call_count += 1
        return b.call(name, operands, kind)

    def _define(self, name: str, formula: Formula, kinds: Sequence[Kind]) -> None:
        self._names.add(name)
        vocabulary = self._vocabulary
        types = ", ".join(kind.name for kind in kinds)
        attributes = {key: vocabulary.attribute(text) for key, text in _FUNCTION_ATTRIBUTES.items()}
        attributes["sym_name"] = vocabulary.attribute(f'"{name}"')
        attributes["function_type"] = vocabulary.attribute(f"!llvm.func<{kinds[0].name} ({types})>")
        location = ir.Location.name(name, context=vocabulary.context)
        function = ir.Operation.create(
            "llvm.func",
            attributes=attributes,
            regions=1,
            loc=location,
            ip=ir.InsertionPoint.at_block_begin(self._block),
        )
        entry = function.regions[0].blocks.append(
            *(vocabulary.types[kind] for kind in kinds), arg_locs=[location] * len(kinds)
        )
        b = ScalarBuilder(vocabulary, location, ir.InsertionPoint(entry))
        result = _in_working_kind(b, formula, [b.wrap(value) for value in entry.arguments])
        b.operation("llvm.return", (result,), ())


def _in_working_kind(b: ScalarBuilder, formula: Formula, operands: Sequence[Scalar]) -> Scalar:
    """`formula` on operands widened from 16 bits to f32; the result is as the first operand was."""
    widened = [
        b.convert(operand, F32) if operand.kind.is_float and operand.kind.bits == 16 else operand
        for operand in operands
    ]
    return b.convert(formula(b, *widened), operands[0].kind)
