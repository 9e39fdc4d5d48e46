"""What the notations of shared-memory and tensor-memory layouts have in common: nested lists."""

from __future__ import annotations

import re


def nested_groups(text: str, word: str) -> list[tuple[str, ...]] | None:
    """Reads `((16,4),64)` as [("16", "4"), ("64",)], None where it is malformed.

    `word`: the pattern of what stands between parentheses and commas.
    """
    tokens = re.findall(rf"{word}|[(),]", text)
    if "".join(tokens) != text or tokens[:1] != ["("] or tokens[-1:] != [")"]:
        return None
    groups: list[tuple[str, ...]] = []
    nested: list[str] | None = None
    for token in tokens[1:-1]:
        if token == "(" and nested is None:
            nested = []
        elif token == ")" and nested:
            groups.append(tuple(nested))
            nested = None
        elif token not in "()," and nested is not None:
            nested.append(token)
        elif token not in "(),":
            groups.append((token,))
        elif token != ",":
            return None
    return groups if nested is None else None
