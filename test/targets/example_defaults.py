"""Examples with their own defaults, for arrays as a launcher finds them: whole 16 bytes a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilec.call.jit import Kernel
from tilec.examples.block_sparse import block_sparse_matmul
from tilec.examples.convolution import convolve
from tilec.examples.grouped_gemm import grouped_gemm
from tilec.examples.matmul import matmul
from tilec.examples.mixture_of_experts import multiply_by_experts
from tilec.examples.packed_attention import packed_attention
from tilec.examples.quantized_weights import quantized_matmul
from tilec.examples.tile_scales import tile_scaled_matmul
from tilec.ops.attention_kernel import attention
from tilec.ops.gradient_kernels import key_gradients, query_gradients


def array(name: str, dtype: str, rank: int) -> str:
    """The spec of a row-major array of unknown sizes."""
    unit = {"f32": 4, "i32": 4, "bf16": 8, "f16": 8}.get(dtype, 16)
    sizes = ",".join(["?"] * (rank - 1) + [f"?:{unit}"])
    strides = ",".join([f"?:{unit}"] * (rank - 1) + ["1"])
    return f"{name}:{dtype}[{sizes};{strides}]"


def arrays(names: str, dtype: str, rank: int) -> list[str]:
    """Specs of several."""
    return [array(name, dtype, rank) for name in names.split()]


Case = tuple[Kernel, list[str], Mapping[str, Any]]


def _gradients(kernel: Kernel, made: str, width: int) -> Case:
    given, rows = "q k v o do" if "dq" in made else "q k v do", arrays("logs delta", "f32", 3)
    specs = [*arrays(given, "bf16", 4), *rows, *arrays(made, "bf16", 4), "scale:f32"]
    return kernel, specs, {"D": width}


def _attention(width: int, **constants: Any) -> Case:
    return attention, [*arrays("q k v o", "bf16", 4), "scale:f32"], {"D": width, **constants}


CASES: dict[str, Case] = {
    "matmul bf16": (matmul, arrays("a b c", "bf16", 2), {}),
    "matmul fp8": (matmul, [*arrays("a b", "f8E4M3FN", 2), array("c", "f16", 2)], {}),
    "matmul f32": (matmul, arrays("a b c", "f32", 2), {}),
    "attention D = 64": _attention(64),
    "attention D = 128 causal": _attention(128, CAUSAL=True),
    "attention D = 256": _attention(256),
    "key_gradients D = 64": _gradients(key_gradients, "dk dv", 64),
    "key_gradients D = 128": _gradients(key_gradients, "dk dv", 128),
    "query_gradients D = 128": _gradients(query_gradients, "dq", 128),
    "packed_attention D = 128": (
        packed_attention,
        [
            *arrays("q k v o", "bf16", 3),
            "starts:i32[?]",
            "slopes:f32[?]",
            "scale:f32",
        ],
        {"D": 128, "LONGEST": 4096},
    ),
    "grouped_gemm": (
        grouped_gemm,
        [array("a", "bf16", 2), array("b", "bf16", 3), array("c", "bf16", 2), "ends:i32[?]"],
        {},
    ),
    "quantized_weights": (
        quantized_matmul,
        [array("a", "bf16", 2), array("packed", "i8", 2), *arrays("scales zeros c", "bf16", 2)],
        {},
    ),
    "mixture_of_experts": (
        multiply_by_experts,
        [
            array("tokens", "bf16", 2),
            array("matrices", "bf16", 3),
            "slots:i32[?]",
            "experts:i32[?]",
            "weights:f32[?]",
            array("products", "bf16", 2),
        ],
        {"TOP": 2},
    ),
    "convolution": (convolve, arrays("x w y", "bf16", 4), {}),
    "tile_scales": (
        tile_scaled_matmul,
        [
            array("a", "f8E4M3FN", 2),
            "a_scales:f32[?,?]",
            array("b", "f8E4M3FN", 2),
            "b_scales:f32[?,?]",
            array("c", "bf16", 2),
        ],
        {},
    ),
    "block_sparse": (
        block_sparse_matmul,
        [array("blocks", "bf16", 3), "columns:i32[?]", "starts:i32[?]", *arrays("b c", "bf16", 2)],
        {},
    ),
}
"""By name: a kernel, specs, and the constants that have no default."""
