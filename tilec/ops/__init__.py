"""Ready operations, written in the tile language alone: `tilec.ops.matmul`.

`tilec.ops.torch` registers them with torch; it is imported only by who wants that.
"""

from __future__ import annotations

from tilec.ops.multiply import matmul

__all__ = ["matmul"]
