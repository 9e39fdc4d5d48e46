"""Bars with the time that is left, one for each phase of tuning that takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tqdm import tqdm

SHOWN_AFTER_S = 2.0
"""Seconds: what is done sooner needs no bar."""

Step = Callable[[], Any]
"""Says that one more of a phase's parts is done."""

Phase = Callable[[str, int], AbstractContextManager[Step]]
"""What a phase does and in how many parts -> its bar, while it runs."""


class Progress:
    """The bars of one tuning. `shown`: whether there are any; None for where standard error is a
    terminal."""

    def __init__(self, kernel: str, shown: bool | None) -> None:
        self._kernel = kernel
        self._disabled = None if shown is None else not shown

    @contextmanager
    def phase(self, what: str, total: int) -> Iterator[Step]:
        """Shows how far a phase is, and the time left, once it takes longer than SHOWN_AFTER_S."""
        with tqdm(
            total=total,
            desc=f"tuning {self._kernel}: {what}",
            unit="step",
            delay=SHOWN_AFTER_S,
            disable=self._disabled,
            leave=False,
            file=sys.stderr,
        ) as bar:
            yield bar.update
