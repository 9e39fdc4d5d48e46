"""From MLIR locations to positions in the author's source."""

from __future__ import annotations

from mlir import ir

from tilec.messages.diagnostics import CompileError, Location


def source_location(location: ir.Location) -> Location | None:
    """The position a location stands for, None if unknown. A call site counts as its callee."""
    while True:
        if location.is_a_callsite():
            location = location.callee
        elif location.is_a_fused() and location.locations:
            location = location.locations[0]
        elif location.is_a_name():
            location = location.child_loc
        else:
            break
    if not location.is_a_file():
        return None
    return Location(location.filename, location.start_line, location.start_col)


def error_at(
    op: ir.Operation, message: str, *notes: str, kind: type[CompileError] = CompileError
) -> CompileError:
    """A CompileError, or one of that `kind`, at an op's source position."""
    return kind(message, source_location(op.location), notes)
