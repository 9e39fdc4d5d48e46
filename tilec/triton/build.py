"""Makes ops for one kernel: what its values have become, polynomials as arithmetic, pointers as
offsets.

A pointer that is not raised is a number: elements from its root on, of 32 bits where all memory is
within 2 GiB, else of 64. It is built where a gather or scatter asks for it, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from tilec.dialects.tile import BroadcastOp, IotaOp, ReshapeOp, TransposeOp
from tilec.dialects.types import is_tile, shape
from tilec.triton.op_facts import keeps_size, moved_axes_of
from tilec.triton.plan import Plan
from tilec.triton.polynomial import Polynomial, Symbol
from tilec.triton.program import Op, Type, Value, defining


class Builder:
    """`plan`: of the kernel. `entry`: the function's block. `merged`: the parameter of each array.
    `first_scalar`: the number of the first parameter that is a number."""

    def __init__(
        self,
        plan: Plan,
        entry: ir.Block,
        merged: Sequence[int],
        first_scalar: int,
        index_bits: int,
    ) -> None:
        self.plan, self.forms = plan, plan.forms
        self.index_type = ir.IndexType.get()
        self.offset_element = f"i{index_bits}"
        contract = "contract" if plan.function.contracts else "none"
        self.contract = ir.Attribute.parse(f"#arith.fastmath<{contract}>")
        self.approximate = ir.Attribute.parse("#arith.fastmath<afn>")
        self.values: dict[Value, ir.Value] = {}
        self.indices: dict[Value, ir.Value] = {}
        self.combining: Op | None = None
        self._arrays = [entry.arguments[number] for number in merged]
        for number, scalar in enumerate(plan.scalars):
            self.values[scalar] = entry.arguments[first_scalar + number]

    def array(self, access: Op) -> ir.Value:
        """The array that an access goes to."""
        return self._arrays[self.plan.of[access]]

    def type(self, found: Type) -> ir.Type:
        """MLIR's type; of a pointer, that of its offset."""
        element = self.offset_element if found.pointee else found.element
        return self.typed(element, found.shape)

    def typed(self, element: str | ir.Type, sizes: Sequence[int] | None) -> ir.Type:
        """The type of a tile, or of a scalar where `sizes` is None."""
        kind = ir.Type.parse(element) if isinstance(element, str) else element
        return kind if sizes is None else ir.RankedTensorType.get(list(sizes), kind)

    def op(self, name: str, kind: ir.Type, *operands: ir.Value, **attributes: Any) -> ir.Value:
        """Makes an op of one result."""
        return ir.Operation.create(
            name, results=[kind], operands=list(operands), attributes=attributes
        ).result

    def set(self, op: Op, *values: ir.Value) -> None:
        """What an op's results have become."""
        self.values.update(zip(op.results, values, strict=True))

    def get(self, value: Value) -> ir.Value:
        """What a value has become. An error for what a combination may not read."""
        if self.combining is not None and (constant := defining(value, "arith.constant")):
            return self.constant_of(constant)
        found = self.values.get(value)
        if found is None:
            found = self.offset(value) if value.type.pointee else self._induction(value)
        return found

    def constant_of(self, op: Op) -> ir.Value:
        """An arith.constant as it is written."""
        text = op.text if " : " in op.text else f"{op.text.strip()} : i1"
        if op.text.strip() in ("true", "false"):
            text = op.text.strip()
        return self.op("arith.constant", self.type(op.result.type), value=ir.Attribute.parse(text))

    def constant(self, number: int | float, kind: ir.Type) -> ir.Value:
        """A number, or a tile of it."""
        element = kind.element_type if isinstance(kind, ir.RankedTensorType) else kind
        if isinstance(element, (ir.IntegerType, ir.IndexType)):
            value: ir.Attribute = ir.IntegerAttr.get(element, int(number))
        else:
            value = ir.FloatAttr.get(element, float(number))
        if isinstance(kind, ir.RankedTensorType):
            value = ir.DenseElementsAttr.get_splat(kind, value)
        return self.op("arith.constant", kind, value=value)

    def splat(self, value: ir.Value, sizes: Sequence[int] | None) -> ir.Value:
        """A scalar everywhere in a tile; a tile, or a scalar where there is none, as it is."""
        if sizes is None or is_tile(value):
            return value
        return self.op("tensor.splat", self.typed(value.type, sizes), value)

    def broadcast(self, value: ir.Value, dims: Sequence[int], sizes: Sequence[int]) -> ir.Value:
        """`value` with its dimensions at `dims`; one op for a broadcast of a broadcast."""
        made = value.owner
        if not isinstance(made, ir.Block) and isinstance(made.opview, BroadcastOp):
            inner = made.opview
            value, dims = inner.src, [dims[d] for d in inner.dims]
        if tuple(shape(value)) == tuple(sizes) and list(dims) == list(range(len(sizes))):
            return value
        kind = self.typed(value.type.element_type, sizes)
        return BroadcastOp.build(value, results=[kind], dims=list(dims))

    def iota(self, axis: int, kind: ir.Type) -> ir.Value:
        """Coordinates along an axis."""
        return IotaOp.build(results=[kind], axis=axis)

    def cast(self, value: ir.Value, element: str) -> ir.Value:
        """A signed integer, or a tile of them, in another width; "index" counts as one."""
        given = value.type.element_type if is_tile(value) else value.type
        wanted = ir.Type.parse(element)
        if given == wanted:
            return value
        kind = self.typed(wanted, shape(value) if is_tile(value) else None)
        if isinstance(given, ir.IndexType) or isinstance(wanted, ir.IndexType):
            return self.op("arith.index_cast", kind, value)
        wider = wanted.width > given.width
        return self.op("arith.extsi" if wider else "arith.trunci", kind, value)

    def index(self, value: Value) -> ir.Value:
        """A scalar integer as an index."""
        form = self.forms.integer(value)
        if form is not None and form.constant is not None:
            return self.constant(form.constant, self.index_type)
        return self.indices.get(value) or self.cast(self.get(value), "index")

    def computed(self, form: Polynomial) -> ir.Value:
        """The value, an index, of a polynomial of scalars."""
        total: ir.Value | None = None
        for monomial, n in form.terms.items():
            term: ir.Value | None = None
            for symbol in monomial:
                factor, n = self._factor(symbol, n)
                term = factor if term is None else self._binary("arith.muli", term, factor)
            if term is None or n != 1:
                number = self.constant(n, self.index_type)
                term = number if term is None else self._binary("arith.muli", term, number)
            total = term if total is None else self._binary("arith.addi", total, term)
        return self.constant(0, self.index_type) if total is None else total

    def _binary(self, name: str, one: ir.Value, two: ir.Value) -> ir.Value:
        return self.op(name, one.type, one, two)

    def _factor(self, symbol: Symbol, n: int) -> tuple[ir.Value, int]:
        """A symbol's value and its coefficient: trips times a step are a distance."""
        if symbol.kind != "trip":
            return self.index(symbol.value), n
        variable = symbol.value
        low, _, step = variable.owner.parent.operands[:3]
        distance = self.indices[variable]
        start = self.forms.integer(low)
        if start is None or start.constant != 0:
            distance = self._binary("arith.subi", distance, self.index(low))
        by = self.forms.integer(step)
        each = None if by is None else by.constant
        if each and n % each == 0:
            return distance, n // each
        return self._binary("arith.divsi", distance, self.index(step)), n

    def _induction(self, value: Value) -> ir.Value:
        """What a loop no longer carries, written out."""
        form = self.forms.usable(self.forms.integer(value))
        assert form is not None, f"%{value.name} was not built"
        return self.tile(form, value.type)

    def tile(self, form: Polynomial, kind: Type) -> ir.Value:
        """A polynomial as integers of a type, which wrap as they do there."""
        if kind.shape is None:
            return self.cast(self.computed(form), self._element(kind))
        made, scalars = self.type(kind), form.part(lambda m: not _along(m))
        total: ir.Value | None = None
        if scalars.terms or not form.terms:
            total = self.splat(self.cast(self.computed(scalars), self._element(kind)), kind.shape)
        for axis in range(kind.rank):
            coordinate = self.forms.coordinate(axis)
            factor = form.factor_of(coordinate)
            assert factor is not None
            if not factor.terms:
                continue
            term = self.iota(axis, made)
            if factor.constant != 1:
                times = self.cast(self.computed(factor), self._element(kind))
                term = self.op("arith.muli", made, term, self.splat(times, kind.shape))
            total = term if total is None else self.op("arith.addi", made, total, term)
        assert total is not None
        return total

    def _element(self, kind: Type) -> str:
        return self.offset_element if kind.pointee else kind.element

    def offset(self, pointer: Value) -> ir.Value:
        """Elements from a pointer's root on."""
        if pointer in self.values:
            return self.values[pointer]
        op = pointer.owner
        if not isinstance(op, Op):
            found = self.forms.pointer(pointer)
            assert found is not None
            assert found.offset is not None
            return self.tile(found.offset, pointer.type)
        rule = _OFFSETS.get(op.name)
        if rule is None:
            raise op.error("the pointer comes from memory")
        return rule(self, op, pointer.type)


def _advanced(builder: Builder, op: Op, kind: Type) -> ir.Value:
    step = builder.cast(builder.get(op.operands[1]), builder.offset_element)
    return builder.op("arith.addi", builder.type(kind), builder.offset(op.operands[0]), step)


def _selected(builder: Builder, op: Op, kind: Type) -> ir.Value:
    chosen = (builder.get(op.operands[0]), *map(builder.offset, op.operands[1:]))
    return builder.op("arith.select", builder.type(kind), *chosen)


def _broadcast(builder: Builder, op: Op, kind: Type) -> ir.Value:
    sizes = kind.shape or ()
    kept = [d for d in range(len(sizes)) if op.name == "tt.broadcast" or d != op.number("axis")]
    return builder.broadcast(builder.offset(op.operands[0]), kept, sizes)


def _reshaped(builder: Builder, op: Op, kind: Type) -> ir.Value:
    return ReshapeOp.build(builder.offset(op.operands[0]), results=[builder.type(kind)])


def _transposed(builder: Builder, op: Op, kind: Type) -> ir.Value:
    return TransposeOp.build(builder.offset(op.operands[0]), permutation=moved_axes_of(op))


def _cast(builder: Builder, op: Op, kind: Type) -> ir.Value:
    if not keeps_size(op):
        raise op.error(f"the pointer is then to elements of another size, {kind.pointee}")
    return builder.offset(op.operands[0])


_OFFSETS: dict[str, Callable[[Builder, Op, Type], ir.Value]] = {
    "tt.addptr": _advanced,
    "arith.select": _selected,
    "tt.splat": lambda builder, op, kind: builder.splat(builder.offset(op.operands[0]), kind.shape),
    "tt.broadcast": _broadcast,
    "tt.expand_dims": _broadcast,
    "tt.reshape": _reshaped,
    "tt.trans": _transposed,
    "tt.bitcast": _cast,
    "ub.poison": lambda builder, op, kind: builder.constant(0, builder.type(kind)),
}
"""How the offset of a pointer that an op makes is computed."""


def _along(monomial: tuple[Symbol, ...]) -> bool:
    return any(symbol.kind == "coordinate" for symbol in monomial)
