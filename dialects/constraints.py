"""Named type constraints of operands and results, as IRDL text."""

from __future__ import annotations

from tilec.records import dataclass


@dataclass(frozen=True)
class Constraint:
    """What an operand or result may be: `irdl`, the IRDL expression; `description`, the words of
    the documentation."""

    irdl: str
    description: str


ANY = Constraint("irdl.any", "any type")
TILE = Constraint('irdl.base "!builtin.tensor"', "tile (tensor of static shape)")
ARRAY = Constraint('irdl.base "!builtin.memref"', "array in global memory (memref)")
LIST = Constraint('irdl.base "!builtin.memref"', "list of arrays (memref of memrefs)")
INDEX = Constraint("irdl.is index", "index")
I32 = Constraint("irdl.is i32", "i32")
I1 = Constraint("irdl.is i1", "i1")
BUFFER = Constraint("irdl.base @gpu_tile::@buffer", "shared or tensor memory buffer")
BARRIER = Constraint("irdl.base @gpu_tile::@barrier", "ring of mbarriers")
RING = Constraint("irdl.base @gpu_tile::@ring", "ring")
COUNTED = Constraint("irdl.any", "ring of mbarriers, or ring")  # MLIR's any_of takes no bases
TENSOR_MAP = Constraint("irdl.base @gpu_tile::@tensor_map", "TMA tensor map")
PENDING = Constraint("irdl.base @gpu_tile::@pending", "tile that the tensor cores still write")
