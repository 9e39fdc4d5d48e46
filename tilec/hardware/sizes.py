"""Sizes that memories and registers have on every target: a fact that many need, here once."""

from __future__ import annotations

from collections.abc import Mapping

WARP_SIZE = 32
"""Lanes of a warp (PTX ISA 9.0, "WARP_SZ")."""
WARPGROUP_WARPS = 4
"""Of a warpgroup (PTX ISA 9.0, "Warpgroup"), and those that reach all lanes of tensor memory, a
quarter each (PTX ISA 9.0, "tcgen05.ld")."""

WORD_BYTES = 4
"""Of a register of a thread (PTX ISA 9.0, "Register State Space": .b32)."""
WORD_BITS = 32
"""Of a register, `WORD_BYTES` in bits."""
REGISTERS = 1 << 16
"""Of a multiprocessor (CUDA C++ Programming Guide, "Compute Capabilities")."""
VECTOR_BYTES = 16
"""The widest access of a thread, and what cp.async, the copy engine and swizzles move as a whole
(PTX ISA 9.0, "ld": .v4.b32; "cp.async": cp-size; "Tensor-Maps": strides)."""
SECTOR_BYTES = 32
"""What memory and L2 send at once (CUDA C++ Best Practices Guide, "Coalesced Access to Global
Memory")."""
LINE_BYTES = 128
"""Of the caches (CUDA C++ Programming Guide, "Device Memory Accesses"): the copy engine takes whole
ones from L2, so that a shorter row costs as much."""
ALLOCATION_BYTES = 256
"""What allocations begin at multiples of (CUDA C++ Programming Guide, "Device Memory Accesses")."""

BANKS = 32
"""Of shared memory, each serving one word a clock (CUDA C++ Programming Guide, "Shared Memory")."""
BANK_BYTES = 4
"""Neighbouring words of so many bytes lie in neighbouring banks (as `BANKS`)."""
SWIZZLE_BITS: Mapping[int, int] = {128: 3, 64: 2, 32: 1}
"""Address bits that a swizzle of rows of so many bytes changes (PTX ISA 9.0, "Swizzling modes");
the widest first, which leaves fewest accesses to one bank."""
SWIZZLED_ROWS = 8
"""After so many rows a swizzle repeats: buffers begin, and parts of a tile may, where one does."""

PORTABLE_CTAS = 8
"""CTAs of a cluster that every GPU with clusters has room for; what has more a launch asks for by
an attribute (PTX ISA 9.0, ".reqnctapercluster"; CUDA C++ Programming Guide, "Thread Block
Clusters")."""
MOST_RANK = 5
"""Dimensions of a tensor map (CUDA driver API, cuTensorMapEncodeTiled)."""
MOST_BOX = 256
"""Elements of a tensor map's box along one dimension (CUDA driver API, cuTensorMapEncodeTiled)."""
IM2COL_CORNERS: Mapping[int, int] = {3: 2**15 - 1, 4: 2**7 - 1, 5: 2**4 - 1}
"""By the rank of an array, how far a corner of an im2col map's bounding box may lie from that of
the array, either way (CUDA driver API, cuTensorMapEncodeIm2col)."""
IM2COL_OFFSETS: Mapping[int, int] = {3: 2**16 - 1, 4: 2**8 - 1, 5: 2**5 - 1}
"""By the rank, the largest offset of a copy from the positions it walks over (PTX ISA 9.0,
"cp.async.bulk.tensor": im2colOffsets)."""
MOST_IM2COL_STEP = 8
"""Elements from one position to the next (CUDA driver API, cuTensorMapEncodeIm2col:
elementStrides)."""
