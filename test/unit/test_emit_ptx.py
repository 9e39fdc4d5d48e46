"""PTX emission: what comes out for each target, and that LLVM's deaths stay in its own process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tilec.compile import emit_ptx as module_under_test
from tilec.compile.emit_ptx import emit_ptx, start_worker
from tilec.compile.isolation import death_of
from tilec.compile.llvm_worker import DATA_LAYOUT
from tilec.compile.unwritten_registers import write_all
from tilec.hardware.ptx_version import shown
from tilec.hardware.target import TARGETS
from tilec.messages.diagnostics import InternalError

ADD_ONE = """
@smem = external addrspace(3) global [0 x i8], align 1024
define ptx_kernel void @add_one(ptr addrspace(1) %p, i32 %i) {
  %f = getelementptr float, ptr addrspace(1) %p, i32 %i
  %s = getelementptr float, ptr addrspace(3) @smem, i32 %i
  %v = load float, ptr addrspace(1) %f, align 4
  %w = fadd float %v, 1.0
  store float %w, ptr addrspace(3) %s, align 4
  ret void
}
"""

# An f64 sine has no NVPTX instruction and no library call: LLVM aborts in instruction selection.
UNSELECTABLE = """
declare double @llvm.sin.f64(double)
define ptx_kernel void @k(ptr addrspace(1) %p) {
  %v = load double, ptr addrspace(1) %p, align 8
  %w = call double @llvm.sin.f64(double %v)
  store double %w, ptr addrspace(1) %p, align 8
  ret void
}
"""

# Bytes that may be anything: LLVM gives `prmt` a register of its own for them.
SECOND_BYTE = """
define ptx_kernel void @k(ptr addrspace(1) %p) {
  %v = load <4 x i8>, ptr addrspace(1) %p, align 4
  %b = extractelement <4 x i8> %v, i32 1
  %w = insertelement <4 x i8> poison, i8 %b, i32 0
  store <4 x i8> %w, ptr addrspace(1) %p, align 4
  ret void
}
"""


@pytest.mark.parametrize("name", TARGETS)
def test_prints_ptx_for_every_target(name: str) -> None:
    ptx = emit_ptx(ADD_ONE, TARGETS[name])
    assert f".target {name}\n" in ptx
    assert f".version {shown(TARGETS[name].lowest_ptx)}\n" in ptx
    assert ".visible .entry add_one(" in ptx


def test_prints_the_ptx_version_asked_for() -> None:
    assert ".version 8.6\n" in emit_ptx(ADD_ONE, TARGETS["sm_100a"], 86)


@pytest.mark.parametrize(("version", "message"), [(85, "needs PTX version 86"), (89, "unknown")])
def test_refuses_versions_the_target_lacks_before_llvm_sees_them(
    version: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        emit_ptx(ADD_ONE, TARGETS["sm_100a"], version)


def test_shared_addresses_have_32_bits() -> None:
    lines = emit_ptx(ADD_ONE, TARGETS["sm_80"]).splitlines()
    (base,) = [line for line in lines if "smem;" in line and "mov" in line]
    assert "mov.b32" in base


def test_death_of_llvm_is_an_internal_error_with_its_words() -> None:
    with pytest.raises(InternalError, match=r"(?s)SIGABRT.*Cannot select.*fsin"):
        emit_ptx(UNSELECTABLE, TARGETS["sm_80"])
    assert "add_one" in emit_ptx(ADD_ONE, TARGETS["sm_80"])


def test_malformed_ir_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="expected top-level entity"):
        emit_ptx("nonsense", TARGETS["sm_80"])


def test_ir_for_another_data_layout_is_refused() -> None:
    other = f'target datalayout = "{DATA_LAYOUT.replace("p3:32:32-", "")}"\n{ADD_ONE}'
    with pytest.raises(InternalError, match="lowered for another layout"):
        emit_ptx(other, TARGETS["sm_80"])


def test_alignment_left_out_is_that_of_the_data_layout() -> None:
    # LLVM's default layout aligns i64 to 4 bytes, which would split the load in two.
    text = """
    define ptx_kernel void @k(ptr addrspace(1) %p, ptr addrspace(1) %q) {
      %v = load i64, ptr addrspace(1) %p
      store i64 %v, ptr addrspace(1) %q
      ret void
    }"""
    assert "ld.global.b64" in emit_ptx(text, TARGETS["sm_80"])


def test_addresses_do_not_wait_for_each_other() -> None:
    """Without strength reduction each is its distance from the base, as the text says."""
    lines = "".join(
        f"  %n{i} = mul i32 %s, {i}\n"
        f"  %p{i} = getelementptr float, ptr addrspace(1) %p, i32 %n{i}\n"
        f"  store float 0.0, ptr addrspace(1) %p{i}\n"
        for i in (8, 16, 24, 32, 40)
    )
    ir = f"define ptx_kernel void @k(ptr addrspace(1) %p, i32 %s) {{\n{lines}  ret void\n}}"
    bases = re.findall(r"add\.s64 .*, (%rd\d+), %rd\d+;", emit_ptx(ir, TARGETS["sm_90a"]))
    assert len(bases) == 5
    assert len(set(bases)) == 1


BUSY = """
import sys, tilec.compile.emit_ptx as e
from tilec.hardware.target import TARGETS
e.start_worker()
print(e._workers._idle[0]._process.pid, flush=True)
lines = [f"%v{i} = fmul float %v{i - 1}, %v{i // 2}" for i in range(1, 200000)]
ends = ["store float %v199999, ptr %p", "ret void"]
body = chr(10).join(["%v0 = load float, ptr %p", *lines, *ends])
text = "define ptx_kernel void @k(ptr %p) {" + body + "}"
e.emit_ptx(text, TARGETS["sm_80"])
print("done", flush=True)
"""


def test_a_busy_worker_ends_with_its_asker() -> None:
    asker = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    assert asker.stdout is not None
    worker = int(asker.stdout.readline())
    start = cpu_seconds(worker)
    while cpu_seconds(worker) < start + 0.5:  # LLVM is at it
        time.sleep(0.01)
    asker.kill()
    assert asker.communicate()[0] == ""
    end = time.monotonic() + 5
    while is_alive(worker) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_alive(worker)


def is_alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def cpu_seconds(pid: int) -> float:
    """What a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


def test_a_fork_does_not_keep_a_busy_worker_s_pipe() -> None:
    worker = module_under_test._workers.take()
    pipe = os.readlink(f"/proc/self/fd/{worker._process.stdin.fileno()}")

    def look() -> None:
        held = {os.readlink(f"/proc/self/fd/{number}") for number in open_numbers()}
        os._exit(1 if pipe in held else 0)

    assert death_of(look, 10) is None
    module_under_test._workers.give_back(worker)
    assert "add_one" in emit_ptx(ADD_ONE, TARGETS["sm_80"])


def open_numbers() -> list[str]:
    """The numbers of this process's open files."""
    return [n for n in os.listdir("/proc/self/fd") if Path(f"/proc/self/fd/{n}").is_symlink()]


def test_silence_of_llvm_ends_after_the_timeout() -> None:
    start_worker()
    for worker in module_under_test._workers._idle:
        os.kill(worker._process.pid, signal.SIGSTOP)
    with pytest.raises(InternalError, match=r"did not finish within 0\.2 s"):
        emit_ptx(ADD_ONE, TARGETS["sm_80"], timeout_s=0.2)
    for worker in module_under_test._workers._idle:
        os.kill(worker._process.pid, signal.SIGCONT)


def test_a_worker_killed_while_idle_is_replaced() -> None:
    start_worker()
    for worker in module_under_test._workers._idle:
        os.kill(worker._process.pid, signal.SIGKILL)
        worker._process.wait()
    assert "add_one" in emit_ptx(ADD_ONE, TARGETS["sm_80"])


def test_threads_compile_side_by_side() -> None:
    found: dict[int, str] = {}

    def compile_one(number: int) -> None:
        text = ADD_ONE.replace("add_one", f"kernel_{number}")
        found[number] = emit_ptx(text, TARGETS["sm_80"])

    threads = [threading.Thread(target=compile_one, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f".entry kernel_{n}(" in found[n] for n in range(4))


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_forked_child_gets_its_own_worker() -> None:
    done = run(
        f"""
        import os
        from tilec.compile.emit_ptx import emit_ptx
        from tilec.hardware.target import TARGETS
        text, target = {ADD_ONE!r}, TARGETS["sm_80"]
        emit_ptx(text, target)
        child = os.fork()
        for i in range(20):
            name = f"kernel_{{'p' if child else 'c'}}{{i}}"
            assert f".entry {{name}}(" in emit_ptx(text.replace("add_one", name), target)
        if child:
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_worker_ends_with_its_asker() -> None:
    done = run(
        """
        import os
        from tilec.compile import emit_ptx
        emit_ptx.start_worker()
        print(emit_ptx._workers._idle[0]._process.pid, flush=True)
        os._exit(0)
        """
    )
    pid = int(done.stdout)
    for _ in range(100):
        if _has_ended(pid):
            return
        threading.Event().wait(0.05)
    pytest.fail("the worker outlived the process that started it")


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_importing_it_does_not_import_llvmlite() -> None:
    done = run("import sys, tilec.compile.emit_ptx; print('llvmlite' in sys.modules)")
    assert done.stdout == "False\n"


THREE_STRIDES = """
define ptx_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = mul i64 %i, 28
  %y = mul i64 %i, 20
  %pa = getelementptr i8, ptr addrspace(1) %a, i64 %x
  %pb = getelementptr i8, ptr addrspace(1) %b, i64 %y
  %u = load float, ptr addrspace(1) %pa
  %v = load float, ptr addrspace(1) %pb
  %w = fmul float %u, %v
  %pc = getelementptr float, ptr addrspace(1) %c, i64 %i
  store float %w, ptr addrspace(1) %pc
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def test_a_loop_keeps_its_one_counter() -> None:
    """Loop strength reduction would carry a pointer for each array, too."""
    ptx = emit_ptx(THREE_STRIDES, TARGETS["sm_80"])
    assert len(re.findall(r"add\.s64\s+(%rd\d+), \1, ", ptx)) == 1


def test_a_register_that_llvm_does_not_write_is_zero() -> None:
    """ptxas has no place for it, and may take one that a role does not have."""
    ptx = emit_ptx(SECOND_BYTE, TARGETS["sm_90a"])
    (_, _, register) = re.findall(r"%r\d+", re.search(r"prmt\.b32[^;]*", ptx)[0])
    assert f"mov.b32 \t{register}, 0;" in ptx
    assert write_all(ptx) == ptx


def test_only_what_nothing_writes_is_set() -> None:
    """Whatever stands in front of what an instruction writes, and in every function by itself."""
    head = "\t.reg .pred \t%p<4>;\n\t.reg .b16 \t%rs<2>;\n\t.reg .b32 \t%r<9>;\n\n"
    body = (
        "\tsetp.eq.b32 \t%p1|%p2, %r1, 0;\n"
        "\t@%p1 ld.global.v2.b32 \t{%r2, %r3}, [%rd1];\n"
        "\t{ .reg .pred q; mov.pred q, %p3; mov.b32 %r4, 1; }\n"
        "\tst.shared.b32 \t[%r5], %r6;\n"
        "$L__BB0_1:\n\tmov.b32 \t%r8, %tid.x;\n\tcvt.u16.u32 \t%rs1, %clock64;\n"
    )
    moves = [("b32", "%r1"), ("b32", "%r5"), ("b32", "%r6"), ("pred", "%p3")]
    other = "\t.reg .b32 \t%r<9>;\n\tadd.s32 \t%r1, %r2, 1;\n"
    text = write_all(f"{{\n{head}{body}}}\n{{\n{other}}}\n")
    first, second = text.split("}\n{\n")
    assert sorted(re.findall(r"mov\.(\w+) \t(%\w+), 0;", first)) == moves
    assert re.findall(r"mov\.(\w+) \t(%\w+), 0;", second) == [("b32", "%r2")]
    assert write_all(text) == text
