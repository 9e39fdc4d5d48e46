"""The example kernels by name; importing this imports the compiler's front, not MLIR."""

from __future__ import annotations

from tilec.call.jit import Kernel
from tilec.examples.explicit_ampere_gemm import gemm, gemm_ahead
from tilec.examples.explicit_hopper_gemm import hopper_gemm
from tilec.examples.layer_norm import layer_norm
from tilec.examples.matmul import matmul
from tilec.examples.row_sum import row_sum
from tilec.examples.softmax import online_softmax, softmax
from tilec.examples.vector_add import vector_add

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        vector_add,
        softmax,
        online_softmax,
        layer_norm,
        row_sum,
        matmul,
        gemm,
        gemm_ahead,
        hopper_gemm,
    )
}
