"""Tensor copies in im2col mode on hand-written PTX."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_hopper import COPY_OUT, INIT, MODES, WAIT, errors, kernel

from tilec.runtime.emulator import EmulatorError, Im2col, TensorMap
from tilec.runtime.emulator.errors import UnsupportedInstruction


def _walked(
    tensor: np.ndarray, im2col: Im2col, at: tuple[int, ...], moved: tuple[int, ...], rows: int
) -> np.ndarray:
    """Rows of a copy in im2col mode, `at` and `moved` innermost first without the channel: places
    of the bounding box in the order of counting, from `at` on."""
    sizes = tensor.shape[-2:0:-1]
    ranges = [
        range(low, size + high, step)
        for size, low, high, step in zip(
            sizes, im2col.lower, im2col.upper, im2col.steps, strict=True
        )
    ]
    places = [
        (image, *place)
        for image in range(len(tensor) + 8)
        for place in itertools.product(*ranges[::-1])
    ]
    found = []
    for image, *place in places[places.index(at[::-1]) :][:rows]:
        place = [p + m for p, m in zip(place, moved[::-1], strict=True)]
        inside = image < len(tensor) and all(
            0 <= p < size for p, size in zip(place, sizes[::-1], strict=True)
        )
        row = tensor[(image, *place)] if inside else np.zeros(tensor.shape[-1], tensor.dtype)
        found.append(row)
    return np.array(found)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("swizzle", [0, 64])
@pytest.mark.parametrize(
    ("shape", "im2col", "at", "moved"),
    [
        ((3, 5, 7, 40), Im2col((-1, -1), (-1, -1), (1, 1)), (2, 3, 0), (0, 2)),
        ((2, 6, 4, 40), Im2col((-2, 1), (1, 0), (1, 3)), (-2, 4, 1), (3, 0)),
        ((2, 9, 40), Im2col((-3,), (4,), (2,)), (5, 0), (7,)),
        ((2, 3, 4, 5, 40), Im2col((0, -1, 1), (-1, 0, 0), (1, 2, 1)), (3, 1, 1, 0), (1, 1, 0)),
    ],
)
def test_copies_in_im2col_mode_walk_from_image_to_image(
    shape: tuple[int, ...],
    im2col: Im2col,
    at: tuple[int, ...],
    moved: tuple[int, ...],
    swizzle: int,
    mode: str,
) -> None:
    """Channels 16 to 47 of 40, from position to position; what lies outside is zeros."""
    tensor = np.random.default_rng(0).integers(1, 1 << 16, shape, dtype=np.uint16)
    strides = tuple(s for s in tensor.strides[-2::-1])
    tensor_map = TensorMap(tensor, shape[::-1], strides, (32, 48), swizzle, im2col=im2col)
    rank, out = len(shape), np.zeros((48, 32), np.uint16)
    names = [f"%r{10 + n}" for n in range(rank)]
    offsets = [f"%h{1 + n}" for n in range(rank - 2)]
    registers = zip((*names, *offsets), (16, *at, *moved), strict=True)
    values = "".join(
        f"mov.b{16 if name in offsets else 32} {name}, {value};" for name, value in registers
    )
    body = INIT + (
        f"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {out.nbytes};{values}"
        f"@%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col"
        f".mbarrier::complete_tx::bytes [%r2], [%rd3, {{{', '.join(names)}}}], [%r3], "
        f"{{{', '.join(offsets)}}};" + WAIT.format("%r3", 0) + COPY_OUT.format(out.nbytes // 16)
    )
    result = kernel(body).run("k", 1, 64, [tensor_map, out, out], mode=mode)
    assert errors(result) == []
    expected = np.zeros((48, 32), np.uint16)
    expected[:, :24] = _walked(tensor, im2col, at, moved, 48)[:, 16:]
    flat = np.zeros(48 * 32, np.uint16)
    for place, value in enumerate(expected.reshape(-1)):
        address = 2 * place
        address ^= (address >> 7 & {0: 0, 64: 3}[swizzle]) << 4
        flat[address // 2] = value
    np.testing.assert_array_equal(out.reshape(-1), flat)


IM2COL = Im2col((-1, 0), (0, 0), (1, 2))


@pytest.mark.parametrize(
    ("mode", "im2col", "offsets", "message"),
    [
        (".im2col", None, "{0, 0}", "a copy in im2col mode through a map in tiled mode"),
        (".im2col", IM2COL, "{0, 256}", r"im2col offsets \(0, 256\) of a 4-dimensional copy"),
        (".im2col", IM2COL, "{0}", "number of im2col offsets"),
        (".tile", IM2COL, "", "a copy in tiled mode through a map in im2col mode"),
    ],
)
def test_copies_in_a_mode_that_their_map_has_not(
    mode: str, im2col: Im2col | None, offsets: str, message: str
) -> None:
    tensor = np.zeros((2, 3, 4, 16), np.uint16)
    box = (16, 8) if im2col else (16, 4, 2, 1)
    tensor_map = TensorMap(tensor, tensor.shape[::-1], (32, 128, 384), box, im2col=im2col)
    body = INIT + (
        f"@%p1 cp.async.bulk.tensor.4d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes "
        f"[%r2], [%rd3, {{0, 0, 0, 0}}], [%r3]{', ' + offsets if offsets else ''};"
    )
    with pytest.raises((EmulatorError, UnsupportedInstruction), match=message):
        kernel(body).run("k", 1, 64, [tensor_map, tensor, tensor])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lower": (-129, 0)}, r"corners .* are beyond -128\.\.127"),
        ({"upper": (0, 128)}, r"corners .* are beyond -128\.\.127"),
        ({"steps": (1, 9)}, r"steps \(1, 9\) must be 1\.\.8"),
        ({"steps": (1,)}, "4 dims need 2 corners and steps each"),
        ({"lower": (0, 3)}, "the bounding box from 3 to 0 is empty"),
    ],
)
def test_im2col_maps_that_the_driver_refuses(changes: dict[str, Any], message: str) -> None:
    tensor = np.zeros((2, 3, 4, 16), np.uint16)
    with pytest.raises(ValueError, match=message):
        TensorMap(
            *(tensor, tensor.shape[::-1], (32, 128, 384), (16, 8)),
            im2col=replace(IM2COL, **changes),
        )
