"""A bounded share of what `fuzz.py` does without end: programs between passes, broken."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from corpus import EXAMPLES, STAGED, Subject, stages_of
from fuzz import Done, complaint, received, refused_by_ptxas
from mutations import mutant

from tilec.hardware.target import TARGETS

MUTANTS = 8
WEIGHTS = Path(__file__).parent / "programs" / "weights.tile"


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


def test_rings_of_a_program_between_passes_are_its_authors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products that nothing waits for before their slot is given back: text no check of a level
    sees, and the rings show it once roles are there."""
    monkeypatch.setenv("TILEC_CHECK", "1")  # whether or not this case is in a share
    name = "attention sm_90a insert-async-copies"
    (subject,) = (one for one in stages_of("attention", "sm_90a") if one.name == name)
    lines = subject.text.splitlines()
    waits = [i for i, line in enumerate(lines) if "gpu_tile.wgmma_wait" in line]
    last = lines[waits[-1]]
    assert "{pending = 0 : i32}" in last
    lines[waits[-1]] = last.replace("pending = 0", "pending = 1")
    (done,) = received(subject.command, ["\n".join(lines).encode()], tmp_path)
    assert complaint(done) is None
    assert done.code == 1
    assert "the program came in between passes" in done.errors


def test_kernels_between_passes_are_there() -> None:
    """`fuzz.py` compiles them when it begins; `test_broken_stages` compiles one of them alone."""
    for file, _, _ in STAGED.values():
        path, _, name = file.partition(":")
        assert f"def {name}(" in (EXAMPLES / path).read_text()


def test_what_ptxas_says_of_inline_ptx_is_said_to_its_author() -> None:
    subject = Subject("weights", WEIGHTS.read_text(), ("compile", "-", "--target", "sm_80"))
    refused = Done(0, "no PTX", "")

    def said(old: str, new: str) -> str | None:
        assert old in subject.text
        return refused_by_ptxas(subject, subject.text.replace(old, new).encode(), refused)

    assert said("a hole", "another") is not None  # not a word for ptxas
    assert said('"=f,f"', '"=r,f"') is None
    assert said("add.f32 $0, $1, $1;", "word") is None
