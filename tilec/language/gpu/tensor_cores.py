"""Matrix instructions: mma.sync on fragments, wgmma on buffers."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = ["mma", "wgmma", "wgmma_fence", "wgmma_wait"]


@builtin
def mma(lhs: Any, rhs: Any, acc: Any, instruction: str) -> Any:
    """lhs @ rhs + acc by `instruction`, e.g. "mma.m16n8k16.f32.bf16.bf16".

    (m, k) by (k, n) tiles in that instruction's fragments: `gpu.accumulator`, `gpu.lhs_fragments`,
    `gpu.rhs_fragments`.
    """


@builtin
def wgmma_fence(acc: Any) -> Any:
    """Hands an accumulator's registers to the tensor cores; only `wgmma_wait` gives them back."""


@builtin
def wgmma(lhs: Any, rhs: Any, acc: Any, instruction: str) -> Any:
    """Starts lhs @ rhs + acc by `instruction`, e.g. "wgmma.m64n256k16.f32.bf16.bf16".

    All of k, as one committed group. `lhs`: an (m, k) buffer, or a tile in `gpu.lhs_fragments`.
    `rhs`: a (k, n) buffer. `acc`: from `wgmma_fence` or another `wgmma`; the result is such, too.
    """


@builtin
def wgmma_wait(acc: Any, pending: int = 0) -> Any:
    """Waits until at most `pending` of this warpgroup's groups are unfinished.

    With `pending=0` the result is a tile, else it still belongs to the tensor cores.
    """
