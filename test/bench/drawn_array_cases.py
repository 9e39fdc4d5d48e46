"""Cases of the kernels of `drawn_array_kernels` and `drawn_product_kernels`: one function a kind,
the sizes given.

`tensors`-free and compiler-free, as `bench_cases`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from array_spec import row_major
from drawn_layers import EPS
from layer_cases import LayerCase, Step

from tilec.examples.softmax import row_tile

Shapes = dict[str, tuple[int, ...]]
"""An array's name -> its shape."""


def case_of(
    kernel: str,
    label: str,
    dtype: str,
    shapes: Shapes,
    steps: Step | Sequence[Step],
    outputs: tuple[str, ...],
    sizes: Mapping[str, Any] | None = None,
    *,
    dtypes: Mapping[str, str] | None = None,
    changed: tuple[str, ...] = (),
) -> LayerCase:
    """A case of row-major arrays of `dtype`, but for those that `dtypes` names."""
    found = dict.fromkeys(shapes, dtype) | dict(dtypes or {})
    arrays = tuple(row_major(name, found[name], shape) for name, shape in shapes.items())
    steps = (steps,) if isinstance(steps, Step) else tuple(steps)
    return LayerCase(
        kernel, f"{dtype} {label}", arrays, steps, outputs, sizes or {}, flops=0, changed=changed
    )


def swapped_axes(dtype: str, batch: int, rows: int, columns: int) -> LayerCase:
    """Matrices transposed, or images from one order of channels to the other."""
    shapes = {"x": (batch, rows, columns), "y": (batch, columns, rows)}
    label = f"{batch}x{rows}x{columns}"
    return case_of("swap_axes", label, dtype, shapes, Step("swap_axes", ("x", "y")), ("y",))


def rotation(dtype: str, batch: int, time: int, heads: int, width: int, pairs: bool) -> LayerCase:
    """Rotary embedding of `heads` heads of `width` elements."""
    every, half = (batch, time, heads, width), width // 2
    shapes = {"x": every, "cosines": (time, half), "sines": (time, half), "y": every}
    kernel = "rotate_pairs" if pairs else "rotate_halves"
    step = Step(kernel, tuple(shapes), (("H", heads), ("HALF", half)))
    label = f"{batch}x{time}x{heads}x{width}"
    wide = {"cosines": "f32", "sines": "f32"}
    return case_of(kernel, label, dtype, shapes, step, ("y",), dtypes=wide)


def bags(dtype: str, words: int, width: int, count: int, each: int) -> LayerCase:
    """Sums of `each` rows of a table of `words` rows; of one, its rows."""
    label = f"{count}x{each} of {words}x{width}"
    if each == 1:
        shapes: Shapes = {"table": (words, width), "rows": (count,), "out": (count, width)}
        step = Step("gather_rows", tuple(shapes))
        return case_of("gather_rows", label, dtype, shapes, step, ("out",), dtypes={"rows": "i32"})
    shapes = {"table": (words, width), "rows": (count, each), "y": (count, width)}
    step = Step("sum_bags", tuple(shapes))
    return case_of("sum_bags", label, dtype, shapes, step, ("y",), dtypes={"rows": "i32"})


def slots(dtype: str, tokens: int, width: int, places: int) -> LayerCase:
    """Keys and values of `tokens` tokens into caches of `places` rows."""
    new, kept = (tokens, width), (places, width)
    names = ("keys", "values", "slots", "kept_keys", "kept_values")
    shapes: Shapes = dict(zip(names, (new, new, (tokens,), kept, kept), strict=True))
    step = Step("write_slots", names, (("N", row_tile(width)),))
    label = f"{tokens}x{width} into {places}"
    outputs = names[3:]
    return case_of(
        "write_slots", label, dtype, shapes, step, outputs,
        dtypes={"slots": "i32"}, changed=outputs,
    )  # fmt: skip


FILTER = 4
"""Elements of a filter, as Mamba's."""


def short_filter(dtype: str, batch: int, time: int, channels: int, last: bool) -> LayerCase:
    """A causal filter of each channel; `last`: channels lie side by side."""
    every = (batch, time, channels) if last else (batch, channels, time)
    shapes = {"x": every, "weight": (channels, FILTER), "bias": (channels,), "y": every}
    kernel = "filter_columns" if last else "filter_rows"
    step = Step(kernel, tuple(shapes), (("WIDTH", FILTER),))
    label = f"{'x'.join(map(str, every))}"
    return case_of(kernel, label, dtype, shapes, step, ("y",))


def group_norm(dtype: str, batch: int, groups: int, channels: int, space: int) -> LayerCase:
    """`channels` of a group, each of `space` elements."""
    every = (batch, groups * channels, space)
    shapes = {"x": every, "weight": every[1:2], "bias": every[1:2], "y": every}
    constants = (("CHANNELS", channels), ("SPACE", space))
    step = Step("group_norm", (*shapes, EPS), constants)
    label = f"{batch}x{groups}x{channels}x{space}"
    return case_of("group_norm", label, dtype, shapes, step, ("y",), {"groups": groups})


PARTS = 64
"""Programs that share the rows of a block of columns."""


def column_moments(dtype: str, rows: int, columns: int) -> LayerCase:
    """Means and variances of columns, as batch norm has them."""
    part = (PARTS, columns)
    shapes = {
        "x": (rows, columns), "sums": part, "squares": part,
        "mean": (columns,), "variance": (columns,),
    }  # fmt: skip
    steps = (
        Step("sum_columns_in_parts", ("x", "sums", "squares")),
        Step("join_moments", (*tuple(shapes)[1:], float(rows)), (("PARTS", PARTS),)),
    )
    return case_of(
        *("column_moments", f"{rows}x{columns}", dtype, shapes, steps),
        ("mean", "variance"),
        dtypes=dict.fromkeys(tuple(shapes)[1:], "f32"),
    )


LONGEST_SCAN = 32768
"""Elements of a row that a CTA adds up at once: a scan holds as many again beside them."""


def running_rows(dtype: str, rows: int, columns: int) -> LayerCase:
    """Running sums along rows."""
    step = Step("add_along_rows", ("x", "y"), (("N", row_tile(columns)),))
    if columns > LONGEST_SCAN:
        step = Step("add_along_long_rows", ("x", "y"))
    shapes = {"x": (rows, columns), "y": (rows, columns)}
    label = f"{rows}x{columns}"
    return case_of("add_along_rows", label, dtype, shapes, step, ("y",))


def running_columns(dtype: str, batch: int, rows: int, columns: int) -> LayerCase:
    """Running sums along columns."""
    shapes = dict.fromkeys("xy", (batch, rows, columns))
    step = Step("add_along_columns", ("x", "y"))
    label = f"{batch}x{rows}x{columns}"
    return case_of("add_along_columns", label, dtype, shapes, step, ("y",))


def pooling(dtype: str, planes: int, sides: tuple[int, int], window: tuple[int, int]) -> LayerCase:
    """The largest of windows of `window[0]` a side, `window[1]` apart."""
    side, step_size = window
    margin = side // 2 if side % 2 else 0
    made = tuple((n + 2 * margin - side) // step_size + 1 for n in sides)
    shapes = {"x": (planes, *sides), "y": (planes, *made)}
    sizes = {"SIDE": side, "STEP": step_size, "MARGIN": margin}
    step = Step("pool", ("x", "y"), tuple(sizes.items()))
    label = f"{planes}x{sides[0]}x{sides[1]} {side}/{step_size}"
    return case_of("pool", label, dtype, shapes, step, ("y",), sizes)


SEED, ZEROS = 1234567, 0.25
"""Of random numbers, and the part of them that makes zeros."""


def dropped(dtype: str, count: int) -> LayerCase:
    """Dropout and a residual."""
    shapes: Shapes = {name: (count,) for name in ("x", "residual", "y")}
    step = Step("add_dropped", (*shapes, SEED, ZEROS))
    return case_of("add_dropped", f"{count}", dtype, shapes, step, ("y",))


def gated_halves(dtype: str, rows: int, columns: int) -> LayerCase:
    """Rows of a gate and what it gates, `columns` each."""
    shapes = {"x": (rows, 2 * columns), "y": (rows, columns)}
    step = Step("gate_halves", ("x", "y"))
    return case_of("gate_halves", f"{rows}x{columns}", dtype, shapes, step, ("y",))


SCALE = 0.125
"""Of scores."""


def masked_softmax(dtype: str, matrices: int, rows: int, columns: int) -> LayerCase:
    """Scores with a bias, of which each matrix has its own number of columns."""
    every = (matrices, rows, columns)
    shapes = {"x": every, "bias": every[1:], "lengths": every[:1], "y": every}
    step = Step("masked_softmax", (*shapes, SCALE), (("N", row_tile(columns)),))
    label = f"{matrices}x{rows}x{columns}"
    kinds = {"lengths": "i32"}
    return case_of("masked_softmax", label, dtype, shapes, step, ("y",), dtypes=kinds)


DIFFUSION = 0.125
"""What a step of `diffuse` moves."""


def volume(depth: int, rows: int, columns: int) -> LayerCase:
    """A step of diffusion in a volume."""
    shapes = dict.fromkeys("xy", (depth, rows, columns))
    step = Step("diffuse", ("x", "y", DIFFUSION))
    return case_of("diffuse", f"{depth}x{rows}x{columns}", "f32", shapes, step, ("y",))


def segments(dtype: str, count: int, mean: int, columns: int) -> LayerCase:
    """Sums of `count` segments of none to twice `mean` rows."""
    shapes = {"x": (count * mean, columns), "starts": (count + 1,), "y": (count, columns)}
    step = Step("sum_segments", tuple(shapes))
    label = f"{count} of {mean}x{columns}"
    sizes, kinds = {"mean": mean}, {"starts": "i32"}
    return case_of("sum_segments", label, dtype, shapes, step, ("y",), sizes, dtypes=kinds)


def vectors(dtype: str, batch: int, rows: int, columns: int) -> LayerCase:
    """Matrices times a vector each."""
    shapes = {"a": (batch, rows, columns), "x": (batch, columns), "y": (batch, rows)}
    step = Step("multiply_vectors", tuple(shapes))
    label = f"{batch}x{rows}x{columns}"
    return case_of("multiply_vectors", label, dtype, shapes, step, ("y",))


def small_products(dtype: str, count: int, m: int, n: int, k: int) -> LayerCase:
    """Very many small products."""
    shapes = {"a": (count, m, k), "b": (count, k, n), "c": (count, m, n)}
    step = Step("multiply_small", tuple(shapes), (("M", m), ("N", n), ("K", k)))
    label = f"{count}x{m}x{n}x{k}"
    return case_of("multiply_small", label, dtype, shapes, step, ("c",))


def gram(dtype: str, rows: int, columns: int) -> LayerCase:
    """x^T x, in f32."""
    shapes = {"x": (rows, columns), "c": (columns, columns)}
    step, kinds = Step("gram", ("x", "c")), {"c": "f32"}
    return case_of("gram", f"{rows}x{columns}", dtype, shapes, step, ("c",), dtypes=kinds)


def nearest(dtype: str, points: int, centres: int, width: int) -> LayerCase:
    """The nearest centre of each point. How far it is counts; of equal ones peers find others."""
    shapes: Shapes = {
        "x": (points, width), "centres": (centres, width), "least": (points,), "places": (points,)
    }  # fmt: skip
    tile = 1 << max(4, (width - 1).bit_length())
    step = Step("nearest", tuple(shapes), (("D", tile),))
    label = f"{points} of {centres}x{width}"
    kinds = {"least": "f32", "places": "i32"}
    return case_of(
        *("nearest", label, dtype, shapes, step, ("least",), {"tile": tile}),
        dtypes=kinds,
    )


def lstm_cell(dtype: str, batch: int, inputs: int, units: int) -> LayerCase:
    """A step of an LSTM."""
    row = (batch, units)
    shapes = {
        "x": (batch, inputs), "before": row, "state": row,
        "wx": (4, units, inputs), "wh": (4, units, units), "bias": (4, units), "h": row, "c": row,
    }  # fmt: skip
    label = f"{batch}x{inputs}x{units}"
    step = Step("lstm_cell", tuple(shapes))
    return case_of("lstm_cell", label, dtype, shapes, step, ("h", "c"))
