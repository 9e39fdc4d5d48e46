"""The numbers that predictions of time count with: `fields.py` says what each is, `hopper.py` has
those fitted to timings, with their record, `others.py` what stands in for them elsewhere."""

from __future__ import annotations

from tilec.hardware.target import Feature, Target
from tilec.tuning.rates.fields import Rates
from tilec.tuning.rates.hopper import HOPPER
from tilec.tuning.rates.others import SINGLE_WARPS, STATED

__all__ = ["Rates", "rates_of"]


def rates_of(target: Target) -> Rates:
    """The rates of the usual device of a target."""
    if target.supports(Feature.TCGEN05):
        return STATED
    return HOPPER if target.supports(Feature.WGMMA) else SINGLE_WARPS
