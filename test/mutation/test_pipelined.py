"""Mutants of the pipelined kernels: killed, or one of the survivors README.md explains."""

from __future__ import annotations

from functools import cache
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
SUBJECTS = {subject.name: subject for subject in subjects()}
DROPPED, WEAKENED = "drop a wait", "weaken a wait by one"
REUSED = {"persistent, 3 stages": set(), "dot and sum, 4 stages": {WEAKENED}}
"""Kernels that use shared memory again behind the loop, and which waits survive even there."""


@cache
def verdicts_of(name: str, everything: bool) -> list[Verdict]:
    """A kernel's mutants, judged."""
    return list(mutants(SUBJECTS[name], everything=everything))


@pytest.mark.parametrize("name", SUBJECTS)
def test_unbroken_kernels_pass(name: str) -> None:
    """A judge that finds fault with everything would kill every mutant."""
    job = compile_to_gpu_tile(SUBJECTS[name])
    assert "cp.async" in finish(copy_of(job))
    assert judge(SUBJECTS[name], job, Mutation(name, "none", 0, "")).outcome == "survived"


@pytest.mark.share(2)
@pytest.mark.parametrize("name", SUBJECTS)
def test_only_waits_behind_loops_survive(name: str, every_mutant: bool) -> None:
    """Waits in loops are needed to the last group."""
    verdicts = verdicts_of(name, every_mutant)
    in_loops = [v for v in verdicts if "wait" in v.mutation.kind and v.mutation.place == "loop"]
    assert [v.outcome for v in in_loops] == ["finding"] * 2
    survivors = [v.mutation for v in verdicts if v.outcome != "finding"]
    assert {v.outcome for v in verdicts} <= {"finding", "survived"}
    assert {m.place for m in survivors} <= {"behind"}
    assert {m.kind for m in survivors} == REUSED.get(name, {DROPPED, WEAKENED})


def test_the_readme_has_the_table(every_mutant: bool) -> None:
    if every_mutant:
        assert table([v for name in SUBJECTS for v in verdicts_of(name, True)]) in README
    assert set(KINDS) <= {line.split("|")[1].strip() for line in README.splitlines() if "|" in line}
