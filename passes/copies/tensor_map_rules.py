"""When the copy engine can move a tile: the hardware's rules, held against what is known.

CUDA driver API, cuTensorMapEncodeTiled: the address and the strides are multiples of 16 bytes, the
innermost dimension has stride 1, a box has at most 256 elements a side. What an H200 adds: a copy
starts at a multiple of 16 bytes along the row, or traps; a store traps where its corner is
negative, and writes whole 16 bytes where a row ends. Nothing is copied from in front of a
dimension, so that one without bounds has to begin there.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op, users
from tilec.dialects.types import bit_width, element, shape
from tilec.hardware.sizes import MOST_BOX, MOST_RANK, VECTOR_BYTES
from tilec.hardware.target import Feature, Target
from tilec.passes.analysis.divisibility import (
    Divisibility,
    constant_of,
    static_strides,
    unbounded_dims,
)
from tilec.passes.analysis.signs import is_count
from tilec.passes.analysis.vector_width import contiguous_dim, element_bytes
from tilec.passes.demands.kernels import workspaces_of

_REDUCTIONS = {
    "add": ("i32", "f32", "f16", "bf16"),
    "min": ("i32", "i64", "f16", "bf16"),
    "max": ("i32", "i64", "f16", "bf16"),
}
"""PTX ISA 9.0, "cp.reduce.async.bulk.tensor": the map's element types each operation takes. An H200
adds 64-bit integers only in maps of unsigned ones."""


def why_no_tensor_map(
    array: ir.Value,
    dims: Sequence[int],
    box: Sequence[int],
    facts: Divisibility,
    target: Target,
    *,
    offsets: Sequence[ir.Value] = (),
    store: bool = False,
) -> str | None:
    """Says why the copy engine cannot move boxes of `box` elements along `dims` of `array`; None if
    it can.

    `offsets`: where copies start, one scalar per array dimension, if that is known too. `store`:
    the copies write the array.
    """
    if not target.supports(Feature.TMA):
        return f"{target.name} has no tensor memory accelerator"
    if defining_op(array) is not None:
        return "the array is no kernel argument"
    if array in workspaces_of(array.owner.owner):
        return "the array is memory of the launch's own"
    rank = len(shape(array))
    if not 1 <= rank <= MOST_RANK:
        return f"a tensor map has at most {MOST_RANK} dimensions, the array has {rank}"
    if bit_width(element(array)) < 8:
        return f"{element(array)} is not stored as whole bytes"
    if any(not 1 <= size <= MOST_BOX for size in box):
        return f"a box has at most {MOST_BOX} elements along a dimension, this one {max(box)}"
    run = contiguous_dim(array, dims)
    if run is None:
        return "no tile dimension has stride 1"
    unit = VECTOR_BYTES // element_bytes(array)
    if box[run] % unit:
        return f"{box[run]} elements along the row are no multiple of {VECTOR_BYTES} bytes"
    return _why_not_aligned(array, dims[run], unit, facts) or _why_no_corner(
        array, dims[run], unit, facts, offsets, store
    )


def _why_not_aligned(array: ir.Value, row: int, unit: int, facts: Divisibility) -> str | None:
    if facts.alignment(array) % VECTOR_BYTES:
        return f"the pointer is not known to be a multiple of {VECTOR_BYTES} bytes"
    for axis, stride in enumerate(static_strides(array)):
        if axis == row:
            continue
        if stride is not None and stride < 0:
            return f"dimension {axis} has stride {stride}"
        if facts.of_array(array, "strides", axis) % unit:
            return (
                f"the stride of dimension {axis} is not known to be a multiple of "
                f"{VECTOR_BYTES} bytes ({unit} elements)"
            )
    return None


def _why_no_corner(
    array: ir.Value,
    row: int,
    unit: int,
    facts: Divisibility,
    offsets: Sequence[ir.Value],
    store: bool,
) -> str | None:
    if offsets and facts.of(offsets[row]) % unit:
        return (
            f"the offset along the row is not known to be a multiple of {VECTOR_BYTES} bytes "
            f"({unit} elements)"
        )
    for axis in unbounded_dims(array) if offsets else ():
        if not never_negative(offsets[axis]):
            return f"the offset of the unbounded dimension {axis} may be negative"
    if not store:
        return None
    if facts.of_array(array, "sizes", row) % unit:
        return (
            f"the size of dimension {row} is not known to be a multiple of {VECTOR_BYTES} bytes "
            f"({unit} elements): the row's last store would write beyond it"
        )
    for axis, offset in enumerate(offsets):
        if not never_negative(offset):
            return f"the offset of dimension {axis} may be negative"
    return None


def why_no_reduction(dtype: str, combine: str) -> str | None:
    """Says why the copy engine does not combine elements of `dtype` with what is there; None if it
    does."""
    if combine == "none" or dtype in _REDUCTIONS[combine]:
        return None
    known = ", ".join(_REDUCTIONS[combine])
    return f"tma_store combines with '{combine}' elements of {known}; found {dtype}"


def never_negative(value: ir.Value) -> bool:
    """Whether an integer scalar is known to be at least 0, unless it overflows."""
    return _never_negative(value, frozenset())


def _never_negative(value: ir.Value, open_: frozenset[ir.Value]) -> bool:
    if value in open_:  # a carried value: what holds of everything else holds of it
        return True
    open_ = open_ | {value}
    if any(op.facts.get("min", -1) >= 0 for op in users(value, tile.AssumeOp)):
        return True
    op = defining_op(value)
    if op is None:
        return _argument_never_negative(ir.BlockArgument(value), open_)
    name, operands = op.name, list(op.operands)
    if name == "arith.constant":
        number = constant_of(value)
        return number is not None and number >= 0
    if is_count(op.opview):
        return True
    if name in _KEEP_SIGN:
        return all(_never_negative(operand, open_) for operand in operands)
    if name == "arith.select":
        return all(_never_negative(operand, open_) for operand in operands[1:])
    if name == "arith.maxsi":
        return any(_never_negative(operand, open_) for operand in operands)
    return name == "memref.dim"


def _argument_never_negative(argument: ir.BlockArgument, open_: frozenset[ir.Value]) -> bool:
    loop = argument.owner.owner
    if loop.name != "scf.for":
        return False
    lower, _, step, *initial = list(loop.operands)
    number = argument.arg_number
    if number == 0:
        return _never_negative(lower, open_) and _never_negative(step, open_)
    yielded = list(argument.owner.operations)[-1].operands[number - 1]
    return _never_negative(initial[number - 1], open_) and _never_negative(yielded, open_)


_KEEP_SIGN = (
    "arith.addi",
    "arith.muli",
    "arith.divsi",
    "arith.divui",
    "arith.remsi",
    "arith.remui",
    "arith.minsi",
    "arith.shrsi",
    "arith.shrui",
    "arith.index_cast",
    "arith.extsi",
    "arith.trunci",
)
"""Not negative if no operand is, as long as nothing overflows."""
