"""Calls whose sizes fall in one class share what was chosen and compiled for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tile_shapes import H200, HOPPER, array, choices, product

import tilec
import tilec.language as tl
from tilec.call.call_class import CallClass, any_class, class_of, class_of_specs, size_class
from tilec.call.jit import Kernel
from tilec.call.shared_code import SharedCode
from tilec.call.specialization import specialize
from tilec.call.tile_choice import Tiles
from tilec.examples.matmul import matmul
from tilec.executable.kernel import CompiledKernel
from tilec.ops.attention_kernel import attention


def test_classes_of_sizes() -> None:
    sizes = range(1, 20_000)
    classes = [size_class(size) for size in sizes]
    assert classes == sorted(classes)
    assert all(
        size <= of <= max(16, 1.0625 * size + 1) for size, of in zip(sizes, classes, strict=True)
    )
    assert [size_class(of) for of in classes] == classes
    assert len(set(classes)) < 240
    assert size_class(2073) == 33 * 64  # as many tiles of 64 rows as it has
    assert {1 << n for n in range(15)} <= set(classes)


def test_a_class_holds_sizes_whole_numbers_and_the_device() -> None:
    @tilec.kernel
    def scaled(x: tl.array, n: int, by: tl.f32, B: tl.const = tl.auto):
        tl.store(x, 0, tl.load(x, n, B) * by)

    def of(length: int, n: int, by: float = 2.0) -> CallClass:
        values = {"x": array(length, dtype="f32"), "n": n, "by": by, "B": tl.auto}
        return class_of(specialize(scaled.parameters, values).parameters, values, H200)

    assert of(1000, 40) == of(1020, 39) == of(1000, 40, 3.0)
    assert len({of(1000, 40), of(1100, 40), of(1000, 70), of(1000, -40)}) == 4
    assert of(1000, 40).sizes == ((1024,), 40, None)
    assert "1024" in of(1000, 40).text
    assert "132" in of(1000, 40).text


def test_where_rows_begin_is_a_class_of_its_own() -> None:
    """In lines, or at multiples of less inside of them; by specs of dense arrays, too."""
    found = []
    for width in (5000, 5008, 5024, 5056):
        values = product(1000, 5000, width)
        parameters = specialize(matmul.parameters, values).parameters
        found.append(class_of(parameters, values, H200))
        shapes = {name: values[name].shape for name in "abc"}
        assert class_of_specs(parameters, shapes, H200, is_most=True) == found[-1]
        assert class_of_specs(parameters, shapes, H200) == replace(found[-1], is_most=False)
    assert [one.pitches for one in found] == [(n, 16, 16) for n in (16, 32, 64, 128)]
    assert len({one.sizes for one in found}) == 1
    assert len({one.text for one in found}) == 4


def test_specs_have_a_class_where_they_say_all_sizes() -> None:
    q = [f"{name}:bf16[2,3,395,64]" for name in "qkvo"]
    found = attention._for([*q, "scale:f32"], {"D": 64}, 32, HOPPER)
    assert found.call is not None
    assert found.call.sizes == (*[(2, 3, 400, 64)] * 4, None)
    half = attention._for([*q[:3], "o:bf16[?,3,?,64]", "scale:f32"], {"D": 64}, 32, HOPPER)
    assert half.call is None
    assert any_class(half.parameters, H200).sizes[3] == (8, 3, 1024, 64)
    given = attention._for(
        [*q[:3], "o:bf16[?,3,?,64]", "scale:f32"], {"D": 64}, 32, HOPPER, {"o": (2, 3, 395, 64)}
    )
    assert given.call == found.call
    with pytest.raises(ValueError, match="'o' is no parameter with as many sizes as 4"):
        attention.compile([*q, "scale:f32"], {"D": 64}, target="sm_90a", sizes={"o": 4})


def test_a_kernel_is_read_once_with_the_same_tiles_for_all_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sized(*sizes: int) -> dict[str, Any]:
        m, n, k = sizes
        arrays = {"a": array(m, k, dtype="f16"), "b": array(k, n, dtype="f16")}
        return {**product(m, n, k), **arrays}

    tiles = choices(matmul, sized(512, 512, 512))
    first, second = (
        class_of(tiles._parameters, sized(*sizes), H200)
        for sizes in ((512, 512, 512), (4096, 4096, 4096))
    )
    read: list[tuple[object, ...]] = []
    build = tiles._build

    def noted(values: dict[str, Any], *others: Any, **said: Any) -> Any:
        read.append((*values.items(), *said.items()))
        return build(values, *others, **said)

    monkeypatch.setattr(tiles, "_build", noted)
    before = tiles.order(first)
    assert tiles.order(second)[0].chosen != before[0].chosen
    assert tiles.order(first) == before
    assert read
    assert len(set(read)) == len(read)


# -- one kernel for many sizes


def test_a_kernel_is_shared_where_the_same_choices_led_to_it() -> None:
    a, b, c = (Tiles((("B", size),), {"B": f"{size}: why"}) for size in (16, 32, 64))
    code, compiled = SharedCode(), []

    def find(order: list[Tiles], taken: Tiles) -> CompiledKernel:
        def compile_() -> CompiledKernel:
            compiled.append(taken)
            decisions = [{"about": "constant", "chosen": "B", "why": "first"}, {"about": "fit"}]
            threads = 32 * (taken.warps or 1)
            made = CompiledKernel("k", "sm_90a", "", (), None, threads, 0, 32, dict(taken.chosen))
            return replace(made, report={"decisions": decisions})

        return code.find("key", order, compile_)

    assert find([a, b], b).constants == find([a, b, c], b).constants == {"B": 32}
    assert compiled == [b]
    assert find([b, c], b).constants == {"B": 32}  # `a` may have been refused or not
    assert find([a, c], c).constants == {"B": 64}
    assert compiled == [b, b, c]
    told = find([b, a], b).report["decisions"]
    assert [entry.get("why") for entry in told] == ["32: why", None]
    wide = replace(a, warps=4)
    assert find([a], a).threads == 32
    assert find([wide], wide).threads == find([wide, b], b).threads == 128
    assert compiled == [b, b, c, a, wide]


def test_classes_with_the_same_tiles_share_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEC_CACHE", "0")
    monkeypatch.setenv("TILEC_TARGET", "sm_90a")

    @tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))
    def times(
        a: tl.array, b: tl.array, c: tl.array,
        BM: tl.const = tl.auto, BN: tl.const = tl.auto, BK: tl.const = tl.auto,
        PRECISION: tl.const = "ieee",
    ):  # fmt: skip
        m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
        acc = tl.zeros((BM, BN), tl.f32)
        for k in tl.range(0, a.shape[1], BK):
            acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
        tl.store(c, (m, n), acc.to(c.dtype))

    compiled: list[Any] = []
    whole = Kernel._compile
    monkeypatch.setattr(Kernel, "_compile", lambda *a: compiled.append(a) or whole(*a))
    device = tilec.device("emulator")

    def resolve(m: int, n: int, k: int) -> Any:
        return times.resolve(device, product(m, n, k))

    first, again = resolve(8192, 8192, 4096), resolve(8184, 8192, 4096)
    assert first is again is resolve(8192, 8192, 1024)
    assert len(compiled) == 1
    there, c = times.on("emulator"), np.zeros((8192, 8192), np.float16)
    pairs = [(c[:, :k], c[:k]) for k in (4096, 1024)]
    reports = [there.report(a, b, c) for a, b in pairs]
    assert len(compiled) == 2
    said = [next(x for x in r.splitlines() if "tiles of BM, BN, BK" in x) for r in reports]
    assert said[0] != said[1]
    assert "128x256x64" in said[0]
    small = resolve(256, 256, 512).constants
    assert small["BM"] * small["BN"] <= 64 * 128
    assert len(compiled) == 3
