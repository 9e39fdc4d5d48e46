"""The same of `jax_cases.py`, which need jax."""

from __future__ import annotations

import pytest
from golden_messages import Messages

pytest.importorskip("jax")

import jax_cases

MESSAGES = Messages("jax_messages.txt", jax_cases, most=30)
"""Lines of the framework's own are among those of a traceback."""


@pytest.mark.parametrize("name", MESSAGES.programs)
def test_a_mistake_is_told(name: str, request: pytest.FixtureRequest) -> None:
    MESSAGES.check(name, request)


def test_the_file_has_these_programs(request: pytest.FixtureRequest) -> None:
    MESSAGES.check_file(request)
