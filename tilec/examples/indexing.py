"""Access by computed indices: rows gathered from a table, and a histogram."""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda rows, ROWS: tl.cdiv(rows.shape[0], ROWS))
def gather_rows(
    table: tl.array, rows: tl.array, out: tl.array,
    ROWS: tl.const = tl.auto, WIDTH: tl.const = tl.auto,
):  # fmt: skip
    """out[i] = table[rows[i]]; a row number outside the table gives zeros."""
    first = tl.program_id(0) * ROWS
    numbers = tl.load(rows, first, ROWS, padding=-1)[:, None]
    for start in tl.range(0, table.shape[1], WIDTH):
        columns = start + tl.arange(WIDTH)
        tl.store(out, (first, start), tl.gather(table, (numbers, columns)))


@tilec.kernel(grid=lambda values, B, PROGRAMS: min(tl.cdiv(values.shape[0], B), PROGRAMS))
def histogram(
    values: tl.array,
    low: tl.f32,
    width: tl.f32,
    counts: tl.array,
    B: tl.const = 4096,
    N: tl.const = 512,
    PROGRAMS: tl.const = 512,
):
    """Adds to counts[j] the number of values in [low + j * width, low + (j + 1) * width).

    A program counts many tiles before it adds to `counts`, N bins at a time; of more bins it reads
    the values again for each N.
    """
    for lowest in tl.range(0, counts.shape[0], N):
        found = tl.zeros(N, tl.i32)
        for first in tl.range(tl.program_id(0) * B, values.shape[0], tl.num_programs(0) * B):
            v = tl.load(values, first, B, padding=tl.nan)
            bins = tl.floor((v - low) / width) - lowest
            inside = (bins >= 0) & (bins < N)
            found += tl.histogram(tl.where(inside, bins, 0.0).to(tl.i32), N, mask=inside)
        tl.atomic_add(counts, lowest + tl.arange(N), found)


def main() -> None:
    """Row numbers inside and outside a table; values inside and outside the bins."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((37, 200), dtype=np.float32)
    rows = rng.integers(-3, 40, 50, dtype=np.int32)
    out = poisoned((50, 200), np.float32)
    launch(gather_rows, table, rows, out)
    inside = ((rows >= 0) & (rows < 37))[:, None]
    compare("gather_rows", out, np.where(inside, table[np.clip(rows, 0, 36)], 0.0), 0.0)

    values = rng.standard_normal(5000, dtype=np.float32)
    counts = np.zeros(16, np.int32)
    launch(histogram, values, -2.0, 0.25, counts, B=512, N=12, PROGRAMS=3)
    bins = np.floor((values + 2) / np.float32(0.25)).astype(int)
    expected = np.bincount(bins[(bins >= 0) & (bins < 16)], minlength=16)
    compare("histogram", counts, expected.astype(np.float64), 0.0)


if __name__ == "__main__":
    main()
