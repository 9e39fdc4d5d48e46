"""What a kind of unseen kernels says of itself: sizes, data, launches of tilec and of Triton, and
the result in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Sizes = Mapping[str, Any]
Tensors = dict[str, Any]
Config = Mapping[str, int]
TORCH = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


@dataclass(frozen=True)
class Launch:
    """A call of a kernel, tilec's or Triton's (which has a grid)."""

    kernel: Any
    arguments: Sequence[Any]
    constants: Mapping[str, Any]
    grid: tuple[int, ...] | None = None

    def run(self) -> None:
        """Launches it on the current stream."""
        if self.grid is None:
            self.kernel(*self.arguments, **self.constants)
        else:
            self.kernel[self.grid](*self.arguments, **self.constants)

    def compile(self) -> str:
        """Compiles it into its compiler's cache; tilec's report, or nothing."""
        if self.grid is None:
            return self.kernel.report(*self.arguments, **self.constants)
        self.kernel.warmup(*self.arguments, grid=self.grid, **self.constants)
        return ""


@dataclass(frozen=True)
class Call:
    """What a library does."""

    function: Callable[[], Any]
    grid: tuple[int, ...] = ()

    def run(self) -> None:
        """Does it on the current stream."""
        self.function()

    def compile(self) -> str:
        """Nothing: it is compiled."""
        return ""


def cdiv(x: int, y: int) -> int:
    """x / y, rounded up."""
    return -(-x // y)


class Maker:
    """Makes tensors on a device, of random numbers drawn from a seed."""

    def __init__(self, device: str, seed: int) -> None:
        self.device = device
        self.random = torch.Generator(device).manual_seed(seed)
        self.filled: list[int] = []

    def normal(self, dtype: str, *shape: int, by: float = 1.0) -> torch.Tensor:
        """Numbers of a normal distribution, times `by`."""
        made = torch.randn(shape, generator=self.random, device=self.device) * by
        return made.to(TORCH[dtype])

    def positive(self, *shape: int) -> torch.Tensor:
        """f32 from 0.1 to 1.1."""
        return torch.rand(shape, generator=self.random, device=self.device) + 0.1

    def whole(self, low: int, high: int, *shape: int, dtype: Any = torch.int32) -> torch.Tensor:
        """Whole numbers from `low` to `high` - 1."""
        drawn = torch.randint(low, high, shape, generator=self.random, device=self.device)
        return drawn.to(dtype)

    def order(self, count: int) -> torch.Tensor:
        """The numbers below `count` in any order."""
        drawn = torch.rand(count, generator=self.random, device=self.device)
        return drawn.argsort().int()

    def out(self, dtype: Any, *shape: int) -> torch.Tensor:
        """What a kernel is to fill: NaN, or the like."""
        made = torch.empty(shape, dtype=TORCH.get(dtype, dtype), device=self.device)
        made.view(torch.uint8).fill_(0xFF)
        self.filled.append(id(made))
        return made


@dataclass(frozen=True)
class Kind:
    """Kernels of a name. `launches` and `rivals` make what runs from tensors and sizes;
    `configurations` are what Triton tries; `found`: what is compared of the tensors; `added`: the
    outputs that launches add to, not fill; `library`: the same by torch's
    own routines."""

    name: str
    draw: Callable[[Any], Sizes]
    tensors: Callable[[Maker, Sizes], Tensors]
    launches: Callable[[Tensors, Sizes], Sequence[Launch]]
    rivals: Callable[[Tensors, Sizes, Config], Sequence[Launch]]
    configurations: Callable[[Sizes], Sequence[Config]]
    reference: Callable[[Tensors, Sizes], Tensors]
    found: Callable[[Tensors, Sizes], Tensors] = lambda t, s: t
    tolerance: float = 1e-2
    added: tuple[str, ...] = ()
    library: Callable[[Tensors, Sizes], Callable[[], Any]] | None = None

    def label(self, sizes: Sizes) -> str:
        """As in "gram 4096x64 f16"."""
        numbers = "x".join(str(v) for v in sizes.values() if not isinstance(v, str))
        return " ".join([self.name, numbers, *(v for v in sizes.values() if isinstance(v, str))])


def tiles(*found: tuple[int, int, int, int, int]) -> list[Config]:
    """Configurations of (BM, BN, BK, warps, stages)."""
    names = ("BM", "BN", "BK", "num_warps", "num_stages")
    return [dict(zip(names, one, strict=True)) for one in found]


def product_tiles(m: int, n: int) -> list[Config]:
    """What a user tries for a product of 16-bit numbers."""
    if m <= 16:
        return tiles(
            (16, 64, 128, 4, 4), (16, 32, 256, 4, 4), (16, 128, 64, 4, 5), (16, 64, 256, 8, 3),
            (16, 16, 256, 2, 5),
        )  # fmt: skip
    found = [(64, 64, 64, 4, 4), (64, 128, 64, 4, 4), (128, 64, 64, 4, 4), (64, 32, 128, 4, 4)]
    if m > 64 and n > 64:
        found += [(128, 128, 64, 8, 3), (128, 256, 64, 8, 3)]
    if m <= 64:
        found += [(32, 64, 128, 4, 4), (16, 64, 128, 4, 4)]
    return tiles(*found)


def attention_tiles() -> list[Config]:
    """What a user tries for attention."""
    names = ("BM", "BN", "num_warps", "num_stages")
    found = ((128, 64, 4, 3), (128, 128, 8, 2), (64, 64, 4, 3), (128, 64, 8, 3), (64, 32, 4, 4))
    return [dict(zip(names, one, strict=True)) for one in found]


def each(**choices: Sequence[int]) -> list[Config]:
    """Configurations column by column: the first of each, the second of each and so on."""
    return [dict(zip(choices, row, strict=True)) for row in zip(*choices.values(), strict=True)]
