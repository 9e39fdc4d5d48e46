"""The record of the PTX mutants: explained, shown in README.md, and still what happens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pytest
from ptx_kinds import KINDS, mutants
from ptx_mutants import (
    CHECKER,
    README,
    SURVIVED,
    Verdict,
    accesses,
    judge,
    pristine,
    read_record,
    verdict,
    with_tables,
)
from ptx_subjects import (
    fixture_subjects,
    gemm_of_many_programs,
    missing_tensor_fences,
    tilec_subjects,
)
from shares import share_of_each
from survivors import reason_of
from target_names import MAIN

RECORD = read_record()


def test_the_readme_has_the_tables() -> None:
    text = README.read_text()
    assert with_tables(text, RECORD) == text


def test_every_survivor_is_explained() -> None:
    survivors = [v for v in RECORD if v.outcome == SURVIVED]
    assert survivors
    for survivor in survivors:
        assert len(reason_of(survivor)) > 40
    with pytest.raises(KeyError, match=r"wgmma\.fence dropped"):
        reason_of(Verdict("Triton", "x", "sm_90a", "wgmma.fence dropped", 1, "", SURVIVED, ""))


SPARE = ("one program", "the loading role's wait at its end", "nobody asks for what is given")
"""How reasons begin that say that a kernel has no use for what it waits for or gives back."""


def test_kill_rates() -> None:
    """Whatever orders asynchronous work is found wherever it is needed; only meetings are not."""
    counts: dict[str, Counter[bool]] = {}
    needed = [v for v in RECORD if v.outcome != SURVIVED or not reason_of(v).startswith(SPARE)]
    for found in needed:
        counts.setdefault(found.kind, Counter())[found.outcome != SURVIVED] += 1
    rates = {kind: count[True] / count.total() for kind, count in counts.items()}
    assert set(rates) <= {kind.name for kind in KINDS}
    for kind in ("tcgen05.commit dropped", "mbarrier parity flipped", "mbarrier init dropped",
                 "8 registers more", "expect dropped", "expect 16 bytes more",
                 "expect 16 bytes less"):  # fmt: skip
        assert rates[kind] == 1, kind
    for kind in ("mbarrier count raised", "commit dropped", "retry dropped"):
        assert rates[kind] > 0.9, kind
    for kind in ("mbarrier wait dropped", "proxy fence dropped", "wait dropped"):
        assert rates[kind] > 0.9, kind
    assert rates["wgmma.fence dropped"] > 0.8
    rotated = "specialised attention"
    tilec = [v for v in needed if v.compiler == "tilec" and v.name != rotated]
    behind = {v.kind for v in tilec if v.outcome == SURVIVED}
    assert behind == {"init fence dropped"}
    several = [v for v in tilec if re.search("specialised|hopper|ping-pong|cluster", v.name)]
    assert {v.kind for v in several if v.outcome == SURVIVED} == {"init fence dropped"}
    assert not [v for v in several if v.outcome == SURVIVED and "cluster" in v.name]
    assert any(v.kind == "tcgen05.fence dropped" for v in several)
    assert any(v.kind == "8 registers more" for v in several)


TRITONS_FENCES = {
    "matmul.f16.nn.64x64x32.sm_100a": {("st", "mma"): 1, ("mma", "ld"): 1},
    "matmul_tma.64x64x32.nn.sm_100a": {("st", "mma"): 1, ("mma", "ld"): 1},
    "matmul_tma.128x128x64.nt.ws.sm_100a": {("st", "mma"): 1, ("mma", "ld"): 1},
    "attention.causal.sm_100a":
        {("st", "mma"): 6, ("mma", "ld"): 6, ("ld", "mma"): 12, ("mma", "st"): 6},
}  # fmt: skip


@pytest.mark.parametrize("case", TRITONS_FENCES)
def test_what_triton_leaves_out(case: str) -> None:
    """Fences between instructions that PTX does not pipeline; nothing is asked for the others."""
    assert missing_tensor_fences(case) == TRITONS_FENCES[case]


def sample() -> list[Verdict]:
    """For each kind and target one killed mutant of the fixtures, the kernels taking turns."""
    chosen: dict[tuple[str, str], Verdict] = {}
    burden: Counter[str] = Counter()
    for found in RECORD:
        key = found.kind, found.target
        if found.compiler == "tilec" or found.outcome == SURVIVED:
            continue
        if key not in chosen or burden[found.subject] < burden[chosen[key].subject] - 1:
            burden[found.subject] += 1
            chosen[key] = found
    return list(chosen.values())


SAMPLE = sample()


@pytest.mark.parametrize("name", sorted({v.subject for v in SAMPLE}))
def test_the_record_still_holds(name: str) -> None:
    (subject,) = (s for s in fixture_subjects() if str(s) == name)
    unbroken = pristine(subject)
    assert not [f for f in unbroken.check.findings if f.severity == "error"]
    wanted = {(v.kind, v.line): v for v in SAMPLE if v.subject == name}
    for mutant, text in mutants(subject.text):
        expected = wanted.pop((mutant.kind, mutant.line), None)
        if expected is not None:
            assert verdict(subject, mutant, unbroken, text) == expected
    assert not wanted


@pytest.mark.parametrize("target", MAIN)
def test_tilecs_own_synchronisation_is_needed(target: str, every_mutant: bool) -> None:
    """Of each kind (barriers, waits, commits, fences ...) the first, and one in forty; what
    survives must have a known reason."""
    broken = []
    for subject in tilec_subjects(target):
        unbroken = pristine(subject)
        assert unbroken.check.findings == ()
        broken += [(subject, unbroken, *one) for one in mutants(subject.text)]
    taken = share_of_each(broken, 40, lambda one: one[2].kind, everything=every_mutant)
    for subject, unbroken, mutant, text in taken:
        found = verdict(subject, mutant, unbroken, text)
        assert found.outcome != SURVIVED or reason_of(found)


def _without(text: str, numbers: Sequence[int]) -> str:
    return "\n".join("" if n in numbers else line for n, line in enumerate(text.split("\n"), 1))


def _covered(text: str, word: str, cover: str, between: str) -> list[tuple[int, int]]:
    """Lines with a word, each with the next one that has the cover, where nothing lies between."""
    found, waiting = [], None
    for number, line in enumerate(text.split("\n"), 1):
        if waiting is not None and cover in line:
            found.append((waiting, number))
        if word in line:
            waiting = number
        elif cover in line or between in line:
            waiting = None
    return found


@pytest.mark.parametrize(
    ("name", "word", "cover", "between"),
    [
        ("tilec hopper gemm sm_90a", "fence.mbarrier_init", "bar.sync", "mbarrier.try"),
        ("tilec gemm, 2 stages sm_100a", "fence.mbarrier_init", "bar.sync", "mbarrier.try"),
        ("tilec specialised attention sm_90a", "wgmma.fence", "wgmma.fence", "wgmma.wait"),
    ],
)
def test_what_covers_a_survivor(name: str, word: str, cover: str, between: str) -> None:
    """The argument for a fence that may go: without what covers it, too, its loss is found."""
    (subject,) = (s for s in tilec_subjects(name.split()[-1]) if str(s) == name)
    lines = {v.instruction for v in RECORD if v.subject == name and v.outcome == SURVIVED}
    assert any(word in line for line in lines)
    unbroken = pristine(subject)
    pairs = _covered(subject.text, word, cover, between)
    assert pairs
    for pair in pairs:
        assert judge(subject, unbroken, _without(subject.text, pair))[0] == CHECKER


def test_a_fence_that_others_cover_orders_what_they_do() -> None:
    """The argument for fences of tensor memory that may go: each alone is found to be missing where
    all others are."""
    (subject,) = (s for s in tilec_subjects("sm_100a") if s.name == "specialised attention")
    fences = [
        number for number, line in enumerate(subject.text.split("\n"), 1)
        if "tcgen05.fence::after_thread_sync" in line
    ]  # fmt: skip

    def found(dropped: Sequence[int]) -> set[tuple[str, int, int]]:
        return set(map(accesses, subject.run(_without(subject.text, dropped), "check").findings))

    covered = [number for number in fences if not found([number])]
    assert 0 < len(covered) < len(fences)
    every = found(fences)
    for number in covered:
        assert every - found([other for other in fences if other != number])


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_stores_of_a_second_program_wait_for_the_first_s(target: str) -> None:
    """The argument for waits and commits that one program does without: several need each."""
    subject = gemm_of_many_programs(target)
    unbroken, own = pristine(subject), ("bulk.wait_group.read 1;", "bulk.commit_group;")
    found = [
        pair for pair in mutants(subject.text) if _line(subject.text, pair[0].line).endswith(own)
    ]
    assert len(found) == 6  # two waits, dropped and weakened, and two commits
    for _, text in found:
        assert judge(subject, unbroken, text) == (CHECKER, "race")


def _line(text: str, number: int) -> str:
    return text.split("\n")[number - 1].strip()
