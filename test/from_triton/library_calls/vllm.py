"""vLLM: serving of language models."""

from __future__ import annotations

import importlib
import logging
import sys
import types
from collections import namedtuple
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from library_calls.draw import Draw, bare_package, stand_in

REPOSITORY = "vllm-project/vllm"
OPS, SAMPLE, MAMBA = "v1.attention.ops", "v1.worker.gpu.sample", "model_executor.layers.mamba.ops"
QUANT = "model_executor.layers.quantization"


def prepare(folder: Path) -> None:
    """`folder`: of the repository. Its packages ask for all of its installation."""
    for name in (OPS, SAMPLE, MAMBA, f"{QUANT}.utils", "model_executor.determinism", "utils",
                 "model_executor.layers.rotary_embedding"):  # fmt: skip
        parts = ["vllm", *name.split(".")]
        for count in range(1, len(parts) + 1):
            bare_package(".".join(parts[:count]), folder.joinpath(*parts[:count]))
    capability = namedtuple("DeviceCapability", "major minor")
    platform = {
        **dict.fromkeys(("is_rocm", "is_xpu", "is_cpu"), False),
        **dict.fromkeys(("is_cuda", "is_cuda_alike", "has_device_capability"), True),
        "is_arch_support_pdl": False, "is_device_capability_family": False,
        "fp8_dtype": torch.float8_e4m3fn, "get_device_capability": capability(9, 0),
        "is_device_capability": False,
    }  # fmt: skip
    answers = {name: lambda *_, answer=answer: answer for name, answer in platform.items()}
    stand_in("vllm.platforms", current_platform=types.SimpleNamespace(**answers))
    stand_in("vllm.platforms.interface", DeviceCapability=capability)
    stand_in("vllm._custom_ops")
    sys.modules["vllm"]._custom_ops = sys.modules["vllm._custom_ops"]  # type: ignore[attr-defined]
    stand_in("vllm.utils.torch_utils", is_torch_equal_or_newer=lambda version: True)
    stand_in("vllm.utils.platform_utils", num_compute_units=lambda *_: 132,
             get_device_name_as_file_name=lambda: "any")  # fmt: skip
    stand_in("vllm.utils.mem_utils", get_max_shared_memory_bytes=lambda *_: 232448)
    stand_in("vllm.utils.nccl", pin_nccl_env=None)
    libdevice = importlib.import_module("triton.language.extra.libdevice")
    extra = {"tldevice": libdevice, "HAS_TRITON": True, "LOG2E": 1.4426950408889634}
    stand_in("vllm.triton_utils", tl=tl, triton=triton, **extra)
    stand_in("vllm.logger", init_logger=logging.getLogger)
    stand_in("vllm.v1.attention.backends.utils", NULL_BLOCK_ID=0, PAD_SLOT_ID=-1)
    stand_in("vllm.utils.math_utils", cdiv=triton.cdiv, RCP_LN2=1.4426950408889634,
             next_power_of_2=triton.next_power_of_2)  # fmt: skip
    stand_in("vllm.envs", VLLM_BATCH_INVARIANT=False)
    sys.modules["vllm"].envs = sys.modules["vllm.envs"]  # type: ignore[attr-defined]


def _of(module: str) -> Any:
    return importlib.import_module(f"vllm.{module}")


def _rows(draw: Draw, dtype: Any = None) -> Any:
    return draw.normal(*draw.size((7, 200), (4096, 4096)), dtype=dtype)


def prefill(draw: Draw) -> None:
    b, h, hk, n, d = draw.size((3, 4, 2, 70, 64), (16, 32, 8, 2048, 128))
    lengths = draw.integers(n, b, dtype=torch.int32) + 1
    starts = (lengths.cumsum(0) - lengths).int()
    total = int(lengths.sum())
    q = draw.normal(total, h, d)
    k, v = (draw.normal(total, hk, d) for _ in range(2))
    f = _of(f"{OPS}.triton_prefill_attention").context_attention_fwd
    f(q, k, v, torch.empty_like(q), starts, lengths, n)
    window = {"sliding_window_q": 30, "sliding_window_k": 30}
    f(q, k, v, torch.empty_like(q), starts, lengths, n, **window)


class Pages:
    """Keys and values in pages of a memory."""

    def __init__(self, draw: Draw, hk: int, dims: tuple[int, int]) -> None:
        self.b, self.longest, self.page = draw.size((3, 70, 16), (32, 4096, 16))
        pages = -(-self.longest // self.page)
        places = torch.randperm(self.b * pages, device=draw.device, dtype=torch.int32)
        self.table = places.view(self.b, pages)
        self.lengths = draw.integers(self.longest, self.b, dtype=torch.int32) + 1
        self.k, self.v = (
            draw.normal(self.b * pages, self.page, hk, dim, dtype=torch.float16) for dim in dims
        )


def _decode(h: int, hk: int, dims: tuple[int, int], small: int) -> Any:
    def call(draw: Draw) -> None:
        heads, kept = draw.size((small, max(1, small * hk // h)), (h, hk))
        one, splits = Pages(draw, kept, dims), draw.size(4, 8)
        q = draw.normal(one.b, heads, dims[0], dtype=torch.float16)
        o = draw.normal(one.b, heads, dims[1], dtype=torch.float16)
        lse = torch.empty(one.b, heads, dtype=torch.float16, device=draw.device)
        shape = one.b, heads, splits, dims[1] + 1
        mid = torch.empty(shape, dtype=torch.float32, device=draw.device)
        scale = torch.ones((), device=draw.device)
        f = _of(f"{OPS}.triton_decode_attention").decode_attention_fwd
        f(
            q, one.k, one.v, o, lse, one.table, one.lengths, mid, splits, dims[0] ** -0.5, one.page,
            k_scale=scale, v_scale=scale,
        )  # fmt: skip

    return call


def merged_states(draw: Draw) -> None:
    t, h, d = draw.size((9, 4, 64), (8192, 32, 128))
    one, two = (draw.normal(t, h, d) for _ in range(2))
    lse, other = (draw.normal(h, t, dtype=torch.float32) for _ in range(2))
    f = _of(f"{OPS}.triton_merge_attn_states").merge_attn_states
    f(torch.empty_like(one), one, lse, two, other, torch.empty_like(lse))


def sampling(draw: Draw) -> None:
    """Temperatures, penalties, least probabilities, and a choice with Gumbel's noise."""
    b, words, longest = draw.size((5, 3000, 40), (256, 128256, 1024))
    logits = draw.normal(b, words, dtype=torch.float32)
    rows = torch.randperm(b, device=draw.device, dtype=torch.int32)
    temperature = draw.uniform(b, low=0.5, high=1.5)
    gumbel = _of(f"{SAMPLE}.gumbel")
    gumbel.apply_temperature(logits.clone(), rows, temperature)
    _of(f"{SAMPLE}.min_p").apply_min_p(logits.clone(), rows, draw.uniform(b, high=0.1))
    seeds, at = draw.integers(10**9, b), draw.integers(longest, b)
    gumbel.gumbel_sample(logits.clone(), rows, temperature, seeds, at, True, False)


def invariant(draw: Draw) -> None:
    """Operators whose results do not depend on the batch."""
    m = _of("model_executor.determinism.batch_invariant")
    x = _rows(draw)
    m.log_softmax(x)
    m.softmax(x)
    m.mean_dim(x.float(), 1)
    m.rms_norm_batch_invariant(x, draw.normal(x.shape[1]))
    a, b = (
        draw.normal(*draw.size((70, 96), (4096, 4096))),
        draw.normal(*draw.size((96, 40), (4096, 4096))),
    )
    m.matmul_persistent(a, b)
    m.bmm_batch_invariant(torch.stack([a, a]), torch.stack([b, b]))


def int4_weights(draw: Draw) -> None:
    m, k, n = draw.size((20, 256, 128), (64, 4096, 4096))
    packed = draw.integers(2**31 - 1, k, n // 8, dtype=torch.int32)
    zeros = draw.integers(2**31 - 1, k // 128, n // 8, dtype=torch.int32)
    scale = draw.uniform(k // 128, n, dtype=torch.float16, high=0.01)
    f = _of(f"{QUANT}.awq_triton")
    f.awq_dequantize_triton(packed, scale, zeros)
    f.awq_gemm_triton(draw.normal(m, k, dtype=torch.float16), packed, scale, zeros, 4)


def chunked_scan(draw: Draw) -> None:
    """Mamba's chunks, of sequences one behind another."""
    t, h, d, g, s, chunk = draw.size((96, 2, 32, 1, 32, 32), (4096, 32, 64, 8, 128, 256))
    at = torch.arange(0, t + 1, chunk, dtype=torch.int32, device=draw.device)
    state, passing = _of(f"{MAMBA}.ssd_chunk_state"), _of(f"{MAMBA}.ssd_state_passing")
    dt = draw.uniform(t, h, low=0.01, high=0.1)
    sums, dt = state._chunk_cumsum_fwd(dt, -draw.uniform(h), chunk, at, draw.uniform(h), True)
    x, b, c = draw.normal(t, h, d), draw.normal(t, g, s), draw.normal(t, g, s)
    states = state._chunk_state_fwd(b, x, dt, sums, at)
    last = torch.tensor([len(at) // 2 - 1, len(at) - 2], dtype=torch.int32, device=draw.device)
    passing._state_passing_fwd(states.flatten(2), sums, last)
    cb = _of(f"{MAMBA}.ssd_bmm")._bmm_chunk_fwd(c, b, chunk, at, causal=True)
    numbers = (torch.arange(len(at) - 1, device=draw.device) > len(at) // 2 - 1).int()
    f = _of(f"{MAMBA}.ssd_chunk_scan")._chunk_scan_fwd
    f(cb, x, dt, sums, c, states, at, torch.empty_like(x), numbers, draw.normal(h))


def gated_norm(draw: Draw) -> None:
    x, z = _rows(draw), _rows(draw)
    w = draw.normal(x.shape[1])
    f = _of(f"{MAMBA}.layernorm_gated").rms_norm_gated
    f(x, w, None, z)
    f(x, w, None, z, group_size=x.shape[1] // 2, norm_before_gate=False)


CALLS = {
    "prefill": prefill,
    "decode": _decode(32, 32, (128, 128), 2),
    "decode_grouped": _decode(32, 8, (128, 128), 8),
    "decode_latent": _decode(64, 1, (576, 512), 4),
    "merged_states": merged_states,
    "sampling": sampling,
    "invariant": invariant,
    "int4_weights": int4_weights,
    "chunked_scan": chunked_scan,
    "gated_norm": gated_norm,
}
