"""Checks a kernel of any compiler, as PTX: races, missing waits, accesses out of bounds.

FILE is PTX for sm_80, sm_90a or sm_100a (- for standard input). The kernel runs on the emulator
in check mode, over random data; no GPU is needed. Each --arg describes a parameter, in order:

  --arg a:f16[64,128]                            an array of random numbers
  --arg c:f32[64,64],fill=0                      one of zeros (or range, a number, @FILE.npy)
  --arg x:f32[100,30],strides=32x1               rows that lie 32 elements apart
  --arg a:f16[256,64],box=64x64,swizzle=128      a tensor map of an array (cuTensorMapEncodeTiled)
  --arg n:i32=64   --arg scale:f32=0.5           numbers
  --arg p:bytes=0100000000000000                 a parameter as it lies in memory

Findings go to standard output; the exit code is 1 if one is an error.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tilec.cli.arguments import add_dimensions, usage
from tilec.cli.drawn_arguments import parse_drawn
from tilec.messages.diagnostics import CompileError, Location
from tilec.runtime.emulator import (
    EmulatorError,
    Finding,
    Launch,
    Place,
    Program,
    PtxError,
    Result,
    TensorMap,
    load,
)
from tilec.runtime.emulator_device import texts_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilec check`."""
    parser.add_argument("input", metavar="FILE.ptx", help="the PTX, or -")
    parser.add_argument("--entry", metavar="NAME", help="which kernel, if the PTX has several")
    parser.add_argument(
        "--arg", action="append", default=[], type=usage(parse_drawn), metavar="SPEC",
        help="a parameter, see above; repeated, in order",
    )  # fmt: skip
    for name, what in (
        ("grid", "CTAs; default: 1"),
        ("block", "threads of a CTA; default: the entry's .reqntid"),
        ("cluster", "CTAs of a cluster; default: the entry's .reqnctapercluster, or 1"),
    ):
        add_dimensions(parser, name, what)
    for name, default, what in (
        ("shared", 0, "bytes of dynamic shared memory; default: 0"),
        ("seed", 0, "of the random numbers; default: 0"),
        ("steps", None, "after how many steps a loop is taken to be endless"),
        ("registers", None, "of a thread at launch, if no directive says it (setmaxnreg)"),
    ):
        parser.add_argument(
            f"--{name}", type=usage(_count), default=default, metavar="N", help=what
        )
    parser.add_argument(
        "--late", action="store_true",
        help="run again with asynchronous work as late as may be, and compare what is written",
    )  # fmt: skip
    parser.add_argument(
        "--no-tensor-fences", action="store_true",
        help="do not ask for tcgen05.fence, which some compilers leave out",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(fail=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Runs `tilec check`; the exit code."""
    program = _load(arguments.input)
    entry = _entry(program, arguments)
    launch, values = _prepared(program, entry, "check", arguments)
    result = program.execute(launch, progress=sys.stderr.isatty())
    findings = list(result.findings)
    if arguments.late and not any(finding.severity == "error" for finding in findings):
        findings += _late_findings(program, entry, values, arguments)
    if arguments.json:
        print(json.dumps(_as_json(entry, findings, result), indent=1))
    else:
        _show(entry, findings, result)
    return int(any(finding.severity == "error" for finding in findings))


def _load(path: str) -> Program:
    """CompileError for what is no PTX, or PTX that the emulator does not know."""
    name = "<stdin>" if path == "-" else path
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        text = content.decode()
    except OSError as error:
        raise CompileError(f"cannot read {name}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CompileError(f"cannot read {name}: it is no text") from None
    try:
        return load(text)
    except PtxError as error:
        message = str(error).removeprefix(f"PTX line {error.ptx_line}: ")
        notes = ("help: this checks PTX; `tilec run --check FILE.py` checks kernels as they run",)
        is_python = name.endswith(".py")
        raise CompileError(message, Location(name, error.ptx_line), notes * is_python) from None


def _entry(program: Program, arguments: argparse.Namespace) -> str:
    """The entry that was asked for, or the only one. A usage error if there is none."""
    known = ", ".join(program.entries) or "none"
    if arguments.entry is None and len(program.entries) != 1:
        arguments.fail(f"which entry? Say --entry; the PTX has {known}")
    if arguments.entry not in (None, *program.entries):
        arguments.fail(f"no entry {arguments.entry!r}; the PTX has {known}")
    return arguments.entry or program.entries[0]


def _prepared(
    program: Program, entry: str, mode: str, arguments: argparse.Namespace
) -> tuple[Launch, list[Any]]:
    """A launch on fresh arguments, and these. A usage error for what does not fit the entry."""
    found = program.module.entries[entry]
    block = arguments.block or found.directives.get("reqntid") or ()
    if not block:
        arguments.fail(f"{entry} has no .reqntid: say --block, the threads of a CTA")
    if len(arguments.arg) != len(found.parameters):
        wanted = ", ".join(f"{p.name} ({p.size} bytes)" for p in found.parameters)
        arguments.fail(
            f"{entry} takes {len(found.parameters)} parameters, found {len(arguments.arg)} --arg: "
            f"{wanted or 'none'}"
        )
    random = np.random.default_rng(arguments.seed)
    try:
        values = [argument.draw(random) for argument in arguments.arg]
        launch = program.prepare(
            entry,
            arguments.grid or (1,),
            block,
            values,
            shared_bytes=arguments.shared,
            cluster=arguments.cluster or found.directives.get("reqnctapercluster") or (1,),
            mode=mode,
            tensor_fences=not arguments.no_tensor_fences,
            registers=arguments.registers,
            steps=arguments.steps,
        )
    except OSError as error:
        arguments.fail(f"cannot read {error.filename}: {error.strerror}")
    except (ValueError, TypeError) as error:
        arguments.fail(str(error))
    return launch, values


def _late_findings(
    program: Program, entry: str, values: list[Any], arguments: argparse.Namespace
) -> list[Finding]:
    """Says what differs when asynchronous work is done as late as the kernel's waits allow."""
    launch, late = _prepared(program, entry, "late", arguments)
    try:
        program.execute(launch, progress=sys.stderr.isatty())
    except EmulatorError as error:
        return [error.finding()]
    found = []
    for position, (first, second) in enumerate(zip(values, late, strict=True)):
        if _bytes(first) != _bytes(second):
            missing = f"argument {position} gets other values when asynchronous work is late"
            mend = "wait for the work whose results are used"
            found.append(Finding("late values", "global", None, None, missing, mend))
    return found


def _bytes(value: Any) -> bytes:
    array = value.array if isinstance(value, TensorMap) else value
    return array.tobytes() if isinstance(array, np.ndarray) else b""


def _show(entry: str, findings: list[Finding], result: Result) -> None:
    sys.stdout.write(result.printed)
    texts = texts_of(findings)
    count = f"{len(texts)} finding{'' if len(texts) == 1 else 's'}" if texts else "no findings"
    print("\n".join([f"{entry}: {count}", *texts]))


def _place_as_json(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    source = asdict(place.source) if place.source else None
    return {"ptx_line": place.ptx_line, "instruction": place.text, "source": source}


def _as_json(entry: str, findings: list[Finding], result: Result) -> dict[str, Any]:
    return {
        "entry": entry,
        "findings": [
            {
                "severity": f.severity, "kind": f.kind, "memory": f.memory,
                "first": _place_as_json(f.first), "second": _place_as_json(f.second),
                "missing": f.missing, "mend": f.mend,
            }
            for f in findings
        ],
        "printed": result.printed,
        "statistics": asdict(result.statistics),
    }  # fmt: skip


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"expected a number, found {text!r}")
    return int(text)
