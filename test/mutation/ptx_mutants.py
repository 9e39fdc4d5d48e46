"""Breaks the PTX of tilec, Triton and nvcc in one place at a time: what the emulator notices.

PYTHONPATH=test:test/unit:test/emulator:test/long_rings python test/mutation/ptx_mutants.py

runs every mutant (`--jobs 12`: by so many processes), and writes the verdicts to ptx_mutants.json
and the tables into README.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from ptx_kinds import KINDS, Mutant, mutants
from ptx_subjects import Outcome, Subject, subjects
from survivors import reason_of
from tqdm import tqdm

from tilec.runtime.emulator import EmulatorError, Finding, PtxError

FOLDER = Path(__file__).resolve().parent
RECORD = FOLDER / "ptx_mutants.json"
README = FOLDER / "README.md"
CHECKER, LATE, VALUES, SURVIVED = "checker", "late mode", "values", "survived"
WARNED, UNREACHED = "warning", "never executed"
COMPILERS = ("tilec", "Triton", "nvcc")
PORTION = 8
"""Mutants of a process at a time: the kernel with most has 131."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and the first finding or error."""

    compiler: str
    name: str
    target: str
    kind: str
    line: int
    instruction: str
    outcome: str
    detail: str

    @property
    def subject(self) -> str:
        return f"{self.compiler} {self.name} {self.target}"


@dataclass(frozen=True)
class Pristine:
    """What an unbroken kernel leaves, in check and in late mode."""

    check: Outcome
    late: Outcome


def pristine(subject: Subject) -> Pristine:
    return Pristine(subject.run(subject.text, "check"), subject.run(subject.text, "late"))


def judge(subject: Subject, unbroken: Pristine, text: str) -> tuple[str, str]:
    """An outcome and its detail: the checker's word first, then wrong bytes in either mode."""
    try:
        found = subject.run(text, "check")
        errors = [f for f in found.findings if f.severity == "error"]
        if errors:
            return CHECKER, errors[0].kind
    except PtxError:
        raise
    except EmulatorError as error:
        return CHECKER, error.kind
    if found.arrays != unbroken.check.arrays:
        return VALUES, ""
    try:
        late = subject.run(text, "late")
    except EmulatorError as error:
        return LATE, error.kind
    if late.arrays != unbroken.late.arrays:
        return LATE, "wrong values"
    new = set(map(accesses, found.findings)) - set(map(accesses, unbroken.check.findings))
    return (WARNED, min(new)[0]) if new else (SURVIVED, "")


def is_reached(subject: Subject, mutant: Mutant) -> bool:
    """Is the broken line executed at all? A trap in its place tells."""
    lines = subject.text.split("\n")
    guard = mutant.before.split()[0] if mutant.before.startswith("@") else ""
    lines[mutant.line - 1] = f"{guard} trap;"
    try:
        subject.run("\n".join(lines), "eager")
    except EmulatorError as error:
        return "trap" in error.message
    return False


def accesses(finding: Finding) -> tuple[str, int, int]:
    """What a finding is about; lines of PTX keep their numbers in a mutant."""
    lines = (place.ptx_line if place else 0 for place in (finding.first, finding.second))
    return finding.missing, *lines


def verdict(subject: Subject, mutant: Mutant, unbroken: Pristine, text: str) -> Verdict:
    outcome, detail = judge(subject, unbroken, text)
    if outcome == SURVIVED and not is_reached(subject, mutant):
        outcome = UNREACHED
    return Verdict(
        subject.compiler, subject.name, subject.target, mutant.kind, mutant.line,
        mutant.before, outcome, detail,
    )  # fmt: skip


@cache
def unbroken_run(number: int) -> Pristine:
    """What the kernel of this number among `subjects` leaves. ValueError if it has findings."""
    subject = subjects()[number]
    unbroken = pristine(subject)
    for finding in unbroken.check.findings:
        if finding.severity == "error":
            raise ValueError(f"{subject}: {finding}")
    return unbroken


def verdicts_of(number: int, first: int) -> list[Verdict]:
    """Of a kernel's mutants, `PORTION` of them from `first` on, those that are executed."""
    subject, unbroken = subjects()[number], unbroken_run(number)
    portion = list(mutants(subject.text))[first : first + PORTION]
    every = [verdict(subject, mutant, unbroken, text) for mutant, text in portion]
    return [v for v in every if v.outcome != UNREACHED]


# -- the tables -----------------------------------------------------------------------------------


def kind_table(verdicts: Sequence[Verdict]) -> str:
    """Kinds against compilers and targets: `killed/mutants`."""
    columns = [(c, t) for c in COMPILERS for t in targets_of(verdicts, c)]
    lines = [
        "| kind | " + " | ".join(f"{c} {t}" for c, t in columns) + " | killed |",
        "|---" * (len(columns) + 2) + "|",
    ]
    for kind in KINDS:
        row = [v for v in verdicts if v.kind == kind.name]
        if row:
            cells = [rate(v for v in row if (v.compiler, v.target) == key) for key in columns]
            lines.append(f"| {kind.name} | " + " | ".join([*cells, percent(row)]) + " |")
    cells = [rate(v for v in verdicts if (v.compiler, v.target) == key) for key in columns]
    lines.append("| all | " + " | ".join([*cells, percent(verdicts)]) + " |")
    return "\n".join(lines)


def targets_of(verdicts: Sequence[Verdict], compiler: str) -> list[str]:
    return list(dict.fromkeys(v.target for v in verdicts if v.compiler == compiler))


def rate(verdicts: Iterable[Verdict]) -> str:
    counts = Counter(v.outcome == SURVIVED for v in verdicts)
    return f"{counts[False]}/{counts.total()}" if counts.total() else ""


def percent(verdicts: Sequence[Verdict]) -> str:
    killed = sum(v.outcome != SURVIVED for v in verdicts)
    return f"{100 * killed / len(verdicts):.0f} %"


def outcome_table(verdicts: Sequence[Verdict]) -> str:
    """Who noticed: the checker, late mode, or wrong values alone."""
    columns = ["mutants", "checker", "wrong values", "late mode", "warning only", "survived"]
    lines = ["| compiler | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for compiler in COMPILERS:
        counts = Counter(v.outcome for v in verdicts if v.compiler == compiler)
        cells = [counts.total(), *(counts[o] for o in (CHECKER, VALUES, LATE, WARNED, SURVIVED))]
        lines.append(f"| {compiler} | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def survivor_table(verdicts: Sequence[Verdict]) -> str:
    """Survivors by the reason why they are right programs, or why nobody notices."""
    groups: dict[str, list[Verdict]] = {}
    for survivor in (v for v in verdicts if v.outcome == SURVIVED):
        groups.setdefault(reason_of(survivor), []).append(survivor)
    lines = ["| survivors | of | where | why |", "|---|---|---|---|"]
    for reason, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        kinds = Counter(v.kind for v in group)
        where = Counter(f"{v.compiler} {v.target}" for v in group)
        what = ", ".join(f"{k} ({n})" for k, n in kinds.items())
        places = ", ".join(f"{k} ({n})" for k, n in where.items())
        lines.append(f"| {len(group)} | {what} | {places} | {reason} |")
    return "\n".join(lines)


TABLES = {"kinds": kind_table, "outcomes": outcome_table, "survivors": survivor_table}


def read_record() -> list[Verdict]:
    return [Verdict(**entry) for entry in json.loads(RECORD.read_text())]


def with_tables(text: str, verdicts: Sequence[Verdict]) -> str:
    """The README with what stands between the marks of each table made anew."""
    for name, table in TABLES.items():
        marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
        text = re.sub(
            f"{marks[0]}\n.*?{marks[1]}",
            lambda _, table=table, marks=marks: f"{marks[0]}\n{table(verdicts)}\n{marks[1]}",
            text,
            flags=re.DOTALL,
        )
    return text


def main() -> None:
    """Runs all, writes the record and the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    jobs = parser.parse_args().jobs
    portions = [
        (number, first)
        for number, subject in enumerate(subjects())  # compiled here, for all processes
        for first in range(0, len(list(mutants(subject.text))), PORTION)
    ]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        done = tqdm(pool.map(verdicts_of, *zip(*portions, strict=True)), total=len(portions))
        found = list(chain.from_iterable(done))
    lines = ",\n".join(json.dumps(asdict(v)) for v in found)
    RECORD.write_text(f"[\n{lines}\n]\n")
    README.write_text(with_tables(README.read_text(), found))
    print(outcome_table(found))
    print(kind_table(found))


if __name__ == "__main__":
    main()
