"""What people are told of the mistakes in `*_cases.py`, word for word, and how short it is.

`pytest test/mistakes --update-golden` writes `messages.txt` anew: read the diff.
"""

from __future__ import annotations

import array_cases
import habit_cases
import launch_cases
import pytest
import python_cases
import tile_cases
from golden_messages import Messages

MESSAGES = Messages(
    "messages.txt", array_cases, habit_cases, launch_cases, python_cases, tile_cases
)


@pytest.mark.parametrize("name", MESSAGES.programs)
def test_a_mistake_is_told(name: str, request: pytest.FixtureRequest) -> None:
    MESSAGES.check(name, request)


def test_the_file_has_these_programs(request: pytest.FixtureRequest) -> None:
    MESSAGES.check_file(request)
    assert len(MESSAGES.programs) >= 110
