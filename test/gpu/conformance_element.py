"""Cases of one element a thread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from conformance_case import DTYPES, Case, Launch, Rule, draw, raw, seeded
from elementwise_ptx import kernel as elementwise_text

_SIZE = 2048
"""Elements of a case."""
DIRECTED = ("rn", "rz", "rm", "rp")
"""Modifiers of rounding."""


def each(
    family: str, name: str, body: str, inputs: str, outputs: Sequence[str | Rule] | str | Rule,
    size: int = _SIZE, target: str = "sm_90a", extra: str = "",
) -> Case:  # fmt: skip
    """A case of one element a thread. inputs: kinds for `draw`, separated by blanks.

    outputs: how each output compares; a bare name is bit for bit. What follows `#` in body names
    the outputs that are packed pairs.
    """
    many = [outputs] if isinstance(outputs, (str, Rule)) else list(outputs)
    rules = [Rule(out) if isinstance(out, str) else out for out in many]

    def make(seed: int) -> Launch:
        rng = seeded(name, seed)
        arrays = [raw(draw(kind, size, rng)) for kind in inputs.split()]
        results = [np.zeros(size, f"u{DTYPES[rule.dtype].itemsize}") for rule in rules]
        for mark in body_marks:  # "x2@N": output N holds pairs
            if mark.startswith("x2@") and int(mark[3:]) < len(results):
                results[int(mark[3:])] = np.zeros(size, "u4")
        text = elementwise_text(
            clean, [a.dtype for a in arrays], [r.dtype for r in results], extra
        ).replace(".target sm_90a", f".target {target}")
        return Launch(
            text, [*arrays, *results], grid=size // 128, block=128,
            rules={len(arrays) + i: rule for i, rule in enumerate(rules)},
        )  # fmt: skip

    clean, _, marks = body.partition("#")
    body_marks = marks.split()
    return Case(name, family, make)
