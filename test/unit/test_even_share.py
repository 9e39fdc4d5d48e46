"""How many CTAs share the programs of a persistent kernel, and in which groups of rows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import tilec.language as tl
from tilec.costs.dot_work import Memory
from tilec.costs.machine import machine_of
from tilec.executable.kernel import LEFT_OUT, CompiledKernel, even_share
from tilec.hardware.target import find_target
from tilec.ops.product_launch import kernel_on
from tilec.ops.row_groups import rows_of_round
from tilec.ops.tile_choice import choose_tiles
from tilec.runtime.device import device


def rounds(programs: int, ctas: int) -> int:
    return -(-programs // ctas)


@given(st.integers(1, 10**6), st.integers(1, 1000))
def test_a_share_takes_no_more_rounds_and_leaves_few_out(programs: int, resident: int) -> None:
    ctas = even_share(programs, resident)
    assert 1 <= ctas <= min(programs, resident)
    assert rounds(programs, ctas) == rounds(programs, resident)
    if programs > resident:
        assert resident - ctas <= resident // LEFT_OUT
        fewer = rounds(programs, resident)
        is_even = -(-programs // fewer)
        assert ctas == is_even or resident - is_even > resident // LEFT_OUT


def test_shares_of_an_h200() -> None:
    """4 rounds of 4096 cubed, 8 of 8 times 2048 cubed; 133 programs would leave half of it idle."""
    assert [even_share(n, 132) for n in (512, 1024, 1408, 133, 528, 100)] == [
        *(128, 128, 128, 132, 132, 100)
    ]


def test_kernels_without_roles_use_every_multiprocessor() -> None:
    kernel = CompiledKernel("k", "sm_90a", "", (), None, 384, 0, 32, persistent=True)
    assert kernel.launched((32, 16, 1), 132) == (132, 1, 1)
    with_roles = replace(kernel, has_roles=True)
    assert with_roles.launched((32, 16, 1), 132) == (128, 1, 1)
    in_pairs = replace(with_roles, cluster=(2, 1, 1))
    assert in_pairs.launched((32, 16, 1), 132) == (128, 1, 1)
    assert in_pairs.launched((3, 1, 1), 132) == (4, 1, 1)


@given(st.integers(1, 10**5), st.sampled_from((96, 128, 192, 256)), st.integers(1, 300))
def test_a_group_divides_a_round_near_a_square(programs: int, columns: int, sms: int) -> None:
    group = rows_of_round(128, columns, programs, sms)
    ctas = even_share(programs, sms)
    assert (group is None) == (ctas == sms or programs <= sms)
    if group is not None:
        assert ctas % group == 0
        side = (ctas * columns / 128) ** 0.5
        others = [n for n in range(1, ctas + 1) if ctas % n == 0]
        assert all(abs(group - side) <= abs(n - side) for n in others)


def test_products_ask_for_their_group() -> None:
    """4096 cubed: 128 CTAs, 16 rows of tiles by 8 columns; where all take part, the compiler's."""
    machine = machine_of(device("emulator"), find_target("sm_90a"))
    along_k = Memory(1, 128), Memory(0, 128)
    groups = {}
    for m, n in ((4096, 4096), (4224, 4096), (2048, 2048)):
        found = choose_tiles(m, n, 4096, 1, tl.f16, "ieee", machine, 1, *along_k)
        assert found is not None
        groups[m] = found.group
    assert groups == {4096: 16, 4224: None, 2048: None}
    kernel = kernel_on("product", device("emulator"), group=16)
    assert kernel.demands()["order"] == ("grouped", 16)
    assert kernel_on("product", device("emulator")).demands()["order"] is None
