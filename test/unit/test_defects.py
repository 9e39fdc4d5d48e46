"""Each row of `test/DEFECTS.md` names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROWS = [
    line
    for line in (TESTS / "DEFECTS.md").read_text().partition("\n## Slow")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| defect |")
]
_TEST = re.compile(r"`([\w/-]+\.(?:py|mlir))(?:::(\w+))?`")


def test_every_row_names_what_holds_it() -> None:
    assert len(ROWS) > 40
    held = {row: _TEST.findall(row.split(" | ")[-1]) for row in ROWS}
    assert [row for row, named in held.items() if not named] == []
    gone = []
    for path, name in {test for named in held.values() for test in named}:
        text = (TESTS / path).read_text() if (TESTS / path).is_file() else ""
        found = f"def {name}(" in text if path.endswith(".py") else "RUN:" in text and not name
        gone += [] if found else [f"{path}::{name}"]
    assert gone == []
