"""SageAttention: attention by products of 8-bit integers."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package

REPOSITORY = "thu-ml/SageAttention"


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    for name in ("sageattention", "sageattention.triton"):
        bare_package(name, folder.joinpath(*name.split(".")))


def _of(module: str) -> Any:
    return importlib.import_module(f"sageattention.triton.{module}")


def _heads(draw: Draw, least: int = 150) -> tuple[Any, Any, Any]:
    b, h, hk, n, d = draw.size((1, 2, 1, least, 64), (4, 32, 8, 4096, 128))
    q = draw.normal(b, h, n, d, dtype=torch.float16)
    return q, *(draw.normal(b, hk, n, d, dtype=torch.float16) for _ in range(2))


def attention(draw: Draw) -> None:
    q, k, v = _heads(draw)
    q8, q_scale, k8, k_scale = _of("quant_per_block").per_block_int8(q, k, km=k.mean(2, True))
    f = _of("attn_qk_int8_per_block").forward
    f(q8, k8, v, q_scale, k_scale, return_lse=True)


def causal_attention(draw: Draw) -> None:
    """Of whole blocks: behind others it loads scales past the last."""
    q, k, v = _heads(draw, 256)
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    q8, q_scale, k8, k_scale = _of("quant_per_block").per_block_int8(q, k)
    _of("attn_qk_int8_per_block_causal").forward(q8, k8, v, q_scale, k_scale)


def attention_of_unlike_lengths(draw: Draw) -> None:
    b, h, n, d = draw.size((3, 2, 100, 64), (8, 32, 2048, 128))
    lengths = draw.integers(n, b, dtype=torch.int32) + 1
    starts = torch.zeros(b + 1, dtype=torch.int32, device=draw.device)
    starts[1:] = lengths.cumsum(0)
    total, longest = int(starts[-1]), int(lengths.max())
    q, k, v = (draw.normal(total, h, d, dtype=torch.float16) for _ in range(3))
    made = _of("quant_per_block_varlen").per_block_int8(q, k, starts, starts, longest, longest)
    q8, q_scale, k8, k_scale, q_starts, k_starts = made
    given = (q8, k8, v, starts, starts, longest, q_scale, k_scale, q_starts, k_starts)
    _of("attn_qk_int8_block_varlen").forward(*given)
    _of("attn_qk_int8_per_block_causal_varlen").forward(*given)


def quantisation(draw: Draw) -> None:
    q, k, _ = _heads(draw)
    _of("quant_per_thread").per_thread_int8(q, k)
    if hasattr(_of("quant_per_thread"), "per_thread_int4"):
        _of("quant_per_thread").per_thread_int4(q, k)


CALLS = {
    "attention": attention,
    "causal_attention": causal_attention,
    "attention_of_unlike_lengths": attention_of_unlike_lengths,
    "quantisation": quantisation,
}
