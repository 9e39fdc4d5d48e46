"""Kernels that show each way in which code is written, one each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilec.call.jit import Kernel
from tilec.examples.grouped_gemm import arranged_gemm
from tilec.examples.matmul import matmul
from tilec.examples.softmax import softmax
from tilec.ops.attention_kernel import attention


@dataclass(frozen=True)
class Golden:
    """A kernel with its demands, what it is compiled for, constants, and what its code must hold,
    which no other file holds."""

    kernel: Kernel
    arguments: Sequence[str]
    constants: Mapping[str, Any]
    shows: tuple[str, ...]

    def ptx(self, target: str) -> str:
        """Its PTX for a target."""
        return self.kernel.compile(self.arguments, self.constants, target=target).ptx


OPERANDS = [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"]
HEADS = [*(f"{name}:bf16[?,?,?,32;?:8,?:8,?:8,1]" for name in "qkvo"), "scale:f32"]
ROWS = ["x:f32[?,?:16;?:16,1]", "y:f32[?,?:16;?:16,1]"]
GROUPED = [
    "a:bf16[?,?:8;?:8,1]", "b:bf16[?,?,?:8;?:8,?:8,1]", "c:bf16[?,?:8;?:8,1]", "tiles:i32[?,3;3,1]"
]  # fmt: skip
TILE = {"BM": 128, "BN": 256, "BK": 64}
TENSOR_COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier"
OWN_TENSOR_COPY = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier"

WARPGROUPS = matmul.demanding(num_warps=8)
GOLDEN = {
    ("softmax", "sm_80"): Golden(
        softmax.demanding(num_warps=2), ROWS, {"N": 256},
        ("ld.global.v4", "st.global.v4", "shfl.sync", "bar.sync", "ex2.approx"),
    ),
    ("matmul", "sm_80"): Golden(
        matmul.demanding(num_warps=4), OPERANDS, {"BM": 64, "BN": 64, "BK": 32},
        ("cp.async.cg", "cp.async.wait_group", "ldmatrix", "mma.sync"),
    ),
    ("matmul", "sm_90a"): Golden(
        WARPGROUPS, OPERANDS, TILE, (TENSOR_COPY, "wgmma.mma_async.sync.aligned.m64n256k16"),
    ),
    ("grouped_matmul", "sm_90a"): Golden(
        arranged_gemm.demanding(num_warps=4), GROUPED, {"BM": 64, "BN": 64, "BK": 64},
        ("wgmma.mma_async", "cp.async.bulk.tensor.3d", "st.global"),
    ),
    ("attention", "sm_90a"): Golden(
        attention.demanding(num_warps=4), HEADS, {"D": 32, "BM": 64, "BN": 32},
        ("wgmma.mma_async", "ex2.approx"),
    ),
    ("matmul", "sm_100a"): Golden(
        WARPGROUPS, OPERANDS, TILE, (OWN_TENSOR_COPY, "tcgen05.mma.cta_group::1", "tcgen05.ld"),
    ),
    ("paired_matmul", "sm_100a"): Golden(
        WARPGROUPS.demanding(cluster=2), OPERANDS, TILE,
        ("tcgen05.mma.cta_group::2", "barrier.cluster", "mapa.shared::cluster"),
    ),
    ("attention", "sm_100a"): Golden(
        attention.demanding(num_warps=4), HEADS, {"D": 32, "BM": 128, "BN": 32},
        ("tcgen05.mma.cta_group::1", "tcgen05.st", "ex2.approx"),
    ),
}  # fmt: skip
"""By name and target; arguments as a launcher finds them: aligned, and sizes of some multiple."""
