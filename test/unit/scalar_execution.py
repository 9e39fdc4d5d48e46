"""Scalar MLIR as LLVM IR, and on through LLVM and ptxas; `cpu_function.py` runs it on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mlir import ir
from mlir.dialects import llvm as llvm_dialect
from mlir.passmanager import PassManager

_TO_LLVM = (
    "builtin.module(convert-scf-to-cf,convert-arith-to-llvm,convert-cf-to-llvm,"
    "convert-func-to-llvm,convert-nvvm-to-llvm,reconcile-unrealized-casts)"
)


def llvm_text(module: ir.Module) -> str:
    """LLVM IR of a module of functions with scalar ops."""
    PassManager.parse(_TO_LLVM, module.context).run(module.operation)
    return llvm_dialect.translate_module_to_llvmir(module.operation)


_EMIT = r"""
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets(); llvm.initialize_all_asmprinters()
cpu = sys.argv[1]
machine = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(
    cpu=cpu, features="+ptx90", opt=3)
for chunk in sys.stdin.read().split("; ----\n"):
    module = llvm.parse_assembly(chunk)
    module.triple = "nvptx64-nvidia-cuda"
    module.data_layout = str(machine.target_data)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(module, builder)
    print(machine.emit_assembly(module))
    print("// ----")
"""


def ptx_of(texts: list[str], target: str) -> list[str]:
    """PTX of LLVM IR modules, made in a child process: LLVM ends it where it cannot select."""
    done = subprocess.run(
        [sys.executable, "-c", _EMIT, target],
        input="; ----\n".join(texts),
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise AssertionError(f"LLVM ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.split("// ----\n")[:-1]


def find_ptxas() -> str | None:
    """The ptxas of the nvidia-cuda-nvcc wheel or of PATH."""
    for root in map(Path, sys.path):
        found = root / "nvidia" / "cu13" / "bin" / "ptxas"
        if found.is_file():
            return str(found)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if os.access(Path(folder) / "ptxas", os.X_OK):
            return str(Path(folder) / "ptxas")
    return None


def assemble(ptx: str, target: str) -> None:
    """Fails unless ptxas takes `ptx`."""
    ptxas = find_ptxas()
    assert ptxas is not None
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "k.ptx"
        source.write_text(ptx)
        done = subprocess.run(
            [ptxas, f"-arch={target}", "-O1", str(source), "-o", str(Path(folder) / "k.cubin")],
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr[-2000:]
