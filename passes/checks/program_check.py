"""What must hold of a program between two passes, looked at again where a pass has changed it.

Most passes find nothing to do in most programs, and equal bytecode is the same program: neither
MLIR's verifier nor the rules of our ops and of the level, which walk it in Python, see it again.
"""

from __future__ import annotations

import io

from mlir import ir

from tilec.passes.checks.levels import level_rules
from tilec.passes.checks.rules import look_at_all
from tilec.passes.checks.verify_ops import op_rules
from tilec.passes.contract import Level


class ProgramCheck:
    """Checks one program from pass to pass. `changes`: how often it was another one."""

    def __init__(self) -> None:
        self.changes = 0
        self._bytes = b""
        self._level: Level | None = None

    def __call__(self, module: ir.Module, level: Level | None) -> None:
        """Checks a program. ir.MLIRError or CompileError says what is wrong. `level`: None where
        the program has none yet."""
        written = io.BytesIO()
        module.operation.write_bytecode(written)
        changed = written.getbuffer() != self._bytes
        rules = []
        if changed:
            self.changes += 1
            module.operation.verify()
            rules.append(op_rules())
        if level is not None and (changed or level is not self._level):
            rules.append(level_rules(level))
        if rules:
            look_at_all(module, *rules)
        self._bytes, self._level = written.getvalue(), level
