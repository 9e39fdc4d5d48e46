"""Compiles tiles of products into tilec's and the driver's caches on disk, in many processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from time import monotonic
from typing import Any

from tilec.messages.diagnostics import CompileError, InternalError
from tilec.ops.tile_choice import TileChoice
from tilec.ops.tile_names import name_of
from tilec.refit.drawn_products import DrawnProduct
from tilec.refit.tile_launches import steps_of, views_at
from tilec.runtime.device import device as find_device
from tilec.runtime.errors import DeviceError

MOST_PROCESSES = 16
"""Each has a context of the GPU: 0.5 GB of its memory."""

Job = tuple[DrawnProduct, Sequence[TileChoice]]


def compile_all(
    jobs: Sequence[Job], device_name: str, until: float, step: Callable[[], object]
) -> dict[str, dict[str, str]]:
    """Compiles products until `until` (of `time.monotonic`). Gives, by name, the tiles of each that
    failed, and why. `step` is called after each product."""
    count = max(1, min(MOST_PROCESSES, os.cpu_count() or 1, len(jobs)))
    failures: dict[str, dict[str, str]] = {}
    pool = ProcessPoolExecutor(count, get_context("spawn"))
    try:
        left = {pool.submit(compile_tiles, *job, device_name): job[0].name for job in jobs}
        while left and monotonic() < until:
            done, _ = wait(left, max(0.0, until - monotonic()), FIRST_COMPLETED)
            for job in done:
                failures[left.pop(job)] = job.result()
                step()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return failures


def compile_tiles(
    product: DrawnProduct, tiles: Sequence[TileChoice], device_name: str
) -> dict[str, str]:
    """Compiles and assembles a product's tiles; those that failed, by name, and why.

    DeviceError where the GPU cannot be opened.
    """
    try:
        device = find_device(device_name)
    except DeviceError as error:  # its own class, which has more arguments, does not get across
        raise DeviceError(str(error)) from None
    found: dict[str, str] = {}
    for tile in tiles:
        try:
            _compile(product, tile, device)
        except (CompileError, InternalError, DeviceError) as error:
            found[name_of(tile)] = str(error).strip().splitlines()[0]
    return found


SOMEWHERE = 1 << 21
"""An address, aligned as memory of a GPU is: nothing that is compiled here reads it."""


def _compile(product: DrawnProduct, tile: TileChoice, device: Any) -> None:
    views = views_at(product, dict.fromkeys(product.shapes, SOMEWHERE), device.index)
    for step in steps_of(product, tile, views, device, 0):
        device.load(step.kernel.compiled(*step.values, **step.constants))
