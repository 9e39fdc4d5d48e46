"""Applied AI: kernels of PyTorch's articles."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw

REPOSITORY = "pytorch-labs/applied-ai"
_FOLDER: list[Path] = []


def prepare(folder: Path) -> None:
    """`folder`: of the repository, which is no package: its files are read one by one."""
    _FOLDER[:] = [folder / "kernels/triton"]


def _of(file: str) -> Any:
    name = "applied_ai_" + file.replace("/", "_")
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _FOLDER[0] / f"{file}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


def fp8_products(draw: Draw) -> None:
    m, n, k = draw.size((64, 128, 512), (64, 4096, 4096))
    a, b = (draw.normal(*shape, scale=0.1).to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    _of("inference/fp8/splitk_gemm_fp8").gemm_split_k(a, b.t())
    _of("inference/fp8/scaled_fp8_gemm").scaled_mm_splitk(a, b.t(), 0.5, 2.0)


def int4_products(draw: Draw) -> None:
    m, k, n = draw.size((16, 1024, 128), (16, 4096, 4096))
    a = draw.normal(m, k, dtype=torch.float16)
    packed = draw.integers(2**31 - 1, k // 8, n, dtype=torch.int32)
    scales = draw.uniform(k // 128, n, dtype=torch.float16, high=0.01)
    zeros = draw.integers(2**31 - 1, k // 128, n // 8, dtype=torch.int32)
    _of("inference/gptq/splitk_dequant_gemm").matmul_split_k(a, packed, scales, zeros)
    _of("inference/gptq/h100_qlinear").h100_qlinear.apply(a, packed, scales, zeros)


def softmax(draw: Draw) -> None:
    x = draw.normal(*draw.size((7, 200), (4096, 4096)), grad=True)
    draw.backward(_of("training/fused_softmax/softmax").triton_softmax.apply(x))


def rms_norm(draw: Draw) -> None:
    x = draw.normal(*draw.size((7, 256), (8192, 4096)), grad=True)
    w = draw.normal(x.shape[1], grad=True)
    draw.backward(_of("training/rms_norm/fused_rms_norm").fused_rms_norm_fn(x, w))


def attention(draw: Draw) -> None:
    b, h, n, d = draw.size((1, 2, 256, 64), (4, 16, 2048, 64))
    q, k, v = (draw.normal(b, h, n, d, dtype=torch.float16) for _ in range(3))
    _of("inference/flash_attention/stay_attention").flash_fn(q, k, v)


CALLS = {
    "fp8_products": fp8_products,
    "int4_products": int4_products,
    "softmax": softmax,
    "rms_norm": rms_norm,
    "attention": attention,
}
