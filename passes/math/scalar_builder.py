"""Writes scalar arithmetic as MLIR ops: operators on `Scalar`, everything else on `ScalarBuilder`.

    b = ScalarBuilder(vocabulary, location, ir.InsertionPoint(op))
    x = b.wrap(op.operands[0])
    y = b.horner(x * x, coefficients) * x      # arith.mulf, llvm.intr.fma ...

Operators never fuse: `x * y + z` is a multiplication and an addition, each rounded (LLVM contracts
nothing without a flag); a fused multiply-add is written `b.fma(x, y, z)`. Python numbers become
constants of the other operand's kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mlir import ir

from tilec.dialects.predicates import predicate_number
from tilec.passes.math.kinds import I1, I32, I64, Kind, Number, Vocabulary


class Scalar:
    """A value with operators. Comparisons are ordered (false on NaN), signed; `>>` is logical."""

    __slots__ = ("builder", "kind", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, builder: ScalarBuilder, value: ir.Value, kind: Kind) -> None:
        self.builder = builder
        self.value = value
        self.kind = kind

    def _binary(self, name: str, other: Scalar | Number, swapped: bool = False) -> Scalar:
        rhs = self.builder.coerce(other, self.kind)
        lhs, rhs = (rhs, self) if swapped else (self, rhs)
        suffix = "f" if self.kind.is_float else "i"
        return self.builder.create(f"arith.{name}{suffix}", (lhs, rhs), self.kind)

    def __add__(self, other: Scalar | Number) -> Scalar:
        return self._binary("add", other)

    def __radd__(self, other: Number) -> Scalar:
        return self._binary("add", other, swapped=True)

    def __sub__(self, other: Scalar | Number) -> Scalar:
        return self._binary("sub", other)

    def __rsub__(self, other: Number) -> Scalar:
        return self._binary("sub", other, swapped=True)

    def __mul__(self, other: Scalar | Number) -> Scalar:
        return self._binary("mul", other)

    def __rmul__(self, other: Number) -> Scalar:
        return self._binary("mul", other, swapped=True)

    def __truediv__(self, other: Scalar | Number) -> Scalar:
        return self._binary("div", other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return self._binary("div", other, swapped=True)

    def __neg__(self) -> Scalar:
        if self.kind.is_float:
            return self.builder.create("arith.negf", (self,), self.kind)
        return self._binary("sub", 0, swapped=True)

    def __and__(self, other: Scalar | Number) -> Scalar:
        return self._binary("and", other)

    def __or__(self, other: Scalar | Number) -> Scalar:
        return self._binary("or", other)

    def __xor__(self, other: Scalar | Number) -> Scalar:
        return self._binary("xor", other)

    def __lshift__(self, other: Scalar | Number) -> Scalar:
        return self._binary("shl", other)

    def __rshift__(self, other: Scalar | Number) -> Scalar:
        return self.builder.create(
            "arith.shrui", (self, self.builder.coerce(other, self.kind)), self.kind
        )

    def shift_right_signed(self, other: Scalar | Number) -> Scalar:
        """An arithmetic shift."""
        return self.builder.create(
            "arith.shrsi", (self, self.builder.coerce(other, self.kind)), self.kind
        )

    def _compare(self, ordered: str, signed: str, other: Scalar | Number) -> Scalar:
        """By the predicate of floats or that of integers."""
        predicate = ordered if self.kind.is_float else signed
        return self.builder.compare(predicate, self, self.builder.coerce(other, self.kind))

    def __lt__(self, other: Scalar | Number) -> Scalar:
        return self._compare("olt", "slt", other)

    def __le__(self, other: Scalar | Number) -> Scalar:
        return self._compare("ole", "sle", other)

    def __gt__(self, other: Scalar | Number) -> Scalar:
        return self._compare("ogt", "sgt", other)

    def __ge__(self, other: Scalar | Number) -> Scalar:
        return self._compare("oge", "sge", other)

    def equals(self, other: Scalar | Number) -> Scalar:
        """Equality; false on NaN."""
        return self._compare("oeq", "eq", other)

    def differs(self, other: Scalar | Number) -> Scalar:
        """The opposite of `equals`; true on NaN."""
        return self._compare("une", "ne", other)

    def is_nan(self) -> Scalar:
        """Whether this float is a NaN."""
        return self.builder.compare("uno", self, self)


class ScalarBuilder:
    """Creates scalar ops at one insertion point, all with one location."""

    def __init__(
        self, vocabulary: Vocabulary, location: ir.Location, insertion_point: ir.InsertionPoint
    ) -> None:
        self.vocabulary = vocabulary
        self.location = location
        self.insertion_point = insertion_point

    def wrap(self, value: ir.Value) -> Scalar:
        """`value` with operators. Its type must be one of `KINDS`."""
        return Scalar(self, value, self.vocabulary.kinds[value.type])

    def operation(
        self,
        name: str,
        operands: Sequence[Scalar],
        kinds: Sequence[Kind],
        attributes: dict[str, ir.Attribute] | None = None,
        regions: int = 0,
    ) -> ir.Operation:
        """Creates any op over scalars."""
        return ir.Operation.create(
            name,
            results=[self.vocabulary.types[kind] for kind in kinds],
            operands=[operand.value for operand in operands],
            attributes=attributes,
            regions=regions,
            loc=self.location,
            ip=self.insertion_point,
        )

    def create(
        self,
        name: str,
        operands: Sequence[Scalar],
        kind: Kind,
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> Scalar:
        """Creates an op with one result."""
        return Scalar(self, self.operation(name, operands, (kind,), attributes).results[0], kind)

    def constant(self, kind: Kind, number: Number) -> Scalar:
        """A number of that kind."""
        return self.create(
            "arith.constant", (), kind, {"value": self.vocabulary.constant(kind, number)}
        )

    def coerce(self, operand: Scalar | Number, kind: Kind) -> Scalar:
        """`operand`, where a Python number becomes a constant."""
        return operand if isinstance(operand, Scalar) else self.constant(kind, operand)

    def compare(self, predicate: str, lhs: Scalar, rhs: Scalar) -> Scalar:
        """A comparison by the name of its predicate."""
        name = "arith.cmpf" if lhs.kind.is_float else "arith.cmpi"
        code = predicate_number(name, predicate)
        return self.create(name, (lhs, rhs), I1, {"predicate": self.vocabulary.constant(I64, code)})

    def where(self, condition: Scalar, then: Scalar | Number, otherwise: Scalar | Number) -> Scalar:
        """`then` if `condition` else `otherwise`; at least one of them is a Scalar."""
        known = then if isinstance(then, Scalar) else otherwise
        if not isinstance(known, Scalar):
            raise TypeError("where: a choice between two Python numbers has no type")
        kind = known.kind
        choices = (condition, self.coerce(then, kind), self.coerce(otherwise, kind))
        return self.create("arith.select", choices, kind)

    def fma(self, x: Scalar | Number, y: Scalar | Number, z: Scalar | Number) -> Scalar:
        """x * y + z, rounded once."""
        kind = next(operand.kind for operand in (x, y, z) if isinstance(operand, Scalar))
        return self.create("llvm.intr.fma", [self.coerce(o, kind) for o in (x, y, z)], kind)

    def horner(self, x: Scalar, coefficients: Sequence[float]) -> Scalar:
        """The polynomial with `coefficients`, lowest power first."""
        result = self.constant(x.kind, coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, coefficient)
        return result

    def absolute(self, x: Scalar) -> Scalar:
        """|x| of a float; also clears the sign of a NaN."""
        return self.create("llvm.intr.fabs", (x,), x.kind)

    def copysign(self, magnitude: Scalar | Number, sign: Scalar) -> Scalar:
        """`magnitude` with the sign of `sign`."""
        return self.create(
            "llvm.intr.copysign", (self.coerce(magnitude, sign.kind), sign), sign.kind
        )

    def truncate(self, x: Scalar) -> Scalar:
        """`x` rounded to an integer toward zero, still a float."""
        return self.create("llvm.intr.trunc", (x,), x.kind)

    def square_root(self, x: Scalar) -> Scalar:
        """The correctly rounded root (sqrt.rn)."""
        return self.create("llvm.intr.sqrt", (x,), x.kind)

    def funnel_shift_left(self, high: Scalar, low: Scalar, amount: Scalar) -> Scalar:
        """The upper half of `high:low << amount`."""
        return self.create("llvm.intr.fshl", (high, low, amount), high.kind)

    def count_leading_zeros(self, x: Scalar) -> Scalar:
        """The zeros before the highest set bit."""
        flag = {"is_zero_poison": self.vocabulary.attribute("false")}
        return self.create("llvm.intr.ctlz", (x,), x.kind, flag)

    def intrinsic(self, name: str, operands: Sequence[Scalar], kind: Kind) -> Scalar:
        """A call of the LLVM intrinsic `name` (with its `llvm.` prefix)."""
        attributes = self._intrinsic_attributes(name, len(operands))
        return self.create("llvm.call_intrinsic", operands, kind, attributes)

    def _intrinsic_attributes(self, name: str, operand_count: int) -> dict[str, ir.Attribute]:
        return {
            "intrin": self.vocabulary.attribute(f'"{name}"'),
            "op_bundle_sizes": self.vocabulary.attribute("array<i32>"),
            "operandSegmentSizes": self.vocabulary.attribute(f"array<i32: {operand_count}, 0>"),
        }

    def pair_intrinsic(self, name: str, operands: Sequence[Scalar], kind: Kind) -> list[Scalar]:
        """The two elements of what an intrinsic gives as a vector of two."""
        attributes = self._intrinsic_attributes(name, len(operands))
        return self.elements(self._vector_op("llvm.call_intrinsic", operands, kind, attributes))

    def call(self, callee: str, operands: Sequence[Scalar], kind: Kind) -> Scalar:
        """A call of the llvm.func `callee`."""
        attributes = {
            "callee": self.vocabulary.attribute(f"@{callee}"),
            "op_bundle_sizes": self.vocabulary.attribute("array<i32>"),
            "operandSegmentSizes": self.vocabulary.attribute(f"array<i32: {len(operands)}, 0>"),
        }
        return self.create("llvm.call", operands, kind, attributes)

    def convert(self, x: Scalar, kind: Kind, *, unsigned: bool = False) -> Scalar:
        """`x` as another kind, by value: widened, narrowed (rounded to nearest) or turned over."""
        if x.kind == kind:
            return x
        if x.kind.is_float and kind.is_float:
            name = "arith.extf" if kind.bits > x.kind.bits else "arith.truncf"
        elif kind.is_float:
            name = "arith.uitofp" if unsigned else "arith.sitofp"
        elif x.kind.is_float:
            name = "arith.fptoui" if unsigned else "arith.fptosi"
        elif kind.bits < x.kind.bits:
            name = "arith.trunci"
        else:
            name = "arith.extui" if unsigned else "arith.extsi"
        return self.create(name, (x,), kind)

    def bits(self, x: Scalar) -> Scalar:
        """A float's bits as an integer of the same width."""
        return self.create("arith.bitcast", (x,), x.kind.as_integer)

    def from_bits(self, x: Scalar, kind: Kind) -> Scalar:
        """The float whose bits are `x`."""
        return self.create("arith.bitcast", (x,), kind)

    def elements(self, vector: ir.Value) -> list[Scalar]:
        """The elements of a one-dimensional vector."""
        kind = self.vocabulary.kinds[ir.VectorType(vector.type).element_type]
        whole = Scalar(self, vector, kind)
        return [
            self.create("llvm.extractelement", (whole, self.constant(I32, index)), kind)
            for index in range(ir.VectorType(vector.type).shape[0])
        ]

    def on_pairs(self, name: str, words: Sequence[Scalar], kind: Kind) -> Scalar:
        """An op on both numbers of 16 bits in each word at once, and the word of its results."""
        pairs = [Scalar(self, self._pair(word, kind), kind) for word in words]
        found = self._vector_op(name, pairs, kind)
        return self.create("llvm.bitcast", (Scalar(self, found, kind),), I32)

    def pair(self, word: Scalar, kind: Kind) -> tuple[Scalar, Scalar]:
        """The two numbers of 16 bits in a word, the lower half's first."""
        low, high = self.elements(self._pair(word, kind))
        return low, high

    def _pair(self, word: Scalar, kind: Kind) -> ir.Value:
        return self._vector_op("llvm.bitcast", (word,), kind)

    def _vector_op(
        self,
        name: str,
        operands: Sequence[Scalar],
        kind: Kind,
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> ir.Value:
        """Creates an op that gives a vector of two."""
        return ir.Operation.create(
            name,
            results=[ir.VectorType.get([2], self.vocabulary.types[kind], loc=self.location)],
            operands=[operand.value for operand in operands],
            attributes=attributes,
            loc=self.location,
            ip=self.insertion_point,
        ).results[0]

    def vector(self, elements: Sequence[Scalar]) -> ir.Value:
        """The vector of these elements, all of one kind."""
        element_type = self.vocabulary.types[elements[0].kind]
        vector_type = ir.VectorType.get([len(elements)], element_type, loc=self.location)

        def create(name: str, operands: Sequence[ir.Value]) -> ir.Value:
            return ir.Operation.create(
                name,
                results=[vector_type],
                operands=operands,
                loc=self.location,
                ip=self.insertion_point,
            ).results[0]

        result = create("llvm.mlir.poison", [])
        for index, element in enumerate(elements):
            position = self.constant(I32, index)
            result = create("llvm.insertelement", [result, element.value, position.value])
        return result

    def if_else(
        self,
        condition: Scalar,
        then: Callable[[], Sequence[Scalar]],
        otherwise: Sequence[Scalar],
    ) -> list[Scalar]:
        """Runs `then` only where `condition` holds (scf.if); else the values are `otherwise`."""
        kinds = [value.kind for value in otherwise]
        branch = self.operation("scf.if", (condition,), kinds, regions=2)
        with self._at_end_of(branch.regions[0].blocks.append()):
            self.operation("scf.yield", list(then()), ())
        with self._at_end_of(branch.regions[1].blocks.append()):
            self.operation("scf.yield", otherwise, ())
        return [self.wrap(value) for value in branch.results]

    def loop_while(
        self,
        start: Sequence[Scalar],
        condition: Callable[..., Scalar],
        body: Callable[..., Sequence[Scalar]],
    ) -> list[Scalar]:
        """Repeats `body(*values)` while `condition(*values)` (scf.while)."""
        kinds = [value.kind for value in start]
        types = [self.vocabulary.types[kind] for kind in kinds]
        locations = [self.location] * len(kinds)
        loop = self.operation("scf.while", start, kinds, regions=2)
        before = loop.regions[0].blocks.append(*types, arg_locs=locations)
        with self._at_end_of(before):
            values = [self.wrap(argument) for argument in before.arguments]
            self.operation("scf.condition", [condition(*values), *values], ())
        after = loop.regions[1].blocks.append(*types, arg_locs=locations)
        with self._at_end_of(after):
            values = [self.wrap(argument) for argument in after.arguments]
            self.operation("scf.yield", list(body(*values)), ())
        return [self.wrap(value) for value in loop.results]

    @contextmanager
    def _at_end_of(self, block: ir.Block) -> Iterator[None]:
        outside = self.insertion_point
        self.insertion_point = ir.InsertionPoint(block)
        try:
            yield
        finally:
            self.insertion_point = outside
