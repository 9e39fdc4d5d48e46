"""What the language says to write for functions of others gives what these give."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from frontend_cases import load_text

import tilec
import tilec.language as tl
from tilec.frontend.habits import module_help
from tilec.language import elsewhere
from tilec.language.elsewhere import INSTEAD

ROOT = Path(__file__).resolve().parents[2]
N = 16
RANDOM = np.random.default_rng(0)
FLOATS = [RANDOM.standard_normal(N).astype(np.float32) for _ in range(2)]
PARTS = [RANDOM.uniform(-0.9, 0.9, N).astype(np.float32) for _ in range(2)]
HOLES = [np.where(RANDOM.random(N) < 0.4, np.nan, x).astype(np.float32) for x in FLOATS]
WHOLE = [RANDOM.integers(1, high, N).astype(np.int32) for high in (90, 7)]
FLAGS = [x > 0 for x in FLOATS]
SQUARES = [RANDOM.standard_normal((N, N)).astype(np.float32) for _ in range(2)]

COMMON = """
    n, axis, low, high, shift, times, begin, end = N, 0, -0.5, 0.5, 3, 2, -1.0, 2.0
    slope, value, weight, dtype, shape = 0.1, 2.0, 0.25, tl.f32, (N,)
    rows, columns = tl.arange(N)[:, None], tl.arange(N)[None, :]
"""


def one(*names: str) -> dict[str, Callable[..., Any]]:
    """NumPy's functions of x."""
    return {name: (lambda x, y, name=name: getattr(np, name)(x)) for name in names}


def two(*names: str) -> dict[str, Callable[..., Any]]:
    """NumPy's functions of x and y."""
    return {name: (lambda x, y, name=name: getattr(np, name)(x, y)) for name in names}


COMPARISONS = two("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
GROUPS: dict[str, tuple[list[np.ndarray], dict[str, Callable[..., Any]]]] = {
    "floats": (
        FLOATS,
        {
            **two("add", "subtract", "multiply", "divide", "true_divide", "fmod", "hypot", "fmax"),
            **two("fmin", "logaddexp", "inner", "vdot", "arctan2"),
            **one("negative", "positive", "absolute", "fabs", "square", "reciprocal", "arctan"),
            **one("arcsinh", "deg2rad", "rad2deg", "rint", "around", "sign", "mean", "var", "std"),
            **one("amax", "amin", "ptp", "argsort", "zeros_like", "ones_like", "ravel"),
            "cumulative_sum": lambda x, y: np.cumsum(x),
            "clip": lambda x, y: np.clip(x, -0.5, 0.5),
            "clamp_min": lambda x, y: np.maximum(x, -0.5),
            "clamp_max": lambda x, y: np.minimum(x, 0.5),
            "average": lambda x, y: np.average(x, weights=y),
            "norm": lambda x, y: np.linalg.norm(x),
            "relu": lambda x, y: np.maximum(x, 0),
            "leaky_relu": lambda x, y: np.where(x > 0, x, 0.1 * x),
            "elu": lambda x, y: np.where(x > 0, x, np.expm1(x)),
            "softplus": lambda x, y: np.log1p(np.exp(x)),
            "lerp": lambda x, y: x + (y - x) * 0.25,
            "logsumexp": lambda x, y: np.log(np.exp(x).sum()),
            "log_softmax": lambda x, y: x - np.log(np.exp(x).sum()),
            "fmaf": lambda x, y: x * y + x,
            "expf": lambda x, y: np.exp(x),
            "__expf": lambda x, y: np.exp(x),
            "linspace": lambda x, y: np.linspace(-1, 2, N),
            "flip": lambda x, y: np.flip(x),
            "roll": lambda x, y: np.roll(x, 3),
            "ones": lambda x, y: np.ones(N),
            "empty_like": lambda x, y: np.zeros(N),
        },
    ),
    "parts of one": (PARTS, one("arccos", "arcsin", "arctanh")),
    "numbers and none": (
        HOLES, one("isfinite", "isinf", "nan_to_num", "nansum", "nanmax", "nanmin")
    ),
    "whole": (
        WHOLE,
        {
            **COMPARISONS,
            **two("floor_divide", "mod", "remainder", "bitwise_and", "bitwise_or", "bitwise_xor"),
            **two("left_shift", "right_shift"),
            **one("invert", "bitwise_not", "count_nonzero"),
            "xor_sum": lambda x, y: np.bitwise_xor.reduce(x),
            "reduce_or": lambda x, y: np.bitwise_or.reduce(x),
            "__popc": lambda x, y: [bin(v).count("1") for v in x],
        },
    ),
    "flags": (FLAGS, {**two("logical_and", "logical_or", "logical_xor"), **one("logical_not")}),
    "squares": (
        SQUARES,
        {
            **one("tril", "triu", "diagonal", "trace", "matrix_transpose"),
            "eye": lambda x, y: np.eye(N),
        },
    ),
}  # fmt: skip
SEVERAL = {
    "outer": ("x[:, None] * y[None, :]", lambda x, y: np.outer(x, y)),
    "concatenate": ("tl.cat((x, y), axis)", lambda x, y: np.concatenate([x, y])),
    "interleave": (None, lambda x, y: np.stack([x, y], 1).ravel()),
    "repeat": (None, lambda x, y: np.repeat(x, 2)),
    "tile": (None, lambda x, y: np.tile(x, 2)),
    "stack": ("tl.join((x, y), axis)", lambda x, y: np.stack([x, y])),
    "unsqueeze": ("x[:, None]", lambda x, y: x[:, None]),
    "newaxis": ("x[:, None]", lambda x, y: x[:, None]),
}
"""Of two rows, with results of other shapes; what is compared, where the text has more."""


def expression(name: str) -> str:
    """The code in what is said for a name."""
    return re.split(r", (?=m being|mean being|rows being|which)", INSTEAD[name])[0]


def kernel(tmp_path: Path, code: list[str], rank: int) -> Any:
    """A kernel that stores each expression in its row of `out`."""
    sizes = "N" if rank == 1 else "(N, N)"
    at = "0" if rank == 1 else "(0, 0)"
    stores = "".join(
        f"    tl.store(out, ({i}, 0, 0)[:{rank + 1}], tl.zeros((1, N, N)[:{rank + 1}], tl.f32) + "
        f"tl.cast({text}, tl.f32))\n"
        for i, text in enumerate(code)
    )
    text = f"""import tilec
import tilec.language as tl

@tilec.kernel(grid=1, device="emulator")
def k(x_, y_, out, N: tl.const):
    x, y = tl.load(x_, {at}, {sizes}), tl.load(y_, {at}, {sizes})
    z = x{COMMON}    mean, m, weights = tl.sum(x) / n, tl.max(x), y
{stores}"""
    return load_text(text, tmp_path).k


@pytest.mark.parametrize("group", GROUPS)
def test_an_expression_gives_what_the_function_gives(group: str, tmp_path: Path) -> None:
    (x, y), functions = GROUPS[group]
    names = list(functions)
    out = np.full((len(names), *x.shape), np.nan, np.float32)
    kernel(tmp_path, [expression(name) for name in names], x.ndim)(x, y, out, N)
    for name, found in zip(names, out, strict=True):
        wanted = np.broadcast_to(np.asarray(functions[name](x, y), np.float64), x.shape)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("name", SEVERAL)
def test_an_expression_of_another_shape(name: str, tmp_path: Path) -> None:
    text, function = SEVERAL[name]
    assert text is None or text in INSTEAD[name]
    x, y = FLOATS
    wanted = function(x, y)
    text = f"""import tilec
import tilec.language as tl

@tilec.kernel(grid=1, device="emulator")
def k(x_, y_, out, N: tl.const):
    x, y = tl.load(x_, 0, N), tl.load(y_, 0, N){COMMON}
    tl.store(out, (0, 0)[:{wanted.ndim}], {text or expression(name)})
"""
    out = np.full(wanted.shape, np.nan, np.float32)
    load_text(text, tmp_path).k(x, y, out, N)
    np.testing.assert_array_equal(out, wanted)


def test_names_of_types() -> None:
    assert INSTEAD["float"] == INSTEAD["float32"] == "tl.f32"
    assert INSTEAD["bool"] == "tl.i1"
    assert INSTEAD[ml_dtypes.bfloat16.__name__] == "tl.bf16"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stack", "write tl.join"),
        ("repeat", "write tl.reshape"),
        ("__shfl_down_sync", "tiles have no lanes"),
        ("einsum", "write tl.dot"),
        ("max_contiguous", "write nothing"),
        ("expf", r"write tl\.exp\(x\)"),
        ("atomic_Add", "did you mean 'atomic_add'"),
    ],
)
def test_a_name_of_theirs_is_not_guessed(name: str, said: str) -> None:
    (text,) = module_help(tl, name)
    assert re.search(said, text)


OF_PACKAGES = [
    (tilec, "jit", r"write @tilec\.kernel\(grid=\.\.\.\)"),
    (tilec, "Config", r"write @tilec\.autotune\(configs="),
    (tilec, "zeros", r"write tl\.zeros, tl being tilec\.language"),
    (tilec, "blockIdx", r"write tl\.program_id\(axis\), tl being"),
    (tilec, "matmul", r"write tilec\.ops\.matmul"),
    (tilec.ops, "bmm", r"write tilec\.ops\.matmul"),
    (tilec.ops, "scaled_dot_product_attention", r"write tilec\.ops\.attention"),
    (tilec.ops, "layernorm", r"write tilec\.torch\.layers\.layer_norm"),
    (tilec.ops, "softmax", r"write a kernel as in tilec/examples/softmax\.py"),
]


@pytest.mark.parametrize(("package", "name", "said"), OF_PACKAGES)
def test_a_name_of_theirs_in_a_package(package: Any, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; {said}"):
        getattr(package, name)


@pytest.mark.parametrize(("package", "name"), [(tilec, "kernl"), (tilec.ops, "matmull")])
def test_a_misspelt_name_is_python_s_to_guess(package: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'$") as caught:
        getattr(package, name)
    assert (caught.value.name, caught.value.obj) == (name, package)


def test_what_is_said_of_operations_is_there() -> None:
    layers = (ROOT / "tilec/torch/layers.py").read_text()
    for text in elsewhere._OPS.values():  # pyright: ignore[reportPrivateUsage]
        *_, place = text.split()
        package, _, name = place.rpartition(".")
        there = {
            "tilec.ops": hasattr(tilec.ops, name),
            "tilec.torch.layers": f"\ndef {name}(" in layers,
        }
        assert (ROOT / place).exists() if "/" in place else there[package], text


def test_help_shows_parameters() -> None:
    assert list(inspect.signature(tl.take).parameters) == ["x", "indices", "axis"]
    name = next(name for name in dir(tl.gpu) if hasattr(getattr(tl.gpu, name), "__wrapped__"))
    assert "_args" not in inspect.signature(getattr(tl.gpu, name)).parameters


def test_nothing_of_the_packages_own_files_is_offered() -> None:
    assert set(dir(tl)) == {*tl.__all__, "gpu"}
    assert module_help(tl, "lists_of") == ()
