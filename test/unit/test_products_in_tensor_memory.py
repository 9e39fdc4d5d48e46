"""Products into tensor memory: every kind, shape, major, and place of the operands."""

from __future__ import annotations

from typing import Any

import pytest
from tensor_cases import E4M3, E5M2, KINDS, TARGET, check_product, check_scaled

from tilec.compile.assembler import assemble
from tilec.hardware.target import TARGETS
from tilec.messages.diagnostics import CompileError

CHECK = "emulator:check"


@pytest.fixture(autouse=True)
def _blackwell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_TARGET", TARGET)


@pytest.mark.share(3)
@pytest.mark.parametrize("tensor", [False, True], ids=["shared", "tensor"])
@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str, m: int, tensor: bool) -> None:
    device = "emulator:late" if tensor else CHECK
    compiled = check_product(device, kind, m, 64, TENSOR=tensor)
    assert assemble(compiled.ptx, TARGETS[TARGET]).spills == 0
    assert compiled.ptx.count("tcgen05.mma.cta_group::1.kind::") == 2 * 4  # 128 bytes of k
    assert compiled.ptx.count("tcgen05.commit") == 1


@pytest.mark.parametrize(
    ("m", "n", "span"), [(64, 24, 32), (128, 48, 32), (64, 200, 32), (128, 240, 32)]
)
def test_widths_that_are_no_powers_of_two(m: int, n: int, span: int) -> None:
    check_product(CHECK, "k16.f32.bf16.bf16", m, n, B_MAJOR=0, SPAN=span)


@pytest.mark.share(2)
@pytest.mark.parametrize("b_major", [0, 1])
@pytest.mark.parametrize("a_major", [0, 1])
@pytest.mark.parametrize("kind", ["k16.f32.f16.f16", "k32.f32.e4m3.e5m2", "k32.s32.s8.s8"])
def test_either_major(kind: str, a_major: int, b_major: int) -> None:
    check_product(CHECK, kind, 128, 128, A_MAJOR=a_major, B_MAJOR=b_major)


@pytest.mark.parametrize(("m", "n", "block", "width"), [(256, 64, 128, 64), (128, 64, 64, 32)])
@pytest.mark.parametrize("tensor", [False, True], ids=["shared", "tensor"])
def test_several_instructions(m: int, n: int, block: int, width: int, tensor: bool) -> None:
    compiled = check_product(
        CHECK, "k16.f32.f16.f16", m, n, block=block, width=width, TENSOR=tensor
    )
    count = (m // block) * (n // width) * 4
    assert compiled.ptx.count("tcgen05.mma.cta_group::1.kind::f16") == 2 * count


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"A_MAJOR": 0}, "reads operands that are contiguous along k"),
        ({"B_MAJOR": 1}, "reads operands that are contiguous along k"),
    ],
)
def test_wide_elements_lie_along_k(constants: dict[str, int], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        check_product(CHECK, "k8.f32.tf32.tf32", 128, 64, **constants)


def test_the_largest_instruction_is_chosen() -> None:
    compiled = check_product(CHECK, "k16.f32.bf16.bf16", 256, 48, SPAN=32, chosen=True)
    assert compiled.ptx.count("tcgen05.mma") == 2 * 2 * 4


@pytest.mark.share(2)
@pytest.mark.parametrize(("n", "k"), [(128, 128), (256, 128), (128, 256)])
@pytest.mark.parametrize("kinds", [(E4M3, E4M3), (E5M2, E4M3)], ids=["e4m3", "e5m2"])
def test_block_scales(kinds: tuple[Any, Any], n: int, k: int) -> None:
    """Pieces of scales one behind the other along N and along k."""
    compiled = check_scaled(CHECK, kinds, n, k)
    assert assemble(compiled.ptx, TARGETS[TARGET]).spills == 0
    found = compiled.ptx.count("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X")
    assert found == k // 32
    assert compiled.ptx.count("tcgen05.cp") == (1 + n // 128) * (k // 128)
