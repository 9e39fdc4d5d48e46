"""How each op of Triton's becomes ops of tilec's: a rule a name, from the files beside this."""

from __future__ import annotations

from tilec.triton import control, elementwise, inline_asm, libdevice, memory, shapes
from tilec.triton.elementwise import Rule

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **shapes.RULES,
    **memory.RULES,
    **control.RULES,
    **inline_asm.RULES,
    **libdevice.RULES,
}
