"""Targets that tests run for: one of each way in which the compiler writes programs, and the rest.

`MAIN` run in every test of products, copies and roles; what `OTHERS` have of their own is tested in
`test/targets`, and all that `MAIN` are tested for, by `make test-mutants`.
"""

from __future__ import annotations

from tilec.hardware.target import TARGETS

MAIN = ("sm_80", "sm_90a", "sm_100a")
"""cp.async and mma.sync; tensor copies and wgmma; tensor copies and tcgen05."""
OTHERS = tuple(name for name in TARGETS if name not in MAIN)
