"""What people are told of the mistakes in `*_cases.py`, word for word, and how short it is.

`pytest test/mistakes --update-golden` writes `messages.txt` anew: read the diff.
"""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path

import array_cases  # noqa: F401
import cases
import launch_cases  # noqa: F401
import pytest
import python_cases  # noqa: F401
import tile_cases  # noqa: F401

HERE = Path(__file__).parent
MESSAGES = HERE / "messages.txt"
MOST_LINES = 11
"""Of a traceback with its message, in a script whose one line made the mistake."""


def told(name: str) -> tuple[str, int]:
    """The type and the message of what a program raises, and how many lines its traceback has."""
    try:
        cases.CASES[name]()
    except Exception as error:
        text = f"{type(error).__name__}: {error}".replace(f"{HERE}/", "")
        # The program's own frame is the script's; that of this file is not there in one.
        frames = traceback.format_tb(error.__traceback__)[1:]
        lines = 1 + sum(frame.count("\n") for frame in frames) + len(text.splitlines())
        return re.sub(r" \(PTX line.*\)", "", text), lines
    raise AssertionError(f"{name} is no mistake")


def kept() -> dict[str, str]:
    """The messages of the file, by name."""
    if not MESSAGES.exists():
        return {}
    parts = re.split(r"^== (\w+)\n", MESSAGES.read_text(), flags=re.MULTILINE)[1:]
    return {name: text.rstrip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.parametrize("name", cases.CASES)
def test_a_mistake_is_told(name: str, request: pytest.FixtureRequest) -> None:
    text, lines = told(name)
    assert lines <= MOST_LINES + ("torch._dynamo" in sys.modules), text  # which calls look out for
    if not request.config.getoption("--update-golden"):
        assert text == kept().get(name)


def test_the_file_has_these_programs(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        every = {name: told(name)[0] for name in cases.CASES}
        MESSAGES.write_text("".join(f"== {name}\n{text}\n\n" for name, text in every.items()))
    assert list(kept()) == list(cases.CASES)
    assert len(kept()) >= 60
