"""The page of unconfirmed facts is the list that `test/gpu/test_blackwell_device.py` tests.

`python test/unit/test_blackwell_facts.py` writes its table anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "test" / "gpu"))

from blackwell_facts import FACTS, Fact  # noqa: E402

PAGE = ROOT / "test" / "gpu" / "BLACKWELL.md"
HEAD = "| fact | what is believed | grounds | used in |"


def table() -> str:
    """The rows of the page."""
    rows = [
        f"| {f.name} | {f.statement} | {f.grounds} | `{f.used_in.replace(', ', '`, `')}` |"
        for f in FACTS
    ]
    return "\n".join([HEAD, "|---|---|---|---|", *rows]) + "\n"


def test_the_page_lists_the_facts() -> None:
    assert table() in PAGE.read_text()


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_what_it_names_exists(fact: Fact) -> None:
    for place in fact.used_in.replace(";", ",").split(","):
        words = place.split()
        if words and words[0].endswith(".py"):
            text = (ROOT / words[0]).read_text()
            assert len(words) < 2 or words[1] in text


if __name__ == "__main__":
    text = PAGE.read_text()
    start = text.index(HEAD)
    end = text.index("\n\n", start) + 1 if "\n\n" in text[start:] else len(text)
    PAGE.write_text(text[:start] + table() + text[end:])
