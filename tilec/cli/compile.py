"""Compiles a kernel for one or several targets.

INPUT is a `.tile` file of any level (- for standard input), a Python kernel, `kernel.py:name`, or
Triton's IR, `kernel.ttir` (see tilec/triton/README.md). A
Python kernel needs to know its arguments (--arg 'a:bf16[?,?:8;?:8,1]', see
tilec/call/signature.py) and may be given constants (--const BM=128) and demands (--cluster 2), of
which a text has its own. What is written follows from --emit, else from the name of the output:
.ptx, .cubin, .sass, .ll, .mlir (llvm), .tile, .txt (report), .tilec (an artefact, one file for all
targets), .c (a source that launches it by CUDA's driver, and its header, for all targets). Without
either it is PTX, or an artefact for several targets in a file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mlir import ir

from tilec.call.signature import add_promises, parse_spec
from tilec.cli.arguments import add_constants, add_demand, add_target, split_name, usage
from tilec.cli.input import Input, read_tile
from tilec.cli.streams import pass_on, write_out
from tilec.compile.assembler import assemble, disassemble
from tilec.compile.compiler import compile_module, lower_to
from tilec.compile.llvm_level import TEXTS, is_llvm_level, lower_llvm
from tilec.compile.resources import ask_ptxas
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.target import TARGETS, Target, check_ptx_version
from tilec.messages.diagnostics import CompileError, Location
from tilec.messages.report import show_report, slow
from tilec.terms.demands import KERNEL_DEMANDS

LEVELS = ("tile", "gpu_tile", "llvm", "llvmir")
"""What is emitted from the middle of the compiler."""

EMITTED = (*LEVELS, "ptx", "cubin", "sass", "report", "report-json", "artefact", "c")
"""What --emit takes."""

SUFFIXES = {
    ".ptx": "ptx",
    ".cubin": "cubin",
    ".sass": "sass",
    ".ll": "llvmir",
    ".mlir": "llvm",
    ".tile": "tile",
    ".txt": "report",
    ".json": "report-json",
    ".tilec": "artefact",
    ".c": "c",
}
"""What an output's name says about --emit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec compile`."""
    parser.add_argument("input", metavar="INPUT", help="x.tile, kernel.py:name, x.ttir, or -")
    add_target(parser, several=True)
    parser.add_argument("--emit", choices=EMITTED, help="what to write")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to; default: standard output")
    parser.add_argument("--kernel", metavar="NAME", help="which kernel, if the input has several")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        type=usage(parse_spec),
        metavar="SPEC",
        help="an argument of a Python kernel, e.g. 'a:bf16[?,?:8;?:8,1]' or n:i32; repeated",
    )
    add_constants(parser)
    parser.add_argument(
        "--index-bits",
        type=int,
        choices=(32, 64),
        default=32,
        help="width of a Python kernel's sizes and offsets; 32 is checked at every launch",
    )
    for row in KERNEL_DEMANDS.values():
        add_demand(parser, row)
    parser.add_argument(
        "--ptx-version",
        type=int,
        metavar="N",
        help="PTX ISA version times ten; default: the lowest that the code needs",
    )
    parser.add_argument(
        "--assemble",
        action="store_true",
        help="put machine code into the artefact, or C (needs ptxas)",
    )
    parser.add_argument(
        "--dump-dir", metavar="DIR", help="write the program after every pass (or $TILEC_DUMP)"
    )
    parser.set_defaults(fail=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec compile`; the exit code."""
    targets = list(dict.fromkeys(arguments.target or [next(iter(TARGETS.values()))]))
    for target in targets:
        if arguments.ptx_version is None:
            continue
        try:
            check_ptx_version(target, arguments.ptx_version)
        except ValueError as error:
            arguments.fail(str(error))
    emit = arguments.emit or _implied(arguments, len(targets))
    if emit in ("cubin", "artefact", "c") and arguments.output is None:
        what = "a source and its header" if emit == "c" else "a binary file"
        arguments.fail(f"--emit {emit} writes {what}: name it with -o")
    source = _read(arguments)
    if emit in ("artefact", "c"):
        kernels = _kernels(source, targets, arguments)
        (_write_artefact if emit == "artefact" else _write_c)(kernels, arguments)
        return 0
    for target in targets:
        _write(_emitted(source, target, emit, arguments), target, len(targets) > 1, arguments)
    return 0


@contextmanager
def _whole_text(source: Input) -> Iterator[None]:
    """Puts a mistake without a position, one of the whole text, at the text's beginning."""
    try:
        yield
    except CompileError as error:
        if error.location is None and source.name:
            raise CompileError(error.message, Location(source.name, 1), error.notes) from None
        raise


def _implied(arguments: argparse.Namespace, targets: int) -> str:
    """Decides what to emit where nobody said it. A usage error for an output's name that says
    nothing."""
    output = arguments.output
    suffix = "" if output is None else Path(output).suffix
    if not suffix:
        return "ptx" if targets == 1 or output is None else "artefact"
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        arguments.fail(f"what to write to {output}? Say --emit, or end the name in one of {known}")
    return SUFFIXES[suffix]


def _read(arguments: argparse.Namespace) -> Input:
    if arguments.input.endswith(".ttir"):
        return importlib.import_module("tilec.cli.ttir_input").read(arguments)
    if not split_name(arguments.input)[0].endswith(".py"):
        return read_tile(arguments)
    # The frontend, too.
    return importlib.import_module("tilec.cli.python_input").read(arguments)


def _emitted(
    source: Input, target: Target, emit: str, arguments: argparse.Namespace
) -> str | bytes:
    """Gives what to write for one target."""
    module = source.module(target)
    if is_llvm_level(module):
        return _from_llvm(module, target, emit, arguments)
    options = _options(source, target, arguments)
    if emit in LEVELS:
        with _whole_text(source):
            job = lower_to(module, target, emit, **options)
        return job.text if emit == "llvmir" else f"{job.module}\n"
    with _whole_text(source):
        kernel = _told(compile_module(module, target, **options), arguments)
    if emit == "ptx":
        return kernel.ptx
    if emit == "report-json":
        return json.dumps(kernel.report, indent=1) + "\n"
    if emit == "report":
        return f"{kernel.name} for {target.name}\n{show_report(kernel.report)}\n"
    return _machine_code(kernel.ptx, target, emit)


def _told(kernel: CompiledKernel, arguments: argparse.Namespace) -> CompiledKernel:
    """The same, with what surely makes it slow on standard error."""
    if arguments.arg:
        add_promises(kernel)
    if arguments.emit in ("report", "report-json"):
        ask_ptxas(kernel)
    for at, text in slow(kernel.report):
        pass_on(f"{at}: warning: {text}\n")
    return kernel


def _machine_code(ptx: str, target: Target, emit: str) -> str | bytes:
    cubin = assemble(ptx, target).cubin
    return cubin if emit == "cubin" else disassemble(cubin)


def _from_llvm(
    module: ir.Module, target: Target, emit: str, arguments: argparse.Namespace
) -> str | bytes:
    """Gives what to write of a program that is already in the llvm dialect."""
    if emit in TEXTS:
        return lower_llvm(module, target, emit, arguments.ptx_version)
    if emit in ("cubin", "sass"):
        ptx = lower_llvm(module, target, "ptx", arguments.ptx_version)
        return _machine_code(ptx, target, emit)
    raise CompileError(
        f"cannot emit {emit} of a program at the llvm level: it no longer knows its tiles and "
        f"arguments; expected one of {', '.join(TEXTS)}, cubin, sass"
    )


def _options(source: Input, target: Target, arguments: argparse.Namespace) -> dict[str, Any]:
    dump_dir = arguments.dump_dir or os.environ.get("TILEC_DUMP")
    if dump_dir and len(arguments.target or ()) > 1:
        dump_dir = str(Path(dump_dir, target.name))
    return {
        "other": None if source.other is None else partial(source.other, target),
        "kernel": source.kernel,
        "num_warps": arguments.num_warps,
        "ptx_version": arguments.ptx_version,
        "dump_dir": dump_dir,
    }


def _compiled(source: Input, target: Target, arguments: argparse.Namespace) -> CompiledKernel:
    """A kernel of an artefact."""
    module = source.module(target)
    if is_llvm_level(module):
        _from_llvm(module, target, "artefact", arguments)
    with _whole_text(source):
        return _told(
            compile_module(module, target, **_options(source, target, arguments)), arguments
        )


def _kernels(
    source: Input, targets: list[Target], arguments: argparse.Namespace
) -> list[CompiledKernel]:
    """The code for all targets."""
    kernels = [_compiled(source, target, arguments) for target in targets]
    if not arguments.assemble:
        return kernels
    return [
        replace(kernel, cubin=assemble(kernel.ptx, target).cubin)
        for kernel, target in zip(kernels, targets, strict=True)
    ]


def _write_c(kernels: list[CompiledKernel], arguments: argparse.Namespace) -> None:
    """Writes a source and, beside it, its header."""
    path = Path(arguments.output)
    if path.suffix != ".c":
        raise CompileError(f"--emit c writes a header beside {path}: let its name end in .c")
    try:
        made = importlib.import_module("tilec.c_source.source").c_source(kernels, path.stem)
    except ValueError as error:
        raise CompileError(str(error)) from None
    for file, text in ((path, made.source), (path.with_suffix(".h"), made.header)):
        try:
            file.write_text(text)
        except OSError as error:
            raise _unwritable(str(file), error) from None


def _write_artefact(kernels: list[CompiledKernel], arguments: argparse.Namespace) -> None:
    try:
        # The runtime takes a while to load, and PTX alone does not need it.
        importlib.import_module("tilec.runtime.artefact").save(arguments.output, kernels)
    except OSError as error:
        raise _unwritable(arguments.output, error) from None


def _write(
    content: str | bytes, target: Target, several: bool, arguments: argparse.Namespace
) -> None:
    """Writes to the output; of several targets, each to its own file or under a heading."""
    if arguments.output is None:
        heading = f"// ----- {target.name}\n" if several else ""
        write_out(f"{heading}{content!s}")
        return
    path = Path(arguments.output)
    if several:
        path = path.with_name(f"{path.stem}.{target.name}{path.suffix}")
    try:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise _unwritable(str(path), error) from None


def _unwritable(path: str, error: OSError) -> CompileError:
    return CompileError(f"cannot write {path}: {error.strerror or error}")
