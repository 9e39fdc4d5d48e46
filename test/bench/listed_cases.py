"""Lists of cases that goals are set for, for `drawn.py --listed`; only their data is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import layer_cases
from attention_cases import TOKENS, AttentionCase
from drawn_cases import Drawn

HEADS = {64: 32, 128: 16, 256: 8}
"""Elements of a head -> heads."""
LENGTHS = (1024, 2048, 4096, 8192, 16384)


def _attention() -> Iterator[Any]:
    for head, causal, length in itertools.product(HEADS, (False, True), LENGTHS):
        yield AttentionCase("bf16", head, length, causal, HEADS[head], TOKENS // length)


def _gradients() -> Iterator[Any]:
    for head, causal, length in itertools.product((64, 128), (False, True), LENGTHS):
        heads = HEADS[head]
        yield layer_cases.attention_backward(TOKENS // length, heads, length, head, causal, heads)


LISTS: Mapping[str, Callable[[], Iterator[Any]]] = {
    "attention": _attention,
    "gradients": _gradients,
}


def listed(names: Sequence[str]) -> list[Drawn]:
    """All cases of the lists `names`, numbered."""
    found = [(name, case) for name in names for case in LISTS[name]()]
    return [Drawn(number, name, case) for number, (name, case) in enumerate(found)]
