"""torchao: numbers of 8 bits by rows, blocks and groups, and their products."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package

REPOSITORY = "pytorch/ao"
TRAINING = "prototype.blockwise_fp8_training"
MOE = "prototype.moe_training"
ATTENTION = "prototype.attention.quantization"
_PACKAGES = (
    TRAINING, f"{MOE}.kernels", f"{MOE}.ep", f"{MOE}.kernels.mxfp8", ATTENTION, "float8",
    "prototype.blockwise_fp8_inference", "prototype.quantized_training",
    "prototype.fp8_sdpa_inference", "quantization.quantize_.workflows.float8",
)  # fmt: skip


def prepare(folder: Path) -> None:
    """`folder`: of the repository. Its packages ask for all of its installation."""
    for name in _PACKAGES:
        parts = ["torchao", *name.split(".")]
        for count in range(1, len(parts) + 1):
            bare_package(".".join(parts[:count]), folder.joinpath(*parts[:count]))


def _of(name: str) -> Any:
    return importlib.import_module(f"torchao.{name}")


def _matrix(draw: Draw, rows: int | None = None) -> Any:
    small, large = (256, 256), (4096, 4096)
    m, n = draw.size(small, large)
    return draw.normal(rows or m, n, dtype=torch.bfloat16)


def int8_products(draw: Draw) -> None:
    m, n, k = draw.size((64, 128, 128), (4096, 4096, 4096))
    a, b = (draw.integers(255, *shape, dtype=torch.int32).sub(127).to(torch.int8)
            for shape in ((m, k), (n, k)))  # fmt: skip
    rows, columns = draw.uniform(m, dtype=draw.half), draw.uniform(n, dtype=draw.half)
    _of("prototype.quantized_training.int8_mm").scaled_int8_mm_cuda(a, b.t(), rows, columns)


def fp8_blocks(draw: Draw) -> None:
    """Quantised by blocks in each of the layouts that training needs, and their product."""
    m = _of(f"{TRAINING}.kernels")
    x, w = _matrix(draw), _matrix(draw)
    a, a_scale = m.triton_fp8_blockwise_act_quant_lhs(x)
    m.triton_fp8_blockwise_act_quant_rhs(x)
    m.triton_fp8_blockwise_act_quant_transposed_lhs(x)
    m.triton_fp8_blockwise_weight_quant_rhs(w)
    b, b_scale = m.triton_fp8_blockwise_weight_quant_transposed_rhs(w)
    m.triton_fp8_gemm_1x128_128x128(a, b, a_scale, b_scale)


def fp8_inference(draw: Draw) -> None:
    a, a_scale = _of("prototype.blockwise_fp8_inference.kernels").fp8_blockwise_act_quant(
        _matrix(draw, draw.size(16, 64))
    )
    b = _matrix(draw).to(torch.float8_e4m3fn)
    n, k = (size // 128 for size in b.shape)
    f = _of("quantization.quantize_.workflows.float8.kernels")._blockwise_fp8_gemm
    f(a, a_scale, b, draw.uniform(n, k))


def fp8_groups(draw: Draw) -> None:
    """Scales of groups of columns, of experts' weights, transposed and not."""
    x, groups = _matrix(draw), draw.size(2, 8)
    each = x.shape[0] // groups
    ends = torch.arange(each, x.shape[0] + 1, each, dtype=torch.int32, device=draw.device)
    m = _of(f"{MOE}.kernels.jagged_float8_scales")
    m.triton_fp8_per_group_colwise_scales(x, ends, torch.float8_e4m3fn)
    m = _of(f"{MOE}.kernels.float8_rowwise")
    m.triton_fp8_rowwise_2d_scale_and_cast(x, torch.float8_e4m3fn)
    w = x.view(groups, each, x.shape[1])
    m.triton_fp8_rowwise_3d_transpose_rhs(w, torch.float8_e4m3fn)
    m.triton_fp8_colwise_3d_scale_and_cast(w, torch.float8_e4m3fn)


def permuted_indices(draw: Draw) -> None:
    ranks, experts, most = draw.size((2, 4, 64), (8, 8, 512))
    counts = draw.integers(most, ranks * experts, dtype=torch.int32)
    f = _of(f"{MOE}.ep.kernels").generate_permute_indices
    f(counts, experts, ranks, most * ranks * experts, 32)


def _heads(draw: Draw) -> list[Any]:
    shape = draw.size((1, 2, 70, 64), (4, 32, 4096, 128))
    return [draw.normal(*shape, dtype=torch.bfloat16) for _ in range(3)]


def fp8_attention(draw: Draw) -> None:
    """Queries, keys and values quantised by heads."""
    q, k, v = _heads(draw)
    _of(f"{ATTENTION}.triton_qkv_quantization").triton_fp8_sdpa_quantize(q, k, v)
    _of(f"{ATTENTION}.triton_hadamard_qkv_quantization").triton_fp8_hadamard_sdpa_quantize(q, k, v)
    _of("prototype.fp8_sdpa_inference.fp8_sdpa_quantization").fp8_sdpa_quantize_func(q, k, v)


def fp8_rotated(draw: Draw) -> None:
    """Queries and keys rotated on the way."""
    q, k, v = (x.transpose(1, 2).contiguous() for x in _heads(draw))
    turns = [draw.normal(q.shape[1], q.shape[3], dtype=torch.float32) for _ in range(2)]
    f = _of(f"{ATTENTION}.triton_rope_qkv_quantization").triton_fp8_rope_sdpa_quantize
    f(q, k, v, *turns)
    f(q, k, v, *turns, rope_interleaved=True)


CALLS = {
    "int8_products": int8_products,
    "fp8_blocks": fp8_blocks,
    "fp8_inference": fp8_inference,
    "fp8_groups": fp8_groups,
    "permuted_indices": permuted_indices,
    "fp8_attention": fp8_attention,
    "fp8_rotated": fp8_rotated,
}
