"""lmdeploy: serving of language models."""

from __future__ import annotations

import enum
import importlib
import logging
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package, stand_in

REPOSITORY = "InternLM/lmdeploy"


class QuantPolicy(enum.IntEnum):
    """As in `lmdeploy.messages`, which asks for more than its kernels need."""

    NONE = 0
    INT4 = 4
    INT8 = 8
    FP8 = 16
    FP8_E5M2 = 17
    TURBO_QUANT = 42


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    for name in ("lmdeploy", "lmdeploy.pytorch", "lmdeploy.pytorch.kernels",
                 "lmdeploy.pytorch.kernels.cuda"):  # fmt: skip
        bare_package(name, folder.joinpath(*name.split(".")))
    stand_in("lmdeploy.utils", get_logger=logging.getLogger)
    stand_in("lmdeploy.messages", QuantPolicy=QuantPolicy)


def _of(module: str) -> Any:
    return importlib.import_module(f"lmdeploy.pytorch.kernels.cuda.{module}")


class Requests:
    """Sequences whose keys and values lie in blocks of a memory; all of them are new."""

    def __init__(self, draw: Draw) -> None:
        self.b, self.longest, self.h, self.hk, self.d = draw.size(
            (3, 70, 4, 2, 64), (16, 2048, 32, 8, 128)
        )
        self.block = 64
        self.lengths = draw.integers(self.longest, self.b) + 1
        self.lengths[0] = self.longest
        self.starts = torch.zeros(self.b + 1, dtype=torch.int64, device=draw.device)
        self.starts[1:] = self.lengths.cumsum(0)
        self.total = int(self.starts[-1])
        blocks = -(-self.longest // self.block)
        places = torch.randperm(self.b * blocks, device=draw.device)
        self.table = places.view(self.b, blocks)
        shape = self.b * blocks, self.block, self.hk, self.d
        self.k_cache, self.v_cache = (draw.normal(*shape) for _ in range(2))
        self.k, self.v = (draw.normal(self.total, self.hk, self.d) for _ in range(2))


def prefill(draw: Draw) -> None:
    one = Requests(draw)
    q = draw.normal(one.total, one.h, one.d)
    k, v = (x.transpose(0, 1).contiguous() for x in (one.k, one.v))
    f = _of("flashattention").flash_attn_varlen_func
    given = {"cu_seqlens_q": one.starts, "cu_seqlens_k": one.starts, "max_seqlen_q": one.longest}
    f(q, k, v, **given, causal=True)
    f(q, k, v, **given, causal=True, window_size=(30, 30), softcap=20.0)


def decode(draw: Draw) -> None:
    one = Requests(draw)
    q = draw.normal(one.b, one.h, one.d)
    f = _of("pagedattention").flash_attn_with_kvcache
    f(q, one.k_cache, one.v_cache, one.lengths, one.table)


def caches(draw: Draw) -> None:
    """Keys and values into blocks, as they are and in 8 and 4 bits, and out of them."""
    one = Requests(draw)
    f = _of("fill_kv_cache").fill_kv_cache
    given = (one.starts[:-1], one.lengths, one.lengths, one.longest, one.table)
    f(one.k, one.v, one.k_cache, one.v_cache, *given)
    scales = [
        torch.zeros(*one.k_cache.shape[:3], 2, dtype=one.k.dtype, device=draw.device)
        for _ in range(2)
    ]
    for policy, part in ((QuantPolicy.INT8, 1), (QuantPolicy.INT4, 2)):
        shape = (*one.k_cache.shape[:3], one.d // part)
        packed = [torch.zeros(shape, dtype=torch.uint8, device=draw.device) for _ in range(2)]
        f(one.k, one.v, *packed, *given, *scales, policy)
    flatten = _of("flatten_kv_cache").flatten_kv_cache
    flatten(one.k_cache, one.v_cache, one.lengths, one.table, out_size=one.total)


def layers(draw: Draw) -> None:
    x = draw.normal(*draw.size((7, 256), (4096, 4096)))
    w = draw.normal(x.shape[1])
    m = _of("rms_norm")
    m.rms_norm(x, w)
    m.rms_norm(x, w, residual=draw.normal(*x.shape))
    _of("activation").silu_and_mul(x)
    t, h, hk, d = draw.size((9, 4, 2, 64), (8192, 32, 8, 128))
    q, k = draw.normal(t, h, d), draw.normal(t, hk, d)
    cos, sin = (draw.uniform(t, d, dtype=q.dtype) for _ in range(2))
    _of("apply_rotary_pos_emb").apply_rotary_pos_emb(q, k, cos, sin)


def sampling(draw: Draw) -> None:
    b, words = draw.size((3, 300), (256, 32000))
    scores = draw.normal(b, words, dtype=torch.float32).softmax(1).sort(1, True).values
    seeds, offsets = (draw.integers(10**6, b) for _ in range(2))
    _of("multinomial_sampling").multinomial_sampling(scores, seeds, offsets)


def choice_of_experts(draw: Draw) -> None:
    t, e = draw.size((9, 64), (4096, 256))
    x, bias = draw.normal(t, e, dtype=torch.float32), draw.uniform(e)
    _of("fused_noaux_tc").fused_noaux_tc_routing(x, bias, e)


def top(draw: Draw) -> None:
    """The largest scores of each row, by sorting networks."""
    t, n, k = draw.size((5, 200, 64), (512, 8192, 1024))
    lengths = draw.integers(n, t, dtype=torch.int32) + 1
    ones = torch.ones_like(lengths)
    _of("bitonic_topk").bitonic_topk(draw.normal(t, n, dtype=torch.float32), ones, lengths, k)


def experts(draw: Draw) -> None:
    t, e, h, i, k = draw.size((20, 4, 128, 64, 2), (2048, 16, 2048, 1024, 4))
    x = draw.normal(t, h)
    w1, w2 = draw.normal(e, 2 * i, h, scale=0.05), draw.normal(e, h, i, scale=0.05)
    best = draw.uniform(t, e).topk(k)
    _of("fused_moe").fused_moe(x, w1, w2, best.values, best.indices, k, renormalize=True)


def int8_products(draw: Draw) -> None:
    m, k, n = draw.size((40, 128, 128), (1024, 4096, 4096))
    f = _of("w8a8_triton_kernels")
    x, scale = f.per_token_quant_int8(draw.normal(m, k), 1e-7)
    w = (draw.integers(255, n, k) - 127).to(torch.int8)
    f.matmul_kernel_dynamic_quant(x, w, scale, draw.uniform(n, 1), output_dtype=draw.half)
    f.rms_norm_dynamic_quant(draw.normal(m, k), draw.normal(k), 1e-6)


def fp8_products(draw: Draw) -> None:
    m, k, n = draw.size((40, 256, 256), (1024, 4096, 4096))
    f = _of("blocked_gemm_fp8")
    x, scale = f.quant_fp8(draw.normal(m, k), 128)
    w = draw.normal(n, k).to(torch.float8_e4m3fn)
    f.blocked_gemm_fp8(x, scale, w.t(), draw.uniform(n // 128, k // 128).t(), draw.half)


def int4_products(draw: Draw) -> None:
    m, k, n = draw.size((20, 256, 128), (64, 4096, 4096))
    packed = draw.integers(2**31 - 1, k, n // 8, dtype=torch.int32)
    zeros = draw.integers(2**31 - 1, k // 128, n // 8, dtype=torch.int32)
    scale = draw.uniform(k // 128, n, dtype=torch.float16, high=0.01)
    _of("awq_kernels").awq_linear(draw.normal(m, k, dtype=torch.float16), packed, scale, zeros)


def adapters(draw: Draw) -> None:
    """Products of low rank, another for each sequence."""
    b, longest, k, n, rank = draw.size((3, 20, 64, 96, 16), (16, 512, 4096, 4096, 16))
    lengths = draw.integers(longest, b) + 1
    starts = lengths.cumsum(0) - lengths
    count = 3
    a, w = draw.normal(count * rank, k, scale=0.1), draw.normal(count * rank, n, scale=0.1)
    ranks = torch.full((count,), rank, device=draw.device)
    scaling = torch.ones(count, device=draw.device)
    first = ranks.cumsum(0) - ranks
    x = draw.normal(int(lengths.sum()), k)
    ids = draw.integers(count, b)
    f = _of("fused_lora").fused_lora
    f(x, a, w, scaling, first, ranks, starts, lengths, ids, rank, longest)


CALLS = {
    "prefill": prefill,
    "decode": decode,
    "caches": caches,
    "layers": layers,
    "sampling": sampling,
    "choice_of_experts": choice_of_experts,
    "top": top,
    "experts": experts,
    "int8_products": int8_products,
    "fp8_products": fp8_products,
    "int4_products": int4_products,
    "adapters": adapters,
}
