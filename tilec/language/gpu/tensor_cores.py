"""Matrix instructions: mma.sync on fragments, wgmma on buffers, tcgen05 into tensor memory."""

from __future__ import annotations

from typing import Any

from tilec.language.builtin import builtin

__all__ = [
    "mma",
    "mma_scaled",
    "tcgen05_commit",
    "tcgen05_copy",
    "tcgen05_mma",
    "tcgen05_mma_scaled",
    "tcgen05_multicast_commit",
    "wgmma",
    "wgmma_fence",
    "wgmma_meanwhile",
    "wgmma_wait",
]


@builtin
def mma(lhs: Any, rhs: Any, acc: Any, instruction: str) -> Any:
    """lhs @ rhs + acc by `instruction`, e.g. "mma.m16n8k16.f32.bf16.bf16".

    (m, k) by (k, n) tiles in that instruction's fragments: `gpu.accumulator`, `gpu.lhs_fragments`,
    `gpu.rhs_fragments`.
    """


@builtin
def mma_scaled(
    lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, acc: Any, instruction: str, block: int = 0
) -> Any:
    """`mma` with a scale per 32 numbers along k, "mma.mx.m16n8k32.f32.e4m3.e5m2", or per 16,
    "mma.nv.m16n8k64.f32.e2m1.e2m1".

    `lhs_scale`, `rhs_scale`: (m, blocks) and (blocks, n) tiles of i8 in `gpu.lhs_scales` and
    `gpu.rhs_scales`, where 127 stands for 1 and each step for a factor of 2; of "nv" f8e4m3.
    `block`: the number of the first that the step along k needs.
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
def wgmma_meanwhile() -> Any:
    """What stands in front of this is done beside the tensor cores, in front of the next wait.

    Without it the assembler moves the wait up.
    """


@builtin
def wgmma_wait(acc: Any, pending: int = 0) -> Any:
    """Waits until at most `pending` of this warpgroup's groups are unfinished.

    With `pending=0` the result is a tile, else it still belongs to the tensor cores.
    """


@builtin
def tcgen05_mma(
    lhs: Any,
    rhs: Any,
    acc: Any,
    use_acc: Any = True,
    instruction: str | None = None,
    barrier: Any = None,
    slot: Any = 0,
    commit: Any = True,
) -> Any:
    """Starts acc = lhs @ rhs, plus acc where the condition `use_acc` holds; one thread issues it.

    `lhs`: an (m, k) buffer in shared or tensor memory. `rhs`: a (k, n) buffer in shared memory.
    `acc`: an (m, n) buffer in tensor memory. `instruction`: its name, such as
    "tcgen05.m128n256k16.f32.bf16.bf16"; None takes the largest that the buffers are made of. With
    `barrier` it is committed to `barrier[slot]` where the condition `commit` holds, else by
    `tcgen05_commit`. What threads wrote to its operands is fenced before, with "async_shared" or
    "tcgen05_before" and "tcgen05_after".

    "tcgen05.pair.m256n256k16..." multiplies for a pair of CTAs, neighbours in a cluster: each has
    (m/2, k), (k, n/2) and (m/2, n) buffers in the same places, and one thread of the CTA of even
    rank issues. All products of a kernel are then of pairs.
    """


@builtin
def tcgen05_mma_scaled(
    lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, acc: Any, use_acc: Any, instruction: str
) -> Any:
    """`tcgen05_mma` with a scale per 32 elements along k, "tcgen05.mx.m128n64k32.f32.e4m3.e4m3".

    `lhs_scale`, `rhs_scale`: (m, k/32) and (n, k/32) buffers of i8 in tensor memory, laid out by
    `gpu.tensor_scales` and filled by `tcgen05_copy` of shape "32x128b.warpx4"; 127 stands for 1,
    each step for a factor of 2.
    """


@builtin
def tcgen05_copy(src: Any, dst: Any, shape: str = "128x256b") -> Any:
    """Starts to copy the shared buffer `src` into tensor memory; one thread issues it.

    `shape`: the piece, rows and bits: "128x256b", "128x128b", "4x256b", and with copies for several
    warps "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"; `dst` has as many
    rows. Products issued behind it see it, others who wait for a `tcgen05_commit` behind it.
    """


@builtin
def tcgen05_multicast_commit(barrier: Any, slot: Any, mask: Any) -> Any:
    """`tcgen05_commit` to `barrier[slot]` of every CTA of the cluster that `mask` has."""


@builtin
def tcgen05_commit(barrier: Any, slot: Any = 0) -> Any:
    """Arrives once at `barrier[slot]` when all products issued so far by this thread are done."""
