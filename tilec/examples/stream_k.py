"""Stream-K: as many programs as the GPU runs at once, each with the same number of k-steps.

561 tiles on 132 multiprocessors take five rounds, and the fifth has 33 tiles. Here each program
multiplies whole tiles as long as there is one for every program; the k-steps of the tiles that are
left are dealt out evenly, one run a program, and runs that share a tile add up by atomics (Osama et
al., "Stream-K", PPoPP 2023, whose "data-parallel + one-tile" schedule this is).

c must hold zeros. The order of the additions is open, so the last bits of a float sum may differ
from run to run.
"""

from __future__ import annotations

import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch


def tile_at(number, rows, columns, GROUP):
    """Row and column of a tile: down GROUP rows, then to the next column, so that programs that run
    together share operands in the L2 cache."""
    group = number // (GROUP * columns)
    height = tl.minimum(rows - group * GROUP, GROUP)
    inside = number % (GROUP * columns)
    return group * GROUP + inside % height, inside // height


@tilec.kernel(grid=lambda PROGRAMS: (PROGRAMS,))
def stream_k(
    a: tl.array,
    b: tl.array,
    c: tl.array,
    BM: tl.const = 64,
    BN: tl.const = 64,
    BK: tl.const = 32,
    PROGRAMS: tl.const = 132,
    STAGES: tl.const = None,
    GROUP: tl.const = 8,
):
    """c += a @ b in f32, by PROGRAMS programs."""
    depth = a.shape[1]
    rows, columns, steps = tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN), tl.cdiv(depth, BK)
    program = tl.program_id(0)
    rounds = rows * columns // PROGRAMS
    whole = rounds * PROGRAMS
    # Of the k-steps of all tiles that are left, in a row: its run, and the tiles that touches.
    left = (rows * columns - whole) * steps
    share = tl.cdiv(left, PROGRAMS)
    start = tl.minimum(program * share, left)
    end = tl.minimum(start + share, left)
    first = start // tl.maximum(steps, 1)
    touched = tl.cdiv(end, tl.maximum(steps, 1)) - first
    for turn in tl.range(0, rounds + touched):
        part = first + turn - rounds
        alone = turn < rounds
        low = tl.where(alone, 0, tl.maximum(start - part * steps, 0)) * BK
        high = tl.where(alone, steps, tl.minimum(end - part * steps, steps)) * BK
        number = tl.where(alone, program + turn * PROGRAMS, whole + part)
        row, column = tile_at(number, rows, columns, GROUP)
        m, n = row * BM, column * BN
        acc = tl.zeros((BM, BN), tl.f32)
        for k in tl.range(low, tl.minimum(high, depth), BK, stages=STAGES):
            acc = tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)
        if alone:
            tl.store(c, (m, n), acc)
        else:
            at = (m + tl.arange(BM))[:, None], (n + tl.arange(BN))[None, :]
            tl.atomic_add(c, at, acc, order="relaxed")


def main() -> None:
    """Whole rounds and some tiles left, only tiles left, fewer k-steps than programs."""
    rng = np.random.default_rng(0)
    for m, n, k, programs in (
        (130, 150, 72, 4),
        (64, 40, 200, 5),
        (40, 64, 40, 8),
        (128, 128, 64, 4),
    ):
        a = rng.standard_normal((m, k)).astype(np.float16)
        b = rng.standard_normal((k, n)).astype(np.float16)
        c = np.zeros((m, n), np.float32)
        expected = a.astype(np.float64) @ b.astype(np.float64)
        launch(stream_k, a, b, c, PROGRAMS=programs)
        compare(f"stream_k {m}x{n}x{k} by {programs}", c, expected, 1e-5)


if __name__ == "__main__":
    main()
