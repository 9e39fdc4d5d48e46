"""Arguments that are None, tuples, lists, named tuples and dataclasses."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilec
import tilec.language as tl
from tilec.call.call_form import CallForm, kind_of
from tilec.call.jit import Kernel
from tilec.runtime.arrays import describe
from tilec.runtime.errors import ArgumentError
from tilec.runtime.launcher import Launcher
from tilec.tuning.call_key import quick_key, tuning_key

SIZE = 300


@tilec.kernel(grid=lambda x, B: tl.cdiv(x.shape[0], B), device="emulator")
def shifted(x, y, bias=None, scale=None, mask: tl.array = None, B: tl.const = 128):
    """y = (x + bias) * scale, 0 where mask is 0; what is None is left out."""
    at = tl.program_id(0) * B
    tile = tl.load(x, at, B)
    if bias is not None:
        tile += tl.load(bias, at, B)
    if scale is not None:
        tile = tile * scale
    if mask is not None:
        tile = tl.where(tl.load(mask, at, B) != 0, tile, 0.0)
    tl.store(y, at, tile)


@tilec.kernel(grid=lambda xs, B: tl.cdiv(xs[0].shape[0], B), device="emulator")
def total(xs, y, B: tl.const = 128):
    """The sum of arrays of any dtypes, times their number."""
    at = tl.program_id(0) * B
    tile = tl.zeros((B,), tl.f32)
    for x in xs:
        tile += tl.load(x, at, B).to(tl.f32)
    tl.store(y, at, tile * len(xs))


class Norm(NamedTuple):
    weight: Any
    bias: Any
    eps: float


@dataclasses.dataclass
class Options:
    pair: tuple[float, Any]
    B: tl.const
    kind: str = "scaled"
    norm: Any = None


@tilec.kernel(grid=lambda x, o: tl.cdiv(x.shape[0], o.B), device="emulator")
def normed(x, y, o):
    """Reads parts by name and by number, some of them in a helper."""
    at = tl.program_id(0) * o.B
    tile = tl.load(x, at, o.B) + tl.load(o.pair[1], at, o.B)
    if o.kind == "scaled":
        tile = tile * o.pair[0]
    if o.norm is not None:
        tile = affine(tile, at, o.norm, o.B)
    tl.store(y, at, tile)


def affine(tile, at, norm, B: tl.const):
    if norm.bias is not None:
        tile += tl.load(norm.bias, at, B)
    return tile * tl.load(norm.weight, at, B) + norm.eps


def vectors(count: int, dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.random(SIZE).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("scale", [None, 3, 0.5, np.float32(2), np.bool_(True)])
@pytest.mark.parametrize("has_mask", [False, True])
def test_what_is_none_is_left_out(has_bias: bool, scale: Any, has_mask: bool) -> None:
    x, bias = vectors(2)
    mask = (x > 0.5).astype(np.int32)
    y = np.full_like(x, np.nan)
    shifted(x, y, bias if has_bias else None, scale, mask if has_mask else None)
    expected = (x + (bias if has_bias else 0)) * np.float32(1 if scale is None else scale)
    np.testing.assert_array_equal(y, np.where(mask, expected, 0) if has_mask else expected)


@tilec.kernel(grid=1)
def masked(x: tl.array, y: tl.array, mask: tl.array | None, bias: tl.array | None = None):
    row = tl.load(x, 0, SIZE)
    if bias is not None:
        row += tl.load(bias, 0, SIZE)
    tl.store(y, 0, row if mask is None else tl.where(tl.load(mask, 0, SIZE) > 0.5, row, 0.0))


def test_an_annotation_may_name_none() -> None:
    x, mask, bias = vectors(3)
    for some in (None, mask):
        for more in ((), (None,), (bias,)):
            y = np.full_like(x, np.nan)
            masked(x, y, some, *more)
            expected = x + bias if more and more[0] is not None else x
            np.testing.assert_array_equal(y, expected if some is None else expected * (mask > 0.5))
    with pytest.raises(ArgumentError, match="argument 'x': expected an array, found None"):
        masked(None, x, None)
    with pytest.raises(TypeError, match="unsupported operand"):
        tl.array | int  # pyright: ignore


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("kind", [tuple, list])
def test_a_list_of_arrays(count: int, kind: Any) -> None:
    xs = [x.astype(dtype) for x, dtype in zip(vectors(count), ("f4", "f2", "i4") * 2, strict=False)]
    y = np.full(SIZE, np.nan, np.float32)
    total(kind(xs), y, B=64)
    np.testing.assert_allclose(y, count * sum(x.astype(np.float32) for x in xs), rtol=1e-6)


@pytest.mark.parametrize("options", [
    {}, {"kind": "plain"}, {"norm": (True, False)}, {"norm": (True, True)}
])  # fmt: skip
def test_objects_with_fields(options: dict[str, Any]) -> None:
    x, other, weight, bias = vectors(4)
    has = options.pop("norm", None)
    norm = has and Norm(weight, bias if has[1] else None, 0.25)
    for block in (32, 128):
        y = np.full_like(x, np.nan)
        normed(x, y, Options((2.0, other), block, norm=norm, **options))
        expected = (x + other) * (1 if options else 2)
        if has:
            expected = (expected + (bias if has[1] else 0)) * weight + np.float32(0.25)
        np.testing.assert_allclose(y, expected, rtol=1e-6)
        assert normed.compiled(x, y, Options((2.0, other), block)).grid == (
            f"cdiv(x.shape[0], {block})", "1", "1")  # fmt: skip


def test_calls_of_one_form_are_compiled_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TILEC_CACHE_DIR", str(tmp_path))
    seen = []
    original = Kernel._compile
    monkeypatch.setattr(
        Kernel, "_compile", lambda self, *rest: (seen.append(rest), original(self, *rest))[1]
    )
    x, y, bias = vectors(3)
    for kernel in (shifted.on("emulator"), shifted.on("emulator")):  # the second from the disk
        kernel(x, y)
        kernel(x, y, None, None)
        kernel(x, y, bias)
        kernel(x, y, bias=bias)
        kernel(x, y, None, 2.0)
        kernel(x, y, None, 3.0)
    assert len(seen) == 3


def test_a_changed_helper_is_seen_by_calls_with_groups(tmp_path: Path) -> None:
    names: dict[str, Any] = {"tl": tl, "tilec": tilec}
    path = tmp_path / "cell.py"

    def define(text: str) -> None:
        path.write_text(text)
        exec(compile(text, str(path), "exec"), names)

    define("def helper(t):\n    return t + 1.0\n")
    kernel_path = tmp_path / "kernel.py"
    kernel_path.write_text(
        "@tilec.kernel(grid=1, device='emulator')\n"
        "def k(xs, y):\n    tl.store(y, 0, helper(tl.load(xs[0], 0, 32)))\n"
    )
    exec(compile(kernel_path.read_text(), str(kernel_path), "exec"), names)
    x, y = np.zeros(32, np.float32), np.zeros(32, np.float32)
    names["k"]([x], y)
    assert y[0] == 1
    # What a launch on a GPU compares, which does not go the whole way again.
    launcher, _ = names["k"].taken_apart({"xs": [x], "y": y})
    assert launcher.outside == names["k"].outside != ()
    define("def helper(t):\n    return t + 5.0\n")
    names["k"]([x], y)
    assert y[0] == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: total([], x), "tuple index out of range"),
        (lambda x: total(x, x), "the array 'xs' has no|not subscriptable|cannot be"),
        (lambda x: total(None, x), "'xs' is None in this call"),
        (lambda x: total([x, [x]], x), "found a tuple of 1"),
        (lambda x: shifted([x], x), "expected one of no names, found 'shape'"),
        (lambda x: shifted(x, x, mask=[x]), "argument 'mask': expected an array, found list"),
        (lambda x: normed(x, x, Norm(x, x, 1.0)), "found 'B'"),
        (lambda x: normed(x, x, Options((1.0, "no array"), 64)), "found the constant 'no array'"),
        (lambda x: total([x, object()], x), "argument 'xs_1': expected an array, found object"),
    ],
)
def test_wrong_groups(call: Any, message: str) -> None:
    with pytest.raises((tilec.CompileError, ArgumentError), match=message):
        call(vectors(1)[0])


def test_a_list_that_holds_itself_is_an_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ArgumentError, match="more than 8 tuples"):
        total(endless, vectors(1)[0])


def test_specs_name_parts() -> None:
    specs = ["x:f32[?]", "y:f32[?]", "o.pair[1]:f32[?]", "o.norm.weight:f32[?]", "o.pair[0]:f32",
             "o.norm.eps:f32"]  # fmt: skip
    constants = {"o.B": 64, "o.kind": "scaled", "o.norm.bias": None}
    kernel = normed.compile(specs, constants, target="sm_90a")
    assert [p.name for p in kernel.parameters] == [
        "x", "y", "o_pair_0", "o_pair_1", "o_norm_weight", "o_norm_eps"]  # fmt: skip
    plain = shifted.compile(["x:f32[?]", "y:f32[?]", "scale:f32"], target="sm_90a")
    assert [p.name for p in plain.parameters] == ["x", "y", "scale"]


@pytest.mark.parametrize(
    ("specs", "constants", "message"),
    [
        (["x:f32[?]", "y:f32[?]", "bias[1]:f32[?]"], {}, "expected parts 0 to 0, found \\[1\\]"),
        (["x:f32[?]", "x[0]:f32[?]", "y:f32[?]"], {}, "'x' is given as a whole and in parts"),
        (["x:f32[?]", "y:f32[?]"], {"bias": 3}, "'bias' is no constant"),
        (["x:f32[?]", "y:f32[?]", "z.a:f32"], {}, "no argument 'z.a'"),
        (["x:f32[?]"], {}, "argument 'y' has no spec"),
        (["x:f32[?]", "y:f32[?]", "mask.a:i32[?]"], {}, "'mask' is no group"),
        (["x:f32[?]", "y:f32[?]"], {"B[0]": 3}, "'B' is no group"),
    ],
)
def test_wrong_specs_of_parts(specs: list[str], constants: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shifted.compile(specs, constants, target="sm_90a")


def test_a_tuned_choice_is_of_the_parts() -> None:
    x, y = vectors(2)
    bound = [total.described({"xs": xs, "y": y, "B": 64}) for xs in ([x], [x, y], [x.astype("f2")])]
    machine = type("machine", (), {"target": type("t", (), {"name": "sm_90a"}), "name": "gpu"})
    machine.multiprocessors, machine.memory_gb_per_s = 132, 4800.0
    keys = [str(tuning_key(total, values, {}, machine)) for values in bound]
    assert len(set(keys)) == 3
    options = [Options((1.0, array), 64) for array in (x, x[:100], x.astype("f2"))]
    assert len(set(map(quick_key, options))) == 3
    assert quick_key(options[0]) == quick_key(Options((2.0, y), 64))


def test_parts_by_name_and_their_launcher() -> None:
    x, y = vectors(2)
    launcher, parts = total.taken_apart({"xs": (x, y), "y": y, "B": 64})
    assert isinstance(launcher, Launcher)
    assert list(parts) == ["xs_0", "xs_1", "y", "B"]
    launcher(*parts.values())
    own, same = shifted.taken_apart({"x": x, "y": y, "bias": y, "scale": x, "mask": x, "B": 64})
    assert own is shifted
    assert list(same) == ["x", "y", "bias", "scale", "mask", "B"]


def test_names_of_parts_are_new() -> None:
    @tilec.kernel(grid=1, device="emulator")
    def k(xs, xs_0, y):
        tl.store(y, 0, tl.load(xs[0], 0, 32) - tl.load(xs_0, 0, 32))

    x, other = vectors(2)
    y = np.zeros(32, np.float32)
    k((x,), other, y)
    np.testing.assert_array_equal(y, x[:32] - other[:32])
    form = CallForm(k.parameters, [kind_of((x,)), "array", "array"])
    assert [argument.name for argument in form.arguments] == ["xs_0_", "xs_0", "y"]
    assert describe(x).shape == (SIZE,)


def test_an_array_of_ours_is_no_group() -> None:
    x, bias = vectors(2)
    y = np.full_like(x, np.nan)
    shifted(describe(x), describe(y), describe(bias))
    np.testing.assert_array_equal(y, x + bias)


def test_what_has_a_protocol_of_arrays_is_no_group() -> None:
    @dataclasses.dataclass
    class Wrapped:
        data: Any

        def __dlpack__(self, **named: Any) -> Any:
            return self.data.__dlpack__(**named)

        def __dlpack_device__(self) -> Any:
            return self.data.__dlpack_device__()

    x, bias = vectors(2)
    y = np.full_like(x, np.nan)
    shifted(x, y, Wrapped(bias))
    np.testing.assert_array_equal(y, x + bias)
