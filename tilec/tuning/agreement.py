"""Whether two candidates computed the same: no candidate wins with another result."""

from __future__ import annotations

import numpy as np

from tilec.terms.dtypes import BY_MLIR

MOST_COMPARED = 1 << 22
"""Of larger arrays every n-th element is compared, n odd: it is no multiple of a tile's sides."""


def difference(
    found: np.ndarray, expected: np.ndarray, dtype: str, tolerance: float | None = None
) -> str:
    """Says in words what is wrong with `found`; empty if it agrees. NaN and infinities must
    match."""
    step = found.size // MOST_COMPARED * 2 + 1
    one, two = found.reshape(-1)[::step], expected.reshape(-1)[::step]
    known = BY_MLIR[dtype]
    if not known.tolerance:
        unequal = int(np.count_nonzero(one != two))
        return f"{unequal} of {one.size} elements differ" if unequal else ""
    wide = np.float64 if known.bits == 64 else np.float32
    one, two = one.astype(wide), two.astype(wide)
    special = ~np.isfinite(two)
    if np.any(special != ~np.isfinite(one)) or not np.array_equal(
        one[special], two[special], equal_nan=True
    ):
        return "NaN or infinity in other places"
    one, two = one[~special], two[~special]
    scale = float(np.max(np.abs(two), initial=0.0))
    error = float(np.max(np.abs(one - two), initial=0.0)) / (scale or 1.0)
    limit = known.tolerance if tolerance is None else tolerance
    if error <= limit:
        return ""
    return f"differs by {error:.1e} of the largest value; {limit:.1e} is allowed"
