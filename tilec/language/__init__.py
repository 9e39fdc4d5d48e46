"""What a kernel may say: `import tilec.language as tl`. See README.md for the rules.

Each file of functions lists what it exports.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from tilec.language import (
    arithmetic,
    bits,
    composites,
    control,
    lists,
    matmul,
    memory,
    random_numbers,
    reduction,
    shape,
    sorting,
)
from tilec.language.arithmetic import *  # noqa: F403
from tilec.language.bits import *  # noqa: F403
from tilec.language.composites import *  # noqa: F403
from tilec.language.control import *  # noqa: F403
from tilec.language.elsewhere import instead_of
from tilec.language.lists import *  # noqa: F403
from tilec.language.matmul import *  # noqa: F403
from tilec.language.memory import *  # noqa: F403
from tilec.language.parameters import array, arrays, auto, const, flat_arrays, inf, nan
from tilec.language.random_numbers import *  # noqa: F403
from tilec.language.reduction import *  # noqa: F403
from tilec.language.shape import *  # noqa: F403
from tilec.language.sorting import *  # noqa: F403
from tilec.language.tile import Tile
from tilec.messages.mistakes import mistake
from tilec.messages.tracebacks import short_traceback
from tilec.terms import dtypes
from tilec.terms.dtypes import *  # noqa: F403

__all__ = ["Tile", "array", "arrays", "auto", "const", "flat_arrays", "inf", "nan"]
__all__ += dtypes.__all__
__all__ += arithmetic.__all__
__all__ += bits.__all__
__all__ += composites.__all__
__all__ += control.__all__
__all__ += lists.__all__
__all__ += matmul.__all__
__all__ += memory.__all__
__all__ += random_numbers.__all__
__all__ += reduction.__all__
__all__ += shape.__all__
__all__ += sorting.__all__


def __dir__() -> list[str]:
    return [*__all__, "gpu"]


if not TYPE_CHECKING:  # which would take any name for one of ours

    @short_traceback
    def __getattr__(name: str) -> object:
        """`tl.gpu`, which is imported where it is used; for names that others have AttributeError,
        which says what to write."""
        if name == "gpu":
            return importlib.import_module(f"{__name__}.gpu")
        instead = instead_of(name)
        text = f"module {__name__!r} has no attribute {name!r}"
        if instead is not None:
            raise mistake(AttributeError(f"{text}; write {instead}"))
        # Python guesses from these.
        raise mistake(AttributeError(text, name=name, obj=sys.modules[__name__]))
