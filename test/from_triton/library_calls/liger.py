"""Liger-Kernel: what is trained with it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package

REPOSITORY = "linkedin/Liger-Kernel"


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    bare_package("liger_kernel", folder / "src" / "liger_kernel")
    bare_package("liger_kernel.ops", folder / "src" / "liger_kernel" / "ops")
    bare_package("liger_kernel.ops.experimental", folder / "src/liger_kernel/ops/experimental")


def _of(module: str, name: str) -> Any:
    """A `torch.autograd.Function`."""
    return getattr(importlib.import_module(f"liger_kernel.ops.{module}"), name)


def _rows(draw: Draw, grad: bool = True, dtype: Any = None) -> Any:
    return draw.normal(draw.size(7, 4096), draw.size(200, 4096), grad=grad, dtype=dtype)


def _vector(draw: Draw, x: Any) -> Any:
    return draw.normal(x.shape[-1], dtype=x.dtype, grad=True)


def _norm(module: str, name: str, *rest: Any, vectors: int = 1) -> Any:
    def call(draw: Draw) -> None:
        x = _rows(draw)
        draw.backward(
            _of(module, name).apply(x, *(_vector(draw, x) for _ in range(vectors)), *rest)
        )

    return call


def _gated(module: str, name: str) -> Any:
    def call(draw: Draw) -> None:
        draw.backward(_of(module, name).apply(_rows(draw), _rows(draw)))

    return call


def _unary(module: str, name: str, *rest: Any) -> Any:
    def call(draw: Draw) -> None:
        draw.backward(_of(module, name).apply(_rows(draw), *rest))

    return call


def rms_norm_small_rows(draw: Draw) -> None:
    x = draw.normal(draw.size(70, 65536), draw.size(64, 128), grad=True)
    draw.backward(_of("rms_norm", "LigerRMSNormFunction").apply(x, _vector(draw, x), 1e-6))


def fused_add_rms_norm(draw: Draw) -> None:
    x = _rows(draw)
    draw.backward(
        *_of("fused_add_rms_norm", "LigerFusedAddRMSNormFunction").apply(
            x, _rows(draw), _vector(draw, x), 1e-6
        )
    )


def modulated_rms_norm(draw: Draw) -> None:
    b, n, d = draw.size((2, 5, 200), (4, 1024, 3072))
    x, scale, shift = draw.normal(b, n, d, grad=True), draw.normal(b, d), draw.normal(b, d)
    f = _of("modulated_rms_norm", "LigerModulatedRMSNormFunction")
    draw.backward(
        f.apply(x, _vector(draw, x), scale.requires_grad_(), shift.requires_grad_(), 1e-6)
    )


def poly_norm(draw: Draw) -> None:
    w, b = draw.normal(3, grad=True), draw.normal(grad=True)
    draw.backward(_of("poly_norm", "LigerPolyNormFunction").apply(_rows(draw), w, b))


def group_norm(draw: Draw) -> None:
    n, c, hw = draw.size((2, 12, 35), (16, 256, 4096))
    x = draw.normal(n, c, hw, dtype=torch.float32, grad=True)
    w, b = (draw.normal(c, dtype=torch.float32, grad=True) for _ in range(2))
    draw.backward(_of("group_norm", "LigerGroupNormFunction").apply(x, w, b, c, c // 4, 1e-6))


def dyt(draw: Draw) -> None:
    x = _rows(draw)
    alpha = draw.normal(1, grad=True)
    f = _of("dyt", "LigerDyTFunction")
    draw.backward(f.apply(x, alpha, _vector(draw, x), _vector(draw, x)))


def _logits(draw: Draw, dtype: Any = None) -> tuple[Any, Any]:
    rows, words = draw.size((9, 500), (2048, 128256))
    return draw.normal(rows, words, dtype=dtype, grad=True), draw.integers(words, rows)


def cross_entropy(draw: Draw) -> None:
    x, target = _logits(draw)
    draw.backward(_of("cross_entropy", "LigerCrossEntropyFunction").apply(x, target, None)[0])


def cross_entropy_all(draw: Draw) -> None:
    x, target = _logits(draw, torch.float32)
    weight = draw.uniform(x.shape[1])
    f = _of("cross_entropy", "LigerCrossEntropyFunction")
    draw.backward(f.apply(x, target, weight, -100, 1e-4, 0.1, "mean", 30.0, True)[0])


def fused_linear_cross_entropy(draw: Draw) -> None:
    rows, d, words = draw.size((9, 40, 300), (4096, 2048, 32000))
    x, w = draw.normal(rows, d, grad=True), draw.normal(words, d, scale=0.05, grad=True)
    f = _of("fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyFunction")
    draw.backward(f.apply(x, w, draw.integers(words, rows))[0])


def fused_linear_jsd(draw: Draw) -> None:
    rows, d, words = draw.size((9, 40, 300), (2048, 2048, 32000))
    a, b = draw.normal(rows, d, grad=True), draw.normal(rows, d)
    v, w = draw.normal(words, d, scale=0.05, grad=True), draw.normal(words, d, scale=0.05)
    draw.backward(_of("fused_linear_jsd", "LigerFusedLinearJSDFunction").apply(a, v, b, w))


def _distributions(draw: Draw) -> tuple[Any, Any]:
    rows, words = draw.size((9, 500), (2048, 32000))
    x, y = (draw.normal(rows, words, dtype=torch.float32) for _ in range(2))
    return x, y


def kl_div(draw: Draw) -> None:
    x, y = _distributions(draw)
    x = x.log_softmax(-1).requires_grad_()
    draw.backward(_of("kl_div", "LigerKLDivLossFunction").apply(x, y.softmax(-1)))


def jsd(draw: Draw) -> None:
    x, y = _distributions(draw)
    x = x.log_softmax(-1).requires_grad_()
    draw.backward(_of("jsd", "LigerJSDFunction").apply(x, y.log_softmax(-1)))


def tvd(draw: Draw) -> None:
    x, y = _distributions(draw)
    x = x.softmax(-1).requires_grad_()
    draw.backward(_of("tvd", "LigerTVDLossFunction").apply(x, y.softmax(-1)))


def grpo_loss(draw: Draw) -> None:
    b, n, words = draw.size((2, 6, 300), (4, 512, 32000))
    logits = draw.normal(b, n + 1, words, grad=True)
    old, ref = (draw.normal(b, n, dtype=torch.float32, scale=0.1) - 6 for _ in range(2))
    ids, advantages = draw.integers(words, b, n), draw.normal(b, dtype=torch.float32)
    mask = torch.ones_like(ids, dtype=torch.float32)
    f = _of("grpo_loss", "GrpoLossFunction")
    out = f.apply(logits, old, ref, ids, advantages, mask, 0.9, 0.04, 0.2, 0.4, False)
    draw.backward(*out)


def _heads(draw: Draw) -> tuple[Any, Any, int, int]:
    b, n, hq, hk, d = draw.size((2, 9, 4, 2, 32), (4, 2048, 32, 8, 128))
    q = draw.normal(b, n, hq, d, grad=True)
    return q, draw.normal(b, n, hk, d, grad=True), n, d


def rope(draw: Draw) -> None:
    q, k, n, d = _heads(draw)
    angle = draw.uniform(1, n, d // 2).repeat(1, 1, 2)
    f = _of("rope", "LigerRopeFunction")
    draw.backward(
        *f.apply(
            q.transpose(1, 2),
            k.transpose(1, 2),
            angle.cos().to(draw.half),
            angle.sin().to(draw.half),
        )
    )


def qwen2vl_mrope(draw: Draw) -> None:
    q, k, n, d = _heads(draw)
    angle = draw.uniform(3, 1, n, d // 2).repeat(1, q.shape[0], 1, 2)
    section = [d // 8, d // 8, d // 4]
    f = _of("qwen2vl_mrope", "LigerQwen2VLMRopeFunction")
    cos, sin = angle.cos().to(draw.half), angle.sin().to(draw.half)
    draw.backward(*f.apply(q.transpose(1, 2), k.transpose(1, 2), cos, sin, section))


def llama4_rope(draw: Draw) -> None:
    q, k, n, d = _heads(draw)
    angle = draw.uniform(n, d // 2)
    freqs = torch.polar(torch.ones_like(angle), angle)
    draw.backward(*_of("llama4_rope", "LigerLlama4RopeFunction").apply(q, k, freqs))


def embedding(draw: Draw) -> None:
    words, d, n = draw.size((50, 40, 30), (32000, 2048, 8192))
    table = draw.normal(words, d, dtype=torch.float32, grad=True)
    f = _of("experimental.embedding", "LigerEmbeddingFunction")
    draw.backward(f.apply(table, draw.integers(words, n)))


def mm_int8int2(draw: Draw) -> None:
    m, n, k = draw.size((40, 64, 1024), (1024, 4096, 4096))
    module = importlib.import_module("liger_kernel.ops.experimental.mm_int8int2")
    packed = module.pack_weights(draw.integers(3, k, n, dtype=torch.int8) - 1)
    a = draw.integers(255, m, k, dtype=torch.int16).sub(127).to(torch.int8)
    module.matmul(a, packed)


def multi_token_attention(draw: Draw) -> None:
    b, c, n = draw.size((1, 2, 40), (2, 8, 1024))
    scores, w = draw.normal(b, c, n, n, grad=True), draw.normal(c, c, 3, 3, grad=True)
    f = _of("multi_token_attention", "LigerMultiTokenAttentionFunction")
    draw.backward(f.apply(scores, w, None, 1, 1))


def neighborhood_attention(draw: Draw) -> None:
    b, h, n, d = draw.size((1, 2, 70, 32), (2, 8, 1024, 64))
    q, k, v = (draw.normal(b, h, n, d, grad=True) for _ in range(3))
    f = _of("fused_neighborhood_attention", "LigerFusedNeighborhoodAttentionFunction")
    draw.backward(f.apply(q, k, v))


def attn_res(draw: Draw) -> None:
    blocks, b, n, d = draw.size((3, 2, 5, 200), (8, 4, 1024, 2048))
    x = draw.normal(blocks, b, n, d, grad=True)
    w, norm = draw.normal(d, grad=True), draw.normal(d, grad=True)
    draw.backward(_of("attn_res", "LigerAttnResFunction").apply(x, w, norm, 1e-6))


def mhc(draw: Draw) -> None:
    """Coefficients, and what is done with them."""
    b, n, streams, c = draw.size((2, 5, 4, 64), (2, 2048, 4, 1280))
    x = draw.normal(b, n, streams, c, grad=True)
    m = streams * streams + 2 * streams
    phi = draw.normal(streams * c, m, scale=0.02, grad=True)
    bias = draw.normal(m, dtype=torch.float32, grad=True)
    alphas = [draw.uniform(grad=True) for _ in range(3)]
    pre, post, res = _of("mhc", "LigerMHCCoeffsFunction").apply(
        x, phi, bias, *alphas, False, 8, 1e-6, 0.0, 1e-6, 2.0
    )
    y = _of("mhc", "LigerMHCPreFunction").apply(x, pre)
    draw.backward(_of("mhc", "LigerMHCPostResFunction").apply(x, y, post, res))


def fused_moe(draw: Draw) -> None:
    t, e, h, i, k = draw.size((20, 4, 64, 32, 2), (4096, 16, 2048, 768, 4))
    x, up = draw.normal(t, h, grad=True), draw.normal(e, 2 * i, h, scale=0.02, grad=True)
    down = draw.normal(e, h, i, scale=0.02, grad=True)
    index = draw.uniform(t, e).topk(k).indices.int()
    weights = draw.uniform(t, k, dtype=draw.half, grad=True)
    draw.backward(_of("fused_moe", "LigerFusedMoEFunction").apply(x, up, down, index, weights))


def mlp(draw: Draw) -> None:
    m, h, i = draw.size((130, 128, 256), (4096, 2048, 4096))
    x = draw.normal(m, h, grad=True)
    gate, up = (draw.normal(i, h, scale=0.02, grad=True) for _ in range(2))
    down = draw.normal(h, i, scale=0.02, grad=True)
    draw.backward(_of("mlp", "LigerMLPFunction").apply(x, gate, up, down))


def swiglu_fused(draw: Draw) -> None:
    draw.backward(_of("swiglu", "LigerFusedGateUpSiLUMulFunction").apply(_rows(draw)))


CALLS: dict[str, Any] = {
    "rms_norm": _norm("rms_norm", "LigerRMSNormFunction", 1e-6, 0.0, "llama", False),
    "rms_norm_small_rows": rms_norm_small_rows,
    "layer_norm": _norm("layer_norm", "LigerLayerNormFunction", 1e-6, vectors=2),
    "fused_add_rms_norm": fused_add_rms_norm,
    "modulated_rms_norm": modulated_rms_norm,
    "poly_norm": poly_norm,
    "group_norm": group_norm,
    "dyt": dyt,
    "geglu": _gated("geglu", "LigerGELUMulFunction"),
    "swiglu": _gated("swiglu", "LigerSiLUMulFunction"),
    "swiglu_fused": swiglu_fused,
    "relu_squared": _unary("relu_squared", "LigerReLUSquaredFunction"),
    "softmax": _unary("softmax", "LigerSoftmaxFunction"),
    "sparsemax": _unary("sparsemax", "LigerSparsemaxFunction", -1),
    "cross_entropy": cross_entropy,
    "cross_entropy_all": cross_entropy_all,
    "fused_linear_cross_entropy": fused_linear_cross_entropy,
    "fused_linear_jsd": fused_linear_jsd,
    "kl_div": kl_div,
    "jsd": jsd,
    "tvd": tvd,
    "grpo_loss": grpo_loss,
    "rope": rope,
    "qwen2vl_mrope": qwen2vl_mrope,
    "llama4_rope": llama4_rope,
    "embedding": embedding,
    "mm_int8int2": mm_int8int2,
    "multi_token_attention": multi_token_attention,
    "neighborhood_attention": neighborhood_attention,
    "attn_res": attn_res,
    "mhc": mhc,
    "fused_moe": fused_moe,
    "mlp": mlp,
}
