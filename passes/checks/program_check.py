"""What must hold of a program between two passes, looked at again where a pass has changed it.

MLIR's verifier runs every time. The rules of our ops and of the level walk the program in Python,
and most passes find nothing to do in most programs: equal bytecode is the same program.
"""

from __future__ import annotations

import io

from mlir import ir

from tilec.passes.checks.levels import check_level
from tilec.passes.checks.verify_ops import verify_ops
from tilec.passes.contract import Level


class ProgramCheck:
    """Checks one program from pass to pass."""

    def __init__(self) -> None:
        self._bytes = b""
        self._level: Level | None = None

    def __call__(self, module: ir.Module, level: Level | None) -> None:
        """ir.MLIRError or CompileError says what is wrong. `level`: None where it has none yet."""
        module.operation.verify()  # first: what is malformed has no bytecode
        written = io.BytesIO()
        module.operation.write_bytecode(written)
        changed = written.getvalue() != self._bytes
        if changed:
            verify_ops(module)
        if level is not None and (changed or level is not self._level):
            check_level(module, level)
        self._bytes, self._level = written.getvalue(), level
