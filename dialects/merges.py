"""How what several CTAs have of a value becomes one: by an operation, or as another value decides."""

from __future__ import annotations

from tilec.records import dataclass

SUMS = ("arith.addf", "arith.addi")
LESS = {"arith.minimumf": "olt", "arith.minnumf": "olt", "arith.minsi": "slt", "arith.minui": "ult"}
GREATER = {
    "arith.maximumf": "ogt",
    "arith.maxnumf": "ogt",
    "arith.maxsi": "sgt",
    "arith.maxui": "ugt",
}
EXTREMES = LESS | GREATER
"""Operations that give one of two numbers, and how that compares with the other."""
TURNED = {"olt": "ogt", "slt": "sgt", "ult": "ugt", "ogt": "olt", "sgt": "slt", "ugt": "ult"}
"""Strict comparisons, and the same of operands in the other order."""


@dataclass(frozen=True)
class Merge:
    """How a value is made of what an earlier and a later CTA have: by the operation `op` of both,
    or, where `by` is the number of a value, the later one if those of that compare so."""

    op: str
    by: int | None = None

    @classmethod
    def named(cls, name: str) -> Merge:
        """Reads what `name` gives."""
        op, _, by = name.partition(" ")
        return cls(op, int(by) if by else None)

    @property
    def name(self) -> str:
        """As IR has it: `arith.addf`, or `olt 0`."""
        return self.op if self.by is None else f"{self.op} {self.by}"


def wrong_merge(name: str, count: int) -> str:
    """What is wrong with the name of a merge, one of `count`; else nothing."""
    op, _, by = name.partition(" ")
    is_decided = op in TURNED and by.isdecimal() and int(by) < count
    if is_decided or (not by and op in (*SUMS, *EXTREMES)):
        return ""
    return f"no values merge by {name!r}: expected e.g. 'arith.addf', 'olt 0'"
