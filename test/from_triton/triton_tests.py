"""Runs Triton's own tests on tilec: every kernel of theirs launched on the emulator, or on the GPU.

    git clone --depth 1 --branch v3.6.0 https://github.com/triton-lang/triton
    python test/from_triton/triton_tests.py triton/python/test unit/language/test_core.py \\
        --sample 300
    test_core.py: 9012 cases, 300 drawn: 280 passed, 12 skipped, 8 failed (97.2 % of what ran)
       3  CompileError: cannot import 'tt.dot': ...  (as test_core.py::test_dot[...])

The tests are as they are, their assertions too; torch and Triton have to be installed. Without
`--gpu` tensors of device "cuda" lie in host memory (`host_cuda.py`). With it, cases that fail are
tried by Triton's compiler, too, and not counted where it fails as well. With `--check` races,
missing waits and accesses out of bounds are errors as well. A case whose failure is Triton's front
end, which finds no such function in its language, is of another version, and not counted; nor is
one that looks for instructions as Triton chooses them, most often behind the comparison of results.
`--jobs 14` shares the drawn cases among so many processes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from host_cuda import pretend

import tilec.triton
from tilec.hardware.target import find_target


class Late(BaseException):
    """A case that takes too long; no test catches it."""


class Tally:
    """A pytest plugin: draws cases, takes its part of them, and counts what became of them by file.

    `samples`: cases of each file by its name, 0 for all; `part`: the number of this process, and
    how many there are; `only`: the ids of the cases that are run, if not all that are drawn.
    """

    def __init__(
        self, samples: dict[str, int], seed: int, seconds: int, whole: float,
        part: tuple[int, int] = (0, 1), only: set[str] | None = None,
    ) -> None:  # fmt: skip
        self.samples, self.seed, self.seconds = samples, seed, seconds
        self.part, self.only = part, only
        self.end = time.monotonic() + whole
        self.cases: Counter[str] = Counter()
        self.found: dict[str, Counter[str]] = {}
        self.causes: dict[str, dict[str, list[str]]] = {}

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Keeps this part of the sample of each file."""
        by_file: dict[str, list[Any]] = {}
        for item in items:
            by_file.setdefault(item.path.name, []).append(item)
        kept: list[Any] = []
        for name, cases in by_file.items():
            self.cases[name] = len(cases)
            sample, drawn = self.samples.get(name, 0), random.Random(self.seed)
            kept += drawn.sample(cases, sample) if 0 < sample < len(cases) else cases
        number, parts = self.part
        kept = kept[number::parts]
        items[:] = [item for item in kept if self.only is None or item.nodeid in self.only]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        """Ends a case that takes too long."""
        signal.alarm(self.seconds)
        yield
        signal.alarm(0)
        if time.monotonic() > self.end:
            item.session.shouldstop = "the time is up"

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        """Counts a case."""
        outcome = yield
        report = outcome.get_result()
        if report.when != "call" and report.passed:
            return
        word = report.outcome if not hasattr(report, "wasxfail") else "expected to fail"
        if report.failed:
            cause = _cause(call.excinfo)
            word = _WORDS.get(cause, "failed")
            if cause not in _WORDS:
                self.causes.setdefault(item.path.name, {}).setdefault(cause, []).append(item.nodeid)
                print(f"\n{item.nodeid}: {cause}", flush=True)
            if _LOST.search(cause):
                item.session.shouldstop = "this process can launch nothing more"
        self.found.setdefault(item.path.name, Counter())[word] += 1

    @property
    def failed(self) -> set[str]:
        """The ids of the cases that failed."""
        return {one for causes in self.causes.values() for ids in causes.values() for one in ids}

    def forgive(self, other: Tally) -> None:
        """Counts cases that fail in `other`, too, as such."""
        failing = {
            one for causes in other.causes.values() for ids in causes.values() for one in ids
        }
        for name, causes in self.causes.items():
            for cause, ids in list(causes.items()):
                causes[cause] = [one for one in ids if one not in failing]
                self.found[name]["failed"] -= len(ids) - len(causes[cause])
                self.found[name]["failed by Triton, too"] += len(ids) - len(causes[cause])
                if not causes[cause]:
                    del causes[cause]

    def add(self, record: Any) -> None:
        """Adds what another process has written of its part."""
        self.cases.update(
            {name: n for name, n in record["cases"].items() if name not in self.cases}
        )
        for name, found in record["found"].items():
            self.found.setdefault(name, Counter()).update(found)
        for name, causes in record["causes"].items():
            own = self.causes.setdefault(name, {})
            for cause, ids in causes.items():
                own.setdefault(cause, []).extend(ids)

    def table(self) -> str:
        """Counts a file, and causes."""
        lines = []
        for name, found in self.found.items():
            ran = found["passed"] + found["failed"]
            share = f"{100 * found['passed'] / ran:.1f} % of what ran" if ran else "none ran"
            counts = ", ".join(f"{n} {word}" for word, n in found.most_common() if n)
            drawn = sum(found.values())
            lines.append(f"{name}: {self.cases[name]} cases, {drawn} drawn: {counts} ({share})")
            ranked = sorted(self.causes.get(name, {}).items(), key=lambda row: -len(row[1]))
            lines += [
                f"  {len(ids):4}  {cause}  (as {ids[0].rpartition('::')[2]})"
                for cause, ids in ranked
            ]
        return "\n".join(lines)


_OTHER_VERSION, _OTHER_CODE, _LATE = "other version", "other code", "late"
_WORDS = {
    _OTHER_VERSION: "of another version",
    _OTHER_CODE: "looked for instructions of Triton's code",
    _LATE: "took too long",
}
"""Failures that are no kernel's, by cause."""
_LOST = re.compile("CUDA error|CUDA_ERROR|launch failure")
"""After such a failure a process can launch nothing more."""
_CODE = re.compile(r"'(ptx|ttgir|llir|cubin|sass)'\"?$|Generated by LLVM NVPTX")


def _cause(raised: Any) -> str:
    """A failure without what is particular to a case."""
    chain: list[BaseException] = []
    error: BaseException | None = raised.value
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    texts = [f"{type(e).__module__}: {type(e).__name__}: {e}" for e in chain]
    if any("has no attribute" in text and "module 'triton" in text for text in texts):
        return _OTHER_VERSION
    if any(isinstance(error, Late) for error in chain):
        return _LATE
    if _CODE.search(str(raised.value)):
        return _OTHER_CODE
    last = next((e for e in chain if type(e).__module__.startswith("tilec")), raised.value)
    lines = [line for line in str(getattr(last, "message", last)).split("\n") if line.strip()]
    plain = re.sub(r"0x[0-9a-f]+|\b\d+(\.\d+)?\b", "_", (lines or [""])[0])
    return f"{type(last).__name__}: {plain[:110]}"


def _late(number: int, frame: Any) -> None:
    raise Late("takes too long")


def main() -> None:
    """Runs files of a folder of tests and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, help="the checkout's python/test")
    parser.add_argument("files", nargs="*", default=["unit/language/test_core.py"],
                        help="FILE, or FILE@CASES for a sample of its own")  # fmt: skip
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--sample", type=int, default=0, help="cases of a file; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=60, help="for one case")
    parser.add_argument("--whole", type=float, default=3600, help="seconds for all of them")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", type=int, help="run this one of the jobs alone")
    parser.add_argument("--out", type=Path, help="JSON of the counts")
    parser.add_argument("-k", dest="chosen", default="")
    given = parser.parse_args()
    tally = _shared(given) if given.jobs > 1 and given.part is None else _run(given)
    if given.out:
        record = {"cases": tally.cases, "found": tally.found, "causes": tally.causes}
        given.out.write_text(json.dumps(record))
    print(tally.table())


def _shared(given: argparse.Namespace) -> Tally:
    """All parts, each by a process."""
    tally = Tally({}, given.seed, given.seconds, given.whole)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *sys.argv]
        outs = [Path(folder, f"{part}.json") for part in range(given.jobs)]
        processes = [
            subprocess.Popen([*command, "--part", str(part), "--out", str(out)])
            for part, out in enumerate(outs)
        ]
        for part, process in enumerate(processes):
            if process.wait():
                print(f"part {part} ended with exit code {process.returncode}: not counted")
            else:
                tally.add(json.loads(outs[part].read_text()))
    return tally


def _run(given: argparse.Namespace) -> Tally:
    """One part, or all, in this process."""
    if not given.gpu:
        os.environ["TILEC_TARGET"] = given.target
        target = find_target(given.target)
        pretend(target.compute_capability, target.shared_bytes)
    device = None if given.gpu else "emulator:check" if given.check else "emulator"
    signal.signal(signal.SIGALRM, _late)
    rows = [file.partition("@") for file in given.files]
    samples = {Path(file).name: int(count or given.sample) for file, _, count in rows}
    part = (given.part or 0, 1 if given.part is None else given.jobs)
    options = [
        "-q",
        "--no-header",
        "--tb=no",
        "--continue-on-collection-errors",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
        "-c",
        os.devnull,
        "-k",
        given.chosen,
        *(file for file, _, _ in rows),
    ]
    # The tests' folder becomes the current one; the record's path is of the one before.
    given.out = given.out and given.out.resolve()
    os.chdir(given.folder)
    tally = Tally(samples, given.seed, given.seconds, given.whole, part)
    tilec.triton.enable(device=device)
    pytest.main(options, [tally])
    if given.gpu and tally.failed:
        tilec.triton.disable()
        again = Tally(samples, given.seed, given.seconds, given.whole, part, tally.failed)
        pytest.main(options, [again])
        tally.forgive(again)
    return tally


if __name__ == "__main__":
    main()
