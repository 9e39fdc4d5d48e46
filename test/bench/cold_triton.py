"""Compiles the bf16 product with Triton and prints the time of day at which its PTX was there.

Run by `cold_compile.py` with an empty cache folder. Needs Triton, no GPU.
"""

from __future__ import annotations

import sys
import time

import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import ASTSource
from triton_kernels import matmul

POINTERS, SIZES = ("a", "b", "c"), ("M", "N", "K", "stride_am", "stride_bk", "stride_cm")
CONSTANTS = {
    **{"stride_ak": 1, "stride_bn": 1, "stride_cn": 1},
    **{"BM": 128, "BN": 128, "BK": 64, "GROUP": 8},
    **{"ACC": triton.language.float32, "PRECISION": None},
}


def main(capability: int) -> None:
    """The kernel as a launch on aligned matrices specialises it: all sizes multiples of 16."""
    names = matmul.arg_names
    types = dict.fromkeys(POINTERS, "*bf16") | dict.fromkeys(SIZES, "i32")
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in types}
    signature = {name: types.get(name, "constexpr") for name in names}
    source = ASTSource(matmul, signature, CONSTANTS, attributes)

    def to_cubin(*_: object) -> bytes:
        print(time.time(), flush=True)
        sys.exit(0)

    CUDABackend.make_cubin = to_cubin
    target = GPUTarget("cuda", capability, 32)
    triton.compile(source, target=target, options={"num_warps": 4, "num_stages": 3})


if __name__ == "__main__":
    main(int(sys.argv[1]))
