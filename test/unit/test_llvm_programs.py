"""Programs in LLVM's dialect: what ptxas would refuse is an error at its line."""

from __future__ import annotations

import pytest
from mlir import ir

from tilec.compile.llvm_level import lower_llvm
from tilec.dialects.context import make_context
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError


def lowered(parameters: str, attributes: str = "nvvm.kernel") -> str:
    source = f"llvm.func @k({parameters}) attributes {{{attributes}}} {{\n  llvm.return\n}}"
    with make_context(), ir.Location.unknown():
        return lower_llvm(ir.Module.parse(source), find_target("sm_90a"), "llvmir")


MAP = "!llvm.ptr {{llvm.align = {align} : i64, llvm.byval = !llvm.array<{size} x i8>}}"


@pytest.mark.parametrize(
    ("parameters", "bytes_"),
    [
        (f"%a: i32, %m: {MAP.format(align=65536, size=128)}", 65536 + 128),
        (f"%m: {MAP.format(align=64, size=32736)}, %x: i64, %n: i64, %y: i16, %z: i64", 32768),
        (", ".join(f"%a{n}: !llvm.ptr<1>" for n in range(4096)), 8 * 4096),
    ],
    ids=["alignment", "sizes", "number"],
)
def test_a_kernel_has_so_many_bytes_of_parameters(parameters: str, bytes_: int) -> None:
    with pytest.raises(CompileError, match=rf"at most 32764 bytes, these {bytes_}$"):
        lowered(parameters)


def test_what_just_fits_and_what_is_no_kernel_passes() -> None:
    most = f"%m: {MAP.format(align=64, size=32760)}, %n: i32"
    assert "define ptx_kernel void @k" in lowered(most)
    assert "define void @k" in lowered(f"{most}, %a: i32", attributes="")


@pytest.mark.parametrize(
    "bound",
    [
        "nvvm.reqntid = array<i32: 0>",
        "nvvm.maxntid = array<i32: 32, 0>",
        "nvvm.maxnreg = 0 : i32",
        "nvvm.minctasm = 0 : i32",
    ],
)
def test_what_bounds_a_launch_is_positive(bound: str) -> None:
    name = bound.partition(" ")[0]
    with pytest.raises(CompileError, match=rf"'{name}' must be positive, found .*0$"):
        lowered("%a: i32", f"nvvm.kernel, {bound}")
    assert name.rpartition(".")[2] in lowered("%a: i32", f"nvvm.kernel, {bound.replace('0', '16')}")
