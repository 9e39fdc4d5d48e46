"""Runs scalar LLVM IR on this machine's CPU, with code that is the same on every machine.

The NVVM intrinsics of a module call the functions of `scalar_hardware.py` instead: the right
result, then moved by as much as PTX ISA 9.0 allows the instruction to be off. What holds for them
holds for the hardware.

The code is generated for a baseline, never for the CPU at hand, whose instructions may round in
ways of their own: AVX512-BF16's `vcvtneps2bf16` flushes subnormals (Intel SDM).

It is not optimised: that takes LLVM longer than 65,536 calls of slower code do.
"""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Mapping, Sequence
from functools import cache

import llvmlite.binding as llvm
import numpy as np
from scalar_hardware import HARDWARE

WIDEST = {"x86_64": "x86_fp80", "aarch64": "fp128"}.get(platform.machine(), "double")
"""LLVM's type of C's long double, which is numpy.longdouble."""

LLVM_TYPES = {
    "f16": "half",
    "bf16": "bfloat",
    "f32": "float",
    "f64": "double",
    "long double": WIDEST,
    "i1": "i1",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
}
_DTYPES = {
    "f16": np.uint16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "long double": np.longdouble,
    "i1": np.uint8,
    "i8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}

X86_64_V3 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
"""LLVM's names of what the level adds (System V ABI for x86-64, "micro-architecture levels")."""


def baseline(has_feature: Mapping[str, bool]) -> str:
    """LLVM's CPU to generate for, on a host with these features."""
    if platform.machine() != "x86_64":
        return "generic"
    return "x86-64-v3" if all(has_feature.get(name) for name in X86_64_V3) else "x86-64"


def machine_for(cpu: str | None = None, features: str = "") -> llvm.TargetMachine:
    """LLVM's machine for code of this host's architecture: the baseline, or what a test names."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    cpu = cpu or baseline(llvm.get_host_cpu_features())
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=0, jit=True
    )


@cache
def _optimizer(cpu: str | None) -> tuple[llvm.TargetMachine, llvm.PassBuilder]:
    machine = machine_for(cpu)
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    return machine, llvm.create_pass_builder(machine, options)


def _narrowing(name: str, result: str, mantissa: int, exponent_bits: int) -> str:
    """LLVM IR that rounds a double's magnitude to nearest even, once, in integers.

    A subnormal result is the sum with the power of two whose last place is the smallest one.
    """
    bias = (1 << (exponent_bits - 1)) - 1
    drop, infinity = 52 - mantissa, ((1 << exponent_bits) - 1) << mantissa
    smallest_normal, magic = (1023 + 1 - bias) << 52, (1023 + 53 - bias - mantissa) << 52
    return f"""
define {result} @{name}(double %x) {{
  %b = bitcast double %x to i64
  %m = and i64 %b, {(1 << 63) - 1}
  %o = lshr i64 %m, {drop}
  %odd = and i64 %o, 1
  %h = add i64 %m, {(1 << (drop - 1)) - 1}
  %s = add i64 %h, %odd
  %t = lshr i64 %s, {drop}
  %normal = sub i64 %t, {(1023 - bias) << mantissa}
  %d = bitcast i64 %m to double
  %k = bitcast i64 {magic} to double
  %sum = fadd double %d, %k
  %sb = bitcast double %sum to i64
  %subnormal = sub i64 %sb, {magic}
  %small = icmp ult i64 %m, {smallest_normal}
  %finite = select i1 %small, i64 %subnormal, i64 %normal
  %over = icmp ugt i64 %finite, {infinity}
  %bound = select i1 %over, i64 {infinity}, i64 %finite
  %payload = and i64 %o, {(1 << mantissa) - 1}
  %quiet = or i64 %payload, {infinity | 1 << (mantissa - 1)}
  %nan = icmp ugt i64 %m, {0x7FF << 52}
  %code = select i1 %nan, i64 %quiet, i64 %bound
  %sign = lshr i64 %b, 63
  %top = shl i64 %sign, {mantissa + exponent_bits}
  %all = or i64 %code, %top
  %short = trunc i64 %all to i16
  %r = bitcast i16 %short to {result}
  ret {result} %r
}}
define {result} @{name.replace("df", "sf")}(float %x) {{
  %w = fpext float %x to double
  %r = call {result} @{name}(double %w)
  ret {result} %r
}}
"""


CALLED = (
    _narrowing("__truncdfhf2", "half", 10, 5)
    + _narrowing("__truncdfbf2", "bfloat", 7, 8)
    + """
define float @__extendhfsf2(half %x) {
  %b = bitcast half %x to i16
  %w = zext i16 %b to i32
  %m = and i32 %w, 32767
  %s = shl i32 %m, 13
  %f = bitcast i32 %s to float
  %finite = fmul float %f, 0x46F0000000000000
  %i = bitcast float %finite to i32
  %special = or i32 %s, 2139095040
  %large = icmp uge i32 %m, 31744
  %v = select i1 %large, i32 %special, i32 %i
  %neg = and i32 %w, 32768
  %top = shl i32 %neg, 16
  %all = or i32 %v, %top
  %r = bitcast i32 %all to float
  ret float %r
}
"""
)
"""What code for x86 calls to convert 16-bit floats: absent from older C libraries (libgcc has them
from 12 and 13 on)."""


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


def _linked(text: str, loop: str, definitions: Sequence[str]) -> llvm.ModuleRef:
    """One module of a text, the loop over it and what it calls, of which only that is kept."""
    text = re.sub(r"@llvm\.nvvm\.", "@hw.", text).replace("@llvm.tanh.f32", "@hw.tanh.f32")
    module = llvm.parse_assembly(text + loop)
    for more in definitions:
        module.link_in(llvm.parse_assembly(more))
    for defined in module.functions:
        if not defined.is_declaration and not re.match("loop$|__(trunc|extend)", defined.name):
            defined.linkage = "internal"
    module.triple = llvm.get_default_triple()
    return module


class CpuFunction:
    """A function of LLVM IR `text`, applied to arrays of equal length by compiled code.

    16-bit floats travel as uint16, i1 as uint8. With `exact_hardware` the instructions give the
    nearest number instead of the worst PTX allows. `more_hardware` are LLVM IR modules that define
    further intrinsics, named @hw. instead of @llvm.nvvm. `cpu` is LLVM's name of what to generate
    for instead of the baseline.
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
        cpu: str | None = None,
    ) -> None:
        hardware = HARDWARE.replace("ret i32 %d", "ret i32 0") if exact_hardware else HARDWARE
        module = _linked(
            text,
            _loop(function, argument_types, result_type),
            [hardware, *more_hardware, *([CALLED] if platform.machine() == "x86_64" else [])],
        )
        machine, builder = _optimizer(cpu)
        module.data_layout = str(machine.target_data)
        manager = llvm.create_new_module_pass_manager()
        manager.add_global_dead_code_eliminate_pass()
        manager.run(module, builder)
        self._engine = llvm.create_mcjit_compiler(module, machine_for(cpu))
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
