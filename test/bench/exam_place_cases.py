"""The kinds of `exam_places`."""

from __future__ import annotations

import math
from typing import Any

import exam_places as kernels
import torch
import triton_exam_places as rivals
from exam_case import FLOATS, HALVES, blocks, ours, power, theirs, warps
from unseen_case import Kind, Maker, Sizes, Tensors, cdiv, each
from unseen_product_cases import wide


def _flat(s: Any) -> Sizes:
    return {"n": s.log(2**14, 2**25)}


def _binned(t: Tensors, s: Sizes) -> Tensors:
    return {"y": torch.bincount(t["places"], t["weights"].double(), s["k"])}


BINS = Kind(
    "weighted_bins",
    lambda s: {"n": s.log(2**14, 2**24), "k": s.log(16, 65536)},
    lambda r, s: {
        "places": r.whole(0, s["k"], s["n"]),
        "weights": r.positive(s["n"]),
        "y": r.positive(s["k"]) * 0,
    },
    ours(kernels.weighted_bins, "places weights y"),
    theirs(rivals.weighted_bins, "places weights y n", lambda s, c: cdiv(s["n"], c["B"])),
    blocks(512, 1024, 2048),
    _binned,
    added=("y",),
)

DISTINCT = Kind(
    "count_distinct",
    lambda s: {"n": (n := s.log(200, 50000)), "m": max(2, s.rows(n, 2**25))},
    lambda r, s: {
        "x": r.whole(0, s["n"], s["m"], s["n"]).sort(1).values.contiguous(),
        "y": r.out(torch.int32, s["m"]),
    },
    ours(kernels.count_distinct, "x y"),
    theirs(rivals.count_distinct, "x y n", lambda s, c: s["m"]),
    lambda s: [
        {"B": b, "num_warps": w}
        for b, w in ((256, 2), (512, 4), (1024, 4), (2048, 4), (4096, 8))
        if b < max(257, 2 * power(s["n"]))
    ],
    lambda t, s: {"y": (t["x"].diff(dim=1) != 0).sum(1).double() + 1},
)


def _transformed(t: Tensors, s: Sizes) -> Tensors:
    v, step = t["x"].double(), 1
    while step < s["n"]:
        a, b = v.view(s["m"], -1, 2, step).unbind(2)
        v, step = torch.stack([a + b, a - b], 2).view(s["m"], -1), 2 * step
    return {"y": v * 0.25}


HADAMARD = Kind(
    "hadamard",
    lambda s: {
        "n": (n := s.of((128, 256, 1024, 4096))), "m": max(2, s.rows(n, 2**25)),
        "t": s.of(HALVES),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["n"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    },
    ours(kernels.hadamard, "x y 0.25", N="n"),
    theirs(
        rivals.hadamard, "x y 0.25", lambda s, c: s["m"], N="n",
        LOG=lambda s: s["n"].bit_length() - 1,
    ),
    warps(1, 2, 4, 8),
    _transformed,
)  # fmt: skip


def _solved(t: Tensors, s: Sizes) -> Tensors:
    a, b = wide(t, "a", "b")
    return {"x": torch.linalg.solve_triangular(a, b, upper=False)}


SOLVE = Kind(
    "solve_triangles",
    lambda s: {"m": s.log(8, 2000), "n": s.of((16, 32, 50, 64)), "k": s.log(16, 256)},
    lambda r, s: {
        "a": r.normal("f32", s["m"], s["n"], s["n"], by=0.1)
        + 2 * torch.eye(s["n"], device=r.device),
        "b": r.normal("f32", s["m"], s["n"], s["k"]),
        "x": r.out("f32", s["m"], s["n"], s["k"]),
    },
    ours(kernels.solve_triangles, "a b x", N="n"),
    theirs(
        rivals.solve_triangles, "a b x k", lambda s, c: (cdiv(s["k"], c["BM"]), s["m"]),
        N="n", NP=lambda s: power(s["n"]),
    ),
    lambda s: each(BM=(16, 32, 64, 32, 128, 64), num_warps=(1, 1, 2, 2, 4, 4)),
    _solved,
    library=lambda t, s: lambda: torch.linalg.solve_triangular(
        t["a"], t["b"], upper=False, out=t["x"]
    ),
)  # fmt: skip

SWAP = Kind(
    "swap_heads",
    lambda s: {
        "m": s.log(1, 16), "n": s.log(100, 8192), "h": s.log(2, 32), "d": s.of((64, 128)),
        "t": s.of(FLOATS),
    },
    lambda r, s: {
        "x": r.normal(s["t"], s["m"], s["n"], s["h"], s["d"]),
        "y": r.out(s["t"], s["m"], s["h"], s["n"], s["d"]),
    },
    ours(kernels.swap_heads, "x y", D="d"),
    theirs(
        rivals.swap_heads, "x y n h", lambda s, c: (cdiv(s["n"], c["BT"]), s["h"], s["m"]), D="d"
    ),
    lambda s: each(BT=(8, 16, 32, 64, 64), num_warps=(1, 2, 4, 4, 8)),
    lambda t, s: {"y": t["x"].double().transpose(1, 2)},
    library=lambda t, s: lambda: t["y"].copy_(t["x"].transpose(1, 2)),
)  # fmt: skip


def _between(t: Tensors, s: Sizes) -> Tensors:
    x, table = wide(t, "x", "table")
    at = ((x + 3.0) / 0.01).clamp(0, s["k"] - 1)
    cell = at.long().clamp(max=s["k"] - 2)
    return {"y": table[cell] + (at - cell) * (table[cell + 1] - table[cell])}


BETWEEN = Kind(
    "between_points",
    lambda s: {**_flat(s), "k": 600},
    lambda r, s: {
        "x": r.normal("f32", s["n"]),
        "table": r.normal("f32", s["k"]).cumsum(0),
        "y": r.out("f32", s["n"]),
    },
    ours(kernels.between_points, "x table y -3.0 0.01"),
    theirs(
        rivals.between_points, "x table y n k -3.0 0.01", lambda s, c: cdiv(s["n"], c["B"])
    ),
    blocks(512, 1024, 2048),
    _between,
)  # fmt: skip


def _differ(t: Tensors, s: Sizes) -> Tensors:
    shifts = torch.arange(32, device=t["x"].device)
    x, z = ((t[name][..., None] >> shifts & 1).flatten(1).double() for name in "xz")
    return {"y": x @ (1 - z).T + (1 - x) @ z.T}


HAMMING = Kind(
    "hamming",
    lambda s: {"m": s.log(64, 8192), "n": s.log(64, 8192), "k": s.log(2, 64)},
    lambda r, s: {
        "x": r.whole(-(2**31), 2**31, s["m"], s["k"]),
        "z": r.whole(-(2**31), 2**31, s["n"], s["k"]),
        "y": r.out(torch.int32, s["m"], s["n"]),
    },
    ours(kernels.hamming, "x z y"),
    theirs(
        rivals.hamming, "x z y m n k",
        lambda s, c: (cdiv(s["m"], c["BM"]), cdiv(s["n"], c["BN"])),
    ),
    lambda s: each(BM=(32, 64, 64, 32, 128), BN=(64, 64, 128, 128, 64), num_warps=(4, 4, 8, 4, 8)),
    _differ,
)  # fmt: skip


def _hashed(t: Tensors, s: Sizes) -> Tensors:
    low = 0xFFFFFFFF
    h = (t["x"].long() & low) ^ 12345
    for _ in range(2):
        h = ((h ^ (h >> 16)) * 0x85EBCA6B) & low
        h = ((h ^ (h >> 13)) * 0xC2B2AE35) & low
        h = h ^ (h >> 16)
    return {"y": h.double()}


HASH = Kind(
    "hash_words",
    _flat,
    lambda r, s: {
        "x": r.whole(-(2**31), 2**31, s["n"]).view(torch.uint32),
        "y": r.out(torch.uint32, s["n"]),
    },
    ours(kernels.hash_words, "x y 12345"),
    theirs(rivals.hash_words, "x y n 12345", lambda s, c: cdiv(s["n"], c["B"])),
    blocks(512, 1024, 2048),
    _hashed,
)


def _pulled(t: Tensors, s: Sizes) -> Tensors:
    x, mass = wide(t, "x", "mass")
    found = []
    for some in x.split(512, 1):
        d = x[:, None, :] - some[:, :, None]
        near = mass / ((d * d).sum(0) + 1e-2) ** 1.5
        found.append((d * near).sum(2))
    return {"f": torch.cat(found, 1)}


PULL = Kind(
    "pull",
    lambda s: {"n": s.log(500, 20000)},
    lambda r, s: {
        "x": r.normal("f32", 3, s["n"]), "mass": r.positive(s["n"]),
        "f": r.out("f32", 3, s["n"]),
    },
    ours(kernels.pull, "x mass f 1e-2"),
    theirs(rivals.pull, "x mass f n 1e-2", lambda s, c: cdiv(s["n"], c["BM"])),
    lambda s: each(
        BM=(32, 64, 128, 64, 32, 16), BN=(64, 64, 32, 32, 128, 128), num_warps=(4, 4, 4, 8, 4, 4)
    ),
    _pulled,
)  # fmt: skip


def _edited(t: Tensors, s: Sizes) -> Tensors:
    a, b = t["a"], t["b"]
    row = torch.arange(s["n"] + 1, device=a.device).repeat(s["m"], 1)
    at = torch.arange(s["n"] + 1, device=a.device)
    for i in range(s["k"]):
        best = torch.minimum(row[:, 1:] + 1, row[:, :-1] + (b != a[:, i : i + 1]).long())
        best = torch.cat([torch.full_like(best[:, :1], i + 1), best], 1) - at
        row = best.cummin(1).values + at
    return {"y": row[:, -1].double()}


EDIT = Kind(
    "edit_distance",
    lambda s: {"m": s.log(32, 4096), "n": s.log(20, 1000), "k": s.log(20, 500)},
    lambda r, s: {
        "a": r.whole(0, 4, s["m"], s["k"], dtype=torch.int8),
        "b": r.whole(0, 4, s["m"], s["n"], dtype=torch.int8),
        "y": r.out(torch.int32, s["m"]),
    },
    ours(kernels.edit_distance, "a b y", N="n"),
    theirs(rivals.edit_distance, "a b y k n", lambda s, c: s["m"], N=lambda s: power(s["n"])),
    warps(1, 2, 4),
    _edited,
)


def _sparse(r: Maker, s: Sizes) -> Tensors:
    counts = r.whole(0, 2 * s["k"], s["m"])
    total = int(counts.sum())
    starts = torch.cat([counts.new_zeros(1), counts.cumsum(0).int()])
    return {
        "starts": starts.int(), "columns": r.whole(0, s["m"], total),
        "weights": r.normal("f32", total), "x": r.normal(s["t"], s["m"], s["n"]),
        "y": r.out(s["t"], s["m"], s["n"]),
    }  # fmt: skip


def _multiplied(t: Tensors, s: Sizes) -> Tensors:
    starts, columns, weights = t["starts"].long(), t["columns"].long(), t["weights"].double()
    whole = torch.sparse_csr_tensor(starts, columns, weights, (s["m"], s["m"]))
    return {"y": whole @ t["x"].double()}


SPARSE = Kind(
    "sparse_times_rows",
    lambda s: {"m": s.log(500, 50000), "k": s.log(4, 64), "n": s.log(16, 512), "t": s.of(FLOATS)},
    _sparse,
    ours(kernels.sparse_times_rows, "starts columns weights x y"),
    theirs(
        rivals.sparse_times_rows, "starts columns weights x y n",
        lambda s, c: (cdiv(s["n"], c["BN"]), s["m"]),
    ),
    lambda s: each(BN=(64, 128, 128, 256, 32), num_warps=(1, 1, 2, 2, 1)),
    _multiplied,
)  # fmt: skip


def _city(t: Tensors, s: Sizes) -> Tensors:
    return {"y": torch.cdist(*wide(t, "x", "z"), p=1)}


CITY = Kind(
    "city_distances",
    lambda s: {"m": s.log(32, 2048), "n": s.log(32, 2048), "k": s.log(8, 512)},
    lambda r, s: {
        "x": r.normal("f32", s["m"], s["k"]), "z": r.normal("f32", s["n"], s["k"]),
        "y": r.out("f32", s["m"], s["n"]),
    },
    ours(kernels.city_distances, "x z y"),
    theirs(
        rivals.city_distances, "x z y m n k",
        lambda s, c: (cdiv(s["m"], c["BM"]), cdiv(s["n"], c["BN"])),
    ),
    lambda s: each(
        BM=(32, 32, 64, 16, 32), BN=(32, 64, 64, 64, 32), BK=(16, 8, 4, 8, 4),
        num_warps=(4, 4, 8, 4, 4),
    ),
    _city,
)  # fmt: skip

PATHS = Kind(
    "mean_of_paths",
    lambda s: {"m": s.log(8, 2000), "k": s.log(8, 200)},
    lambda r, s: {"y": r.positive(s["m"]) * 0},
    ours(kernels.mean_of_paths, "y 7 0.01 0.05 k"),
    theirs(
        rivals.mean_of_paths, "y 7 0.01 0.05 k", lambda s, c: s["m"] * 1024 // c["B"], PATHS=1024
    ),
    lambda s: each(B=(256, 512, 1024, 1024), num_warps=(4, 4, 4, 8)),
    lambda t, s: {
        "y": t["y"].double() + sum(math.exp(0.01125 * i) for i in range(1, s["k"] + 1)) / s["k"]
    },
    tolerance=0.2,
    added=("y",),
)  # fmt: skip

KINDS = (
    BINS, DISTINCT, HADAMARD, SOLVE, SWAP, BETWEEN, HAMMING, HASH, PULL, EDIT, SPARSE, CITY, PATHS,
)  # fmt: skip
