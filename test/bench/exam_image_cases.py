"""The kinds of `exam_places` that are images and volumes."""

from __future__ import annotations

from typing import Any

import exam_places as kernels
import torch
import triton_exam_places as rivals
from exam_case import FLOATS, ours, theirs
from unseen_case import Config, Kind, Maker, Sizes, Tensors, cdiv, each
from unseen_product_cases import wide


def _planes(low: int, high: int, most: int = 2**25) -> Any:
    def draw(s: Any) -> Sizes:
        found = {"h": s.log(low, high), "w": s.log(low, high)}
        return {"p": max(1, s.rows(found["h"] * found["w"], most)), **found, "t": s.of(FLOATS)}

    return draw


def _plane_grid(s: Sizes, c: Config) -> tuple[int, int, int]:
    return cdiv(s["w"], c["BX"]), cdiv(s["h"], c["BY"]), s["p"]


def _plane_tiles(s: Sizes) -> list[Config]:
    return each(BY=(4, 8, 8, 16, 1), BX=(128, 128, 256, 64, 512), num_warps=(4, 4, 8, 4, 4))


def _floats(r: Maker, s: Sizes) -> Tensors:
    shape = s["p"], s["h"], s["w"]
    return {"x": r.normal(s["t"], *shape), "y": r.out(s["t"], *shape)}


def _seven(t: Tensors, s: Sizes) -> Tensors:
    (x,) = wide(t, "x")
    v = torch.nn.functional.pad(x, (1, 1, 1, 1, 1, 1))
    around = v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1] + v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1]
    return {"y": 0.5 * x + 0.1 * (around + v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:])}


SEVEN = Kind(
    "seven_points",
    lambda s: {**{name: s.log(30, 400) for name in "phw"}, "t": "f32"},
    _floats,
    ours(kernels.seven_points, "x y 0.5 0.1"),
    theirs(rivals.seven_points, "x y p h w 0.5 0.1", _plane_grid),
    _plane_tiles,
    _seven,
)


def _lived(t: Tensors, s: Sizes) -> Tensors:
    x = t["x"].int()
    count = sum(x.roll((i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1))
    return {"y": ((count == 3) | ((count == 4) & (x == 1))).double()}


LIFE = Kind(
    "life",
    lambda s: {"p": 1, "h": s.log(200, 5000), "w": s.log(200, 5000)},
    lambda r, s: {
        "x": r.whole(0, 2, s["h"], s["w"], dtype=torch.int8),
        "y": r.out(torch.int8, s["h"], s["w"]),
    },
    ours(kernels.life, "x y"),
    theirs(rivals.life, "x y h w", _plane_grid),
    _plane_tiles,
    _lived,
)


def _blurred(t: Tensors, s: Sizes) -> Tensors:
    x, taps = wide(t, "x", "taps")
    return {"y": torch.nn.functional.conv2d(x[:, None], taps[None, None], padding=2)[:, 0]}


BLUR = Kind(
    "blur",
    _planes(60, 2000),
    lambda r, s: _floats(r, s) | {"taps": r.positive(5, 5)},
    ours(kernels.blur, "x taps y"),
    theirs(rivals.blur, "x taps y h w", _plane_grid),
    _plane_tiles,
    _blurred,
)


def _dilated(t: Tensors, s: Sizes) -> Tensors:
    return {"y": torch.nn.functional.max_pool2d(t["x"].double()[:, None], 3, 1, 1)[:, 0]}


DILATE = Kind(
    "dilate",
    _planes(60, 2000),
    lambda r, s: {
        "x": r.whole(0, 256, s["p"], s["h"], s["w"], dtype=torch.uint8),
        "y": r.out(torch.uint8, s["p"], s["h"], s["w"]),
    },
    ours(kernels.dilate, "x y"),
    theirs(rivals.dilate, "x y h w", _plane_grid),
    _plane_tiles,
    _dilated,
)


def _resized(t: Tensors, s: Sizes) -> Tensors:
    x = t["x"].double()[None]
    return {"y": torch.nn.functional.interpolate(x, (s["j"], s["k"]), mode="bilinear")[0]}


RESIZE = Kind(
    "resize",
    lambda s: _planes(60, 1000, 2**24)(s) | {"j": s.log(60, 1500), "k": s.log(60, 1500)},
    lambda r, s: {
        "x": r.normal(s["t"], s["p"], s["h"], s["w"]),
        "y": r.out(s["t"], s["p"], s["j"], s["k"]),
    },
    ours(kernels.resize, "x y"),
    theirs(
        rivals.resize, "x y h w j k", lambda s, c: (cdiv(s["k"], c["BX"]), s["j"], s["p"])
    ),
    lambda s: each(BX=(128, 256, 256, 512, 1024), num_warps=(2, 2, 4, 4, 4)),
    _resized,
    library=lambda t, s: lambda: t["y"].copy_(
        torch.nn.functional.interpolate(t["x"][None], (s["j"], s["k"]), mode="bilinear")[0]
    ),
)  # fmt: skip


def _padded(t: Tensors, s: Sizes) -> Tensors:
    return {"y": torch.nn.functional.pad(t["x"].double(), (s["by"],) * 4, mode="reflect")}


REFLECT = Kind(
    "reflect_pad",
    lambda s: _planes(60, 1000)(s) | {"by": s.log(1, 30)},
    lambda r, s: {
        "x": r.normal(s["t"], s["p"], s["h"], s["w"]),
        "y": r.out(s["t"], s["p"], s["h"] + 2 * s["by"], s["w"] + 2 * s["by"]),
    },
    ours(kernels.reflect_pad, "x y by"),
    theirs(
        rivals.reflect_pad, "x y h w by",
        lambda s, c: (cdiv(s["w"] + 2 * s["by"], c["B"]), s["h"] + 2 * s["by"], s["p"]),
    ),
    lambda s: each(B=(128, 256, 512, 1024), num_warps=(1, 2, 4, 4)),
    _padded,
)  # fmt: skip

KINDS = (SEVEN, LIFE, BLUR, DILATE, RESIZE, REFLECT)
