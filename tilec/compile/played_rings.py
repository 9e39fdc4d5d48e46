"""Plays a program's rings behind a pass, and says whose mistake a broken one is.

What is wrong with them in a program that came in between passes may be its author's, as a product
that is not waited for: who reads a slot, and until when, is known once roles are there.
"""

from __future__ import annotations

from mlir import ir

from tilec.messages.diagnostics import CompileError, InternalError
from tilec.passes.checks.verify_rings import ONE_IN, verify_rings
from tilec.passes.contract import Level, PassContext, TilePass


def play_rings(module: ir.Module, context: PassContext, behind: TilePass) -> None:
    """Verifies the rings that a pass left. A broken one is an InternalError where the passes had a
    program of the tile level, and a CompileError at its op where they began in the middle."""
    try:
        verify_rings(module, context, one_in=ONE_IN)
    except CompileError as error:
        if context.given is Level.TILE:
            raise InternalError(f"{behind.name} left an invalid program:\n{error}") from error
        where = f"note: seen behind '{behind.name}'; the program came in between passes"
        raise CompileError(error.message, error.location, [*error.notes, where]) from error
