"""The `gpu_tile` dialect: how a kernel computes it. Importing it defines every op.

The files of ops are named here, the ops are not: each registers itself, and `gpu_tile.MmaOp` is
then a name of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilec.dialects.gpu_tile import (  # noqa: F401
    async_copy,
    barrier,
    buffer,
    cluster,
    launch_control,
    mbarrier,
    mma,
    register,
    ring,
    role,
    schedule,
    tcgen05,
    tma,
    wgmma,
)
from tilec.dialects.gpu_tile.dialect import GpuTileDialect as GpuTileDialect
from tilec.dialects.gpu_tile.dialect import Op as Op

if TYPE_CHECKING:  # the same names, for type checkers
    from tilec.dialects.gpu_tile.async_copy import *  # noqa: F403
    from tilec.dialects.gpu_tile.barrier import *  # noqa: F403
    from tilec.dialects.gpu_tile.buffer import *  # noqa: F403
    from tilec.dialects.gpu_tile.cluster import *  # noqa: F403
    from tilec.dialects.gpu_tile.launch_control import *  # noqa: F403
    from tilec.dialects.gpu_tile.mbarrier import *  # noqa: F403
    from tilec.dialects.gpu_tile.mma import *  # noqa: F403
    from tilec.dialects.gpu_tile.register import *  # noqa: F403
    from tilec.dialects.gpu_tile.ring import *  # noqa: F403
    from tilec.dialects.gpu_tile.role import *  # noqa: F403
    from tilec.dialects.gpu_tile.schedule import *  # noqa: F403
    from tilec.dialects.gpu_tile.tcgen05 import *  # noqa: F403
    from tilec.dialects.gpu_tile.tma import *  # noqa: F403
    from tilec.dialects.gpu_tile.wgmma import *  # noqa: F403

globals().update({op.__name__: op for op in (*Op.ALL, *Op.KINDS)})
