"""lightllm: serving of language models: paged attention, quantised products, experts."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package, stand_in

REPOSITORY = "ModelTC/lightllm"
LLAMA, COMMON = "models.llama.triton_kernel", "common.basemodel.triton_kernel"


class _Frozen(dict):
    """Of `frozendict`: a dict that has a hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(str(sorted(self.items())))


def prepare(folder: Path) -> None:
    """`folder`: of the repository. Its utilities ask for vLLM, SGLang and more."""
    fp8 = "common.quantization.triton_quant.fp8"
    for name in ("common.fused_moe", COMMON, LLAMA, fp8):
        parts = ["lightllm", *name.split(".")]
        for count in range(1, len(parts) + 1):
            bare_package(".".join(parts[:count]), folder.joinpath(*parts[:count]))
    stand_in("frozendict", frozendict=_Frozen)
    stand_in("lightllm.utils")
    stand_in("lightllm.utils.log_utils", init_logger=logging.getLogger)
    counts = {"sm_count": 132, "sm_regs_num": 65536, "sm_shared_mem_num": 232448, "warp_size": 32}
    asked = {f"get_device_{name}": lambda count=count: count for name, count in counts.items()}
    asked |= {"is_tesla": lambda: False, "get_current_device_name": lambda: "any"}
    stand_in("lightllm.utils.device_utils", **asked)
    stand_in("lightllm.utils.vllm_utils", vllm_ops=None, HAS_VLLM=False)
    stand_in("lightllm.utils.sgl_utils", sgl_ops=None, HAS_SGL_KERNEL=False)
    stand_in("lightllm.utils.dist_utils", get_current_device_id=lambda: 0)
    stand_in("lightllm.common.req_manager", ReqSamplingParamsManager=object)


def _of(module: str) -> Any:
    return importlib.import_module(f"lightllm.{module}")


class Pages:
    """Requests whose keys and values lie at drawn places of one memory."""

    def __init__(self, draw: Draw) -> None:
        self.b, self.longest, self.h, self.hk, self.d = draw.size(
            (3, 70, 4, 2, 32), (32, 4096, 32, 8, 128)
        )
        self.lengths = (draw.integers(self.longest, self.b) + 1).int()
        self.lengths[0] = self.longest
        total = self.b * self.longest
        self.k, self.v = (
            draw.normal(total, self.hk, self.d, dtype=torch.float16) for _ in range(2)
        )
        places = torch.randperm(total, device=draw.device, dtype=torch.int32)
        self.table = places.view(self.b, self.longest)
        self.requests = torch.arange(self.b, device=draw.device, dtype=torch.int32)
        self.starts = (self.lengths.cumsum(0) - self.lengths).int()
        self.q = draw.normal(self.b, self.h, self.d, dtype=torch.float16)


def prefill(draw: Draw) -> None:
    p = Pages(draw)
    total = int(p.lengths.sum())
    q = draw.normal(total, p.h, p.d, dtype=torch.float16)
    cached = torch.zeros_like(p.lengths)
    m = _of(f"{LLAMA}.context_flashattention_nopad")
    o = torch.empty_like(q)
    m.context_attention_fwd(
        q, p.k, p.v, o, p.requests, p.starts, p.lengths, cached, p.longest, p.table
    )
    k, v = (draw.normal(total, p.hk, p.d, dtype=torch.float16) for _ in range(2))
    m.context_attention_fwd_no_prompt_cache(q, k, v, o, p.starts, p.lengths, p.longest)


def _split_decode(prefix: str) -> Any:
    def call(draw: Draw) -> None:
        p, block = Pages(draw), draw.size(32, 256)
        blocks = -(-p.longest // block)
        mid = torch.empty(p.b, p.h, blocks, p.d, dtype=torch.float32, device=draw.device)
        sums = torch.empty(p.b, p.h, blocks, dtype=torch.float32, device=draw.device)
        _of(f"{LLAMA}.{prefix}flash_decoding_stage1").flash_decode_stage1(
            p.q, p.k, p.v, p.table, p.requests, p.lengths, p.longest, mid, sums, block
        )
        stage2 = _of(f"{LLAMA}.{prefix}flash_decoding_stage2").flash_decode_stage2
        stage2(mid, sums, p.lengths, torch.empty_like(p.q), block)

    return call


def grouped_decode(draw: Draw) -> None:
    p = Pages(draw)
    f = _of(f"{LLAMA}.gqa_decode_flashattention_nopad").gqa_decode_attention_fwd
    f(p.q, p.k, p.v, torch.empty_like(p.q), p.table, p.requests, p.lengths)


def token_attention(draw: Draw) -> None:
    """In three kernels, and in two."""
    p = Pages(draw)
    total = int(p.lengths.sum())
    scores = torch.empty(p.h, total, dtype=torch.float16, device=draw.device)
    _of(f"{LLAMA}.token_attention_nopad_att1").token_att_fwd(
        p.q, p.k, scores, p.table, p.requests, p.starts, p.lengths, p.longest
    )
    shares = torch.empty_like(scores)
    softmax = _of(f"{LLAMA}.token_attention_nopad_softmax").token_softmax_fwd
    softmax(scores, p.starts, p.lengths, shares, p.longest)
    _of(f"{LLAMA}.token_attention_nopad_reduceV").token_att_fwd2(
        shares, p.v, torch.empty_like(p.q), p.table, p.requests, p.starts, p.lengths
    )
    _of(f"{LLAMA}.token_attention_softmax_and_reducev").token_softmax_reducev_fwd(
        scores, p.v, torch.empty_like(p.q), p.table, p.requests, p.starts, p.lengths
    )


def copies(draw: Draw) -> None:
    """Keys to their places, as they are and in 8 bits."""
    p = Pages(draw)
    k = draw.normal(p.b * 8, p.hk, p.d, dtype=torch.float16)
    at = torch.randperm(p.k.shape[0], device=draw.device, dtype=torch.int32)[: p.b * 8].contiguous()
    m = _of(f"{COMMON}.destindex_copy_kv")
    m.destindex_copy_kv(k, at, p.k)
    out = torch.empty_like(p.k, dtype=torch.int8)
    m.destindex_copy_quantize_kv(k, at, out, torch.empty_like(p.k[:, :, :1]))
    index = _of(f"{COMMON}.copy_kv_index_to_req").copy_kv_index_to_req
    index(p.table, p.requests, p.lengths - 1, at[: p.b].contiguous())
    m = _of(f"{LLAMA}.ppl_quant_copy_kv")
    groups = p.d // 8
    scales = torch.empty(*p.k.shape[:2], groups, dtype=torch.float16, device=draw.device)
    m.destindex_copy_quantize_kv(k, at, out, scales)


def _rows(draw: Draw) -> Any:
    return draw.normal(*draw.size((9, 256), (4096, 4096)), dtype=torch.float16)


def layers(draw: Draw) -> None:
    """Norm, gate, rotary positions, embedding."""
    x = _rows(draw)
    _of(f"{LLAMA}.rmsnorm").rmsnorm_forward(x, draw.normal(x.shape[1], dtype=torch.float16), 1e-6)
    half = torch.empty_like(x[:, : x.shape[1] // 2])
    _of(f"{LLAMA}.silu_and_mul").silu_and_mul_fwd(x, half)
    n, h, hk, d = draw.size((9, 4, 2, 32), (8192, 32, 8, 128))
    q, k = (draw.normal(n, heads, d, dtype=torch.float16) for heads in (h, hk))
    cos, sin = (draw.uniform(n, d // 2, dtype=torch.float16) for _ in range(2))
    _of(f"{LLAMA}.rotary_emb").rotary_emb_fwd(q, k, cos, sin)
    words = draw.size(100, 32000)
    weight = draw.normal(words, x.shape[1], dtype=torch.float16)
    _of(f"{LLAMA}.embedding").embedding(draw.integers(words, len(x)), weight, 0, words, x)
    _of(f"{COMMON}.add_in_place").add_in_place(x, _rows(draw))


def int8_products(draw: Draw) -> None:
    m, k, n = draw.size((40, 128, 128), (256, 4096, 4096))
    a = draw.normal(m, k, dtype=torch.float16)
    b = (draw.integers(255, n, k) - 127).to(torch.int8).t()
    scale = draw.uniform(n, dtype=torch.float16)
    _of(f"{COMMON}.dequantize_gemm_int8").matmul_dequantize_int8(a, b, scale)
    _of(f"{COMMON}.quantize_gemm_int8").matmul_quantize_int8(a, b, scale)


def int4_products(draw: Draw) -> None:
    m, k, n = draw.size((20, 256, 256), (64, 4096, 4096))  # tiles that are not masked
    a = draw.normal(m, k, dtype=torch.float16)
    packed = draw.integers(2**31 - 1, k // 8, n, dtype=torch.int32)
    scale = draw.uniform(k // 128, n, dtype=torch.float16, high=0.01)
    zeros = draw.integers(2**31 - 1, k // 128, n // 8, dtype=torch.int32)
    module = _of(f"{COMMON}.dequantize_gemm_int4")
    for name in ("matmul_dequantize_int4_s1", "matmul_dequantize_int4_s2"):
        getattr(module, name)(a, packed, scale, zeros, group_size=128)
    module.matmul_dequantize_int4_gptq(a, packed, scale, zeros, 128)


def fp8_products(draw: Draw) -> None:
    """Quantisation of activations and weights, and the product by blocks."""
    m, k, n = draw.size((40, 256, 256), (1024, 4096, 4096))
    package = "common.quantization.triton_quant.fp8"
    act = _of(f"{package}.fp8act_quant_kernel")
    x = draw.normal(m, k)
    xq = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    xs = torch.empty(m, k // 128, dtype=torch.float32, device=draw.device)
    act.lightllm_per_token_group_quant_fp8(x, 128, xq, xs)
    w = _of(f"{package}.fp8w8a8_block_quant_kernel")
    wq, ws = w.weight_quant(draw.normal(n, k), 128)
    f = _of(f"{package}.fp8w8a8_block_gemm_kernel").w8a8_block_fp8_matmul
    out = torch.empty(m, n, dtype=torch.bfloat16, device=draw.device)
    f(xq, wq.t(), xs, ws.t(), out, (128, 128))


def choice_of_experts(draw: Draw) -> None:
    tokens, experts = draw.size((9, 16), (4096, 128))
    x = draw.normal(tokens, experts, dtype=torch.float32)
    _of("common.fused_moe.softmax_topk").softmax_topk(x, 4, True)
    f = _of("common.fused_moe.grouped_topk").triton_grouped_topk
    f(x, x, draw.uniform(experts), 4, True, 4, 2, "sigmoid")


def experts(draw: Draw) -> None:
    t, e, h, i, k = draw.size((20, 4, 128, 64, 2), (2048, 16, 2048, 1024, 4))
    x = draw.normal(t, h)
    w1, w2 = draw.normal(e, 2 * i, h, scale=0.05), draw.normal(e, h, i, scale=0.05)
    top = draw.uniform(t, e).topk(k)
    f = _of("common.fused_moe.grouped_fused_moe").fused_experts_impl
    f(x, w1, w2, top.values, top.indices.int())
    _of("common.fused_moe.moe_sum_reduce").moe_sum_reduce(draw.normal(t, k, h), x)


CALLS = {
    "prefill": prefill,
    "split_decode": _split_decode(""),
    "split_decode_grouped": _split_decode("gqa_"),
    "grouped_decode": grouped_decode,
    "token_attention": token_attention,
    "copies": copies,
    "layers": layers,
    "int8_products": int8_products,
    "int4_products": int4_products,
    "fp8_products": fp8_products,
    "choice_of_experts": choice_of_experts,
    "experts": experts,
}
