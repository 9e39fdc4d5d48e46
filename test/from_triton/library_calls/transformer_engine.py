"""Transformer Engine: tokens permuted for experts, cross-entropy, hyper-connections."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package, stand_in

REPOSITORY = "NVIDIA/TransformerEngine"
TRITON = "transformer_engine.pytorch.triton"


def prepare(folder: Path) -> None:
    """`folder`: of the repository. Its packages ask for its compiled library."""
    root = folder / "transformer_engine"
    for name in ("", "pytorch", "pytorch.triton", "common", "common.triton"):
        parts = [part for part in name.split(".") if part]
        bare_package(".".join(("transformer_engine", *parts)), root.joinpath(*parts))
    bare_package("transformer_engine.pytorch.cpp_extensions", root / "pytorch/cpp_extensions")
    stand_in("transformer_engine.pytorch.cpp_extensions.gemm", general_gemm=None)


def _of(name: str) -> Any:
    return importlib.import_module(f"{TRITON}.{name}")


def permuted_tokens(draw: Draw) -> None:
    """To the experts that a mask chooses for each token, and back."""
    m = _of("permutation")
    t, d, experts, each = draw.size((24, 64, 4, 2), (8192, 4096, 64, 8))
    chosen = draw.uniform(t, experts).topk(each, dim=1).indices
    mask = torch.zeros(t, experts, dtype=torch.int32, device=draw.device).scatter_(1, chosen, 1)
    x, probs = draw.normal(t, d), draw.uniform(t, experts)
    rows = m.make_row_id_map(mask, t, experts)
    sizes = t, experts, t * each, d
    y, y_probs, *_ = m.permute_with_mask_map(x, rows, probs, None, None, *sizes, 0)
    m.unpermute_with_mask_map(y, rows, probs, y_probs, None, t, experts, d)
    m.unpermute_with_mask_map_bwd_with_merging_probs(x, rows, y, probs, None, *sizes)


def sorted_chunks(draw: Draw) -> None:
    m = _of("permutation")
    t, d, splits = draw.size((24, 64, 4), (8192, 4096, 32))
    sizes = torch.full((splits,), t // splits, dtype=torch.int32, device=draw.device)
    order = torch.randperm(splits, device=draw.device, dtype=torch.int32)
    rows = m.make_chunk_sort_map(sizes, order, t, splits)
    m.sort_chunks_by_map(draw.normal(t, d), rows, draw.uniform(t), t, d, True)


def cross_entropy(draw: Draw) -> None:
    m = _of("cross_entropy")
    rows, words = draw.size((5, 3000), (4096, 32000))
    logits = draw.normal(1, rows, words, dtype=torch.float32)
    loss, grad = m.cross_entropy_forward(
        logits, draw.integers(words, 1, rows), 0.1, False, None, -100
    )
    m.cross_entropy_backward(grad, torch.randn_like(loss))


def padded_scales(draw: Draw) -> None:
    shape = draw.size((3, 4), (1000, 8100))
    _of("pad").pad_columnwise_scale_inv(draw.integers(255, *shape, dtype=torch.uint8))


def grouped_bias(draw: Draw) -> None:
    """Gradients of biases and of scales of groups of rows."""
    m = _of("grouped_dbias_dscales")
    t, d, groups = draw.size((64, 128, 4), (8192, 4096, 16))
    offsets = torch.arange(0, t + 1, t // groups, device=draw.device)
    dy = draw.normal(t, d, dtype=torch.bfloat16)
    m.compute_grouped_dbias(dy, offsets, groups)
    bias = draw.normal(groups, d, dtype=torch.bfloat16)
    m.compute_grouped_dbias_dscales(dy, draw.uniform(t), bias, offsets)


def hyper_connections(draw: Draw) -> None:
    """Of four streams: mixed, scaled to doubly stochastic matrices, added up, spread."""
    m = _of("mhc")
    s, b, c, n = draw.size((8, 2, 64, 4), (1024, 4, 2048, 4))
    dtype = draw.half
    x = draw.normal(s, b, c, n, dtype=dtype, grad=True)
    phi = draw.normal(2 * n + n * n, n * c, dtype=dtype, scale=0.02, grad=True)
    h, ms = m.mhc_fused_projection(x.flatten(2).view(s * b, -1), phi)
    h, ms = h.detach().requires_grad_(), ms.detach()  # whose gradients ask for the library
    alpha = draw.uniform(3, grad=True)
    beta = draw.normal(1, 2 * n + n * n, dtype=torch.float32, grad=True)
    pre, post, mixed = m.mhc_fused_scale(h, alpha, beta, ms, n)
    streams = m.mhc_fused_sinkhorn(mixed.reshape(s, b, n, n), n)
    pre, post = pre.reshape(s, b, n), post.reshape(s, b, n)
    layer = m.mhc_fused_aggregate(x, pre, n)
    draw.backward(m.mhc_fused_expand_combine(layer, None, post, x, streams, n))


CALLS = {
    "permuted_tokens": permuted_tokens,
    "sorted_chunks": sorted_chunks,
    "cross_entropy": cross_entropy,
    "padded_scales": padded_scales,
    "grouped_bias": grouped_bias,
    "hyper_connections": hyper_connections,
}
