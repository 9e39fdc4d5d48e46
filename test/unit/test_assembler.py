"""ptxas and nvdisasm: what they report, and what is said where they are missing or refuse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilec.compile.assembler import (
    _assembly,
    assemble,
    disassemble,
    find_tool,
    locate_tool,
    tool_version,
)
from tilec.hardware.target import TARGETS
from tilec.messages.diagnostics import CompileError, InternalError

PTX = """
.version 9.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 p) {{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  .shared .align 16 .b8 buffer[48];
  ld.param.u64 %rd1, [p];
  st.shared.u32 [buffer], 1;
  ld.shared.u32 %r1, [buffer+4];
  st.global.u32 [%rd1], %r1;
  ret;
}}
"""

LOG = """\
ptxas info    : 0 bytes gmem
ptxas warning : Value of threads per SM for entry k is out of range. .minnctapersm will be ignored
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    920 bytes stack frame, 2000 bytes spill stores, 1996 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 48 bytes smem, 920 bytes cumulative stack size
ptxas info    : Function properties for j
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem, 380 bytes cmem[0]
"""


@pytest.mark.parametrize("name", TARGETS)
def test_assembles_for_every_target(name: str) -> None:
    assembly = assemble(PTX.format(target=name), TARGETS[name])
    assert assembly.cubin.startswith(b"\x7fELF")
    assert 0 < assembly.registers < 64
    assert (assembly.shared, assembly.spills, assembly.stack) == (48, 0, 0)


def test_reads_the_figures_of_all_kernels() -> None:
    assembly = _assembly(b"", LOG)
    assert assembly.registers == 64
    assert assembly.spills == 3996
    assert assembly.shared == 1024
    assert assembly.stack == 920


def test_keeps_warnings_and_numbered_advice_only() -> None:
    first, second = _assembly(b"", LOG).messages
    assert first.startswith("Value of threads per SM")
    assert second.startswith("(C7510) Potential Performance Loss")


def test_refused_ptx_is_an_internal_error_naming_the_line() -> None:
    broken = PTX.format(target="sm_80").replace("ret;", "retire;")
    with pytest.raises(InternalError, match=r"(?s)for sm_80: ptxas, line 13; .*retire"):
        assemble(broken, TARGETS["sm_80"])


def test_a_missing_tool_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_PTXAS", "/nowhere/ptxas")
    with pytest.raises(CompileError, match=r"(?s)ptxas not found.*pip install nvidia-cuda-nvcc"):
        find_tool("ptxas")


def test_a_tool_that_cannot_run_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "ptxas"
    fake.write_bytes(b"\x00no program")
    fake.chmod(0o755)
    monkeypatch.setenv("TILEC_PTXAS", str(fake))
    with pytest.raises(CompileError, match=r"cannot run .*ptxas: Exec format error"):
        assemble(PTX.format(target="sm_80"), TARGETS["sm_80"])


def test_the_tool_named_in_the_environment_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "my-ptxas"
    fake.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 99.1, V99.1.2'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("TILEC_PTXAS", str(fake))
    assert find_tool("ptxas") == str(fake)
    assert tool_version(str(fake)) == "99.1.2"


def test_tools_on_the_path_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvdisasm-of-this-test"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert locate_tool(tool.name) == str(tool)


@pytest.mark.skipif(locate_tool("nvdisasm") is None, reason="nvdisasm is not installed")
def test_disassembles_a_cubin() -> None:
    sass = disassemble(assemble(PTX.format(target="sm_80"), TARGETS["sm_80"]).cubin)
    assert "EXIT" in sass


def test_without_nvdisasm_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_NVDISASM", "/nowhere/nvdisasm")
    with pytest.raises(CompileError, match="pip install nvidia-cuda-nvdisasm"):
        disassemble(b"")
