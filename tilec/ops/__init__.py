"""Ready operations, written in the tile language alone: `matmul`, `attention`.

`tilec.ops.torch` registers them with torch; it is imported by who wants that, and by
`torch.compile`.
"""

from __future__ import annotations

from tilec.ops.attend import attention
from tilec.ops.gradient_launch import attention_gradients
from tilec.ops.multiply import matmul
from tilec.ops.product_report import matmul_report
from tilec.ops.scaled_product import arrange_scales

__all__ = ["arrange_scales", "attention", "attention_gradients", "matmul", "matmul_report"]
