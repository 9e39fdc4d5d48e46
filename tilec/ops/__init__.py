"""Ready operations, written in the tile language alone: `tilec.ops.matmul`.

`tilec.ops.torch` registers them with torch; it is imported by who wants that, and by
`torch.compile`.
"""

from __future__ import annotations

from tilec.ops.multiply import matmul
from tilec.ops.scaled_product import arrange_scales

__all__ = ["arrange_scales", "matmul"]
