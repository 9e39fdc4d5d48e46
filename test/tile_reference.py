"""The meaning of `tile` programs, executed with NumPy: what compiled kernels are compared with.

Independent of the compiler: it knows the ops by name and shares no code with passes or layouts.
Floats are computed in f64 and rounded to their type after each op, so elementwise results are
exact; sums and dots are rounded once, at their end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir
from tile_arithmetic import (
    FLOAT,
    INTEGER_PREDICATES,
    SIGNED,
    UNSIGNED,
    compare_floats,
    dtype,
    element,
    is_float,
    signed,
    unsigned,
    wrap,
)

Values = list[np.ndarray]


def evaluate(module: ir.Module, arguments: Sequence[Any], grid: Sequence[int]) -> None:
    """Runs the only kernel of a module for every program of the grid; arrays change in place."""
    (function,) = (op.operation for op in module.body.operations)
    sizes = (*grid, 1, 1, 1)[:3]
    with np.errstate(all="ignore"):
        for z, y, x in itertools.product(*(range(size) for size in reversed(sizes))):
            _Program((x, y, z), sizes).run(function.regions[0].blocks[0], arguments)


class _Program:
    """One program of the grid: the values known so far, by SSA value."""

    def __init__(self, place: Sequence[int], grid: Sequence[int]) -> None:
        self.place, self.grid = place, grid
        self.known: dict[ir.Value, Any] = {}

    def run(self, block: ir.Block, arguments: Sequence[Any]) -> Values:
        """Executes a block; what its terminator passes on."""
        for argument, value in zip(block.arguments, arguments, strict=True):
            is_array = isinstance(argument.type, ir.MemRefType)
            self.known[argument] = value if is_array else np.asarray(value, dtype(argument.type))
        for view in block.operations:
            op = view.operation
            operands = [self.known[v] for v in op.operands]
            if op.name in ("scf.yield", "gpu.yield", "scf.condition", "func.return"):
                return operands
            results = self._execute(op, operands)
            for value, result in zip(op.results, results, strict=True):
                self.known[value] = result
        raise ValueError("a block without a terminator")

    def _execute(self, op: ir.Operation, operands: Values) -> Sequence[Any]:
        rule = _RULES.get(op.name)
        if rule is not None:
            return rule(self, op, operands)
        if op.name in FLOAT:
            result = FLOAT[op.name](*(v.astype(np.float64) for v in operands))
            return [result.astype(dtype(op.results[0].type))]
        for table, read in ((SIGNED, signed), (UNSIGNED, unsigned)):
            if op.name in table:
                result = np.asarray(table[op.name](*map(read, operands)))
                return [wrap(result.astype(np.int64), op.results[0].type)]
        raise NotImplementedError(f"no meaning for {op.name}")

    # Elementwise ------------------------------------------------------------------------------

    def constant(self, op: ir.Operation, _: Values) -> Values:
        attribute, result = op.attributes["value"], op.results[0]
        if isinstance(attribute, ir.DenseElementsAttr):
            attribute = attribute.get_splat_value()
        value = float(attribute.value) if is_float(attribute.type) else int(attribute.value)
        kind = np.float64 if is_float(attribute.type) else np.int64
        filled = np.full(_shape(result), value, kind)
        return [
            filled.astype(dtype(result.type)) if kind == np.float64 else wrap(filled, result.type)
        ]

    def compare(self, op: ir.Operation, operands: Values) -> Values:
        predicate = op.attributes["predicate"].value
        a, b = operands
        if op.name == "arith.cmpf":
            return [compare_floats(predicate, a.astype(np.float64), b.astype(np.float64))]
        function, read = INTEGER_PREDICATES[predicate]
        return [function(read(a), read(b))]

    def select(self, op: ir.Operation, operands: Values) -> Values:
        return [np.where(operands[0], operands[1], operands[2])]

    def cast(self, op: ir.Operation, operands: Values) -> Values:
        (value,), result = operands, op.results[0].type
        name = op.name.removeprefix("arith.")
        if name in ("extui", "index_castui", "uitofp"):
            wide = unsigned(value)
            return [
                wide.astype(dtype(result))
                if name == "uitofp"
                else wrap(wide.view(np.int64), result)
            ]
        if name in ("extsi", "trunci", "index_cast"):
            return [wrap(signed(value), result)]
        if name == "sitofp":
            return [signed(value).astype(dtype(result))]
        if name in ("fptosi", "fptoui"):
            return [wrap(value.astype(np.float64).astype(np.int64), result)]
        if name == "bitcast":
            return [value.view(dtype(result))]
        return [value.astype(np.float64).astype(dtype(result))]

    # Shapes -----------------------------------------------------------------------------------

    def iota(self, op: ir.Operation, _: Values) -> Values:
        sizes, axis = _shape(op.results[0]), op.attributes["axis"].value
        along = np.arange(sizes[axis]).reshape([-1 if d == axis else 1 for d in range(len(sizes))])
        return [wrap(np.broadcast_to(along, sizes).astype(np.int64), op.results[0].type)]

    def splat(self, op: ir.Operation, operands: Values) -> Values:
        return [np.full(_shape(op.results[0]), operands[0], operands[0].dtype)]

    def extract(self, op: ir.Operation, operands: Values) -> Values:
        return [operands[0]]

    def broadcast(self, op: ir.Operation, operands: Values) -> Values:
        dims, sizes = list(op.attributes["dims"]), _shape(op.results[0])
        order = sorted(range(len(dims)), key=lambda i: dims[i])
        source = operands[0].transpose(order)
        aligned = [1] * len(sizes)
        for i in order:
            aligned[dims[i]] = operands[0].shape[i]
        return [np.broadcast_to(source.reshape(aligned), sizes)]

    def reshape(self, op: ir.Operation, operands: Values) -> Values:
        return [operands[0].reshape(_shape(op.results[0]))]

    def transpose(self, op: ir.Operation, operands: Values) -> Values:
        return [operands[0].transpose(list(op.attributes["permutation"]))]

    def join(self, op: ir.Operation, operands: Values) -> Values:
        return [np.concatenate(operands, op.attributes["axis"].value)]

    def split(self, op: ir.Operation, operands: Values) -> Values:
        return list(np.split(operands[0], len(op.results), op.attributes["axis"].value))

    def take(self, op: ir.Operation, operands: Values) -> Values:
        source, indices = operands
        return [np.take_along_axis(source, indices.astype(np.int64), op.attributes["axis"].value)]

    # Combinations -----------------------------------------------------------------------------

    def reduce(self, op: ir.Operation, operands: Values) -> Values:
        axis, body = op.attributes["axis"].value, op.regions[0].blocks[0]
        if _is_sum(body):
            return [operands[0].astype(np.float64).sum(axis).astype(operands[0].dtype)]
        return [np.take(v, -1, axis) for v in self._scan(op, operands, axis)]

    def scan(self, op: ir.Operation, operands: Values) -> Values:
        """In reverse: flip, scan, flip."""
        axis, reverse = op.attributes["axis"].value, op.attributes["reverse"].value
        turned = [np.flip(v, axis) if reverse else v for v in operands]
        found = self._scan(op, turned, axis)
        return [np.flip(v, axis) if reverse else v for v in found]

    def _scan(self, op: ir.Operation, operands: Values, axis: int) -> Values:
        body, size = op.regions[0].blocks[0], operands[0].shape[axis]
        so_far: Values = []
        columns: list[Values] = []
        for at in range(size):
            here = [np.take(v, at, axis) for v in operands]
            so_far = self.run(body, [*so_far, *here]) if so_far else here
            columns.append(so_far)
        return [np.stack(column, axis) for column in zip(*columns, strict=True)]

    def dot(self, op: ir.Operation, operands: Values) -> Values:
        lhs, rhs, acc = operands
        wide = np.float64 if is_float(element(op.results[0].type)) else np.int64
        total = lhs.astype(wide) @ rhs.astype(wide) + acc.astype(wide)
        return [total.astype(acc.dtype)]

    # Memory -----------------------------------------------------------------------------------

    def load(self, op: ir.Operation, operands: Values) -> Values:
        array, *offsets = operands
        sizes = _shape(op.results[0])
        at, inside = _rectangle(array, offsets, list(op.attributes["dims"]), sizes)
        padding = op.attributes["padding"]
        kind = dtype(padding.type)
        fill = np.asarray(padding.value, np.float64 if is_float(padding.type) else np.int64)
        found = np.full(sizes, fill.astype(kind), kind)
        found[inside] = array[tuple(a[inside] for a in at)]
        return [found]

    def store(self, op: ir.Operation, operands: Values) -> Values:
        value, array, *offsets = operands
        at, inside = _rectangle(array, offsets, list(op.attributes["dims"]), value.shape)
        array[tuple(a[inside] for a in at)] = value[inside]
        return []

    def gather(self, op: ir.Operation, operands: Values) -> Values:
        array, mask, other, *indices = operands
        inside = mask & _inside(array, indices)
        found = np.array(other)
        found[inside] = array[tuple(i[inside] for i in indices)]
        return [found]

    def scatter(self, op: ir.Operation, operands: Values) -> Values:
        value, array, mask, *indices = operands
        inside = mask & _inside(array, indices)
        array[tuple(i[inside] for i in indices)] = value[inside]
        return []

    def size(self, op: ir.Operation, operands: Values) -> Values:
        return [np.asarray(operands[0].shape[int(operands[1])], np.int64)]

    def program_id(self, op: ir.Operation, _: Values) -> Values:
        place = self.place if op.name == "tile.program_id" else self.grid
        return [np.asarray(place[op.attributes["axis"].value], np.int64)]

    def nothing(self, op: ir.Operation, _: Values) -> Values:
        return []

    # Control flow -----------------------------------------------------------------------------

    def loop(self, op: ir.Operation, operands: Values) -> Values:
        lower, upper, step, *carried = operands
        for at in range(int(lower), int(upper), int(step)):
            carried = self.run(op.regions[0].blocks[0], [np.asarray(at, np.int64), *carried])
        return carried

    def branch(self, op: ir.Operation, operands: Values) -> Values:
        region = op.regions[0 if operands[0] else 1]
        return self.run(region.blocks[0], []) if region.blocks else []

    def repeat(self, op: ir.Operation, operands: Values) -> Values:
        before, after = (region.blocks[0] for region in op.regions)
        while True:
            going, *operands = self.run(before, operands)
            if not going:
                return operands
            operands = self.run(after, operands)


def _is_sum(body: ir.Block) -> bool:
    first = next(iter(body.operations)).operation
    return first.name == "arith.addf" and len(body.operations) == 2


def _rectangle(
    array: np.ndarray, offsets: Values, dims: list[int], sizes: Sequence[int]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Per array dimension the index of each tile element, and whether it lies inside."""
    at = [np.full(sizes, int(offset), np.int64) for offset in offsets]
    for d, axis in enumerate(dims):
        along = np.arange(sizes[d]).reshape([-1 if i == d else 1 for i in range(len(sizes))])
        at[axis] = at[axis] + along
    return at, _inside(array, at)


def _inside(array: np.ndarray, at: Values) -> np.ndarray:
    flags = [(signed(a) >= 0) & (signed(a) < size) for a, size in zip(at, array.shape, strict=True)]
    return np.asarray(np.logical_and.reduce(flags))


def _shape(value: ir.Value) -> tuple[int, ...]:
    return tuple(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else ()


_CASTS = (
    "extf truncf extsi extui trunci sitofp uitofp fptosi fptoui index_cast index_castui bitcast"
)
_RULES: dict[str, Callable[[_Program, ir.Operation, Values], Any]] = {
    "arith.constant": _Program.constant,
    "arith.cmpi": _Program.compare,
    "arith.cmpf": _Program.compare,
    "arith.select": _Program.select,
    **{f"arith.{name}": _Program.cast for name in _CASTS.split()},
    "tensor.splat": _Program.splat,
    "tensor.extract": _Program.extract,
    "memref.dim": _Program.size,
    "scf.for": _Program.loop,
    "scf.if": _Program.branch,
    "scf.while": _Program.repeat,
    "tile.assume": _Program.nothing,
    "tile.broadcast": _Program.broadcast,
    "tile.dot": _Program.dot,
    "tile.gather": _Program.gather,
    "tile.iota": _Program.iota,
    "tile.join": _Program.join,
    "tile.load": _Program.load,
    "tile.num_programs": _Program.program_id,
    "tile.program_id": _Program.program_id,
    "tile.reduce": _Program.reduce,
    "tile.reshape": _Program.reshape,
    "tile.scan": _Program.scan,
    "tile.scatter": _Program.scatter,
    "tile.split": _Program.split,
    "tile.store": _Program.store,
    "tile.take": _Program.take,
    "tile.transpose": _Program.transpose,
}
