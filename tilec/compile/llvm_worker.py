"""The process LLVM runs in: reads LLVM IR on standard input, answers PTX. Started by `emit_ptx`.

LLVM ends the process on what it cannot do ("Cannot select", failed assertions), so it never runs in
the author's process. Only this file touches llvmlite. Run as a script with the directory that holds
llvmlite; it imports nothing of tilec, so it loads while the compiler loads.

A message is four bytes of length (big-endian) and that much JSON. A request is
`{"llvm_ir", "cpu", "features"}`, an answer `{"ptx"}` or `{"error"}`.
"""

from __future__ import annotations

import json
import os
import select
import struct
import sys
import threading
from typing import IO, Any

TRIPLE = "nvptx64-nvidia-cuda"
DATA_LAYOUT = (
    "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32"
    "-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
)
"""LLVM's layout under --nvptx-short-ptr: shared, constant and local pointers have 32 bits."""

OPTIONS = (
    # Shared-memory addresses of 32 bits.
    "--nvptx-short-ptr",
    # Straight-line strength reduction asks of every pair of similar additions whether one may be
    # made from the other: 0.8 of the 0.9 s of a matmul with plain loads. Where it may, each address
    # waits for the one before; lowering makes shorter chains (`rectangle.py`).
    "--opt-disable=slsr",
    # Loop strength reduction replaces a few induction variables by many: up to 0.25 s for a matmul
    # whose loop is then a little longer and 1 to 3 % slower (f16, bf16, tf32 on an H200).
    "--disable-lsr",
)
"""LLVM's options, read when a target machine is made."""

_LENGTH = struct.Struct(">I")


def write_message(stream: IO[bytes], message: dict[str, Any]) -> None:
    """Sends one message. OSError if the other end is gone."""
    body = json.dumps(message).encode()
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def read_message(stream: IO[bytes]) -> dict[str, Any] | None:
    """The next message, None if the other end is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    return json.loads(body) if len(body) == length else None


class Generator:
    """LLVM's NVPTX back end."""

    def __init__(self, llvm: Any) -> None:
        self._llvm = llvm
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        for option in OPTIONS:
            llvm.set_option("", option)
        self._target = llvm.Target.from_triple(TRIPLE)

    def emit(self, llvm_ir: str, cpu: str, features: str) -> str:
        """Optimises a module and prints it as PTX. RuntimeError says what LLVM refuses."""
        machine = self._target.create_target_machine(cpu=cpu, features=features, opt=2)
        if (found := str(machine.target_data)) != DATA_LAYOUT:
            raise RuntimeError(f"LLVM's data layout is {found}, tilec lowers for {DATA_LAYOUT}")
        module = self._llvm.parse_assembly(_with_layout(llvm_ir))
        module.verify()
        self._optimise(module, machine)
        return machine.emit_assembly(module)

    def _optimise(self, module: Any, machine: Any) -> None:
        # tilec's passes did the loops, MLIR merged and hoisted; what is left is local. The stock O1
        # to O3 pipelines take 10 to 20 times longer (130-240 ms for a GEMM) and print longer code.
        builder = self._llvm.create_pass_builder(
            machine, self._llvm.create_pipeline_tuning_options(speed_level=2)
        )
        manager = self._llvm.create_new_module_pass_manager()
        for name in _PASSES:
            getattr(manager, f"add_{name}_pass")()
        manager.run(module, builder)


_PASSES = (
    "always_inliner",
    "global_dead_code_eliminate",
    "sroa",
    "simplify_cfg",
    "instruction_combine",
    "loop_rotate",
    "instruction_combine",
    "simplify_cfg",
    "aggressive_dce",
)
"""LLVM's passes over a kernel, in order."""


def _with_layout(llvm_ir: str) -> str:
    """The module with tilec's data layout, needed while parsing: it decides default alignments."""
    for line in llvm_ir.splitlines():
        if line.startswith("target datalayout"):
            if line != f'target datalayout = "{DATA_LAYOUT}"':
                raise RuntimeError(f"the module is lowered for another layout: {line}")
            return llvm_ir
    return f'target datalayout = "{DATA_LAYOUT}"\ntarget triple = "{TRIPLE}"\n{llvm_ir}'


def _end_with_the_asker() -> None:
    """Ends this process, whatever LLVM is doing in it, when nobody holds the other end of standard
    input any more: an asker that was killed says nothing."""
    poll = select.poll()
    poll.register(sys.stdin.fileno(), 0)  # its end alone, which is always reported
    poll.poll()
    os._exit(0)


def main(directory: str) -> None:
    """Serves requests until standard input ends. `directory` holds the llvmlite package."""
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    sys.path.append(directory)
    from llvmlite import binding

    generator = Generator(binding)
    while (request := read_message(sys.stdin.buffer)) is not None:
        try:
            answer = {"ptx": generator.emit(**request)}
        except RuntimeError as error:
            answer = {"error": str(error)}
        write_message(sys.stdout.buffer, answer)


if __name__ == "__main__":
    main(sys.argv[1])
