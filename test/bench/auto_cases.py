"""Launches for which the compiler chooses tiles, with sizes drawn from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import auto_kernels

from tilec.call.jit import Kernel
from tilec.examples.matmul import matmul
from tilec.ops.attention_kernel import attention

Shape = tuple[int, ...]
Tile = Mapping[str, int]
MOST_STAGED = 192 * 1024
"""Bytes of shared memory that tiles of attention may take with one slot a loop."""

LARGE_HEAD = 192
"""Elements of keys for which tiles of 64 queries are tried."""
MOST_HELD = {64: 230, 128: 230, 192: 150}
"""Registers of a thread for tiles of attention, by rows."""


@dataclass(frozen=True)
class AutoCase:
    """A call: `inputs` are bf16 unless their name is in `floats`; `output` and its dtype;
    `expected(xp, inputs, rows)` gives the first rows of each matrix of the output in float64."""

    name: str
    kernel: Kernel
    inputs: Mapping[str, Shape]
    output: tuple[str, Shape]
    order: tuple[str | float | int, ...]
    constants: Mapping[str, Any]
    tiles: tuple[Tile, ...]
    expected: Callable[[Any, Mapping[str, Any]], Any]
    floats: tuple[str, ...] = ()
    scale: float = 1.0


def cases(seed: int, small: bool = False) -> Iterator[AutoCase]:
    """The cases of a seed; `small`: few programs of few steps, for the emulator."""
    draw = random.Random(seed)
    for _ in range(1 if small else 8):
        yield _product(draw, small)
    for _ in range(1 if small else 3):
        yield _updated(draw, small)
        yield _gated(draw, small)
        yield _losses(draw, small)
    for width in (64, 128) if small else (64, 128, 64, 128):
        yield _recurrence(draw, width, small)
    for widths, group in (((192, 128), 1), ((64, 64), 4), ((128, 128), 8)):
        for causal, length in zip((False, True), _lengths(draw, small), strict=False):
            yield _shared(draw, widths, group, length, causal, small)
    for width, causal in product((64, 96, 128, 256), (False, True)):
        for length in _lengths(draw, small):
            yield _attention(draw, width, length, causal, small)


def _lengths(draw: random.Random, small: bool) -> list[int]:
    """A short and a long one, no multiples of a tile's."""
    if small:
        return [draw.randrange(130, 260)]
    return [draw.choice((512, 777, 1024, 1500)), draw.choice((2048, 4096, 6000, 8192, 16384))]


def _sides(
    ms: Sequence[int], ns: Sequence[int], fits: Callable[[int, int], bool]
) -> tuple[Tile, ...]:
    return tuple({"BM": m, "BN": n} for m, n in product(ms, ns) if fits(m, n))


def _attention_tiles(keys: int, values: int) -> tuple[Tile, ...]:
    """Those whose sums three warpgroups at most hold, and whose tiles fit with one slot."""

    def fits(m: int, n: int) -> bool:
        held = (values + n + n // 2) // 2  # 64 rows a warpgroup: sums, scores, weights
        staged = 2 * (m * keys + n * (keys + values))
        return held <= MOST_HELD[m] and staged <= MOST_STAGED

    rows = (128, 192) if keys < LARGE_HEAD else (64, 128, 192)
    return _sides(rows, (64, 80, 96, 128, 192), fits)


def _heads(draw: random.Random, length: int, small: bool) -> tuple[int, int]:
    """Batch and heads: 4096 to 32768 tokens, or one sequence."""
    if small:
        return 1, 2
    return max(1, draw.choice((4096, 16384, 32768)) // length), draw.choice((8, 16, 32))


def attended(causal: bool, scale: float) -> Callable[[Any, Mapping[str, Any]], Any]:
    """Of attention, the first and the last rows of the first and the last head."""

    def expected(xp: Any, inputs: Mapping[str, Any]) -> Any:
        q, k, v = inputs["q"], inputs["k"], inputs["v"]
        group, keys, found = q.shape[1] // k.shape[1], k.shape[2], []
        for b, h in ((0, 0), (q.shape[0] - 1, q.shape[1] - 1)):
            for rows in (range(min(64, q.shape[2])), range(max(0, q.shape[2] - 64), q.shape[2])):
                score = q[b, h, rows.start : rows.stop] @ k[b, h // group].T * scale
                if causal:
                    for at, row in enumerate(rows):
                        score[at, min(row + 1, keys) :] = -math.inf
                weight = xp.exp(score - xp.amax(score, 1)[:, None])
                out = weight @ v[b, h // group] / weight.sum(1)[:, None]
                found.append(((b, h, slice(rows.start, rows.stop)), out))
        return found

    return expected


def _attention(draw: random.Random, width: int, length: int, causal: bool, small: bool) -> AutoCase:
    batch, heads = _heads(draw, length, small)
    shape = (batch, heads, length, width)
    scale = 1 / math.sqrt(width)
    return AutoCase(
        f"attention D{width} {'causal' if causal else 'full'} {batch}x{heads}x{length}",
        attention,
        dict.fromkeys("qkv", shape),
        ("o", shape),
        ("q", "k", "v", "o", scale),
        {"D": width, "CAUSAL": causal},
        _attention_tiles(width, width),
        attended(causal, scale),
    )


def _shared(
    draw: random.Random,
    widths: tuple[int, int],
    group: int,
    length: int,
    causal: bool,
    small: bool,
) -> AutoCase:
    batch, heads = _heads(draw, length, small)
    heads = max(heads, group)
    keys = (batch, heads // group, length)
    scale = 1 / math.sqrt(widths[0])
    return AutoCase(
        f"shared D{widths[0]}/{widths[1]} by {group} {'causal' if causal else 'full'} "
        f"{batch}x{heads}x{length}",
        auto_kernels.shared_attention,
        {"q": (batch, heads, length, widths[0]), "k": (*keys, widths[0]), "v": (*keys, widths[1])},
        ("o", (batch, heads, length, widths[1])),
        ("q", "k", "v", "o", scale),
        {"DK": widths[0], "DV": widths[1], "CAUSAL": causal},
        _attention_tiles(*widths),
        attended(causal, scale),
    )


def _recurrence(draw: random.Random, width: int, small: bool) -> AutoCase:
    batch, heads = (1, 2) if small else (draw.choice((1, 4, 8)), draw.choice((8, 16, 32)))
    length = 200 if small else draw.choice((1000, 2048, 4096))
    shape = (batch, heads, length, width)

    def expected(xp: Any, inputs: Mapping[str, Any]) -> Any:
        b, h = batch - 1, heads - 1
        q, k, v, g = (inputs[name][b, h] for name in "qkvg")
        since = xp.cumsum(g, 0)
        apart = since[:, None] - since[None, :]
        lower = xp.tril(xp.ones_like(apart))
        return [((b, h), (q @ k.T * xp.exp(apart * lower) * lower) @ v)]

    return AutoCase(
        f"recurrence D{width} {batch}x{heads}x{length}",
        auto_kernels.recurrence,
        {**dict.fromkeys("qkv", shape), "g": shape[:3]},
        ("o", shape),
        ("q", "k", "v", "g", "o"),
        {"DK": width},
        tuple({"BC": c, "BV": v} for c in (32, 64, 128) for v in (32, 64, 128)),
        expected,
        floats=("g",),
        scale=0.25,
    )


MOST_DEEP = 64 * 128
"""Elements of tiles that are tried with 128 of k, too."""
_PRODUCT_TILES = tuple(
    {"BM": m, "BN": n, "BK": k}
    for m, n in (
        *((64, 32), (64, 64), (64, 96), (64, 128), (64, 192), (64, 256), (128, 32), (128, 64)),
        *((128, 96), (128, 128), (128, 160), (128, 192), (128, 224), (128, 256), (256, 64)),
        *((256, 128), (256, 192)),
    )
    for k in ((64, 128) if m * n <= MOST_DEEP else (64,))
)


def _side(draw: random.Random, low: int, high: int, small: bool) -> int:
    """A multiple of 8, drawn evenly by its logarithm."""
    if small:
        return draw.randrange(8, 34) * 8
    return round(math.exp(draw.uniform(math.log(low), math.log(high))) / 8) * 8


def _rows_of(output: Callable[[Any, Mapping[str, Any]], Any], rows: int) -> Any:
    """The first and last rows of a matrix."""

    def expected(xp: Any, inputs: Mapping[str, Any]) -> Any:
        every = {name: inputs[name] for name in inputs}
        for part in (slice(0, 64), slice(max(0, rows - 64), rows)):
            yield part, output(xp, {**every, "x": every["x"][part]})

    return expected


def _updated(draw: random.Random, small: bool) -> AutoCase:
    m, n, k = (_side(draw, 256, 8192, small) for _ in "mnk")
    rank = draw.choice((16, 32, 64))
    return AutoCase(
        f"updated {m}x{n}x{k} rank {rank}",
        auto_kernels.updated_product,
        {"x": (m, k), "w": (k, n), "a": (k, rank), "b": (rank, n)},
        ("y", (m, n)),
        ("x", "w", "a", "b", "y"),
        {"R": rank},
        _PRODUCT_TILES,
        _rows_of(lambda xp, i: i["x"] @ i["w"] + (i["x"] @ i["a"]) @ i["b"], m),
        scale=0.5,
    )


def _gated(draw: random.Random, small: bool) -> AutoCase:
    m, n, k = (_side(draw, 256, 8192, small) for _ in "mnk")

    def output(xp: Any, i: Mapping[str, Any]) -> Any:
        gate = i["x"] @ i["g"]
        return gate / (1 + xp.exp(-gate)) * (i["x"] @ i["b"])

    return AutoCase(
        f"gated {m}x{n}x{k}",
        auto_kernels.gated,
        {"x": (m, k), "b": (k, n), "g": (k, n)},
        ("c", (m, n)),
        ("x", "b", "g", "c"),
        {},
        tuple(t for t in _PRODUCT_TILES if t["BM"] * t["BN"] <= 128 * 128),
        _rows_of(output, m),
        scale=0.1,
    )


def _losses(draw: random.Random, small: bool) -> AutoCase:
    m, n, k = (_side(draw, *ends, small) for ends in ((512, 8192), (8192, 65536), (512, 4096)))
    parts = 2 if small else draw.choice((4, 8, 16))
    part = -(-n // parts)

    def output(xp: Any, i: Mapping[str, Any]) -> Any:
        logits = i["x"] @ i["w"].T
        cut = [logits[:, p * part : (p + 1) * part] for p in range(parts)]
        return xp.stack([xp.log(xp.exp(c).sum(1)) for c in cut], 1)

    return AutoCase(
        f"losses {m}x{n}x{k} in {parts}",
        auto_kernels.losses,
        {"x": (m, k), "w": (n, k)},
        ("sums", (m, parts)),
        ("x", "w", "sums", part),
        {},
        _PRODUCT_TILES,
        _rows_of(output, m),
        floats=("sums",),
        scale=0.2,
    )


def _product(draw: random.Random, small: bool) -> AutoCase:
    m, n, k = (_side(draw, 128, 8192, small) for _ in "mnk")
    return AutoCase(
        f"product {m}x{n}x{k}",
        matmul,
        {"x": (m, k), "b": (k, n)},
        ("c", (m, n)),
        ("x", "b", "c"),
        {},
        _PRODUCT_TILES,
        _rows_of(lambda xp, i: i["x"] @ i["b"], m),
    )
