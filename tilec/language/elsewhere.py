"""What the language says for names of Triton, torch and NumPy: for messages."""

from __future__ import annotations

from tilec.terms.dtypes import DTYPES

INSTEAD = {
    **{name: f"tl.{d.name}" for d in DTYPES for name in (d.array, *d.elsewhere) if name},
    "constexpr": "tl.const",
    "trans": "x.T, or tl.permute(x, order)",
    "view": "tl.reshape(x, shape), or tl.bitcast(x, dtype)",
    "ravel": "tl.reshape(x, shape)",
    "zeros_like": "tl.zeros(x.shape, x.dtype)",
    "fdiv": "tl.div(x, y, approx=True)",
    "device_print": "tl.print",
    "device_assert": "assert condition, text",
    "static_print": "tl.print",
    "make_block_ptr": "tl.load(array, offsets, shape), which respects the bounds",
    "advance": "tl.load(array, offsets, shape) at other offsets",
    "make_tensor_descriptor": "tl.load(array, offsets, shape), a TMA copy where it can be",
    "multiple_of": "tl.assume(x, multiple_of=n)",
    "randint": "tl.philox",
    **dict.fromkeys(
        ("debug_barrier", "syncthreads", "sync_threads", "barrier", "__syncthreads"),
        "nothing: the compiler places barriers (by hand: tilec.language.gpu)",
    ),
    **dict.fromkeys(
        ("thread_id", "thread_idx", "threadIdx", "blockDim", "lane_id", "warp_id"),
        "operations on whole tiles: which thread computes what, the compiler chooses",
    ),
    **dict.fromkeys(("blockIdx", "block_idx", "block_id", "pid"), "tl.program_id(axis)"),
    **dict.fromkeys(("gridDim", "grid_dim"), "tl.num_programs(axis)"),
    **dict.fromkeys(
        ("shared", "shared_memory", "smem", "alloc_shared"),
        "nothing: the compiler places tiles in shared memory (by hand: tilec.language.gpu)",
    ),
}
"""What to write for a name of theirs."""


def instead_of(name: str) -> str | None:
    """What to write for a name of Triton, torch or NumPy, or None."""
    return INSTEAD.get(name)
