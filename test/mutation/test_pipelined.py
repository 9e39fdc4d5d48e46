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
EQUIVALENT = {"gemm, 2 stages": {"drop a wait", "weaken a wait by one"}}
"""Kernels in which a wait behind the loop has nothing to wait for: README.md."""


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
def test_all_are_found(name: str, every_mutant: bool) -> None:
    """Waits are needed to the last group, behind loops as well: a CTA may not end before."""
    survivors = [v for v in verdicts_of(name, every_mutant) if v.outcome != "finding"]
    assert {(v.outcome, v.mutation.place) for v in survivors} <= {("survived", "behind")}
    assert {v.mutation.kind for v in survivors} <= EQUIVALENT.get(name, set())
    assert not every_mutant or {v.mutation.kind for v in survivors} == EQUIVALENT.get(name, set())


def test_the_readme_has_the_table(every_mutant: bool) -> None:
    if every_mutant:
        assert table([v for name in SUBJECTS for v in verdicts_of(name, True)]) in README
    assert set(KINDS) <= {line.split("|")[1].strip() for line in README.splitlines() if "|" in line}
