"""verify-target: a program for other hardware than it is compiled for is an error, op by op.

Passes ask the target before they choose; a program that comes in with its choices made (a `.tile`
file with layouts, a dump, a kernel in `tilec.language.gpu`) is asked here. Where ops are one
thread's, instructions are ops of nvvm or text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from mlir import ir

from tilec.dialects.op import TileOp
from tilec.hardware.ptx_version import feature_of, instructions
from tilec.hardware.target import TARGETS, Feature, Target
from tilec.messages.diagnostics import CompileError
from tilec.passes.rewriting.locations import error_at
from tilec.passes.rewriting.walk import all_ops

_INLINE = "llvm.inline_asm"
_CLUSTER = "nvvm.cluster_dim"
_REGISTER = "read.ptx.sreg."


def verify_target(module: ir.Module, target: Target) -> None:
    """CompileError carrying one error per op that `target` cannot execute."""
    errors: list[CompileError] = []

    for op in all_ops(module.operation):
        if wrong := _too_much_shared(op, target):
            errors.append(error_at(op, wrong))
        for feature, name in _needed(op):
            if not target.supports(feature):
                able = [name for name, other in TARGETS.items() if other.supports(feature)]
                errors.append(
                    error_at(
                        op,
                        f"'{name}' needs {feature.name}, which {target.name} does not have",
                        f"help: {', '.join(able)} {'has' if len(able) == 1 else 'have'} it",
                    )
                )
                break
    if errors:
        raise CompileError.group(errors)


def _too_much_shared(op: ir.Operation, target: Target) -> str | None:
    """Says so where an array is declared in more shared memory than a CTA may have."""
    given = op.attributes
    if op.name != "llvm.mlir.global" or "addr_space" not in given or given["addr_space"].value != 3:
        return None
    kind = str(given["global_type"].value)
    bits = re.search(r"x [a-z]+(\d+)>", kind)
    sizes = [int(size) for size in re.findall(r"(\d+) x", kind)]
    bytes_ = prod(sizes) * (int(bits[1]) if bits else 8) // 8
    if bytes_ <= target.shared_bytes:
        return None
    return f"declares {bytes_} bytes of shared memory; {target.name} has {target.shared_bytes}"


def _needed(op: ir.Operation) -> Iterator[tuple[Feature, str]]:
    """The feature that an op needs of the hardware, and the name of what needs it."""
    if op.name.startswith(("llvm.", "nvvm.")):
        names = _instructions(op)
        found = ((feature_of(name), name) for name in names)
    else:
        view = op.opview
        found = iter([(view.feature() if isinstance(view, TileOp) else None, op.name)])
    return ((feature, name) for feature, name in found if feature is not None)


def _instructions(op: ir.Operation) -> list[str]:
    """The instructions of an op that is one thread's, as PTX names them."""
    if op.name == _INLINE:
        return sorted(instructions(op.attributes["asm_string"].value))
    if op.name == "llvm.call_intrinsic":
        return [op.attributes["intrin"].value.removeprefix("llvm.nvvm.")]
    if op.name == "llvm.func":
        return ["barrier.cluster"] if _CLUSTER in op.attributes else []
    name = op.name.removeprefix("nvvm.").removeprefix(_REGISTER)
    return [] if name == op.name else [name]
