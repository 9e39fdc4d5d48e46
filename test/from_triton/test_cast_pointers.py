"""Pointers cast to larger elements: scales between the bytes of a cache (`cast_pointers.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402
from target_names import MAIN  # noqa: E402

import tilec.triton  # noqa: E402
from tilec.messages.diagnostics import CompileError  # noqa: E402

WIDTH = 32


@pytest.fixture(params=MAIN)
def taken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TILEC_TARGET", request.param)
    tilec.triton.enable(device="emulator:check")
    yield
    tilec.triton.disable()


@triton.jit
def pack(x, cache, stride, D: tl.constexpr):
    """A row of bytes, its scale, and three sums of eight."""
    row, i, part = tl.program_id(0), tl.arange(0, D), tl.arange(0, 4)
    value = tl.load(x + row * D + i)
    scale = tl.max(tl.abs(value)) / 127
    start = cache + row * stride
    tl.store(start + i, (value / scale).to(tl.int8).to(tl.uint8, bitcast=True))
    tl.store((start + D).to(tl.pointer_type(tl.float32)), scale)
    sums = tl.sum(tl.reshape(value, 4, D // 4), 1)
    places = (start + D + 4).to(tl.pointer_type(tl.bfloat16)) + part
    tl.store(places, sums.to(tl.bfloat16), mask=part < 3)


@triton.jit
def unpack(cache, out, sums, n, stride, D: tl.constexpr, R: tl.constexpr):
    rows, i = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, D)
    inside = rows < n
    start = cache + rows * stride
    byte = tl.load(start[:, None] + i[None, :], mask=inside[:, None], other=0)
    scale = tl.load((start + D).to(tl.pointer_type(tl.float32)), mask=inside, other=1.0)
    value = byte.to(tl.int8, bitcast=True).to(tl.float32) * scale[:, None]
    tl.store(out + rows[:, None] * D + i[None, :], value, mask=inside[:, None])
    last = (start + D + 4).to(tl.pointer_type(tl.bfloat16)) + 2
    tl.store(sums + rows, tl.load(last, mask=inside, other=7.0).to(tl.float32))


@triton.jit
def walked(cache, out, n, D: tl.constexpr):
    p = (cache + D).to(tl.pointer_type(tl.float32))
    total = 0.0
    for _ in range(n):
        total += tl.load(p)
        p += 1
    tl.store(out, total)


def test_parts_of_a_cache(taken: None) -> None:
    n, stride = 9, 48
    x, cache = torch.randn(n, WIDTH), torch.full((n, stride), 99, dtype=torch.uint8)
    pack[(n,)](x, cache, stride, D=WIDTH)
    scale = x.abs().amax(1) / 127
    assert torch.equal(cache[:, WIDTH : WIDTH + 4].contiguous().view(torch.float32)[:, 0], scale)
    right = x.view(n, 4, WIDTH // 4).sum(2).bfloat16()
    found = cache[:, WIDTH + 4 : WIDTH + 10].contiguous().view(torch.bfloat16)
    torch.testing.assert_close(found, right[:, :3])
    assert (cache[:, WIDTH + 10 :] == 99).all()
    out, sums = torch.zeros(n, WIDTH), torch.zeros(12)
    unpack[(3,)](cache, out, sums, n, stride, D=WIDTH, R=4)
    assert ((out - x).abs() <= 1.001 * scale[:, None]).all()
    assert torch.equal(sums, torch.cat([found[:, 2].float(), torch.full((3,), 7.0)]))


def test_a_cast_pointer_in_a_loop_is_an_error_at_its_line(taken: None) -> None:
    arguments: tuple[Any, ...] = (torch.zeros(64, dtype=torch.uint8), torch.zeros(1), 3)
    with pytest.raises(CompileError, match=r"test_cast_pointers.py:\d+.*loaded and stored through"):
        walked[(1,)](*arguments, D=32)
