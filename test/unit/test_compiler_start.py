"""What of MLIR is loaded to compile a kernel, and what an author who uses MLIR finds then."""

from __future__ import annotations

import subprocess
import sys

CHILD = """
import sys
import numpy as np
from tilec.examples.matmul import matmul
a = np.zeros((64, 64), np.float16)
matmul.on("emulator").compiled(a, a, a, BM=64, BN=64, BK=64)
print(*(name for name in ("gpu", "llvm", "nvvm") if f"mlir.dialects.{name}" in sys.modules))
from mlir import ir
from mlir.dialects import llvm, nvvm
text = "llvm.func @f() { nvvm.barrier0\\n llvm.return }"
with ir.Context(), ir.Location.unknown():
    module = ir.Module.parse(text)
    function = module.body.operations[0]
    kinds = [type(op) for op in function.body.blocks[0].operations]
print(isinstance(function, llvm.LLVMFuncOp), [kind.__module__ for kind in kinds])
"""


def test_classes_of_ops_are_loaded_for_who_imports_them() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True)
    loaded, found = done.stdout.splitlines() or ["", done.stderr]
    assert loaded == ""
    kinds = ["mlir.dialects._nvvm_ops_gen", "mlir.dialects._llvm_ops_gen"]
    assert found == f"True {kinds}"
