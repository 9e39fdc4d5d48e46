"""Why mutants survive: each is a right program still, or breaks a rule that is only warned of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol


class Survivor(Protocol):
    """What a rule looks at."""

    @property
    def subject(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def instruction(self) -> str: ...


@dataclass(frozen=True)
class Rule:
    """Patterns of the subject, the kind and the instruction; all must match."""

    subject: str
    kind: str
    instruction: str
    reason: str


RULES = (
    Rule(
        "tilec", "init fence dropped", r"fence\.mbarrier_init",
        "for clusters of one CTA the bar.sync behind it is enough: copies signal mbarriers through "
        "the generic proxy (PTX ISA, cp.async.bulk); tilec puts it for what the CUDA guide asks",
    ),
    Rule(
        r"tilec gemm(, \d stages| in parts) sm_(90a|100a)",
        "((arrive|retry|tcgen05.fence|mbarrier (wait|init)) dropped|mbarrier count raised)", "",
        "one program: nobody waits for what it gives back at its end, no sum is read before a "
        "product; the specialised product, with five programs a CTA, needs each of them",
    ),
    Rule(
        r"tilec gemm, \d stages sm_(90a|100a)", "(wait|commit) (dropped|weakened by one)",
        r"bulk\.(wait_group\.read 1|commit_group)",
        "one program: no store before its own two is still read, and the end waits for all; with "
        "seven programs on three CTAs each wait and each commit is needed",
    ),
    Rule(
        "tilec .*(gemm|attention).* sm_100a",
        "(mbarrier wait|retry) dropped|mbarrier parity flipped",
        r"mbarrier\.try_wait",
        "the loading role's wait at its end, that commits have given slots back: the commit of "
        "the sums comes behind those, and the role that stores waits for it",
    ),
    Rule(
        "tilec specialised attention", "mbarrier count raised", "",
        "the barrier that gives back the second slot of queries, which the fourth program of a CTA "
        "would wait for: there are three",
    ),
    Rule(
        "tilec specialised attention sm_100a", "tcgen05.fence dropped", "after_thread_sync",
        "another fence of the same threads covers it, behind the meeting in front of the product "
        "before, or behind the wait for the last sum: one alone orders what all of them do",
    ),
    Rule(
        "tilec specialised attention", "wgmma.fence dropped", "",
        "another fence covers it: the two products of a rotated iteration are issued one behind "
        "the other, and no register that they take is touched between their fences, nor, where the "
        "loop turns once, between the first's and the one in front of the loop",
    ),
    Rule(
        "nvcc pipelined_copy", "barrier", r"bar\.sync",
        "each thread exchanges with its neighbour in the warp only, so that no other warp is met",
    ),
    Rule(
        r"Triton .*(tma|sm_100a)", "barrier", r"(bar|barrier)\.sync",
        "Triton meets before and after every step that one thread drives (mbarrier.init, arrive, "
        "copies, products, inval); mbarriers, or the next such meeting, order the same accesses",
    ),
    Rule(
        "Triton", "barrier", r"bar\.sync",
        "before the first use of shared memory, or behind the last one, or right in front of "
        "another meeting or of a wgmma wait that already orders the accesses",
    ),
    Rule(
        "Triton", "commit dropped", r"cp\.async\.commit_group",
        "the copies become part of the next group, which the same wait covers",
    ),
    Rule(
        "Triton .*sm_100a", "wait dropped", r"tcgen05\.wait::st",
        "another tcgen05.wait::st of the same warps stands between the store and the product",
    ),
    Rule(
        "Triton attention", "(mbarrier wait|retry) dropped", r"mbarrier\.try_wait",
        "the wait for a later commit of the same thread, which covers its earlier products too, "
        "lies in between",
    ),
    Rule(
        "Triton attention", "proxy fence dropped", r"fence\.proxy\.async",
        "the tile was filled by cp.async: the missing fence is a warning, which the unbroken "
        "kernel has at the same accesses",
    ),
    Rule(
        r"Triton .*\.ws", "8 registers more", r"setmaxnreg\.dec",
        "nobody asks for what is given back: the other warps have 256 registers a thread at launch",
    ),
    Rule(
        r"Triton .*\.ws", "((mbarrier wait|retry|arrive) dropped|mbarrier count raised)", "",
        "an mbarrier of which only the phase before the first is waited for (it is over at once), "
        "and which nobody waits for after the arrival",
    ),
)  # fmt: skip


def reason_of(survivor: Survivor) -> str:
    """Raises KeyError for a survivor that nobody has explained."""
    for rule in RULES:
        if (
            re.match(rule.subject, survivor.subject)
            and re.match(rule.kind, survivor.kind)
            and re.search(rule.instruction, survivor.instruction)
        ):
            return rule.reason
    raise KeyError(f"{survivor.subject}: {survivor.kind}: {survivor.instruction}")
