"""The `gpu_tile` dialect: how a kernel computes it. Importing it defines every op."""

from tilec.dialects.gpu_tile.async_copy import CpAsyncCommitOp, CpAsyncOp, CpAsyncWaitOp
from tilec.dialects.gpu_tile.barrier import SyncOp
from tilec.dialects.gpu_tile.buffer import (
    AllocOp,
    BufferGatherOp,
    BufferLoadOp,
    BufferStoreOp,
    ReshapeViewOp,
    ViewOp,
)
from tilec.dialects.gpu_tile.dialect import GpuTileDialect, Op
from tilec.dialects.gpu_tile.mma import MmaOp
from tilec.dialects.gpu_tile.register import (
    ConvertLayoutOp,
    ScanCarryOp,
    WarpReduceOp,
    WarpScanOp,
)
from tilec.dialects.gpu_tile.ring import RingPositionOp, SlotOp
from tilec.dialects.gpu_tile.schedule import TileOrderOp

__all__ = [
    "AllocOp",
    "BufferGatherOp",
    "BufferLoadOp",
    "BufferStoreOp",
    "ConvertLayoutOp",
    "CpAsyncCommitOp",
    "CpAsyncOp",
    "CpAsyncWaitOp",
    "GpuTileDialect",
    "MmaOp",
    "Op",
    "ReshapeViewOp",
    "RingPositionOp",
    "ScanCarryOp",
    "SlotOp",
    "SyncOp",
    "TileOrderOp",
    "ViewOp",
    "WarpReduceOp",
    "WarpScanOp",
]
