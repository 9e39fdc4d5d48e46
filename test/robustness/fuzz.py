"""Breaks inputs of the compiler at random, as many as one likes; the same seed, the same cases.

    python test/robustness/fuzz.py texts --count 20000     `.tile` files, programs between passes
    python test/robustness/fuzz.py kernels --count 5000    Python kernels, broken as syntax trees
    python test/robustness/fuzz.py programs --count 2000   random right programs against NumPy

Whatever is wrong with an input, there is one diagnostic with a position and exit code 1: no
traceback, no signal, no hang. What compiles, ptxas takes (`--no-ptxas`: not asked). Each case that
is received otherwise is printed with its input; the exit code says whether there was any.
"""

from __future__ import annotations

import argparse
import collections
import functools
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "unit")]

from broken_kernels import CONSTANTS, SPECS, attempt  # noqa: E402 - found through the path above
from broken_kernels import mutant as broken_kernel  # noqa: E402
from corpus import Subject, subjects  # noqa: E402
from forked import Command, run_batch, run_command  # noqa: E402
from mutations import damaged, mutant  # noqa: E402
from random_programs import RandomProgram, programs  # noqa: E402
from tile_programs import check  # noqa: E402

from tilec.call.jit import Kernel  # noqa: E402
from tilec.compile.assembler import assemble  # noqa: E402
from tilec.compile.isolation import Death, death_of  # noqa: E402
from tilec.hardware.target import TARGETS, find_target  # noqa: E402
from tilec.messages.diagnostics import InternalError  # noqa: E402

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
BATCH = 10
WINDOW = 4 * BATCH
"""Cases of one process at a time."""
POSITION = re.compile(r"^[^\n:]+:\d+:\d+: error: ", re.MULTILINE)


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit code (128 + signal if it died) and what it wrote."""

    code: int
    output: str
    errors: str


def complaint(done: Done) -> str | None:
    """What is wrong with how an input was received, None if nothing."""
    if done.code == 0 and not done.errors:
        return None
    right = done.code == 1 and POSITION.match(done.errors) and "Traceback" not in done.errors
    return None if right else f"exit code {done.code}: {done.errors}"


def received(command: Sequence[str], contents: Sequence[bytes], folder: Path) -> list[Done]:
    """A command on each content: all in one child, or as people run it where one ends that."""
    streams = []
    for number, content in enumerate(contents):
        names = [str(folder / f"{number}.{name}") for name in ("in", "out", "err")]
        Path(names[0]).write_bytes(content)
        streams.append(names)
    codes = folder / "codes"
    words = ["tilec", *command]
    _emptied(streams)
    if run_batch(words, streams, str(codes)):
        ended = [int(code) for code in codes.read_text().split()]
    else:
        _emptied(streams)
        ended = [run_command(Command(words), *names, dict(os.environ)) for names in streams]
    return [
        Done(code, *(Path(name).read_text(errors="replace") for name in names[1:]))
        for code, names in zip(ended, streams, strict=True)
    ]


def _emptied(streams: Sequence[Sequence[str]]) -> None:
    for names in streams:
        for name in names[1:]:
            Path(name).write_bytes(b"")


def texts(seed: int, count: int, start: int) -> Iterator[tuple[Subject, list[bytes]]]:
    """Batches of broken texts of one subject each."""
    known = subjects()
    for number in range(start // BATCH, count // BATCH):
        subject = random.Random(f"{seed} {number}").choice(known)
        names = [f"{seed} {number} {i}" for i in range(BATCH)]
        broken = [mutant(subject.text, name).encode() for name in names[1:]]
        yield subject, [damaged(subject.text, names[0]), *broken]


def refused_by_ptxas(subject: Subject, content: bytes, done: Done) -> str | None:
    """What ptxas says of the PTX that a command printed, unless the text has words for ptxas of its
    own: inline PTX, and what it says of its operands, is the author's."""
    command = subject.command
    own = _inline_words(content.decode(errors="replace")) - _inline_words(subject.text)
    if done.code or own or command[0] != "compile":
        return None
    target = command[command.index("--target") + 1]
    try:
        assemble(done.output, find_target(target))
    except InternalError as error:
        return str(error)
    return None


def _inline_words(text: str) -> set[tuple[str, ...]]:
    """The strings of each op with inline PTX: its text and its operands' constraints."""
    lines = [line for line in text.splitlines() if "inline_ptx" in line or "inline_asm" in line]
    return {tuple(_STRING.findall(line)) for line in lines}


class Tally:
    """Counts how inputs were received; prints what is wrong as it comes."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.start = time.monotonic()

    def add(self, what: str, name: str, text: str, wrong: str | None) -> None:
        """`what`: "compiled", "diagnosed" ...; `wrong`: what is wrong with it, if anything."""
        self.counts[what] += 1
        if wrong:
            self.counts["WRONG"] += 1
            print(f"===== {name}\n{wrong}\n----- of\n{text}\n=====", flush=True)

    def show(self) -> None:
        """One line of counts."""
        shown = ", ".join(f"{n} {what}" for what, n in sorted(self.counts.items()))
        print(f"{time.monotonic() - self.start:.0f} s: {shown}", file=sys.stderr, flush=True)


def fuzz_texts(arguments: argparse.Namespace, tally: Tally) -> None:
    with tempfile.TemporaryDirectory(prefix="tilec-fuzz-") as directory:
        for subject, contents in texts(arguments.seed, arguments.count, arguments.start):
            for content, done in zip(
                contents, received(subject.command, contents, Path(directory)), strict=True
            ):
                wrong = complaint(done)
                if not wrong and not arguments.no_ptxas:
                    wrong = refused_by_ptxas(subject, content, done)
                what = "compiled" if done.code == 0 else "diagnosed"
                name = f"{subject.name}: {' '.join(subject.command)}"
                tally.add(what, name, content.decode(errors="replace"), wrong)


def fuzz_kernels(arguments: argparse.Namespace, tally: Tally) -> None:
    """Each broken kernel is compiled for one target in turn, in a forked child with others."""
    names, targets = list(SPECS), list(TARGETS)
    with tempfile.TemporaryDirectory(prefix="tilec-fuzz-") as directory:
        for first in range(arguments.start, arguments.count, BATCH):
            cases = [
                (names[number % len(names)], targets[number // len(names) % len(targets)], number)
                for number in range(first, first + BATCH)
            ]
            for part in ([cases], [[case] for case in cases]):
                deaths = [_compile_all(c, arguments, Path(directory)) for c in part]
                if not any(deaths):
                    break
            for case, death in zip(cases, deaths * (BATCH // len(deaths)), strict=True):
                text = broken_kernel(case[0], arguments.seed * 1_000_000 + case[2])
                wrong = f"{death.reason}: {death.words}" if death else None
                tally.add("kernels", f"{case[0]} for {case[1]}", text, wrong)


def _compile_all(
    cases: Sequence[tuple[str, str, int]], arguments: argparse.Namespace, folder: Path
) -> Death | None:
    def run() -> None:
        for name, target, number in cases:
            text = broken_kernel(name, arguments.seed * 1_000_000 + number)

            def use(kernel: Kernel, name: str = name, target: str = target) -> None:
                made = kernel.compile(SPECS[name], CONSTANTS.get(name, {}), target=target)
                if not arguments.no_ptxas:
                    assemble(made.ptx, find_target(target))

            attempt(text, name, folder, use)

    return death_of(run, 60.0 * len(cases))


def fuzz_programs(arguments: argparse.Namespace, tally: Tally) -> None:
    """Right programs, whose results NumPy knows bit by bit, on the emulator's check mode."""
    for first in range(arguments.start, arguments.count, BATCH):
        limits = settings(
            max_examples=BATCH,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        strategy = programs(steps=6 + first // BATCH % 3, targets=tuple(TARGETS))

        def judge(program: RandomProgram) -> None:
            check(program.text, program.arguments, program.grid, program.options)

        wrong = None
        try:
            seed(arguments.seed * 1_000_000 + first)(limits(given(strategy)(judge)))()
        except Exception:
            wrong = traceback.format_exc()
        for _ in range(BATCH - 1):
            tally.add("programs", "", "", None)
        tally.add("programs", f"programs from {first} on", "", wrong)


KINDS: dict[str, Callable[[argparse.Namespace, Tally], None]] = {
    "texts": fuzz_texts,
    "kernels": fuzz_kernels,
    "programs": fuzz_programs,
}


def main() -> int:
    """Runs one kind of fuzzing; 1 if anything was received wrongly."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="leave out the first cases")
    parser.add_argument("--no-ptxas", action="store_true", help="do not assemble what compiles")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing after these")
    arguments = parser.parse_args()
    arguments.deadline = time.monotonic() + 60 * arguments.minutes
    if arguments.kind == "texts":
        subjects()  # here, for all processes
    total = Tally()
    windows = range(arguments.start, arguments.count, WINDOW)
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("fork")) as pool:
        for counts in pool.map(functools.partial(run_window, arguments), windows):
            total.counts += counts
            total.show()
    return 1 if total.counts["WRONG"] else 0


def run_window(arguments: argparse.Namespace, first: int) -> collections.Counter[str]:
    """What came of `WINDOW` cases from `first` on; too late, they are counted as left out."""
    window = argparse.Namespace(**vars(arguments))
    window.start, window.count = first, min(first + WINDOW, arguments.count)
    tally = Tally()
    if time.monotonic() > arguments.deadline:
        tally.counts["left out"] = window.count - first
    else:
        KINDS[arguments.kind](window, tally)
    return tally.counts


if __name__ == "__main__":
    sys.exit(main())
