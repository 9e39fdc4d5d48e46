"""Jobs that raise, die or hang cost themselves alone."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from worker_pool import run_jobs


def act(job: str) -> str:
    """Does what the job says; what it returns tells in which process."""
    if job == "raise":
        raise ValueError("a wrong job")
    if job == "die":
        os._exit(7)
    if job == "hang":
        time.sleep(600)
    return f"{job} {os.getpid()}"


def test_raising_dying_and_hanging_jobs_do_not_stop_the_others() -> None:
    jobs = ["one", "raise", "two", "die", "three", "hang", "four"]
    start = time.monotonic()
    found = {r.job: r for r in run_jobs(act, jobs, timeout=2)}
    assert time.monotonic() - start < 60
    assert list(found) == jobs
    assert "ValueError: a wrong job" in found["raise"].error
    assert "exit code 7" in found["die"].error
    assert found["hang"].error == "killed after 2 s"
    pids = [found[job].value.split()[1] for job in ("one", "two", "three", "four")]
    assert len(set(pids)) == 4, "a process that a job left broken was used again"


def test_processes_are_kept_unless_spent() -> None:
    kept = [r.value.split()[1] for r in run_jobs(act, ["a", "b"], timeout=30)]
    assert kept[0] == kept[1]
    spent = run_jobs(act, ["a", "b"], timeout=30, spent=lambda value: value.startswith("a"))
    first, second = [r.value.split()[1] for r in spent]
    assert first != second


def test_jobs_after_the_deadline_are_not_begun() -> None:
    (result,) = run_jobs(act, ["late"], timeout=30, deadline=time.monotonic() - 1)
    assert result.value is None
    assert result.error.startswith("not begun")
