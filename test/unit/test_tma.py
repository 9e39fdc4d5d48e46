"""Copies by the copy engine: lowered, assembled, and run on the emulator against NumPy."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from tma_copies import DTYPES, TileCopy, aligned, draw, memory_with, random_copy, same
from tma_programs import compile_copy, compile_text, text_of

from tilec.compile.assembler import assemble
from tilec.executable.kernel import CompiledKernel, Facts, TensorMap
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.runtime.artefact import load, save
from tilec.runtime.device import device
from tilec.runtime.errors import ArgumentError

TARGETS = ("sm_90a", "sm_100a")
MODES = ("emulator", "emulator:late", "emulator:check")

WIDE = TileCopy("bf16", 2, 1, (0, 1), (64, 64), (2, 2), 128)
"""Two panels of 64 columns, each of two boxes."""


def run(
    copy: TileCopy,
    made: CompiledKernel,
    array: np.ndarray,
    corner: list[int],
    seed: int,
    mode: str = "emulator:check",
) -> None:
    """Runs the kernel and compares all memory with what it should hold."""
    tile = aligned(draw(copy.dtype, copy.shape, np.random.default_rng(seed)))
    stores = copy.combine is not None
    content = copy.stored(array, tile, corner) if stores else array
    memory, expected = memory_with(array, content)
    expected_tile = tile.copy() if stores else copy.loaded(array, corner)
    gpu = device(mode)
    gpu.launch(gpu.load(made), [array, tile, *corner], 1)
    assert same(tile, expected_tile)
    assert same(memory, expected)


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(60))
def test_random_copies(seed: int):
    """Ranks 1 to 5, any dtype, swizzle, order of dimensions, panels, corners over the edges."""
    copy = random_copy(random.Random(seed))
    rng = np.random.default_rng(seed)
    made = compile_copy(copy, TARGETS[seed % 2])
    for trial in range(3):
        sizes, corner = copy.draw_place(rng)
        run(copy, made, copy.array(sizes, rng), corner, seed + trial, MODES[trial])


@pytest.mark.share(2)
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_every_dtype_and_swizzle(dtype: str, swizzle: int):
    item = DTYPES[dtype].itemsize
    box = ((swizzle or 64) // item, 8)
    for combine in (None, "none"):
        copy = TileCopy(dtype, 2, 0, (0, 1), box, (2, 2), swizzle, combine)
        rng = np.random.default_rng(swizzle)
        array = copy.array((copy.shape[0] - copy.unit, 13), rng)
        run(copy, compile_copy(copy), array, [copy.unit, 3], 1)


@pytest.mark.parametrize(
    "sizes", [(0, 0), (0, 8), (5, 0), (1, 1), (64, 200), (300, 128), (129, 129)]
)
def test_any_size_of_array(sizes: tuple[int, int]):
    made = compile_copy(WIDE)
    rng = np.random.default_rng(7)
    for corner in ([0, 0], [64, 64], [-3, -8], [400, 0]):
        run(WIDE, made, WIDE.array(sizes, rng), corner, 1)


@pytest.mark.share(2)
@pytest.mark.parametrize("copy", [random_copy(random.Random(seed)) for seed in range(100, 108)])
@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_takes_it(copy: TileCopy, target: str):
    made = compile_copy(copy, target)
    assert assemble(made.ptx, find_target(target)).cubin


# -- the parameter


def test_a_map_is_a_parameter_that_nobody_copies():
    made = compile_copy(WIDE)
    assert made.tensor_maps == (TensorMap(0, (1, 0), (64, 64), 128, "bf16"),)
    last = made.ptx.split(")")[0].rsplit(",", 1)[1]
    assert ".param .align 64 .b8" in last
    assert "[128]" in last
    assert ".local" not in made.ptx
    assert "cvta.param.u64" in made.ptx
    assert made.ptx.count("cp.async.bulk.tensor.2d") == 4


def test_equal_maps_are_one_parameter_others_are_not():
    text = text_of(replace(WIDE, combine="none"))
    start = text.index("  %map = ")
    line = text[start : text.index("!map", start) + 5]
    store = text[text.index('  "gpu_tile.tma_store"') : text.index('  "gpu_tile.tma_commit"')]
    other = line.replace("%map", "%other")
    for change, count in (("128B", 1), ("64, 64", 2)):
        changed = other.replace(change, change.replace("64, 64", "32, 64"))
        twice = text.replace(line, line + changed).replace(
            store, store + store.replace("%map", "%other")
        )
        made = compile_text(twice, "sm_90a")
        assert len(made.tensor_maps) == made.ptx.count(".b8 k_param") == count


def test_cache_hints_are_policies():
    for cache, policy in (("evict_first", 0x12F0000000000000), ("evict_last", 0x14F0000000000000)):
        made = compile_copy(replace(WIDE, cache=cache))
        assert made.ptx.count(".L2::cache_hint") == 4
        assert f"{policy}" in made.ptx
    assert "cache_hint" not in compile_copy(WIDE).ptx


def test_an_artefact_carries_the_recipe(tmp_path):
    path = tmp_path / "copy.tilec"
    save(path, [compile_copy(WIDE)])
    array = WIDE.array((100, 72), np.random.default_rng(3))
    tile = np.zeros(WIDE.shape, array.dtype)
    load(path, device="emulator")[1](array, tile, 64, 8)
    assert same(tile, WIDE.loaded(array, [64, 8]))
    with pytest.raises(ArgumentError, match="argument 'a': expected a pointer"):
        load(path, device="emulator")[1](array[:, 1:], tile, 64, 8)


VIEW = """
  %n = arith.constant 64 : i32
  %q0 = arith.divui %c0, %n : i32
  %q1 = arith.divui %c1, %n : i32
  %o0 = arith.muli %q0, {scale} : i32
  %o1 = arith.muli %q1, {scale} : i32
  %v = "gpu_tile.view"(%s, %o0, %o1) : (!b, i32, i32) -> !v
"""


def view_text(scale: str) -> str:
    """Stores the box of WIDE's tile that lies at its own corner in the tile."""
    text = text_of(replace(WIDE, combine="none")).replace(
        "!map = ",
        f'!v = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"{LAYOUT}">>\n!map = ',
    )
    store = text.index('  "gpu_tile.tma_store"')
    after = text[store:].replace("(%s,", "(%v,").replace("(!b,", "(!v,")
    return text[:store] + VIEW.format(scale=scale) + after


LAYOUT = WIDE.shared_layout()


@pytest.mark.parametrize("corner", [[0, 0], [64, 0], [0, 64], [64, 64]])
def test_a_view_is_stored_from_where_it_starts(corner: list[int]):
    made = compile_text(view_text("%n"), "sm_90a")
    rng = np.random.default_rng(5)
    array = WIDE.array((100, 104), rng)
    tile = draw("bf16", WIDE.shape, rng)
    part = replace(WIDE, panels=(1, 1), combine="none")
    box = tile[corner[0] : corner[0] + 64, corner[1] : corner[1] + 64]
    memory, expected = memory_with(array, part.stored(array, box, corner))
    gpu = device("emulator:check")
    gpu.launch(gpu.load(made), [array, tile, *corner], 1)
    assert same(memory, expected)


def test_a_view_that_may_start_inside_a_box_is_no_box():
    with pytest.raises(CompileError, match="the view does not start at a whole box"):
        compile_text(view_text("%q0"), "sm_90a")


@pytest.mark.parametrize("strides", [(0, 1), (8, 1), (64, 1)])
def test_rows_may_overlap_or_repeat(strides: tuple[int, int]):
    memory = aligned(draw("bf16", (8192,), np.random.default_rng(1)))
    steps = tuple(2 * s for s in strides)
    array = np.lib.stride_tricks.as_strided(memory, (100, 80), steps)
    run(WIDE, compile_copy(WIDE), array, [-3, 8], 1)


def test_only_stores_need_whole_16_bytes_at_the_end_of_a_row():
    rng = np.random.default_rng(2)
    tile = draw("bf16", WIDE.shape, rng)
    for combine, refused in (("none", True), ("add", False), (None, False)):
        made = compile_copy(replace(WIDE, combine=combine))
        parameter = replace(made.parameters[0], facts=Facts())
        made = replace(made, parameters=(parameter, *made.parameters[1:]))
        gpu = device("emulator")
        array = WIDE.array((40, 50), rng)
        if refused:
            with pytest.raises(ArgumentError, match="argument 'a': expected a size on axis 1"):
                gpu.launch(gpu.load(made), [array, tile, 0, 0], 1)
        else:
            gpu.launch(gpu.load(made), [array, tile.copy(), 0, 0], 1)


# -- refusals


def test_reductions_the_hardware_lacks_are_the_authors_mistake():
    copy = TileCopy("f32", 2, 1, (0, 1), (8, 8), (1, 1), 0, "max")
    with pytest.raises(CompileError, match="combines with 'max' elements of i32, i64, f16, bf16"):
        compile_copy(copy)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("S<2,4,3> o (128,(64,2)):(64,(1,8192))", "does not have the map's swizzle 128B"),
        ("S<3,4,3> o (128,128):(128,1)", "does not lie row behind row"),
        ("S<3,4,3> o (128,(64,2)):(72,(1,9216))", "does not lie row behind row"),
        ("S<3,4,3> o (128,(32,4)):(32,(1,4096))", "does not lie row behind row"),
        ("S<3,4,3> o (128,(64,2)):(64,(1,8200))", "starts at 128 bytes"),
    ],
)
def test_buffers_that_are_not_made_of_boxes(layout: str, message: str):
    class Other(TileCopy):
        def shared_layout(self):
            return layout

    with pytest.raises(CompileError, match=message):
        compile_copy(Other(**{f: getattr(WIDE, f) for f in WIDE.__dataclass_fields__}))
