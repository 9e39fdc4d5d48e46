"""Which arrays a kernel writes, or may: by stores, atomics and tensor maps."""

from __future__ import annotations

from mlir import ir

from tilec.dialects.def_use import made_by
from tilec.dialects.effects import written_by
from tilec.dialects.gpu_tile import TensorMapOp, TensorMapStore
from tilec.dialects.tile import ArrayOp
from tilec.dialects.types import is_array
from tilec.passes.rewriting.walk import find_ops


def written_arrays(function: ir.Operation) -> list[ir.Value | None]:
    """The arrays that ops of a kernel write, before or after its stores became tensor copies; None
    stands for one that is not known to be any argument."""
    plain = [array for op in find_ops(function, ArrayOp) for array in written_by(op.opview)]
    copied = find_ops(function, TensorMapStore)
    return plain + [array_of(op.opview.map) for op in copied]


def array_of(tensor_map: ir.Value) -> ir.Value | None:
    """The array that a tensor map describes; None where the map is not made in the kernel."""
    made = made_by(tensor_map, TensorMapOp)
    return None if made is None else made.array


def numbers_of_written(function: ir.Operation) -> list[int]:
    """The numbers of the arguments that a kernel may write, in order: those of all arrays where one
    that it writes is not known to be an argument."""
    arguments = list(function.regions[0].blocks[0].arguments)
    written = written_arrays(function)
    arrays = [n for n, a in enumerate(arguments) if is_array(a)]
    if any(array not in arguments for array in written):
        return arrays
    return [number for number in arrays if arguments[number] in written]
