"""The functions of `tilec.language.gpu` about tensor memory that do more than their op."""

from __future__ import annotations

from typing import Any

from mlir import ir

from tilec.dialects import gpu_tile
from tilec.dialects.gpu_tile.types import TensorBuffer
from tilec.frontend import tl_shape
from tilec.frontend.branches import as_condition
from tilec.frontend.conversion import materialize
from tilec.frontend.frame import Frame
from tilec.frontend.gpu_operands import refuse_unsigned
from tilec.frontend.gpu_ops import buffer_of_value, buffer_sizes, emit
from tilec.frontend.values import Mistake, Resource, describe
from tilec.hardware.tensor_memory import COLUMN_BITS, TensorMemoryLayout
from tilec.hardware.tensor_tiles import largest_instruction
from tilec.terms.dtypes import i1


def alloc_tensor_memory(frame: Frame, shape: Any, dtype: Any, memory: Any, slots: Any) -> Resource:
    """`gpu.alloc_tensor_memory`."""
    kind = tl_shape.as_dtype(dtype)
    refuse_unsigned(kind, "tensor memory", "dtype")
    if not isinstance(memory, TensorMemoryLayout):
        raise Mistake(
            f"memory must be a tensor-memory layout such as gpu.tensor_memory((128, 64)), found "
            f"{describe(memory)}",
            argument="memory",
        )
    if kind.bits > COLUMN_BITS:
        raise Mistake(f"tensor memory has columns of 32 bits, found {kind}", argument="dtype")
    sizes = buffer_sizes(shape, slots, memory, "memory")
    type_ = TensorBuffer(sizes, frame.builder.element(kind), memory).type()
    return emit(frame, gpu_tile.AllocOp, {}, [type_])


def tcgen05_mma(
    frame: Frame,
    lhs: Any,
    rhs: Any,
    acc: Any,
    use_acc: Any,
    instruction: Any,
    barrier: Any,
    slot: Any,
    commit: Any,
) -> None:
    """`gpu.tcgen05_mma`."""
    given = {"lhs": lhs, "rhs": rhs, "acc": acc, "use_acc": use_acc, "instruction": instruction}
    if instruction is None:
        buffers = [buffer_of_value(given[name], name) for name in ("lhs", "rhs", "acc")]
        types = [str(buffer.element) for buffer in buffers]
        sizes = [buffer.shape for buffer in buffers]
        try:
            given["instruction"] = largest_instruction(sizes, [b.layout for b in buffers], types)
        except ValueError as error:
            raise Mistake(str(error)) from None
    emit(frame, gpu_tile.Tcgen05MmaOp, given)
    if barrier is None:
        return
    where = materialize(frame.builder, as_condition(frame, commit), i1, None)
    branch = frame.builder.op("scf.if", operands=[where], regions=2)
    with ir.InsertionPoint(branch.regions[0].blocks.append()):
        emit(frame, gpu_tile.Tcgen05CommitOp, {"barrier": barrier, "slot": slot})
        ir.Operation.create("scf.yield")
