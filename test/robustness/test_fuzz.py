"""A bounded share of what `fuzz.py` does without end: programs between passes, broken."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from corpus import stages_of
from fuzz import complaint, received, refused_by_ptxas
from mutations import mutant

from tilec.target import TARGETS

MUTANTS = 8


@pytest.mark.share(3)
@pytest.mark.parametrize("target", TARGETS)
def test_broken_stages(target: str, tmp_path: Path) -> None:
    subjects = list(stages_of("softmax", target))
    for subject in random.Random(target).sample(subjects, 2):
        contents = [mutant(subject.text, f"{subject.name} {i}").encode() for i in range(MUTANTS)]
        for content, done in zip(
            contents, received(subject.command, contents, tmp_path), strict=True
        ):
            wrong = complaint(done) or refused_by_ptxas(subject, content, done)
            assert wrong is None, f"{subject.name}: {wrong}\n{content.decode()}"
