"""keep-explicit: a kernel written by hand gets no buffer and no barrier that its author did not
write.

A kernel with the attribute `tile.explicit` (any that uses `tilec.language.gpu`) runs through
`pipeline.EXPLICIT_PIPELINE`: nothing is selected, staged, copied, pipelined or ordered for it. What
would need a buffer of the compiler's, with a barrier around it, is an error at its line:

Before:   %y = "gpu_tile.convert_layout"(%x) : (tensor<64x64xf32, #a>) -> tensor<64x64xf32, #b>
After:    error: this moves elements between threads, which takes a buffer and a barrier
          (where #a and #b differ in more than lanes and registers of powers of two)

A `cp_async` whose addresses are not provably multiples of its bytes is one, too: it would trap.

So is a demand that such a kernel has to meet itself (`not_by_hand` in `tilec/terms/demands.py`).

A kernel that asks which CTA it is (`gpu_tile.cta_id`) is persistent: the launch has one dimension.

Reductions inside a warp stay, and so do conversions, reshapes, joins and splits by shuffles.
Does not handle: accesses that lack a barrier; the emulator's check mode finds those.
"""

from __future__ import annotations

from mlir import ir

from tilec.dialects.demands import is_demanded
from tilec.dialects.gpu_tile import AllocOp, CpAsyncOp, CtaIdOp
from tilec.dialects.gpu_tile.types import buffer_of
from tilec.messages.diagnostics import CompileError
from tilec.passes.analysis.divisibility import Divisibility
from tilec.passes.analysis.vector_width import contiguous_dim, provable_width
from tilec.passes.contract import Level, PassContext, Report, tile_pass
from tilec.passes.demands.kernels import PERSISTENT, is_explicit
from tilec.passes.layouts.candidates import blocked_layout
from tilec.passes.layouts.runs import shared_width
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.loops import find_loops
from tilec.passes.rewriting.walk import find_ops, kernel_of
from tilec.passes.split_atomics import split_atomics
from tilec.passes.split_conversions import split_conversions
from tilec.passes.split_reductions import split_reductions
from tilec.terms.demands import KERNEL_DEMANDS, LOOP_DEMANDS


@tile_pass(requires=Level.LAYOUTS, ensures=Level.BUFFERS)
def keep_explicit(module: ir.Module, context: PassContext) -> None:
    """CompileError for what another kernel would get a buffer and a barrier for."""
    errors = [_unaligned(op, context) for op in find_ops(module.operation, CpAsyncOp)]
    written = find_ops(module.operation, AllocOp)
    silent = PassContext(context.target, context.num_warps, context.index_bits, Report())
    for split in (split_reductions, split_atomics, split_conversions):
        split(module, silent)
    errors += [_crossing(op) for op in find_ops(module.operation, AllocOp) if op not in written]
    found = [error for error in errors if error is not None]
    if found:
        raise CompileError.group(found)
    for function in module.body.operations:
        _refuse_demands(function.operation)
        asks = find_ops(function.operation, CtaIdOp)
        if asks and PERSISTENT not in function.operation.attributes:
            function.operation.attributes[PERSISTENT] = ir.BoolAttr.get(True)
        if is_explicit(function.operation):
            context.report.add(
                "kernel", function.operation, "as written", "it uses tilec.language.gpu"
            )


def _refuse_demands(function: ir.Operation) -> None:
    """CompileError for a demand that is the author's to meet."""
    asked = [(function, row) for row in KERNEL_DEMANDS.values()]
    asked += [(loop, row) for loop in find_loops(function) for row in LOOP_DEMANDS.values()]
    for op, row in asked:
        if row.not_by_hand is not None and is_demanded(op, row):
            whose = "a kernel that calls tilec.language.gpu"
            raise error_at(op, f"{row.name} was asked for, but {whose} {row.not_by_hand}")


def _crossing(buffer: ir.Operation) -> CompileError:
    """The error for what would take `buffer`."""
    return error_at(
        buffer,
        "this moves elements between threads, which takes a buffer and a barrier",
        "an explicit kernel gets neither that its author does not write",
        "help: gpu.alloc a buffer outside the loop, then store, gpu.sync, load",
    )


def _unaligned(op: ir.Operation, context: PassContext) -> CompileError | None:
    """The error for a copy that is not provably aligned, None where it is."""
    copy = op.opview
    buffer = buffer_of(copy.dst)
    contiguous = contiguous_dim(copy.src, copy.dims)
    width, why = provable_width(Divisibility(kernel_of(op)), copy.src, copy.offsets, copy.dims)
    if contiguous is not None and width * buffer.element_bytes >= copy.bytes:
        sizes = buffer.shape
        wanted = copy.bytes // buffer.element_bytes
        layout = blocked_layout(sizes, contiguous, wanted, context.num_threads, narrow=False)
        width = min(width, shared_width(buffer.layout, layout, len(sizes), buffer.element_bytes))
        why = "the buffer holds no longer run of neighbours"
    if width * buffer.element_bytes >= copy.bytes:
        return None
    return error_at(
        op,
        f"a copy of {copy.bytes} bytes, of which {width * buffer.element_bytes} are provably "
        f"aligned: {why}",
        "help: copy fewer bytes at a time, or call the kernel with arrays whose rows are aligned",
    )
