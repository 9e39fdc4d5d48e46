"""What the kinds of `exam_*` share: how launches of tilec and of Triton come from tensors by name,
and how the fastest routine of a library joins them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unseen_case import Config, Launch, Sizes, Tensors

FLOATS, HALVES = ("f16", "bf16", "f32"), ("f16", "bf16")
FP8, MOST_FP8 = "float8_e4m3fn", 448.0


def power(n: int) -> int:
    """The least power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def values(t: Tensors, s: Sizes, names: str) -> list[Any]:
    """Tensors, sizes and numbers by name, as in "x y m 1e-5"."""
    found = []
    for name in names.split():
        number = int if name.isdecimal() else float
        found.append(t[name] if name in t else s[name] if name in s else number(name))
    return found


def ours(kernel: Any, names: str, **constants: Any) -> Callable[..., Sequence[Launch]]:
    """tilec's launch; constants are numbers, sizes by name, or functions of the sizes."""

    def launches(t: Tensors, s: Sizes) -> list[Launch]:
        given = {
            name: c(s) if callable(c) else s[c] if isinstance(c, str) else c
            for name, c in constants.items()
        }
        return [Launch(kernel, values(t, s, names), given)]

    return launches


def theirs(
    kernel: Any, names: str, grid: Callable[..., Any], **constants: Any
) -> Callable[..., Sequence[Launch]]:
    """Triton's launch in each configuration, on `grid(sizes, configuration)`."""

    def rivals(t: Tensors, s: Sizes, c: Config) -> list[Launch]:
        more = {
            name: x(s) if callable(x) else s[x] if isinstance(x, str) else x
            for name, x in constants.items()
        }
        places = grid(s, c)
        places = places if isinstance(places, tuple) else (places,)
        return [Launch(kernel, values(t, s, names), {**more, **c}, places)]

    return rivals


def warps(*counts: int, **more: int) -> Callable[[Sizes], list[Config]]:
    """Configurations that differ in their warps."""
    return lambda s: [{"num_warps": n, **more} for n in counts]


def row_warps(of: str) -> Callable[[Sizes], list[Config]]:
    """What a user tries where a program holds a row of so many elements."""

    def configurations(s: Sizes) -> list[Config]:
        size = power(s[of])
        counts = (1, 2, 4) if size <= 512 else (2, 4, 8) if size <= 4096 else (4, 8, 16)
        return [{"num_warps": n} for n in counts]

    return configurations


def blocks(
    *sizes: int, counts: tuple[int, ...] = (4, 8), name: str = "B"
) -> Callable[[Sizes], list[Config]]:
    """Configurations of a block's size and warps."""
    return lambda s: [{name: size, "num_warps": n} for size in sizes for n in counts]
