"""Generic address space: where the windows of shared and local memory lie (PTX ISA 9.7.9, cvta)."""

from __future__ import annotations

WINDOW_SIZE = 1 << 32
SHARED_WINDOW = 0x7D00_0000_0000
LOCAL_WINDOW = 0x7C00_0000_0000

# Windows of state spaces; global, const and param memory are generic addresses themselves.
SPACE_WINDOWS = {
    "global": 0,
    "const": 0,
    "param": 0,
    "shared": SHARED_WINDOW,
    "shared::cta": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
}

# In a cluster, bits 24 and up of a shared address are the rank of the CTA it lies in; the addresses
# of a CTA's own variables carry its own rank.
CLUSTER_RANK_SHIFT = 24
