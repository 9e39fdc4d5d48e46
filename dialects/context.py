"""Makes MLIR contexts that know both dialects."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from contextlib import contextmanager

from mlir import ir
from mlir.dialects import irdl

from tilec.dialects import gpu_tile, tile
from tilec.dialects.gpu_tile.types import IRDL as GPU_TILE_TYPES
from tilec.dialects.kept import forget

_USED = (
    "irdl", "func", "arith", "math", "scf", "cf", "tensor", "memref", "gpu", "llvm", "nvvm",
)  # fmt: skip
"""What tilec builds ops of. All of MLIR's take three times as long; the parser and the passes load
what they need besides."""

_MOST_LOANS = 64
"""Of a context, which keeps all types and attributes that it was ever asked for: a megabyte of each
hundred kernels."""
_idle: list[tuple[ir.Context, int]] = []
"""Contexts that nobody uses, and how often each was lent."""


def dialects_irdl() -> str:
    """Writes both dialects as IRDL text."""
    tile_ops = "\n".join(op.irdl() for op in tile.Op.ALL)
    gpu_tile_ops = "\n".join(op.irdl() for op in gpu_tile.Op.ALL)
    return (
        f"irdl.dialect @tile {{\n{tile_ops}\n}}\n"
        f"irdl.dialect @gpu_tile {{\n{GPU_TILE_TYPES}\n{gpu_tile_ops}\n}}"
    )


@functools.cache
def _dialects_bytecode() -> bytes:
    """The same as bytecode, which is read in half the time; written once a process, in whatever
    context is the current one."""
    written = io.BytesIO()
    ir.Module.parse(dialects_irdl()).operation.write_bytecode(written)
    return written.getvalue()


def make_context() -> ir.Context:
    """A fresh context with `tile` and `gpu_tile`.

    Single-threaded: a process that forks after a multithreaded context exists hangs in the child.
    Loading a dialect twice into one context aborts, so contexts come only from here. MLIR imports
    a dialect's Python classes when an op of it is looked at, not for what is never met.
    """
    forget()
    context = ir.Context(load_on_create_dialects=[])
    for name in _USED:
        context.get_dialect_descriptor(name)
    context.enable_multithreading(False)
    with context, ir.Location.unknown():
        irdl.load_dialects(ir.Module.parse(_dialects_bytecode()))
    return context


@contextmanager
def lent_context() -> Iterator[ir.Context]:
    """A context for what is compiled inside and gone behind: a fresh one takes as long as a quarter
    of a small kernel, and knows no layouts yet. Who raises keeps it."""
    try:
        context, loans = _idle.pop()
    except IndexError:
        context, loans = make_context(), 0
    yield context
    if loans + 1 < _MOST_LOANS:
        _idle.append((context, loans + 1))
