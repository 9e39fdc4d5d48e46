"""Files with what people are told of mistakes, one a framework that is needed to make them."""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import cases
import pytest

HERE = Path(__file__).parent
MOST_LINES = 11
"""Of a traceback with its message, in a script whose one line made the mistake."""


class Messages:
    """A file of messages. `programs`: those of these modules, by name; `most`: lines of a
    traceback."""

    def __init__(self, name: str, *modules: ModuleType, most: int = MOST_LINES) -> None:
        self.path = HERE / name
        names = {module.__name__ for module in modules}
        self.programs: dict[str, Any] = {
            name: program for name, program in cases.CASES.items() if program.__module__ in names
        }
        self.most = most

    def kept(self) -> dict[str, str]:
        """The messages of the file, by name."""
        if not self.path.exists():
            return {}
        parts = re.split(r"^== (\w+)\n", self.path.read_text(), flags=re.MULTILINE)[1:]
        found = zip(parts[::2], parts[1::2], strict=True)
        return {name: text.rstrip("\n") for name, text in found}

    def told(self, name: str) -> tuple[str, int]:
        """The type and the message of what a program raises, and how many lines its traceback
        has."""
        try:
            self.programs[name]()
        except Exception as error:
            text = f"{type(error).__name__}: {error}".replace(f"{HERE}/", "")
            # The program's own frame is the script's; those of these files are not there in one.
            frames = traceback.format_tb(error.__traceback__)[1:]
            lines = 1 + sum(frame.count("\n") for frame in frames) + len(text.splitlines())
            return re.sub(r" \(PTX line.*\)| at 0x[0-9a-f]+", "", text), lines
        raise AssertionError(f"{name} is no mistake")

    def check(self, name: str, request: pytest.FixtureRequest) -> None:
        """A program is told what the file has, in few lines."""
        text, lines = self.told(name)
        assert lines <= self.most + ("torch._dynamo" in sys.modules), text  # calls look out for it
        if not request.config.getoption("--update-golden"):
            assert text == self.kept().get(name)

    def check_file(self, request: pytest.FixtureRequest) -> None:
        """The file has these programs and no other."""
        if request.config.getoption("--update-golden"):
            every = {name: self.told(name)[0] for name in self.programs}
            texts = (f"== {name}\n{text}\n\n" for name, text in every.items())
            self.path.write_text("".join(texts))
        assert list(self.kept()) == list(self.programs)
