"""TritonBench's operators: sums of rows of unlike lengths, products, norms."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import torch
import triton

from library_calls.draw import Draw, bare_package, stand_in

REPOSITORY = "pytorch-labs/tritonbench"
OPERATORS = ("sum", "jagged_sum", "jagged_mean", "jagged_softmax", "gemm", "fp8_gemm", "int4_gemm",
             "bf16xint16_gemm", "layer_norm", "gather_gemv", "low_mem_dropout")  # fmt: skip


def prepare(folder: Path) -> None:
    """`folder`: of the repository. Its packages ask for all of its installation."""
    names = ("", "kernels", "utils", "operators", *(f"operators.{one}" for one in OPERATORS))
    for name in names:
        parts = ["tritonbench", *(part for part in name.split(".") if part)]
        bare_package(".".join(parts), folder.joinpath(*parts))
    answers = {"is_cuda": True, "is_fbcode": False, "is_hip": False, "is_hip_mi300": False}
    stand_in("tritonbench.utils.env_utils", **{n: lambda v=v: v for n, v in answers.items()})
    stand_in("tabulate", tabulate=lambda *_, **__: "")
    made = dict.fromkeys(("create_1d_tma_descriptor", "create_2d_tma_descriptor"))
    stand_in("triton.tools.experimental_descriptor", **made)


def _of(name: str) -> Any:
    return importlib.import_module(f"tritonbench.operators.{name}")


def _persistent(name: str) -> Any:
    """Whose import asks for cuBLAS, where there is CUDA."""
    environment: Any = sys.modules["tritonbench.utils.env_utils"]
    answer, environment.is_cuda = environment.is_cuda, lambda: False
    try:
        return _of(name)
    finally:
        environment.is_cuda = answer


def sums(draw: Draw) -> None:
    """Of columns, and along the middle."""
    m = _of("sum.kernels")
    x = draw.normal(*draw.size((70, 100), (4096, 8192)), dtype=torch.float32)
    out = torch.empty(x.shape[1], device=draw.device)
    grid = (triton.cdiv(x.shape[1], 16),)
    named = {"BLOCK_SIZE_NON_REDUCE_DIM": 16, "BLOCK_SIZE_REDUCE_DIM": 64, "dim": 0}
    for way in ("sum_then_buffer", "buffer_then_sum"):
        getattr(m, f"triton_sum_kernel_1D_result_{way}").fn[grid](x, out, *x.shape, **named)
    y = draw.normal(*draw.size((3, 40, 24), (64, 1024, 512)), dtype=torch.float32)
    out = torch.empty(y.shape[0], y.shape[2], device=draw.device)
    grid = (y.shape[0] * triton.cdiv(y.shape[2], 16),)
    for way in ("sum_then_buffer", "buffer_then_sum"):
        kernel = getattr(m, f"triton_sum_kernel_2D_result_dim_1_{way}").fn
        kernel[grid](y, out, *y.shape, BLOCK_SIZE_N=32, BLOCK_SIZE_K=16)


def unlike_rows(draw: Draw) -> None:
    """Sums, means and softmaxes of sequences that follow each other."""
    b, longest, m = draw.size((3, 40, 24), (512, 512, 128))
    lengths = draw.integers(longest, b) + 1
    starts = torch.cat([torch.zeros(1, dtype=torch.int64, device=draw.device), lengths.cumsum(0)])
    x = draw.normal(int(starts[-1]), m, dtype=torch.float32)
    named = {"BLOCK_SIZE_RAGGED": 16, "BLOCK_SIZE_M": 16}
    grid = (b * triton.cdiv(m, 16),)
    for what in ("sum", "mean", "softmax"):
        module = _of(f"jagged_{what}.kernels")
        for way in ("simple_fused", "variable_length_loop"):
            for order in ("sum_then_buffer", "buffer_then_sum"):
                kernel = getattr(module, f"triton_jagged_{what}_kernel_{way}_{order}", None)
                if kernel is None:
                    continue
                shape = x.shape if what == "softmax" else (b, m)
                out = torch.empty(shape, device=draw.device)
                most = (longest,) if "MAX_SEQLEN" in kernel.fn.arg_names else ()
                kernel.fn[grid](x, starts, out, m, *most, **named)


def products(draw: Draw) -> None:
    m, n, k = draw.size((70, 96, 128), (4096, 4096, 4096))
    a, b = draw.normal(m, k, dtype=torch.float16), draw.normal(k, n, dtype=torch.float16)
    _of("gemm.triton_matmul").matmul(a, b)
    _persistent("gemm.persistent_matmul").matmul_persistent(a, b)
    _of("gemm.stream_k").streamk_matmul(a, b)
    m, n, k = draw.size((64, 64, 512), (64, 256, 65536))
    a, b = draw.normal(m, k, dtype=torch.float16), draw.normal(k, n, dtype=torch.float16)
    _of("gemm.partition_k").matmul_partition_k(a, b, triton_reduce=True)


def fp8_products(draw: Draw) -> None:
    m, n, k = draw.size((64, 128, 256), (4096, 4096, 4096))
    a, b = (draw.normal(*shape, scale=0.1).to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    _of("fp8_gemm.tutorial").matmul(a, b.t())
    _persistent("fp8_gemm.persistent").matmul_persistent(a, b.t())


def few_bits(draw: Draw) -> None:
    """Weights of 4 bits, and of 16-bit integers."""
    m, n, k = draw.size((32, 128, 512), (64, 4096, 4096))
    a = draw.normal(m, k, dtype=torch.bfloat16)
    packed = draw.integers(255, k // 2, n, dtype=torch.int32).sub(127).to(torch.int8)
    weights = draw.integers(60000, k, n, dtype=torch.int32).sub(30000).to(torch.int16)
    m = _of("bf16xint16_gemm.kernel")
    m.bf16xint16_matmul(a, weights)
    m.bf16xbf16_matmul(a, draw.normal(k, n, dtype=torch.bfloat16))
    _of("int4_gemm.kernel").matmul(a, packed)  # the last, as Triton finds no room for it


def layer_norm(draw: Draw) -> None:
    x = draw.normal(*draw.size((7, 200), (4096, 4096)), dtype=torch.float16, grad=True)
    n = x.shape[1]
    w, b = (draw.normal(n, dtype=torch.float16, grad=True) for _ in range(2))
    draw.backward(_of("layer_norm.tutorial").LayerNorm.apply(x, (n,), w, b, 1e-5))


def chosen_product(draw: Draw) -> None:
    """A vector by two of eight matrices."""
    n = draw.size(256, 8192)
    which = torch.tensor([6, 1], device=draw.device)
    weights, x = draw.normal(8, n, n, dtype=torch.int8, scale=30), draw.normal(n)
    out = torch.empty(2 * n, dtype=x.dtype, device=draw.device)
    kernel = _of("gather_gemv.triton_gather_gemv").triton_red_fused_mv_0
    kernel.fn[(n,)](which, weights, x, out, 2 * n, n, XBLOCK=2, RBLOCK=256)


def dropout(draw: Draw) -> None:
    m = _of("low_mem_dropout.kernels")
    x = draw.normal(draw.size(3000, 1 << 24), dtype=torch.float32)
    out, n = torch.empty_like(x), x.numel()
    keep = (draw.uniform(n) > 0.5).to(torch.int32)
    grid = (triton.cdiv(n, 1024),)
    m._triton_dropout[grid](x, keep, out, n, 0.5, BLOCK_SIZE=1024)
    m._seeded_triton_dropout[grid](x, out, n, 0.5, 1234, BLOCK_SIZE=1024)


CALLS = {
    "sums": sums,
    "unlike_rows": unlike_rows,
    "products": products,
    "fp8_products": fp8_products,
    "few_bits": few_bits,
    "layer_norm": layer_norm,
    "chosen_product": chosen_product,
    "dropout": dropout,
}
