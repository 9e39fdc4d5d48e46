"""The cases of `plain.py`: sizes and dtypes that a seed draws."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Array = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Plain:
    """A launch of `kernel`: arrays by name in its order, what it writes, its numbers and constants.
    `made`: how an array is filled where it is not with normal numbers. `tolerance`: more than a
    dtype's where sums are long, or signs of what is about 0 decide."""

    kernel: str
    label: str
    arrays: dict[str, Array]
    outputs: tuple[str, ...] = ("y",)
    numbers: tuple[float, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    tolerance: float = 0.0

    @property
    def name(self) -> str:
        """As in "best_expert 4096x64 bf16"."""
        return f"{self.kernel} {self.label}"


class Draw:
    """Random sizes, the same for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def log(self, low: int, high: int, step: int = 1) -> int:
        """A multiple of `step`, log-uniform."""
        drawn = low * (high / low) ** self.random.random()
        return max(step, round(drawn / step) * step)

    def width(self, low: int, high: int) -> int:
        """Half are multiples of 64, a quarter of 8, the others any."""
        return self.log(low, high, self.random.choice((64, 64, 8, 1)))

    def rows(self, columns: int, low: int = 2**18, high: int = 2**25) -> int:
        """So many that the whole has `low` to `high` elements."""
        return max(1, self.log(low, high) // columns)

    def dtype(self, of: str = "f32 f16 bf16") -> str:
        """One of them."""
        return self.random.choice(of.split())


def _vectors(kernel: str, names: str, kinds: str, outputs: str = "y", **more) -> Callable:
    def make(d: Draw) -> Plain:
        n, drawn = d.log(2**17, 2**25, d.random.choice((1, 8, 1024))), d.dtype()
        arrays = {
            name: (drawn if kind == "?" else kind, (n,))
            for name, kind in zip(names.split(), kinds.split(), strict=True)
        }
        return Plain(kernel, f"{n} {drawn}", arrays, tuple(outputs.split()), **more)

    return make


def _by_row(kernel: str, low: int, high: int, arrays: Callable, outputs: str = "y", **more):
    """`arrays` of (rows, columns, dtype); constants N."""

    def make(d: Draw) -> Plain:
        n = d.width(low, high)
        m, kind = d.rows(n), d.dtype()
        given = dict(more)
        constants = {"N": n} if given.pop("whole", True) else {}
        return Plain(
            *(kernel, f"{m}x{n} {kind}", arrays(m, n, kind), tuple(outputs.split())),
            constants=constants,
            **given,
        )

    return make


def _images(kernel: str, parameter: str, vectors: str) -> Callable:
    def make(d: Draw) -> Plain:
        c, kind = d.width(16, 768), d.dtype()
        p = d.log(49, 16384)
        b = max(1, d.log(2**19, 2**25) // (c * p))
        arrays = {"x": (kind, (b, c, p))}
        arrays |= {name: (kind, (c,)) for name in vectors.split()}
        arrays["y"] = (kind, (b, c, p))
        return Plain(kernel, f"{b}x{c}x{p} {kind}", arrays, constants={parameter: c})

    return make


def _rank_one(d: Draw) -> Plain:
    n, kind = d.width(128, 8192), d.dtype("f32 bf16")
    m = d.rows(n)
    arrays = {"y": (kind, (m, n)), "u": (kind, (m,)), "v": (kind, (n,))}
    return Plain("rank_one", f"{m}x{n} {kind}", arrays, numbers=(0.125,))


def _bilinear(d: Draw) -> Plain:
    h, w, kind = d.log(14, 256), d.log(14, 256), d.dtype()
    c = max(1, d.log(2**17, 2**23) // (h * w))
    arrays = {"x": (kind, (c, h, w)), "y": (kind, (c, 2 * h, 2 * w))}
    return Plain("double_bilinear", f"{c}x{h}x{w} {kind}", arrays)


def _depthwise(d: Draw) -> Plain:
    h, w, c, kind = d.log(7, 128), d.log(7, 128), d.width(32, 768), d.dtype()
    b = max(1, d.log(2**18, 2**24) // (h * w * c))
    arrays = {"x": (kind, (b * c, h, w)), "taps": (kind, (c, 9)), "y": (kind, (b * c, h, w))}
    return Plain("depthwise", f"{b}x{c}x{h}x{w} {kind}", arrays, constants={"C": c})


def _squares(d: Draw) -> Plain:
    n, kind = d.log(2**18, 2**26, d.random.choice((1, 8))), d.dtype()
    return Plain(
        "square_parts", f"{n} {kind}", {"x": (kind, (n,)), "y": ("f32", (-(-n // 16384),))}
    )


def _bytes(d: Draw) -> Plain:
    p, kind = d.log(3000, 300000), d.dtype()
    b = max(1, d.log(2**18, 2**23) // p)
    arrays = {"x": ("u8", (b, p, 3)), "y": (kind, (b, 3, p))}
    return Plain("normal_images", f"{b}x{p} {kind}", arrays, made={"x": "bytes"})


def _causal(d: Draw) -> Plain:
    n, kind = d.width(64, 4096), d.dtype()
    b = max(1, d.log(2**18, 2**25) // (n * n))
    arrays = {"x": (kind, (b * n, n)), "y": (kind, (b * n, n))}
    return Plain("causal_scores", f"{b}x{n} {kind}", arrays, constants={"N": n})


def _columns(d: Draw) -> Plain:
    n, kind = d.width(256, 16384), d.dtype()
    return Plain(
        "column_logs", f"{(m := d.rows(n))}x{n} {kind}", {"x": (kind, (m, n)), "y": ("f32", (n,))}
    )


def _product(kernel: str, arrays: Callable, square: bool = False, **more) -> Callable:
    def make(d: Draw) -> Plain:
        m, n, k = (d.width(64, 6144) for _ in range(3))
        m, n, k = (m, m, m) if square else (m, n, k)
        kind = d.dtype("f16 bf16")
        return Plain(kernel, f"{m}x{n}x{k} {kind}", arrays(m, n, k, kind), **more)

    return make


def _classes(d: Draw) -> Plain:
    k, c, kind = d.width(64, 4096), d.log(2, 200), d.dtype("f16 bf16")
    m = d.rows(k)
    arrays = {"x": (kind, (m, k)), "w": (kind, (k, c)), "bias": (kind, (c,)), "y": ("f32", (m, c))}
    return Plain(
        "classify",
        f"{m}x{k}x{c} {kind}",
        arrays,
        constants={"C": c},
        made={"w": "small"},
        tolerance=0.05,
    )


def _gru(d: Draw) -> Plain:
    n, kind = d.width(64, 2048), d.dtype()
    m = d.rows(n, 2**16, 2**22)
    arrays = {"x": (kind, (m, n, 4)), "h": (kind, (m, n, 4)), "y": (kind, (m, n))}
    return Plain("gru_gates", f"{m}x{n} {kind}", arrays)


def _added(d: Draw) -> Plain:
    n = d.width(64, 2048)
    m, rows = d.rows(n, 2**17, 2**23), d.log(64, 65536)
    arrays = {"x": ("f32", (m, n)), "places": ("i32", (m,)), "y": ("f32", (rows, n))}
    return Plain("add_rows_at", f"{m} to {rows}x{n}", arrays, made={"places": "places"})


def _points(d: Draw) -> Plain:
    m, n = d.log(500, 40000), d.log(500, 20000)
    arrays = {"x": ("f32", (m, 4)), "z": ("f32", (n, 4)), "y": ("f32", (m,))}
    return Plain("nearest_point", f"{m} of {n}", arrays)


def _joined(d: Draw) -> Plain:
    c, t, kind = d.width(16, 1024), d.log(16, 4096), d.dtype()
    b = max(1, d.log(2**18, 2**23) // (c * t))
    arrays = {"x": (kind, (b, t, c)), "z": (kind, (b, t, c)), "y": (kind, (b, t, 2 * c))}
    return Plain("join_interleaved", f"{b}x{t}x{c} {kind}", arrays)


def _folded(d: Draw) -> Plain:
    c, p, kind = d.log(16, 512), d.log(49, 4096), d.dtype()
    b = max(2, d.log(2**19, 2**25) // (c * p))
    return Plain(
        "fold_planes", f"{b}x{c}x{p} {kind}", {"x": (kind, (b, c, p)), "y": ("f32", (c, p))}
    )


def _batch(d: Draw) -> Plain:
    b, kind = d.log(2, 128), d.dtype("f16 bf16")
    m, n, k = (d.width(32, 1024) for _ in range(3))
    arrays = {
        "x": (kind, (b, m, k)),
        "w": (kind, (b, k, n)),
        "bias": (kind, (b, n)),
        "y": (kind, (b, m, n)),
    }
    return Plain("batch_gelu", f"{b}x{m}x{n}x{k} {kind}", arrays)


MAKERS: dict[str, Callable[[Draw], Plain]] = {
    "option_prices": _vectors(
        "option_prices",
        "x strikes times y",
        "f32 f32 f32 f32",
        numbers=(0.02,),
        made={"x": "positive", "strikes": "positive", "times": "positive"},
    ),
    "divergences": _by_row(
        "divergences",
        128,
        32768,
        lambda m, n, k: {"x": (k, (m, n)), "z": (k, (m, n)), "y": ("f32", (m,))},
        made={"x": "logs", "z": "logs"},
    ),
    "channel_norm": _images("channel_norm", "C", "weight bias"),
    "add_norm_quantise": _by_row(
        "add_norm_quantise",
        128,
        16384,
        lambda m, n, k: {
            "x": (k, (m, n)),
            "residual": (k, (m, n)),
            "weight": (k, (n,)),
            "total": (k, (m, n)),
            "y": ("f8e4m3", (m, n)),
            "scales": ("f32", (m,)),
        },
        "total y scales",
    ),
    "best_expert": _by_row(
        "best_expert",
        8,
        512,
        lambda m, n, k: {"x": (k, (m, n)), "weights": ("f32", (m,)), "places": ("i32", (m,))},
        "weights places",
        made={"x": "unlike"},
    ),
    "lion": _vectors("lion", "p m g", "f32 ? ?", "p m", numbers=(1e-3,), tolerance=3e-3),
    "rank_one": _rank_one,
    "largest_places": _by_row(
        "largest_places",
        4096,
        262144,
        lambda m, n, k: {"x": ("f32", (m, n)), "places": ("i32", (m,))},
        "places",
        whole=False,
    ),
    "double_bilinear": _bilinear,
    "depthwise": _depthwise,
    "square_parts": _squares,
    "middle_softmax": _images("middle_softmax", "S", ""),
    "normal_images": _bytes,
    "causal_scores": _causal,
    "column_logs": _columns,
    "cosines": _product(
        "cosines",
        lambda m, n, k, t: {"x": (t, (m, k)), "z": (t, (n, k)), "y": (t, (m, n))},
        tolerance=0.02,
    ),
    "newton_step": _product(
        "newton_step",
        lambda m, n, k, t: {"x": (t, (m, m)), "y": (t, (m, m))},
        square=True,
        numbers=(3.4445, -4.775),
        made={"x": "small"},
        tolerance=0.02,
    ),
    "classify": _classes,
    "gru_gates": _gru,
    "add_rows_at": _added,
    "nearest_point": _points,
    "running_products": _by_row(
        "running_products",
        64,
        8192,
        lambda m, n, k: {"x": (k, (m, n)), "y": (k, (m, n))},
        made={"x": "near one"},
    ),
    "join_interleaved": _joined,
    "fold_planes": _folded,
    "gated_pair": _product(
        "gated_pair",
        lambda m, n, k, t: {"x": (t, (m, k)), "w": (t, (n, k)), "v": (t, (n, k)), "y": (t, (m, n))},
        made={"w": "small", "v": "small"},
        tolerance=0.02,
    ),
    "batch_gelu": _batch,
}


def draw(seed: int, each: int) -> list[Plain]:
    """`each` cases of every kernel; no kernel's sizes depend on which others there are."""
    return [
        make(
            Draw(
                seed * 1009
                + number * 65537
                + sum(ord(c) * 31**i % 65521 for i, c in enumerate(name))
            )
        )
        for name, make in MAKERS.items()
        for number in range(each)
    ]
