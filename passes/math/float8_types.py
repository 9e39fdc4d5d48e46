"""Gives every 8-bit float of a module the type i8 and lists the conversions left to be written."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.dialects.types import is_vector
from tilec.passes.math.float8 import FLOAT8, Float8, code_of
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import all_ops, blocks_in, ops_named
from tilec.records import dataclass

_NARROWING = frozenset({"arith.truncf", "arith.sitofp", "arith.uitofp"})
_WIDENING = frozenset({"arith.extf", "arith.fptosi", "arith.fptoui"})
_SOURCES = _NARROWING | {"arith.bitcast", "arith.constant"}
"""Ops that make 8-bit floats from other types."""


@dataclass(frozen=True)
class Conversion:
    """An op between an 8-bit float of the given format and another type; `narrows` says which way.

    Its 8-bit operand or result already has the type i8.
    """

    op: ir.Operation
    form: Float8
    narrows: bool


class Float8Types:
    """Replaces 8-bit float types in one module. Types other than scalars and vectors stay."""

    def __init__(self, context: ir.Context) -> None:
        with context:
            self._code_type = ir.IntegerType.get_signless(8)
            self._forms = {ir.Type.parse(name): form for name, form in FLOAT8.items()}
        self._mapped: dict[ir.Type, ir.Type | None] = {}
        self._conversions: list[Conversion] = []
        self._casts: list[ir.Operation] = []

    def retype(self, module: ir.Module) -> list[Conversion]:
        """Retypes all values, constants and function types; the conversions in program order."""
        if not self._occurs_in(module):
            return []
        operations = all_ops(module.operation)
        # All ops are judged before any type changes: the formats are gone afterwards.
        for op in operations:
            self._judge(op)
        for op in operations:
            self._retype(op)
        for op in self._casts:
            if op.operands[0].type == op.results[0].type:
                replace_op(op, op.operands[0])
        return self._conversions

    def _occurs_in(self, module: ir.Module) -> bool:
        """Whether some op makes one. In a function of the llvm dialect nothing but `_SOURCES` does,
        elsewhere any op may."""
        for view in module.body.operations:
            if view.operation.name == "llvm.func":
                types = [op.result.type for op in ops_named(view.operation, _SOURCES)]
            else:
                types = [kind for op in all_ops(view.operation) for kind in _types_made(op)]
            if any(self._replacement(type_) is not None for type_ in types):
                return True
        return False

    def _replacement(self, old: ir.Type) -> ir.Type | None:
        """The type to stand for `old`, None if it may stay."""
        if old in self._mapped:
            return self._mapped[old]
        new = None
        if old in self._forms:
            new = self._code_type
        elif is_vector(old) and old.element_type in self._forms:
            with old.context, ir.Location.unknown():
                new = ir.VectorType.get(old.shape, self._code_type)
        self._mapped[old] = new
        return new

    def _form(self, found: ir.Type) -> Float8 | None:
        element = found.element_type if is_vector(found) else found
        return self._forms.get(element)

    def _judge(self, op: ir.Operation) -> None:
        name = op.name
        if not name.startswith(("arith.", "math.")):
            return
        forms = [form for v in (*op.operands, *op.results) if (form := self._form(v.type))]
        if not forms:
            return
        if name in _NARROWING or name in _WIDENING:
            if "roundingmode" in op.attributes:
                raise error_at(op, f"{name} to {forms[0].name} rounds to nearest even only")
            self._conversions.append(Conversion(op, forms[0], name in _NARROWING))
        elif name == "arith.bitcast":
            self._casts.append(op)
        elif name == "arith.constant":
            op.attributes["value"] = self._constant(op, forms[0])
        elif name != "arith.select":
            raise error_at(
                op,
                f"{name} has no form for {forms[0].name}",
                "help: convert the operands to f16, bf16 or f32 first",
            )

    def _constant(self, op: ir.Operation, form: Float8) -> ir.Attribute:
        value = op.attributes["value"]
        replacement = self._replacement(op.results[0].type)
        if isinstance(value, ir.FloatAttr):
            return self._code_attribute(form, value.value)
        if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
            code = self._code_attribute(form, ir.FloatAttr(value.get_splat_value()).value)
            return ir.DenseElementsAttr.get_splat(replacement, code)
        raise error_at(op, f"constant vector of {form.name} whose elements differ")

    def _code_attribute(self, form: Float8, number: float) -> ir.Attribute:
        code = code_of(form, number)
        return ir.IntegerAttr.get(self._code_type, code - 256 if code > 127 else code)

    def _retype(self, op: ir.Operation) -> None:
        for result in op.results:
            self._set_type(result)
        for block in blocks_in(op):
            for argument in block.arguments:
                self._set_type(argument)
        attributes = op.attributes
        for key in ("function_type", "elem_type"):
            if key in attributes:
                self._retype_attribute(op, key)

    def _set_type(self, value: ir.Value) -> None:
        replacement = self._replacement(value.type)
        if replacement is not None:
            value.set_type(replacement)

    def _retype_attribute(self, op: ir.Operation, key: str) -> None:
        old = ir.TypeAttr(op.attributes[key]).value
        if isinstance(old, ir.FunctionType):
            inputs = [self._replacement(each) or each for each in old.inputs]
            results = [self._replacement(each) or each for each in old.results]
            new = ir.FunctionType.get(inputs, results, context=old.context)
        else:
            new = self._replacement(old) or old
        if new != old:
            op.attributes[key] = ir.TypeAttr.get(new, context=old.context)


def _types_made(op: ir.Operation) -> Iterator[ir.Type]:
    """Types of an op's results and of its blocks' arguments."""
    yield from (result.type for result in op.results)
    for block in blocks_in(op):
        yield from (argument.type for argument in block.arguments)
