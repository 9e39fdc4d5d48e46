"""Runs scalar MLIR without a GPU: on the CPU for numbers, through LLVM and ptxas for PTX.

On the CPU the NVVM intrinsics of a module call the functions of `HARDWARE` below instead: the right
result, then moved by as much as PTX ISA 9.0 allows the instruction to be off, in a way that
depends on the argument's bits. What holds for them holds for the hardware.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
from mlir import ir
from mlir.dialects import llvm as llvm_dialect
from mlir.passmanager import PassManager

LLVM_TYPES = {
    "f16": "half",
    "bf16": "bfloat",
    "f32": "float",
    "f64": "double",
    "f80": "x86_fp80",
    "i1": "i1",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
}

_TO_LLVM = (
    "builtin.module(convert-scf-to-cf,convert-arith-to-llvm,convert-cf-to-llvm,"
    "convert-func-to-llvm,convert-nvvm-to-llvm,reconcile-unrealized-casts)"
)


def llvm_text(module: ir.Module) -> str:
    """LLVM IR of a module of functions with scalar ops."""
    PassManager.parse(_TO_LLVM, module.context).run(module.operation)
    return llvm_dialect.translate_module_to_llvmir(module.operation)


HARDWARE = r"""
declare double @llvm.exp2.f64(double)
declare double @llvm.log2.f64(double)
declare double @llvm.sin.f64(double)
declare double @llvm.cos.f64(double)
declare double @tanh(double)
declare double @llvm.sqrt.f64(double)
declare float @llvm.fabs.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.minnum.f32(float, float)
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.copysign.f32(float, float)

; -reach .. reach, by the bits of %x
define internal i32 @step(float %x, i32 %reach) {
  %b = bitcast float %x to i32
  %h = mul i32 %b, -1640531535
  %s = lshr i32 %h, 15
  %span = shl i32 %reach, 1
  %count = add i32 %span, 1
  %m = urem i32 %s, %count
  %d = sub i32 %m, %reach
  ret i32 %d
}
; %v moved by up to %reach of its ulps, then rounded; zeros, infinities, NaN, denormal results and
; results of zero arguments are only rounded
define internal float @blur(double %v, float %x, i32 %reach) {
  %d = call i32 @step(float %x, i32 %reach)
  %b = bitcast double %v to i64
  %e = and i64 %b, 9218868437227405312
  %binade = bitcast i64 %e to double
  %ulp = fmul double %binade, 0x3E80000000000000
  %n = sitofp i32 %d to double
  %off = fmul double %ulp, %n
  %s = fadd double %v, %off
  %tiny = fcmp olt double %binade, 0x3810000000000000
  %huge = fcmp oge double %binade, 0x47F0000000000000
  %zero = fcmp oeq float %x, 0.0
  %k0 = or i1 %tiny, %huge
  %keep = or i1 %k0, %zero
  %r = select i1 %keep, double %v, double %s
  %f = fptrunc double %r to float
  ret float %f
}
define internal float @ftz(float %x) {
  %a = call float @llvm.fabs.f32(float %x)
  %tiny = fcmp olt float %a, 0x3810000000000000
  %z = call float @llvm.copysign.f32(float 0.0, float %x)
  %r = select i1 %tiny, float %z, float %x
  ret float %r
}
define float @hw.ex2.approx.f32(float %x) {
  %w = fpext float %x to double
  %p = call double @llvm.exp2.f64(double %w)
  %r = call float @blur(double %p, float %x, i32 2)
  ret float %r
}
define float @hw.ex2.approx.ftz.f32(float %x) {
  %a = call float @ftz(float %x)
  %v = call float @hw.ex2.approx.f32(float %a)
  %r = call float @ftz(float %v)
  ret float %r
}
define float @hw.lg2.approx.ftz.f(float %x0) {
  %x = call float @ftz(float %x0)
  %w = fpext float %x to double
  %p = call double @llvm.log2.f64(double %w)
  %rel = call float @blur(double %p, float %x, i32 2)
  %d = call i32 @step(float %x, i32 2)
  %df = sitofp i32 %d to double
  %off = fmul double %df, 0x3E80000000000000
  %s = fadd double %p, %off
  %abs = fptrunc double %s to float
  %c0 = fcmp ogt float %x, 0.5
  %c1 = fcmp olt float %x, 2.0
  %one = fcmp une float %x, 1.0
  %c2 = and i1 %c0, %c1
  %c = and i1 %c2, %one
  %r0 = select i1 %c, float %abs, float %rel
  %r = call float @ftz(float %r0)
  ret float %r
}
define float @hw.rcp.approx.ftz.f(float %x) {
  %a = call float @ftz(float %x)
  %w = fpext float %a to double
  %q = fdiv double 1.0, %w
  %b = call float @blur(double %q, float %a, i32 1)
  %r = call float @ftz(float %b)
  ret float %r
}
define float @hw.sqrt.approx.f(float %x) {
  %w = fpext float %x to double
  %p = call double @llvm.sqrt.f64(double %w)
  %r = call float @blur(double %p, float %x, i32 1)
  ret float %r
}
define float @hw.sqrt.approx.ftz.f(float %x) {
  %a = call float @ftz(float %x)
  %r = call float @hw.sqrt.approx.f(float %a)
  ret float %r
}
define float @hw.rsqrt.approx.f(float %x) {
  %w = fpext float %x to double
  %p = call double @llvm.sqrt.f64(double %w)
  %q = fdiv double 1.0, %p
  %r = call float @blur(double %q, float %x, i32 1)
  ret float %r
}
define float @hw.rsqrt.approx.ftz.f(float %x) {
  %a = call float @ftz(float %x)
  %r = call float @hw.rsqrt.approx.f(float %a)
  ret float %r
}
define float @hw.div.full(float %x, float %y) {
  %v = fpext float %x to double
  %w = fpext float %y to double
  %q = fdiv double %v, %w
  %r = call float @blur(double %q, float %x, i32 2)
  ret float %r
}
define float @hw.div.approx.ftz.f(float %x, float %y) {
  %a = call float @ftz(float %x)
  %b = call float @ftz(float %y)
  %q = call float @hw.div.full(float %a, float %b)
  %r = call float @ftz(float %q)
  ret float %r
}
define float @hw.sin.approx.ftz.f(float %x) {
  %w = fpext float %x to double
  %p = call double @llvm.sin.f64(double %w)
  %r = call float @shift(double %p, float %x)
  ret float %r
}
define float @hw.cos.approx.ftz.f(float %x) {
  %w = fpext float %x to double
  %p = call double @llvm.cos.f64(double %w)
  %r = call float @shift(double %p, float %x)
  ret float %r
}
; +- 2**-20.5 or less
define internal float @shift(double %p, float %x) {
  %d = call i32 @step(float %x, i32 1)
  %df = sitofp i32 %d to double
  %off = fmul double %df, 0x3EA6A09E60000000
  %s = fadd double %p, %off
  %f = fptrunc double %s to float
  %r = call float @ftz(float %f)
  ret float %r
}
; relative error 2**-11
define float @hw.tanh.f32(float %x) {
  %w = fpext float %x to double
  %p = call double @tanh(double %w)
  %d = call i32 @step(float %x, i32 2)
  %df = sitofp i32 %d to double
  %rel = fmul double %df, 0x3F30000000000000
  %off = fmul double %rel, %p
  %s = fadd double %p, %off
  %zero = fcmp oeq double %p, 0.0
  %v = select i1 %zero, double %p, double %s
  %r = fptrunc double %v to float
  ret float %r
}
define float @hw.fma.rn.sat.f(float %x, float %y, float %z) {
  %s = call float @llvm.fma.f32(float %x, float %y, float %z)
  %l = call float @llvm.maxnum.f32(float %s, float 0.0)
  %r = call float @llvm.minnum.f32(float %l, float 1.0)
  %nan = fcmp uno float %s, %s
  %q = select i1 %nan, float 0.0, float %r
  ret float %q
}
; exact in double for the magnitudes it is used with, then rounded down
define float @hw.fma.rm.f(float %x, float %y, float %z) {
  %a = fpext float %x to double
  %b = fpext float %y to double
  %c = fpext float %z to double
  %p = fmul double %a, %b
  %s = fadd double %p, %c
  %n = fptrunc double %s to float
  %w = fpext float %n to double
  %up = fcmp ogt double %w, %s
  %i = bitcast float %n to i32
  %j = sub i32 %i, 1
  %k = select i1 %up, i32 %j, i32 %i
  %r = bitcast i32 %k to float
  ret float %r
}
; toward zero; x87 numbers hold every f64, i64 and u64
define internal float @cut(x86_fp80 %x) {
  %n = fptrunc x86_fp80 %x to float
  %w = fpext float %n to x86_fp80
  %pos = fcmp ogt x86_fp80 %x, 0xK00000000000000000000
  %over = fcmp ogt x86_fp80 %w, %x
  %under = fcmp olt x86_fp80 %w, %x
  %far = select i1 %pos, i1 %over, i1 %under
  %i = bitcast float %n to i32
  %j = sub i32 %i, 1
  %k = select i1 %far, i32 %j, i32 %i
  %r = bitcast i32 %k to float
  ret float %r
}
define float @hw.d2f.rz(double %x) {
  %w = fpext double %x to x86_fp80
  %r = call float @cut(x86_fp80 %w)
  ret float %r
}
define float @hw.i2f.rz(i32 %x) {
  %w = sitofp i32 %x to x86_fp80
  %r = call float @cut(x86_fp80 %w)
  ret float %r
}
define float @hw.ui2f.rz(i32 %x) {
  %w = uitofp i32 %x to x86_fp80
  %r = call float @cut(x86_fp80 %w)
  ret float %r
}
define float @hw.ll2f.rz(i64 %x) {
  %w = sitofp i64 %x to x86_fp80
  %r = call float @cut(x86_fp80 %w)
  ret float %r
}
define float @hw.ull2f.rz(i64 %x) {
  %w = uitofp i64 %x to x86_fp80
  %r = call float @cut(x86_fp80 %w)
  ret float %r
}
; what x86 calls to round to bfloat, absent from some C libraries
define bfloat @__truncsfbf2(float %x) {
  %b = bitcast float %x to i32
  %t = lshr i32 %b, 16
  %odd = and i32 %t, 1
  %bias = add i32 %odd, 32767
  %s = add i32 %b, %bias
  %u = lshr i32 %s, 16
  %nan = fcmp uno float %x, %x
  %q = or i32 %t, 64
  %v = select i1 %nan, i32 %q, i32 %u
  %w = trunc i32 %v to i16
  %r = bitcast i16 %w to bfloat
  ret bfloat %r
}
"""


@cache
def _host() -> tuple[llvm.TargetMachine, llvm.PassBuilder]:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    return machine, llvm.create_pass_builder(machine, options)


def _loop(function: str, argument_types: list[str], result_type: str) -> str:
    """LLVM IR of `loop`, which applies `function` to whole arrays (scalar i32 arguments too)."""
    types = [LLVM_TYPES[name] for name in argument_types]
    result = LLVM_TYPES[result_type]
    lines = []
    for index, name in enumerate(types):
        lines.append(f"  %p{index} = getelementptr {name}, ptr %in{index}, i64 %i")
        lines.append(f"  %v{index} = load {name}, ptr %p{index}")
    arguments = ", ".join(f"{name} %v{index}" for index, name in enumerate(types))
    pointers = ", ".join(f"ptr %in{index}" for index in range(len(types)))
    body = "\n".join(lines)
    return f"""
define void @loop({pointers}, ptr %out, i64 %count) {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
{body}
  %r = call {result} @{function}({arguments})
  %q = getelementptr {result}, ptr %out, i64 %i
  store {result} %r, ptr %q
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %body, label %exit
exit:
  ret void
}}
"""


class CpuFunction:
    """A function of LLVM IR `text`, applied to arrays of equal length by compiled code.

    16-bit floats travel as uint16, i1 as uint8, f80 as numpy.longdouble. With `exact_hardware` the
    instructions give the nearest number instead of the worst PTX allows. `more_hardware` are LLVM
    IR modules that define further intrinsics, named @hw. instead of @llvm.nvvm.
    """

    def __init__(
        self,
        text: str,
        function: str,
        argument_types: list[str],
        result_type: str,
        *,
        exact_hardware: bool = False,
        more_hardware: Sequence[str] = (),
    ) -> None:
        machine, builder = _host()
        hardware = HARDWARE
        if exact_hardware:
            hardware = HARDWARE.replace("ret i32 %d", "ret i32 0")
        text = re.sub(r"@llvm\.nvvm\.", "@hw.", text).replace("@llvm.tanh.f32", "@hw.tanh.f32")
        module = llvm.parse_assembly(text + _loop(function, argument_types, result_type))
        for definitions in (hardware, *more_hardware):
            module.link_in(llvm.parse_assembly(definitions))
        # What the loop does not use is not compiled.
        for defined in module.functions:
            if not defined.is_declaration and defined.name not in ("loop", "__truncsfbf2"):
                defined.linkage = "internal"
        module.triple = llvm.get_default_triple()
        module.data_layout = str(machine.target_data)
        builder.getModulePassManager().run(module, builder)
        self._engine = llvm.create_mcjit_compiler(module, _machine_for_engine())
        self._engine.finalize_object()
        arguments = [ctypes.c_void_p] * (len(argument_types) + 1) + [ctypes.c_int64]
        self._call = ctypes.CFUNCTYPE(None, *arguments)(self._engine.get_function_address("loop"))
        self._result_dtype = _DTYPES[result_type]

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """The results, one for each element."""
        arrays = tuple(np.ascontiguousarray(array) for array in arrays)
        out = np.empty(arrays[0].shape, self._result_dtype)
        self._call(*(array.ctypes.data for array in arrays), out.ctypes.data, out.size)
        return out


_DTYPES = {
    "f16": np.uint16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "f80": np.longdouble,
    "i1": np.uint8,
    "i8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}


def _machine_for_engine() -> llvm.TargetMachine:
    features = llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )


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
