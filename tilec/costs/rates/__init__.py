"""The numbers that predictions of time count with: `fields.py` says what each is, a file a target
has those fitted to timings, with their record, `others.py` what stands in for them elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.costs.rates import sm_90a
from tilec.costs.rates.fields import Rates
from tilec.costs.rates.others import SINGLE_WARPS, STATED
from tilec.hardware.target import Feature, Target

__all__ = ["FITTED", "Rates", "rates_of"]

FITTED: Mapping[str, Rates] = {"sm_90a": sm_90a.RATES}
"""By target, what `tilec refit` found on a device of it."""


def rates_of(target: Target) -> Rates:
    """The rates of the usual device of a target."""
    fitted = FITTED.get(target.name)
    if fitted is not None:
        return fitted
    return STATED if target.supports(Feature.TCGEN05) else SINGLE_WARPS
