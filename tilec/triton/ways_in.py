"""`tilec.triton.kernel`: one kernel, from TTIR or from a `@triton.jit` function."""

from __future__ import annotations

from typing import Any

from tilec.triton.kernel import TritonKernel
from tilec.triton.takeover.hooks import taken
from tilec.triton.takeover.wish import ERROR, Wish


def kernel(
    source: Any,
    name: str = "<ttir>",
    kernel: str | None = None,
    *,
    otherwise: str = ERROR,
    device: str | None = None,
) -> Any:
    """A kernel that tilec compiles and launches, `kernel[grid](...)`.

    Of a TTIR text, a `TritonKernel`: `name` is the text's in messages, `kernel` says which function
    of several. Of a `@triton.jit` function, autotuned or with heuristics or not, an object of the
    same kind beside it: what is called by the function's own name Triton compiles as before.
    `otherwise`, `device`: see `enable`. CompileError for a text that is none, TypeError for what is
    neither.
    """
    if isinstance(source, str):
        return TritonKernel(source, name, kernel, device)
    return taken(source, Wish(otherwise, device))
