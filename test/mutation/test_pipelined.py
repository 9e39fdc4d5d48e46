"""Every mutant of the pipelined kernels: killed, or one of the survivors README.md explains."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipelined_mutants import (
    KINDS,
    Mutation,
    Verdict,
    compile_to_gpu_tile,
    copy_of,
    finish,
    judge,
    mutants,
    subjects,
    table,
)

README = Path(__file__).with_name("README.md").read_text()


@pytest.fixture(scope="module")
def verdicts(every_mutant: bool) -> list[Verdict]:
    return [v for subject in subjects() for v in mutants(subject, everything=every_mutant)]


def test_unbroken_kernels_pass() -> None:
    """A judge that finds fault with everything would kill every mutant."""
    for subject in subjects():
        job = compile_to_gpu_tile(subject)
        assert "cp.async" in finish(copy_of(job))
        assert judge(subject, job, Mutation(subject.name, "none", 0, "")).outcome == "survived"


@pytest.mark.parametrize(
    "kind", ["drop a sync", "drop a commit", "shift a slot by one", "drop a copy"]
)
def test_all_are_killed(kind: str, verdicts: list[Verdict]) -> None:
    outcomes = {v.outcome for v in verdicts if v.mutation.kind == kind}
    assert outcomes == {"finding"}


def test_waits_in_loops_are_needed_to_the_last_group(verdicts: list[Verdict]) -> None:
    waits = [v for v in verdicts if "wait" in v.mutation.kind and v.mutation.place == "loop"]
    assert len(waits) == 2 * len(subjects())
    assert {v.outcome for v in waits} == {"finding"}


def test_only_waits_behind_loops_survive(verdicts: list[Verdict]) -> None:
    """Where shared memory is used again behind the loop, even they are killed."""
    survivors = {v.mutation for v in verdicts if v.outcome == "survived"}
    assert {m.place for m in survivors} == {"behind"}
    assert {m.kind for m in survivors} == {"drop a wait", "weaken a wait by one"}
    dropped = {m.subject for m in survivors if m.kind == "drop a wait"}
    assert not dropped & {"persistent, 3 stages", "dot and sum, 4 stages"}


def test_the_readme_has_the_table(verdicts: list[Verdict], every_mutant: bool) -> None:
    if every_mutant:
        assert table(verdicts) in README
    assert set(KINDS) <= {line.split("|")[1].strip() for line in README.splitlines() if "|" in line}
