"""Ready operations, written in the tile language alone: `matmul`, `attention`.

`tilec.ops.torch` registers them with torch; it is imported by who wants that, by `torch.compile`,
and by torch's loaders of programs, if this is imported before.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tilec.language.elsewhere import of_operations
from tilec.messages.mistakes import mistake
from tilec.messages.tracebacks import short_traceback
from tilec.ops.attend import attention
from tilec.ops.gradient_launch import attention_gradients
from tilec.ops.multiply import matmul
from tilec.ops.product_report import matmul_report
from tilec.ops.scaled_product import arrange_scales
from tilec.runtime.traced_calls import when_programs_load

__all__ = ["arrange_scales", "attention", "attention_gradients", "matmul", "matmul_report"]

when_programs_load("tilec.ops.torch")


if not TYPE_CHECKING:  # which would take any name for one of ours

    @short_traceback
    def __getattr__(name: str) -> object:
        """AttributeError, which says what to write for what others call an operation."""
        text = f"module {__name__!r} has no attribute {name!r}"
        if instead := of_operations(name):
            raise mistake(AttributeError(f"{text}; write {instead}"))
        # Python guesses from these.
        raise mistake(AttributeError(text, name=name, obj=sys.modules[__name__]))
