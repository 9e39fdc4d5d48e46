"""Winners kept in one JSON file, which may be copied to another machine or checked into a project.

An entry is found by the digest of its key and trusted only if the key in it is the one asked for
and its winner is among today's candidates; anything else counts as missing, and is tuned anew.
Files are replaced as a whole, so readers need no lock; writers that add to one file at once need
`filelock`, and without it the last one wins.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilec.runtime.atomic_file import write_atomically
from tilec.runtime.cache import default_cache, key_digest
from tilec.runtime.file_lock import locked
from tilec.runtime.foreign_files import parse_json, read_regular
from tilec.tuning.candidates import Candidate
from tilec.tuning.outcome import Outcome, Trial

FORMAT = "tilec tuning 1"
FILE_NAME = "tuning.json"
_LOCK_TIMEOUT_S = 30.0
"""Longest wait for another process that writes winners, which takes milliseconds: then it is gone
or hangs."""

Key = Mapping[str, Any]


def default_file() -> Path | None:
    """The file named by TILEC_TUNING_FILE, else one beside the compiled kernels; None with
    TILEC_CACHE=0."""
    named = os.environ.get("TILEC_TUNING_FILE")
    if named:
        return Path(named)
    cache = default_cache()
    return None if cache is None else cache.directory / FILE_NAME


class WinnerFile:
    """The entries of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, key: Key, candidates: Sequence[Candidate]) -> Outcome | None:
        """The kept outcome of `key`, None unless it can be trusted."""
        entry = self._entries().get(key_digest(key).hex())
        if not isinstance(entry, dict) or entry.get("key") != json.loads(json.dumps(key)):
            return None
        try:
            return _outcome(key, entry, candidates)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def keep(self, key: Key, outcome: Outcome) -> None:
        """Adds or replaces the entry of `key`; warns and goes on where the disk refuses it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self.path, _LOCK_TIMEOUT_S):
                entries = self._entries()
                entries[key_digest(key).hex()] = _entry(key, outcome)
                self._write(entries)
        except OSError as error:
            warnings.warn(f"tilec: cannot keep what tuning found: {error}", stacklevel=2)

    def add(self, text: bytes) -> int:
        """Adds the entries of another such file's text that are missing here; how many they are.

        ValueError for other text, OSError where the disk refuses it.
        """
        content = parse_json(text)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"no {FORMAT!r} file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path, _LOCK_TIMEOUT_S):
            known = self._entries()
            merged = {**content.get("entries", {}), **known}
            self._write(merged)
        return len(merged) - len(known)

    def _write(self, entries: Mapping[str, Any]) -> None:
        text = json.dumps({"format": FORMAT, "entries": entries}, indent=1)
        write_atomically(self.path, text.encode())

    def _entries(self) -> dict[str, Any]:
        try:
            content = parse_json(read_regular(self.path)[0])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            warnings.warn(
                f"tilec: {self.path} is not readable ({error}); tuning anew", stacklevel=3
            )
            return {}
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            warnings.warn(f"tilec: {self.path} is no {FORMAT!r} file; tuning anew", stacklevel=3)
            return {}
        entries = content.get("entries")
        return entries if isinstance(entries, dict) else {}


def _entry(key: Key, outcome: Outcome) -> dict[str, Any]:
    return {
        "key": key,
        "winner": outcome.winner.fingerprint,
        "why": outcome.why,
        "seconds": round(outcome.seconds, 3),
        "notes": list(outcome.notes),
        "trials": [_trial_entry(trial) for trial in outcome.trials],
    }


_NUMBERS = ("predicted_us", "measured_us", "low_us", "high_us")


def _trial_entry(trial: Trial) -> dict[str, Any]:
    fields: dict[str, Any] = {"candidate": trial.candidate.fingerprint}
    for name in _NUMBERS:
        value = getattr(trial, name)
        fields[name] = None if value is None else round(value, 3)
    return fields | {"bound": trial.bound, "rejected": trial.rejected}


def _outcome(key: Key, entry: Mapping[str, Any], candidates: Sequence[Candidate]) -> Outcome | None:
    known = {_frozen(candidate.fingerprint): candidate for candidate in candidates}
    winner = known.get(_frozen(entry["winner"]))
    if winner is None:
        return None
    trials = []
    for fields in entry["trials"]:
        candidate = known.get(_frozen(fields["candidate"]))
        if candidate is not None:
            numbers = [_number(fields[name]) for name in _NUMBERS]
            predicted, measured, low, high = numbers
            rejected, bound = str(fields["rejected"]), str(fields["bound"])
            trials.append(Trial(candidate, predicted, bound, measured, low, high, rejected))
    return Outcome(
        str(key["kernel"]),
        str(key["device"]),
        winner,
        "file",
        "kept from an earlier tuning",
        tuple(trials),
        float(entry["seconds"]),
        tuple(map(str, entry["notes"])),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _frozen(fingerprint: Mapping[str, str]) -> Any:
    return tuple(sorted(fingerprint.items()))
