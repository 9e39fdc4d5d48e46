"""What an op costs a warp that computes one element in each lane: the slots of its instructions.

One unit for all that layout inference weighs: bytes of traffic to and from memory. While a
multiprocessor's part of the memory moves `SLOT_BYTES`, its schedulers issue one instruction: 4 a
clock, against 13 (A100) to 21 bytes (H200) of memory in the same clock
(`tilec/hardware/target.py`, Speed).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlir import ir

from tilec.dialects import tile
from tilec.dialects.def_use import defining_op
from tilec.dialects.elementwise import is_elementwise
from tilec.dialects.types import bit_width, is_index, number_type
from tilec.hardware.sizes import WORD_BITS
from tilec.passes.rewriting.walk import is_of

SLOT_BYTES = 4
"""Bytes of traffic that one instruction of a warp is worth: a multiprocessor issues four a clock,
in which DRAM brings it 18 bytes (an H200's 4.8 TB/s over 132 at 1.98 GHz).

One for all targets, though by `Speed` it is 7 on a B200, 3 on an A100, 1 on an RTX 5090 and 0.8 on
an RTX 4090: what is weighed differs by more. The PTX of the 16 kernels of
`test/targets/example_defaults.py`, for sm_89 and sm_90a, and of the golden ones, for sm_89 and
their own targets, is the same for 1, 2, 3, 4, 6 and 8; that of seven is another for 64. Not timed
on devices other than an H200."""
SHUFFLE_SLOTS = 4
"""A shuffle: 32 lanes a clock (CUDA C++ Programming Guide, "Arithmetic Instructions")."""

TAKE_SLOTS = 4
"""A read of shared memory: a clock, in which four instructions are issued (CUDA C++ Programming
Guide, "Shared Memory": 32 banks)."""

ACCESS_SLOTS = 5
"""An access to global memory and what says whether it is one: 32 lanes a clock find their address
(CUDA C++ Programming Guide, "Arithmetic Instructions"), and a comparison."""

FREE = ("arith.constant", "arith.bitcast", "arith.index_cast", "tensor.splat", "tile.broadcast")
"""Ops whose result is an immediate, or registers that are there."""

ROUTINES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "arith.divf": (8, 20),
        "math.sqrt": (8, 20),
        "arith.divsi": (17, 80),
        "arith.remsi": (17, 80),
        "arith.divui": (17, 80),
        "arith.remui": (17, 80),
        "arith.floordivsi": (20, 90),
        "arith.ceildivsi": (20, 90),
        "arith.ceildivui": (20, 90),
    }
)
"""(32 bits, 64 bits): what ptxas makes of one instruction of PTX, by the size of its code for
sm_90, slow ways for special numbers left out."""

FUNCTIONS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "math.exp": (9, 30),
        "math.exp2": (4, 30),
        "math.expm1": (23, 28),
        "math.log": (27, 36),
        "math.log2": (35, 38),
        "math.log10": (38, 41),
        "math.log1p": (29, 38),
        "math.rsqrt": (4, 4),
        "math.cbrt": (34, 49),
        "math.sin": (74, 136),
        "math.cos": (75, 137),
        "math.tan": (73, 135),
        "math.asin": (21, 29),
        "math.acos": (23, 31),
        "math.atan": (21, 32),
        "math.atan2": (40, 51),
        "math.sinh": (25, 48),
        "math.cosh": (14, 32),
        "math.tanh": (16, 33),
        "math.asinh": (41, 50),
        "math.acosh": (40, 49),
        "math.atanh": (35, 44),
        "math.erf": (22, 87),
        "math.erfc": (48, 89),
        "math.powf": (72, 137),
        "arith.remf": (60, 60),
    }
)
"""(f32, f64): instructions of the formulas of `passes/math`, which compute 16-bit types in f32;
`test_expand_math.py` counts them."""

APPROXIMATE_SLOTS = 4
"""With fastmath<afn>: one or two instructions, of the unit that takes a quarter of a warp a clock
and more."""


def issue_slots(op: ir.Operation) -> int:
    """Slots of one element of an op; 0 of what computes nothing in registers, as accesses."""
    if is_of(op, tile.TakeOp):
        return TAKE_SLOTS
    if op.name in FREE or not is_elementwise(op) or _numbers(op.results[0]):
        return 0
    # A comparison is as wide as what it compares, a conversion as the wider side.
    wide = max(map(_bits, (*op.operands, *op.results))) > WORD_BITS
    for table in (ROUTINES, FUNCTIONS):
        if op.name in table:
            return APPROXIMATE_SLOTS if is_approximate(op) else table[op.name][wide]
    return 2 if wide else 1


def _numbers(value: ir.Value, steps: int = 4) -> bool:
    """Whether each of a tile's elements is a number of the thread plus an immediate, which the op
    that reads them adds: an iota is, and sums of few of those and scalars."""
    op = defining_op(value)
    if op is None or steps == 0:
        return False
    if op.name in ("arith.addi", "arith.subi", "arith.index_cast", "tile.broadcast"):
        return all(_numbers(operand, steps - 1) for operand in op.operands)
    return op.name in ("tile.iota", "arith.constant", "tensor.splat")


def combining_slots(op: tile.ReduceOp | tile.ScanOp) -> int:
    """Slots to combine two elements of a reduction or scan."""
    return sum(issue_slots(inner.operation) for inner in op.body.operations)


def words(value: ir.Value) -> int:
    """Registers that hold one element of a tile."""
    return max(1, -(-_bits(value) // WORD_BITS))


def _bits(value: ir.Value) -> int:
    """The bits of an element, or of a scalar; an index mostly fits a word (pass
    `widen-indices`)."""
    kind = number_type(value)
    return WORD_BITS if is_index(kind) else bit_width(kind)


def is_approximate(op: ir.Operation) -> bool:
    """Whether the author asks for no more than the hardware's approximation of a function."""
    return "fastmath" in op.attributes and "afn" in str(op.attributes["fastmath"])
