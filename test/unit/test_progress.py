"""What a process that dies is said to have been doing, by several threads as well."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from tilec.compile import progress
from tilec.messages.diagnostics import Location


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_nothing_is_kept_unless_shared() -> None:
    progress.at("the parser")
    assert progress.last() is None


def test_what_is_left_out_is_as_before() -> None:
    place = Location("kernel.tile", 3)
    with progress.shared():
        progress.at("the parser", place, is_text=True)
        progress.at("'infer-layouts'")
        assert progress.last() == progress.Progress("'infer-layouts'", place, is_text=True)
    assert progress.last() is None


def test_threads_do_not_tear_or_mix_entries(eager_threads: None) -> None:
    """Each thread compiles a file of its own; entries are of very different lengths."""
    wrong: list[object] = []

    def compile_files(number: int) -> None:
        place = Location(f"{'long' * 200 * number}{number}.tile", number + 1)
        progress.at(f"begin {number}", place)
        for _ in range(300):
            progress.at(f"pass {number}")
            try:
                seen = progress.last()
            except ValueError as error:  # a part of an entry
                wrong.append(error)
                return
            of = seen and seen.place and seen.place.file.removesuffix(".tile")[-1:]
            if seen is None or seen.doing[-1] != of:
                wrong.append(seen)

    with progress.shared():
        threads = [threading.Thread(target=compile_files, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
