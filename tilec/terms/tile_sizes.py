"""Sizes of tiles: the largest there may be, the side that a product's has where nobody says, the
small ones of few warps."""

from __future__ import annotations

LARGEST_TILE = 1 << 20
"""Elements of a tile at most: sixteen times what the registers of a multiprocessor hold, and far
below what would exhaust the compiler's memory."""
USUAL_SIDE = 128
"""Rows and columns of the tile that `tl.auto` gives a product on tensor cores: of half of it single
warps read shared memory for as long as they multiply (32 x 32 each; 128 bytes and 2048 operations
of bf16 a clock on sm_80)."""
LEAST_DEEP_SLOTS = 4
"""Slots that tiles with a longer k than usual must leave room for: with 3, products were slower (17
drawn products, H200)."""
SMALL_SUMS = 512
"""Of a product of 16 rows that two warps share: products of chunks of 16 rows by 16 or 32 columns
took 0.73 to 0.89 of the time in four warps, an eighth kernel 1.13; by 64 columns 0.91 and 1.24
(linear attention on an H200)."""
