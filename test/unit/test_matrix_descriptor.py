"""Matrix descriptors against words that other compilers write, and what cannot be described."""

from __future__ import annotations

import pytest

from tilec.matrix_descriptor import describe_operand
from tilec.shared_layout import parse_shared_layout

KNOWN = [
    # K-major, 128 bytes: Triton's 0x4000004000000000, whose unused leading offset CUTLASS sets to 1
    ("S<3,4,3> o (128,64):(64,1)", (128, 64), 1, (64, 16), 0x4000004000010000),
    # N-major, 128 columns in panels of 64, 64 rows of k: Triton 3.6
    ("S<3,4,3> o (64,(64,2)):(64,(1,4096))", (64, 128), 0, (128, 16), 0x4000004002000000),
    ("S<2,4,3> o (64,32):(32,1)", (64, 32), 1, (64, 16), 0x8000002000010000),
    ("S<1,4,3> o (64,16):(16,1)", (64, 16), 1, (64, 16), 0xC000001000010000),
]


@pytest.mark.parametrize(("text", "sizes", "k_dim", "step", "word"), KNOWN)
def test_descriptors_of_other_compilers(
    text: str, sizes: tuple[int, int], k_dim: int, step: tuple[int, int], word: int
) -> None:
    found = describe_operand(parse_shared_layout(text), 2, sizes, k_dim, step)
    assert found.high_bits << 32 | found.low_bits == word


@pytest.mark.parametrize(
    ("text", "sizes", "k_dim", "step", "message"),
    [
        ("S<3,4,3> o (64,64):(64,1)", (64, 40), 1, (64, 16), "not made of whole instructions"),
        # instructions of 96 columns meet panels of 64 in their middle
        ("S<3,4,3> o (64,(64,3)):(64,(1,4096))", (64, 192), 0, (96, 16), "from element 96 on"),
        ("S<3,4,3> o (64,64):(32,1)", (64, 64), 1, (64, 16), "from element 0 on"),
        ("S<3,4,3> o (64,(64,2)):(64,(1,4160))", (64, 128), 0, (64, 16), "no start of a matrix"),
        ("((8,8),(8,8)):((8,262144),(1,64))", (64, 64), 1, (64, 16), "cannot say"),
    ],
)
def test_what_cannot_be_described(
    text: str, sizes: tuple[int, int], k_dim: int, step: tuple[int, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        describe_operand(parse_shared_layout(text), 2, sizes, k_dim, step)
