"""The file of `tilec/costs/rates` that a fit comes to, as Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import inf

from tilec.costs.rates import Rates
from tilec.costs.rates.streams import StreamRates
from tilec.refit.record import Run
from tilec.refit.scores import Score

_TEXT = '''"""Rates of `{target}`, fitted by `tilec refit` to timings on {devices}, {date}.

Seeds of products fitted to: {fitted}; others, {tested}:
before, {before};
now, {after}.

{versions}.
"""

from __future__ import annotations
{infinity}
from tilec.costs.rates.fields import Rates
from tilec.costs.rates.streams import STREAMS

RATES = Rates(
{rows}
)
'''


def rates_text(
    rates: Rates,
    runs: Sequence[Run],
    record: str,
    date: str,
    versions: Mapping[str, str],
    before: Score,
    after: Score,
) -> str:
    """The module. `record`: the name of the file with the timings. `before`, `after`: how the rates
    that stood there, and these, did on products that they were not fitted to."""
    values = {field.name: getattr(rates, field.name) for field in fields(rates)}
    values |= {"record": record, "shifted": dict(rates.shifted)}
    rows = [f"    {name}={_shown(value)}," for name, value in values.items()]
    seeds = {
        use: ", ".join(str(run.seed) for run in runs if run.use == use) for use in ("fit", "test")
    }
    return _TEXT.format(
        target=runs[0].machine.target.name,
        devices=", ".join(dict.fromkeys(run.machine.name for run in runs)),
        date=date,
        fitted=seeds["fit"],
        tested=seeds["test"],
        before=_wrapped(before),
        after=_wrapped(after),
        versions=", ".join(f"{name} {version}" for name, version in versions.items()),
        infinity="\nfrom math import inf\n" if inf in values.values() else "",
        rows="\n".join(rows),
    )


def _wrapped(score: Score) -> str:
    """A score in two lines of a docstring."""
    return str(score).replace("; ", ";\n")


def _shown(value: object) -> str:
    """A number as a person writes it: 45_000, not 45000.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return f"{value:_}" if value >= 10_000 else str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(one)}" for key, one in value.items()) + "}"
    if isinstance(value, StreamRates):
        return "STREAMS"  # a module of their own, and a fit of their own
    return f'"{value}"' if isinstance(value, str) else repr(value)
