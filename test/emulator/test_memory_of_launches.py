"""The registers and memories of a launch go with it: nothing waits for Python's search for objects
that know each other."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from test_step_limit import COUNTED, ENDLESS

from tilec.runtime.emulator import EmulatorError, load, program
from tilec.runtime.emulator.execution.machine import Machine


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Machine]]]:
    """The machines that are made from now on, while Python searches for nothing."""
    found: list[weakref.ref[Machine]] = []

    class Noted(Machine):
        def __init__(self, *arguments: object) -> None:
            found.append(weakref.ref(self))
            super().__init__(*arguments)

    monkeypatch.setattr(program, "Machine", Noted)
    monkeypatch.setattr(program, "_LANES_PER_BATCH", 64 * 128)  # the last batch is shorter
    gc.disable()
    yield found
    gc.enable()


@pytest.mark.parametrize("mode", ["eager", "late", "check"])
def test_a_launch_that_ends(mode: str, made: list[weakref.ref[Machine]]) -> None:
    load(COUNTED).run("k", 200, 64, [np.zeros(1, np.uint32)], mode=mode)
    assert len(made) == 2
    assert [machine() for machine in made] == [None, None]


def test_a_launch_that_fails(made: list[weakref.ref[Machine]]) -> None:
    with pytest.raises(EmulatorError):
        load(ENDLESS).run("k", 200, 64, [np.zeros(1, np.uint32)], steps=3000)
    machine = made[-1]()
    assert machine is None or not vars(machine)
