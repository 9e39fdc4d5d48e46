"""What tuning found: each candidate with its predicted and measured time, or why it is out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from tilec.costs.model import Prediction
from tilec.messages.report import Report
from tilec.records import dataclass
from tilec.tuning.candidates import Candidate


@dataclass(frozen=True)
class Trial:
    """One candidate. `predicted_us` and `measured_us`: None where there is none.

    `low_us`, `high_us`: 10th and 90th percentile of the measurements. `rejected`: why it cannot be
    the winner ("not timed: ...", the compiler's message, a wrong result), else empty.
    """

    candidate: Candidate
    predicted_us: float | None = None
    bound: str = ""
    measured_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    rejected: str = ""

    def predicted(self, prediction: Prediction) -> Trial:
        """The trial with a prediction, or rejected where that says it is impossible."""
        if prediction.impossible:
            return replace(self, rejected=prediction.impossible)
        return replace(self, predicted_us=prediction.us, bound=prediction.bound)


@dataclass(frozen=True)
class Outcome:
    """The way in which a winner was chosen. `source`: "measured", "model", "file" or "default".

    `why`: in words. `seconds`: what the choice took.
    """

    kernel: str
    device: str
    winner: Candidate
    source: str
    why: str
    trials: tuple[Trial, ...] = ()
    seconds: float = 0.0
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def best(self) -> Trial | None:
        """The winner's trial, if it had one."""
        return next((t for t in self.trials if t.candidate == self.winner), None)

    def summary(self) -> str:
        """One line: what was chosen, against the default."""
        line = f"{self.kernel} on {self.device}: {self.winner.label} ({self.why})"
        best, default = self.best, self.trials[0] if self.trials else None
        if best and default and best.measured_us and default.measured_us:
            line += f": {best.measured_us:.1f} us, the default {default.measured_us:.1f} us"
        return line

    def report(self) -> str:
        """The summary, notes, and a line a candidate: the fastest first, the rejected last."""
        lines = [self.summary(), *(f"  note: {note}" for note in self.notes)]
        ordered = sorted(self.trials, key=_rank)
        width = max((len(t.candidate.label) for t in ordered), default=0)
        lines += [f"  {t.candidate.label:{width}}  {_words(t)}" for t in ordered]
        return Report("\n".join(lines))


def _rank(trial: Trial) -> tuple[bool, bool, float, float]:
    infinite = float("inf")
    return (
        trial.measured_us is None,
        bool(trial.rejected) and trial.predicted_us is None,
        trial.measured_us or infinite,
        trial.predicted_us or infinite,
    )


def _words(trial: Trial) -> str:
    parts: list[str] = []
    if trial.measured_us is not None:
        parts.append(f"{trial.measured_us:9.1f} us ({trial.low_us:.1f} to {trial.high_us:.1f})")
    if trial.predicted_us is not None:
        parts.append(f"predicted {trial.predicted_us:.1f} us, bound by {trial.bound}")
    if trial.rejected:
        parts.append(trial.rejected)
    return "; ".join(parts)
