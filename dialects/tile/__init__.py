"""The `tile` dialect: what a kernel computes. Importing it defines every op; see
dialects/README.md."""

from tilec.dialects.tile.control import (
    AssertOp,
    AssumeOp,
    InlinePtxOp,
    NumProgramsOp,
    PrintOp,
    ProgramIdOp,
)
from tilec.dialects.tile.dialect import Op, TileDialect
from tilec.dialects.tile.matmul import DotOp
from tilec.dialects.tile.memory import (
    AtomicCasOp,
    AtomicRmwOp,
    FenceOp,
    GatherOp,
    LoadOp,
    ScatterOp,
    StoreOp,
)
from tilec.dialects.tile.reduction import ReduceOp, ScanOp
from tilec.dialects.tile.shape import (
    BroadcastOp,
    IotaOp,
    JoinOp,
    ReshapeOp,
    SplitOp,
    TakeOp,
    TransposeOp,
)

__all__ = [
    "AssertOp",
    "AssumeOp",
    "AtomicCasOp",
    "AtomicRmwOp",
    "BroadcastOp",
    "DotOp",
    "FenceOp",
    "GatherOp",
    "InlinePtxOp",
    "IotaOp",
    "JoinOp",
    "LoadOp",
    "NumProgramsOp",
    "Op",
    "PrintOp",
    "ProgramIdOp",
    "ReduceOp",
    "ReshapeOp",
    "ScanOp",
    "ScatterOp",
    "SplitOp",
    "StoreOp",
    "TakeOp",
    "TileDialect",
    "TransposeOp",
]
