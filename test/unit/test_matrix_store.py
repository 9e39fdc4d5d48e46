"""stmatrix: fragments into shared memory, on the emulator and by ptxas."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emulated import array_type, lower, run, tile_type
from shares import modes
from warpgroup_kernels import DTYPES, buffer_type, load, panels, store

from tilec.compile.assembler import assemble
from tilec.hardware.fragments import accumulator_layout
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.shared_layout import SharedLayout, strided
from tilec.hardware.target import find_target
from tilec.passes.layouts.candidates import blocked_layout

ROW = find_instruction("wgmma.m64n64k16.f32.bf16.bf16")


def text(element: str, sizes: tuple[int, int], shared: SharedLayout, warps: int) -> str:
    """@k(x, y): a tile goes from fragments through a buffer to rows."""
    array = array_type(2, element)
    source = accumulator_layout(ROW, sizes, warps // 4, 1)
    fragments = tile_type(sizes, element, source)
    rows = tile_type(sizes, element, blocked_layout(sizes, 1, 8, 32 * warps))
    buffer = buffer_type(sizes, element, shared)
    return f"""
func.func @k(%x: {array}, %y: {array}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  {load("%t", "%x", fragments, array, element)}
  %b = "gpu_tile.alloc"() {{options = {{}}}} : () -> {buffer}
  "gpu_tile.buffer_store"(%t, %b) : ({fragments}, {buffer}) -> ()
  %r = "gpu_tile.buffer_load"(%b) : ({buffer}) -> {rows}
  {store("%r", "%y", rows, array)}
  return
}}"""


LAYOUTS = {
    "panels": lambda sizes, item: panels(sizes, 1, min(128, sizes[1] * item), item),
    "panels of 32 bytes": lambda sizes, item: panels(sizes, 1, 32, item),
    "padded": lambda sizes, item: strided(sizes, (sizes[1] + 16 // item, 1)),
    "columns": lambda sizes, item: strided(sizes, (1, sizes[0] + 16 // item)),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(("size", "warps"), [(64, 4), (128, 8), (128, 4)])
@pytest.mark.parametrize("element", ["bf16", "f16", "f8E4M3FN"])
@pytest.mark.parametrize("kind", LAYOUTS)
def test_fragments_are_stored_by_matrices(
    kind: str, element: str, size: int, warps: int, target: str
) -> None:
    dtype, sizes = DTYPES[element], (size, size)
    kernel = text(element, sizes, LAYOUTS[kind](sizes, dtype.itemsize), warps)
    ptx, _ = lower(kernel, num_warps=warps, target=target)
    fits = dtype.itemsize == 2
    assert ("stmatrix" in ptx) == fits
    assert (".trans" in ptx) == (fits and kind == "columns")
    x = np.random.default_rng(0).standard_normal(sizes).astype(dtype)
    for mode in modes():
        y = np.zeros(sizes, dtype)
        run(kernel, [x, y], num_warps=warps, target=target, mode=mode)
        np.testing.assert_array_equal(y.astype(np.float32), x.astype(np.float32))


def test_ptxas_takes_it() -> None:
    kernel = text("bf16", (128, 128), panels((128, 128), 1, 128, 2), 8)
    ptx, _ = lower(kernel, num_warps=8, target="sm_90a")
    assert ptx.count("stmatrix.sync.aligned.m8n8.x4") == 8
    assert assemble(ptx, find_target("sm_90a")).cubin


def test_older_targets_store_words() -> None:
    kernel = text("bf16", (64, 64), panels((64, 64), 1, 128, 2), 4)
    ptx, _ = lower(kernel, num_warps=4, target="sm_80")
    assert "stmatrix" not in ptx
    x = np.arange(4096, dtype=np.float32).reshape(64, 64).astype(ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    run(kernel, [x, y], num_warps=4, target="sm_80")
    np.testing.assert_array_equal(y, x)
