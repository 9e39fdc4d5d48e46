"""Matrix descriptors against words that other compilers write, and what cannot be described."""

from __future__ import annotations

import pytest

from tilec.hardware.matrix_descriptor import describe_operand
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.shared_layout import parse_shared_layout
from tilec.hardware.tensor_tiles import instruction_descriptor

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


TENSOR_KNOWN = [
    # the same two of tcgen05: Triton's 0x4000404000000000 and 0x4000404002000000
    ("S<3,4,3> o (128,64):(64,1)", (128, 64), 1, (128, 16), 0x4000404000010000),
    ("S<3,4,3> o (64,(64,2)):(64,(1,4096))", (64, 128), 0, (128, 16), 0x4000404002000000),
    ("S<2,4,3> o (64,32):(32,1)", (64, 32), 1, (64, 16), 0x8000402000010000),
    ("S<1,4,3> o (64,16):(16,1)", (64, 16), 1, (64, 16), 0xC000401000010000),
    ("((8,16),(8,2)):((8,64),(1,1024))", (128, 16), 1, (128, 16), 0x0000400800800000),
]


@pytest.mark.parametrize(("text", "sizes", "k_dim", "step", "word"), TENSOR_KNOWN)
def test_descriptors_of_tensor_memory(
    text: str, sizes: tuple[int, int], k_dim: int, step: tuple[int, int], word: int
) -> None:
    found = describe_operand(parse_shared_layout(text), 2, sizes, k_dim, step)
    assert found.tensor_high_bits << 32 | found.low_bits == word


def test_instruction_descriptors() -> None:
    """Triton's 0x8210490 for bf16 with B along n; the others by the bits of the table."""
    row = find_instruction("tcgen05.m128n128k16.f32.bf16.bf16")
    word = instruction_descriptor(row, lhs_m_major=False, rhs_n_major=True)
    assert word == 0x8210490
    row = find_instruction("tcgen05.m64n40k16.f16.f16.f16")
    assert instruction_descriptor(row, lhs_m_major=True, rhs_n_major=False) == (
        1 << 15 | 5 << 17 | 4 << 24
    )
    row = find_instruction("tcgen05.m128n256k32.s32.s8.s8")
    assert instruction_descriptor(row, lhs_m_major=False, rhs_n_major=False) == (
        2 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 8 << 24
    )
    row = find_instruction("tcgen05.m128n16k32.f32.e5m2.e4m3")
    assert instruction_descriptor(row, lhs_m_major=False, rhs_n_major=False) == (
        1 << 4 | 1 << 7 | 2 << 17 | 8 << 24
    )
    row = find_instruction("tcgen05.m64n8k8.f32.tf32.tf32")
    assert instruction_descriptor(row, lhs_m_major=False, rhs_n_major=False) == (
        1 << 4 | 2 << 7 | 2 << 10 | 1 << 17 | 4 << 24
    )


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
