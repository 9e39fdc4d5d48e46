"""Ways to compile a kernel, as plain dicts: constants of the kernel and demands of the compiler.

{"BM": 128, "BN": 256, "BK": 64, "num_warps": 8, "STAGES": 3}: names that are parameters of the
kernel become its constants, all others demands of `tilec.kernel`. What the compiler does not take
is an error of that one variant.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from bench_cases import Variant

Configuration = dict[str, Any]

SHORT = {
    "num_warps": "w",
    "STAGES": "s",
    "WARP_SPECIALIZE": "ws",
    "persistent": "per",
    "cluster": "cl",
    "consumers": "",
}
"""How labels call a setting; tile sizes are joined by x and need no name."""

TILE = ("BM", "BN", "BK")


def label_of(configuration: Mapping[str, Any]) -> str:
    """As in "128x256x64 w8 s3 ws"; what is None, the compiler's choice, does not show."""
    tile = "x".join(str(configuration[name]) for name in TILE if name in configuration)
    words = [tile] if tile else []
    for name, value in configuration.items():
        if name not in TILE and value is not None:
            short = SHORT.get(name, name)
            words.append(short if value is True else f"{short}{value}".replace(" ", ""))
    return " ".join(words)


def variant_of(kernel: str, configuration: Configuration, fixed: Mapping[str, Any]) -> Variant:
    """A variant of `kernel`; `fixed` constants do not show in its label."""
    settings = tuple({**configuration, **fixed}.items())
    return Variant(label_of(configuration), kernel, settings)


def sweep(words: Sequence[str]) -> list[Configuration]:
    """All combinations of "BM=64,128", "num_warps=4,8": values are integers, True, False, None, or
    names of ways to do it ("order=hilbert"), maybe with a number ("order=hilbert:8").

    ValueError for a word that has no name or a value that is none of these.
    """
    axes = []
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name:
            raise ValueError(f"{word!r}: expected NAME=VALUE,VALUE...")
        axes.append([(name, _value(value)) for value in values.split(",")])
    return [dict(combination) for combination in itertools.product(*axes)] if axes else []


_NAMED = {"True": True, "False": False, "None": None}
_WORDS = ("cooperative", "pingpong", "grouped", "rows", "hilbert")
"""Of the demands `consumers` and `order`."""


def _value(text: str) -> Any:
    if text in _NAMED:
        return _NAMED[text]
    word, colon, number = text.partition(":")
    if word in _WORDS:
        return (word, int(number)) if colon else word
    if "x" in text:
        return tuple(int(part) for part in text.split("x"))
    try:
        return int(text)
    except ValueError:
        words = ", ".join(_WORDS)
        expected = f"an integer, 2x1, True, False, None, {words}"
        raise ValueError(f"{text!r}: expected {expected}") from None


def product_configurations(dtype: str, shape: tuple[int, int, int]) -> list[Configuration]:
    """Tiles worth trying for a product; K spans 128 bytes, more where tiles are small."""
    k = {"f32": 32, "f16": 64, "bf16": 64}.get(dtype, 128)
    m, n, _ = shape
    if m <= 16:
        tiles = [(16, 64, 2 * k, 4), (16, 32, 4 * k, 4), (16, 32, k, 4), (16, 64, k, 4)]
    elif m <= 64:
        tiles = [(64, 64, 2 * k, 4), (64, 64, k, 4), (64, 128, k, 4), (64, 32, 2 * k, 4)]
        tiles += [(64, 128, 2 * k, 4), (64, 32, 4 * k, 4)]
    elif min(m, n) <= 1024:
        tiles = [(64, 64, k, 4), (64, 64, 2 * k, 4), (128, 64, k, 4), (64, 128, k, 4)]
        tiles += [(64, 128, 2 * k, 4), (128, 128, k, 8), (64, 32, 4 * k, 4), (128, 64, k, 8)]
        tiles += [(128, 224, k, 8)] if n > 8192 else []
    else:
        tiles = [(128, 128, k, 4), (128, 128, k, 8), (128, 256, k, 8), (256, 128, k, 8)]
    plain = [{"BM": bm, "BN": bn, "BK": bk, "num_warps": warps} for bm, bn, bk, warps in tiles]
    return plain + (_persistent(k) if min(m, n) > 1024 else [])


def _persistent(k: int) -> list[Configuration]:
    """Roles that copy and that multiply, and programs that walk over all tiles."""
    tiles = [(128, 256, 3), (128, 256, 4), (256, 128, 3), (256, 128, 4), (128, 128, 5)]
    demands = {"num_warps": 8, "WARP_SPECIALIZE": True, "persistent": True}
    cooperative = [{"BM": bm, "BN": bn, "BK": k, "STAGES": s, **demands} for bm, bn, s in tiles]
    in_turn = {"num_warps": 4, "consumers": "pingpong"}
    return cooperative + [{"BM": 128, "BN": n, "BK": k, **in_turn} for n in (128, 192)]


def fused_configurations(products: int) -> list[Configuration]:
    """Roles demanded, tiles worth trying where a tile of the result takes `products` products."""
    tiles = [(128, 128, 4, 4), (128, 256, 8, 3), (128, 256, 8, 4), (256, 128, 8, 4)]
    if products > 1:
        tiles = [(128, 128, 8, 3), (128, 128, 8, 4), (128, 64, 4, 4)]
    return [
        {"BM": bm, "BN": bn, "BK": 64, "num_warps": warps, "STAGES": stages}
        | {"WARP_SPECIALIZE": True, "persistent": persistent}
        for bm, bn, warps, stages in tiles
        for persistent in (None, True)
    ]


def attention_configurations(head: int) -> list[Configuration]:
    """Tiles worth trying for attention with heads of `head` elements."""
    tiles = {
        64: [(192, 128, 12), (192, 112, 12), (192, 96, 12), (128, 160, 8), (128, 128, 8)],
        128: [(128, 128, 8), (128, 112, 8), (128, 96, 8), (192, 80, 12), (192, 64, 12)],
    }
    return [{"BM": bm, "BN": bn, "num_warps": warps} for bm, bn, warps in tiles[head]]
