"""Cases of the kernels of `drawn_kernels` and `drawn_small_kernels`, and of examples whose cases
are of fixed sizes elsewhere: one function a kind, the sizes given.

`tensors`-free and compiler-free, as `bench_cases`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from array_spec import ArraySpec, row_major
from layer_cases import LayerCase, Step

from tilec.examples.softmax import longest_row, row_tile

EPS = 1e-5

ELEMENTWISE: dict[str, tuple[str, ...]] = {
    "scale_array": ("x",),
    "activate": ("x", "y"),
    "gate": ("x", "g", "y"),
    "blend": ("x", "z", "w", "y"),
    "mix_products": ("x", "z", "w", "u", "y"),
    "mix_gated": ("x", "z", "w", "u", "g", "y"),
    "adam": ("x", "grad", "mean", "square"),
}
"""Kernel -> its arrays."""
FACTOR = -1.0
"""What `scale_array` multiplies by: after thousands of launches the numbers are as before."""
RATE = 2.0**-10
"""The step of `adam`."""


def _case(
    kernel: str,
    label: str,
    arrays: Sequence[ArraySpec],
    steps: Step | Sequence[Step],
    outputs: tuple[str, ...],
    sizes: dict[str, Any] | None = None,
    changed: tuple[str, ...] = (),
) -> LayerCase:
    steps = (steps,) if isinstance(steps, Step) else tuple(steps)
    return LayerCase(
        kernel, label, tuple(arrays), steps, outputs, sizes or {}, flops=0, changed=changed
    )


def elementwise(kernel: str, dtype: str, count: int) -> LayerCase:
    """One of `ELEMENTWISE` on arrays of `count` elements; Adam is of f32 alone."""
    dtype = "f32" if kernel == "adam" else dtype
    names = ELEMENTWISE[kernel]
    numbers = {"scale_array": (FACTOR,), "adam": (RATE,)}.get(kernel, ())
    changed = {"scale_array": ("x",), "adam": ("x", "mean", "square")}.get(kernel, ())
    return _case(
        kernel,
        f"{dtype} {count}",
        [row_major(name, dtype, (count,)) for name in names],
        Step(kernel, (*names, *numbers)),
        changed or names[-1:],
        changed=changed,
    )


def softmax(dtype: str, rows: int, columns: int) -> LayerCase:
    """As `tilec.examples.softmax.softmax_rows` chooses."""
    step = Step("softmax", ("x", "y"), (("N", row_tile(columns)),))
    if columns > longest_row():
        step = Step("online_softmax", ("x", "y"))
    arrays = [row_major(name, dtype, (rows, columns)) for name in "xy"]
    return _case("softmax", f"{dtype} {rows}x{columns}", arrays, step, ("y",))


def layer_norm(dtype: str, rows: int, columns: int) -> LayerCase:
    """Rows of one tile."""
    x, y = (row_major(name, dtype, (rows, columns)) for name in "xy")
    weight, bias = (row_major(name, dtype, (columns,)) for name in ("weight", "bias"))
    step = Step("layer_norm", ("x", "weight", "bias", "y", EPS), (("N", row_tile(columns)),))
    return _case("layer_norm", f"{dtype} {rows}x{columns}", [x, weight, bias, y], step, ("y",))


def long_rms_norm(dtype: str, rows: int, columns: int) -> LayerCase:
    """Rows longer than a CTA keeps."""
    x, y = (row_major(name, dtype, (rows, columns)) for name in "xy")
    step = Step("whole_rms_norm", ("x", "weight", "y", EPS), (("N", row_tile(columns)),))
    if columns > longest_row():
        step = Step("long_rms_norm", ("x", "weight", "y", EPS))
    arrays = [x, row_major("weight", dtype, (columns,)), y]
    label = f"{dtype} {rows}x{columns}"
    return _case("long_rms_norm", label, arrays, step, ("y",), {"eps": EPS})


def quantisation(dtype: str, rows: int, columns: int) -> LayerCase:
    """Rows to fp8 with a scale each."""
    arrays = [
        row_major("x", dtype, (rows, columns)),
        row_major("y", "f8E4M3FN", (rows, columns)),
        row_major("scales", "f32", (rows,)),
    ]
    step = Step("quantise_rows", ("x", "y", "scales"), (("N", row_tile(columns)),))
    if columns > longest_row():
        step = Step("quantise_long_rows", ("x", "y", "scales"))
    return _case("quantise_rows", f"{dtype} {rows}x{columns}", arrays, step, ("y", "scales"))


def biased_product(dtype: str, m: int, n: int, k: int) -> LayerCase:
    """A bias, an activation and a residual behind a product."""
    shapes = {"a": (m, k), "b": (k, n), "bias": (n,), "residual": (m, n), "c": (m, n)}
    arrays = [row_major(name, dtype, shape) for name, shape in shapes.items()]
    step = Step("biased_product", tuple(shapes))
    return _case("biased_product", f"{dtype} {m}x{n}x{k}", arrays, step, ("c",))


def shared_attention(
    dtype: str,
    heads: tuple[int, int, int],
    length: int,
    widths: tuple[int, int],
    causal: bool,
    window: int | None,
) -> LayerCase:
    """`heads`: sequences, heads of queries, heads of keys; `widths`: elements of a key, a value."""
    batch, many, few = heads
    shapes = {
        "q": (batch, many, length, widths[0]),
        "k": (batch, few, length, widths[0]),
        "v": (batch, few, length, widths[1]),
        "o": (batch, many, length, widths[1]),
    }
    scale = 1 / math.sqrt(widths[0])
    constants = (("D", widths[0]), ("DV", widths[1]), ("CAUSAL", causal), ("WINDOW", window))
    kind = f"window {window}" if window else "causal" if causal else "full"
    return _case(
        "shared_attention",
        f"{dtype} D{widths[0]}/{widths[1]} {batch}x{many}/{few}x{length} {kind}",
        [row_major(name, dtype, shape) for name, shape in shapes.items()],
        Step("shared_attention", (*shapes, scale), constants),
        ("o",),
        {"scale": scale, "causal": causal, "window": window},
    )


def chunked_recurrence(batch: int, heads: int, length: int, key: int, value: int) -> LayerCase:
    """A matrix of states a head that decays and takes a product a step, bf16."""
    lead = (batch, heads, length)
    widths = {"q": (key,), "k": (key,), "v": (value,), "decay": (), "o": (value,)}
    arrays = [
        row_major(name, "f32" if name == "decay" else "bf16", (*lead, *width))
        for name, width in widths.items()
    ]
    step = Step("chunked_recurrence", tuple(widths), (("D", key),))
    label = f"{batch}x{heads}x{length} {key}/{value}"
    return _case("chunked_recurrence", label, arrays, step, ("o",))


STATES = 16
"""Numbers of a channel's state in `selective_scan`."""


def selective_scan(batch: int, length: int, channels: int) -> LayerCase:
    """Mamba's recurrence in f32."""
    shapes = {
        "x": (batch, length, channels),
        "steps": (batch, length, channels),
        "decay": (channels, STATES),
        "entry": (batch, length, STATES),
        "readout": (batch, length, STATES),
        "skip": (channels,),
        "y": (batch, length, channels),
    }
    arrays = [row_major(name, "f32", shape) for name, shape in shapes.items()]
    step = Step("selective_scan", tuple(shapes), (("N", STATES),))
    return _case("selective_scan", f"{batch}x{length}x{channels}", arrays, step, ("y",))


def midpoint_sums(programs: int, points: int, waves: bool) -> LayerCase:
    """An integral over [0, 1) in parts of `points` points, a part a program."""
    width = 1.0 / (programs * points)
    step = Step("midpoint_sums", ("y", width), (("N", points), ("WAVES", waves)))
    label = f"{programs}x{points}{' waves' if waves else ''}"
    arrays = [row_major("y", "f32", (programs,))]
    sizes = {"width": width, "points": points, "waves": waves}
    return _case("midpoint_sums", label, arrays, step, ("y",), sizes)


def count_hits(programs: int, points: int) -> LayerCase:
    """Random points, `points` a program, and how many are in a circle."""
    step = Step("count_hits", ("y",), (("N", points),))
    arrays = [row_major("y", "f32", (programs,))]
    return _case("count_hits", f"{programs}x{points}", arrays, step, ("y",), {"points": points})


def stencil(dtype: str, rows: int, columns: int, radius: int) -> LayerCase:
    """A cross of neighbours."""
    arrays = [row_major(name, dtype, (rows, columns)) for name in "xy"]
    step = Step("stencil", ("x", "y"), (("RADIUS", radius),))
    label = f"{dtype} {rows}x{columns} {radius}"
    return _case("stencil", label, arrays, step, ("y",), {"radius": radius})


def sparse_rows(rows: int, columns: int, mean: int) -> LayerCase:
    """A sparse matrix of `mean` elements a row times a vector, f32; `_fill` makes rows uneven."""
    arrays = [
        row_major("starts", "i32", (rows + 1,)),
        row_major("columns", "i32", (rows * mean,)),
        row_major("values", "f32", (rows * mean,)),
        row_major("x", "f32", (columns,)),
        row_major("y", "f32", (rows,)),
    ]
    step = Step("multiply_sparse_rows", ("starts", "columns", "values", "x", "y"))
    label = f"{rows}x{columns} of {mean}"
    return _case("multiply_sparse_rows", label, arrays, step, ("y",), {"mean": mean})


SORTED_TOGETHER = 1024
"""Elements that a program sorts: rows of fewer are sorted several at a time."""


def sort_rows(rows: int, columns: int) -> LayerCase:
    """Short rows in f32, sorted."""
    log = max(1, (columns - 1).bit_length())
    together = max(1, SORTED_TOGETHER >> log)
    arrays = [row_major(name, "f32", (rows, columns)) for name in "xy"]
    constants = (("N", 1 << log), ("LOG", log), ("R", together))
    step = Step("sort_rows", ("x", "y"), constants)
    sizes = {"tile": 1 << log, "together": together}
    return _case("sort_rows", f"{rows}x{columns}", arrays, step, ("y",), sizes)


def largest_of_rows(rows: int, columns: int, count: int) -> LayerCase:
    """The `count` largest of each row, f32."""
    arrays = [row_major("x", "f32", (rows, columns)), row_major("y", "f32", (rows, count))]
    step = Step("largest_of_rows", ("x", "y"), (("N", row_tile(columns)), ("K", count)))
    label = f"{count} of {rows}x{columns}"
    return _case("largest_of_rows", label, arrays, step, ("y",), {"count": count})


def ordered_rows(
    dtype: str, rows: int, columns: int, count: int | None = None, *, places: bool = False
) -> LayerCase:
    """Rows sorted, or the `count` largest of each, by `tl.sort` and `tl.topk`; with `places`, where
    they were."""
    kernel = "order_rows" if count is None else "first_of_rows"
    made = rows, columns if count is None else count
    arrays = [row_major("x", dtype, (rows, columns)), row_major("y", dtype, made)]
    constants: dict[str, Any] = {"N": columns} | ({} if count is None else {"K": count})
    constants["R"] = max(1, SORTED_TOGETHER >> max(1, (columns - 1).bit_length()))
    if places:
        kernel += "_with_places"
        arrays.append(row_major("places", "i32", made))
    names = tuple(spec.name for spec in arrays)
    label = f"{dtype} {'' if count is None else f'{count} of '}{rows}x{columns}"
    step = Step(kernel, names, tuple(constants.items()))
    return _case(kernel, label, arrays, step, names[1:], {"count": count})
