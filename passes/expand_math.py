"""expand-math: write math functions as arithmetic LLVM's NVPTX back end can select.

LLVM ends the process on most math intrinsics for this target (no library to call), so none may
reach it. `passes/math/README.md` has the error of every function.

Before:   llvm.func @kernel(%x: f32) {
            %0 = math.exp %x : f32
            %1 = math.exp %x fastmath<afn> : f32
            %2 = math.floor %x : f32
After:    llvm.func internal @__tilec_exp_f32(%x: f32) -> f32 attributes {always_inline, ...} {
            ... arith, llvm.intr.fma, ex2.approx ...
          }
          llvm.func @kernel(%x: f32) {
            %0 = llvm.call @__tilec_exp_f32(%x) : (f32) -> f32
            %c = arith.constant 1.44269502 : f32
            %m = arith.mulf %x, %c : f32
            %1 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%m) : (f32) -> f32
            %2 = llvm.intr.floor(%x) : (f32) -> f32

A formula of more than a few ops becomes a function, made once per symbol table, op, type and
flags: a kernel calls it up to hundreds of times, and one call costs MLIR a fraction of the formula.
LLVM inlines it (the pipeline must contain its always-inline pass, as every -O level does).

Types: f32 and f64 by formulas of their own; f16 and bf16 in f32, rounded at the end.
One-dimensional vectors are taken apart, except by ops LLVM has for vectors. fastmath<afn> asks for
the hardware's approximation, which flushes f32 denormals; f64 has none and stays accurate. The
report says what many accurate ones at a place take.
Otherwise denormal arguments and results are right. arith.divf is correctly rounded; fastmath<arcp>
gives div.full (2 ulp), afn div.approx, but for f64, which has neither. arith.remf becomes an exact
remainder.

Does not handle: arith.maximumf, minimumf, maxnumf, minnumf, integer division and conversions, which
LLVM selects well; types other than the above, which are a CompileError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mlir import ir
from mlir.dialects import math

from tilec.dialects.types import is_vector
from tilec.passes.contract import Level, PassContext, show_location, tile_pass
from tilec.passes.layouts.op_costs import FUNCTIONS, is_approximate
from tilec.passes.math import classification
from tilec.passes.math.expansions import DIRECT, EXPANSIONS
from tilec.passes.math.formula_functions import FormulaFunctions
from tilec.passes.math.kinds import Vocabulary
from tilec.passes.math.scalar_builder import Scalar, ScalarBuilder
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.values import replace_op
from tilec.passes.rewriting.walk import MODULES, ops_named

Rule = Callable[..., Scalar]
"""(ScalarBuilder, Scalar, ...) -> Scalar."""


_IN_PLACE_RULES: dict[str, Rule] = {
    "math.isnan": classification.is_nan,
    "math.isinf": classification.is_infinite,
    "math.isfinite": classification.is_finite,
    "math.isnormal": classification.is_normal,
    "math.clampf": classification.clamp,
}

_EXPANDED = frozenset(EXPANSIONS) | {
    op.OPERATION_NAME for op in vars(math).values() if hasattr(op, "OPERATION_NAME")
}
"""Names of ops that do not stay as they are: those of the math dialect, and of others."""


_APPROXIMATED = ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "powf")
"""Functions that the hardware approximates in a few instructions."""
_MANY = 8
"""Calls at one place of the source, elements of a thread, that the report speaks of."""


@tile_pass(requires=Level.NVVM)
def expand_math(module: ir.Module, context: PassContext) -> None:
    """Replaces math ops (and inexact divisions and arith.remf) by what NVPTX can select."""
    vocabulary = Vocabulary(module.context)
    for table in _symbol_tables(module.operation):
        _tell(table, context)
        _expand_table(table, vocabulary)


def _tell(table: ir.Operation, context: PassContext) -> None:
    """Reports what accurate functions of many elements take, where an author may ask for less."""
    calls: dict[tuple[str, str], list[ir.Operation]] = {}
    for op in table.regions[0].blocks[0].operations:
        if op.operation.name != "llvm.func":
            continue
        for found in ops_named(op.operation, frozenset(f"math.{n}" for n in _APPROXIMATED)):
            if isinstance(found.results[0].type, ir.F32Type) and not is_approximate(found):
                calls.setdefault((found.name, show_location(found)), []).append(found)
    for (name, _), ops in calls.items():
        if len(ops) >= _MANY:
            chosen = f"{name.removeprefix('math.')} in {FUNCTIONS[name][0]} instructions"
            why = "accurate; approx=True takes the hardware's approximation, 1 to 3"
            context.report.add("function", ops[0], chosen, why)


def _symbol_tables(operation: ir.Operation) -> Iterator[ir.Operation]:
    yield operation
    for op in operation.regions[0].blocks[0].operations:
        if op.operation.name in MODULES:
            yield from _symbol_tables(op.operation)


def _expand_table(table: ir.Operation, vocabulary: Vocabulary) -> None:
    block = table.regions[0].blocks[0]
    functions = FormulaFunctions(block, vocabulary)
    expander = _Expander(functions, vocabulary)
    for op in list(block.operations):
        if op.operation.name in MODULES:
            continue
        calls_before = functions.call_count
        for found in ops_named(op.operation, _EXPANDED):
            expander.expand(found.name, found)
        if functions.call_count > calls_before and op.operation.name == "llvm.func":
            _take_locations_of_calls(op.operation)


def _take_locations_of_calls(function: ir.Operation) -> None:
    """Has LLVM give what it inlines into `function` the location of the call: the author's line."""
    attributes = function.attributes
    present = list(ir.ArrayAttr(attributes["passthrough"])) if "passthrough" in attributes else []
    wanted = ir.StringAttr.get("no-inline-line-tables", context=function.context)
    if wanted not in present:
        attributes["passthrough"] = ir.ArrayAttr.get([*present, wanted], context=function.context)


class _Expander:
    """Expands single ops, calling `functions` for the longer formulas."""

    def __init__(self, functions: FormulaFunctions, vocabulary: Vocabulary) -> None:
        self._functions = functions
        self._vocabulary = vocabulary
        self._flags: dict[ir.Attribute, frozenset[str]] = {}

    def expand(self, name: str, op: ir.Operation) -> None:
        """Replaces and erases `op`, whose name is `name`; keeps divisions LLVM selects well."""
        flags = self._fastmath(op)
        if name == "arith.divf" and not self._is_quick_division(op, flags):
            if "arcp" in flags:  # LLVM would multiply by 1 / a constant
                others = ",".join(sorted(flags - {"arcp"})) or "none"
                text = f"#arith.fastmath<{others}>"
                op.attributes["fastmath"] = self._vocabulary.attribute(text)
            return
        if name in DIRECT:
            results = [self._direct(name, op)]
        else:
            b = ScalarBuilder(self._vocabulary, op.location, ir.InsertionPoint(op))
            rules = self._rules(name, op, approximate="afn" in flags)
            results = [self._elementwise(b, op, rule) for rule in rules]
        replace_op(op, *results)

    def _fastmath(self, op: ir.Operation) -> frozenset[str]:
        attributes = op.attributes
        if "fastmath" not in attributes:
            return frozenset()
        attribute = attributes["fastmath"]
        flags = self._flags.get(attribute)
        if flags is None:
            words = frozenset(str(attribute).partition("<")[2].rstrip(">").split(","))
            flags = self._flags[attribute] = words | {"afn", "arcp"} if "fast" in words else words
        return flags

    def _is_quick_division(self, op: ir.Operation, flags: frozenset[str]) -> bool:
        """Whether div.full, or div.approx, shall stand for this division: f64 has neither."""
        found = op.results[0].type
        element = found.element_type if is_vector(found) else found
        return not flags.isdisjoint({"arcp", "afn"}) and not isinstance(element, ir.F64Type)

    def _direct(self, name: str, op: ir.Operation) -> ir.Value:
        intrinsic, attributes = DIRECT[name]
        return ir.Operation.create(
            intrinsic,
            results=[op.results[0].type],
            operands=list(op.operands),
            attributes={key: self._vocabulary.attribute(text) for key, text in attributes.items()},
            loc=op.location,
            ip=ir.InsertionPoint(op),
        ).results[0]

    def _rules(self, name: str, op: ir.Operation, *, approximate: bool) -> list[Rule]:
        """Makes a function of scalars for each result of `op`."""

        def formula(formula_name: str) -> Rule:
            return lambda b, *operands: self._functions.apply(
                b, formula_name, operands, approximate=approximate
            )

        if name == "math.sincos":
            return [formula("math.sin"), formula("math.cos")]
        if name in EXPANSIONS:
            return [formula(name)]
        if name in _IN_PLACE_RULES:
            return [_IN_PLACE_RULES[name]]
        raise error_at(op, f"{name} has no expansion for NVIDIA GPUs")

    def _elementwise(self, b: ScalarBuilder, op: ir.Operation, rule: Rule) -> ir.Value:
        """Applies `rule` to the operands of `op`, or to each element of one-dimensional vectors."""
        operands = list(op.operands)
        vector_type = operands[0].type
        if not is_vector(vector_type) or vector_type.rank != 1:
            self._check_types(op, [operand.type for operand in operands])
            return rule(b, *map(b.wrap, operands)).value
        self._check_types(op, [ir.VectorType(o.type).element_type for o in operands])
        rows = [b.elements(operand) for operand in operands]
        return b.vector([rule(b, *column) for column in zip(*rows, strict=True)])

    def _check_types(self, op: ir.Operation, types: Sequence[ir.Type]) -> None:
        for found in types:
            if found not in self._vocabulary.kinds:
                known = ", ".join(kind.name for kind in self._vocabulary.types)
                raise error_at(op, f"{op.name} has no expansion for {found}; known types: {known}")
