"""The `tile` dialect: what a kernel computes. Importing it defines every op; see
dialects/README.md.

The files of ops are named here, the ops are not: each registers itself, and `tile.DotOp` is then a
name of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilec.dialects.tile import control, lists, matmul, memory, reduction, shape, stripes  # noqa: F401
from tilec.dialects.tile.dialect import Op as Op
from tilec.dialects.tile.dialect import TileDialect as TileDialect

if TYPE_CHECKING:  # the same names, for type checkers
    from tilec.dialects.tile.control import *  # noqa: F403
    from tilec.dialects.tile.lists import *  # noqa: F403
    from tilec.dialects.tile.matmul import *  # noqa: F403
    from tilec.dialects.tile.memory import *  # noqa: F403
    from tilec.dialects.tile.reduction import *  # noqa: F403
    from tilec.dialects.tile.shape import *  # noqa: F403
    from tilec.dialects.tile.stripes import *  # noqa: F403

globals().update({op.__name__: op for op in (*Op.ALL, *Op.KINDS)})
