"""estimate-registers: reports where a kernel's values take more registers than a thread has.

Before and After are the same program. Addresses are added to the values that are counted
(`analysis/register_pressure.py`): few in a role, which has barriers and descriptors; more in a
thread that loads between products whose sums cannot move. A kernel that is reported keeps values in
memory ("spills"), which its author should hear before it is slow. `test/bench/register_verdicts.py`
compares with ptxas.
Does not handle: ptxas's own schedule; where there is one, reports ask it
(`tilec/compile/resources.py`).
"""

from __future__ import annotations

from mlir import ir

from tilec.passes.analysis.register_pressure import SUBJECT
from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.roles.parts import parts_of


@kernel_pass(requires=Level.BUFFERS)
def estimate_registers(function: ir.Operation, context: PassContext) -> None:
    """Reports the parts of kernels whose live values exceed their registers."""
    for part in parts_of(function, context):
        live = part.peak(function).registers
        if live > part.registers:
            context.report.add(
                SUBJECT,
                function,
                f"about {live} for {part.name}, which has {part.registers}",
                "its tiles are alive at the same time: the rest is spilled to memory",
                live=live,
                registers=part.registers,
            )
