"""Compiles until it fits: where the compiler's own choices exceed a memory, they take less.

A pass that chooses how much memory something gets asks `PassContext.allowance` how much it may. The
passes that place buffers raise `DoesNotFit`; the kernel then starts anew with the next allowance of
the memory that was exceeded. What an author demands is not lessened, so that it remains an error.
"""

from __future__ import annotations

from dataclasses import replace

from tilec.messages.diagnostics import DoesNotFit
from tilec.passes.contract import Allowance

_STAGES = (3, 2, 1)
"""Fewer than a ring of cp.async has at most; rings that a role fills count what is left anyway."""


def less(allowance: Allowance, error: DoesNotFit) -> Allowance | None:
    """The next smaller allowance of the memory that an error is about, None if there is none."""
    if error.memory == "tensor":
        return replace(allowance, tensor_memory=False) if allowance.tensor_memory else None
    fewer = [stages for stages in _STAGES if stages < allowance.stages]
    if fewer:
        return replace(allowance, stages=fewer[0])
    return replace(allowance, copies=False) if allowance.copies else None


def show(allowance: Allowance) -> str:
    """What an allowance keeps the compiler from, for the report."""
    kept = []
    if not allowance.copies:
        kept.append("no buffers ahead of their use")
    elif allowance.stages < Allowance().stages:
        kept.append("one stage" if allowance.stages == 1 else f"at most {allowance.stages} stages")
    if not allowance.tensor_memory:
        kept.append("sums in registers")
    return ", ".join(kept)
