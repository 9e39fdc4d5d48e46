"""fill-piecewise: what fills a buffer through registers comes in pieces where the tiles alive at
one time take more registers than a thread has.

Before:   %a = "tile.load"(%x, %m, %k) ...   %b = "tile.load"(%y, %k, %n) ...
          "gpu_tile.buffer_store"(%a, %s)    "gpu_tile.buffer_store"(%b, %t)
After:    %a = "tile.load"(%x, %m, %k) ...   "gpu_tile.buffer_store"(%a, %s)
          %b = "tile.load"(%y, %k, %n) ...   "gpu_tile.buffer_store"(%b, %t)

Loads whose rows are not known to be aligned bring an element at a time, each into a register of its
own: two tiles of bytes beside the sums of a product are more than there is room for.

1. Find where a part of the kernel (a role, or all of it) takes the most registers, if too many.
2. If tiles are loaded there long before they fill their buffers, they are loaded behind the others.
3. Else, if one tile fills a buffer there, it does so in halves (`copies/fill_pieces.py`).
4. Again, until it fits, or the most is elsewhere.
Does not handle: gathered tiles; tiles that fill two buffers; the tiles of a load role, which
specialize-warps fits into the registers it gives to it.
"""

from __future__ import annotations

from functools import partial

from mlir import ir

from tilec.passes.contract import Level, PassContext, kernel_pass
from tilec.passes.copies.fill_pieces import fill_in_pieces, has_fills
from tilec.passes.roles.parts import parts_of


@kernel_pass(requires=Level.BUFFERS, behind={"specialize-warps": "roles divide the registers"})
def fill_piecewise(function: ir.Operation, context: PassContext) -> None:
    """Loads what fills buffers piece by piece where registers are short."""
    if not has_fills(function):
        return
    for part in parts_of(function, context):
        if fill_in_pieces(partial(part.peak, function), part.registers):
            context.report.add(
                "registers in turn",
                function,
                f"{part.name} fills its buffers piece by piece",
                f"all of it at once needs more than {part.registers} registers",
            )
