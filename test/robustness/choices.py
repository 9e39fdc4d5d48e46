"""Draws products and compiles what `tilec.ops.matmul` chooses for them; nothing is launched.

    python test/robustness/choices.py --seed 7 --count 200 --target sm_90a

A choice that the compiler refuses would be an error in a call whose author chose nothing; one that
spills, or leaves a ring of one slot, says that the model counts otherwise than the compiler. Each
is printed; the exit code says whether there was any. Sizes are log-uniform, two thirds of them
no multiples of 8, and a quarter 1, 2 or 3: the matrices that are a row or a column have strides
that lead nowhere.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = {
    "f16": "float16",
    "bf16": ml_dtypes.bfloat16,
    "f8": ml_dtypes.float8_e4m3fn,
    "tf32": "float32",
    "f32": "float32",
    "i8": "int8",
}
FEW = (1, 2, 3)
"""Sides that are drawn apart."""
BIG = 1 << 31
"""Elements that an operand has at most."""
ONE_SLOT = "one stage only"


@dataclass(frozen=True)
class Drawn:
    """A product of (m, k) and (k, n). `order`: which operands lie transposed in memory ("NT": the
    second); `batch`: how many there are of it; `has_bias`: whether a bias is added."""

    m: int
    n: int
    k: int
    dtype: str
    order: str
    batch: int = 1
    has_bias: bool = False

    def arrays(self) -> dict[str, Any]:
        """Its arrays, whose memory nobody touches."""
        lead = (self.batch,) if self.batch > 1 else ()
        dtype = DTYPES[self.dtype]

        def matrix(rows: int, columns: int, is_transposed: bool) -> Any:
            if not is_transposed:
                return np.empty((*lead, rows, columns), dtype)
            return np.empty((*lead, columns, rows), dtype).swapaxes(-1, -2)

        a = matrix(self.m, self.k, self.order[0] == "T")
        b = matrix(self.k, self.n, self.order[1] == "T")
        return {"a": a, "b": b} | ({"bias": np.empty(self.n, "float32")} if self.has_bias else {})

    def complaint(self) -> str | None:
        """What is wrong with the choice, None if nothing."""
        from tilec.messages.diagnostics import CompileError, PerformanceWarning
        from tilec.ops import matmul_report

        precision = "tf32" if self.dtype == "tf32" else "ieee"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", PerformanceWarning)
                told = matmul_report(**self.arrays(), precision=precision)
        except (CompileError, PerformanceWarning) as error:
            return str(error)
        return next((line for line in told.splitlines() if ONE_SLOT in line), None)


def draw(seed: int, count: int, most: int) -> Iterator[Drawn]:
    """So many products with sides of up to `most`."""
    chance = random.Random(seed)

    def side() -> int:
        if chance.random() < 1 / 4:
            return chance.choice(FEW)
        found = int(2 ** chance.uniform(0, most.bit_length() - 1))
        return found if chance.random() < 2 / 3 else -(-found // 8) * 8

    while count:
        sizes = side(), side(), side()
        order, dtype = chance.choice(("NN", "NT", "TN", "TT")), chance.choice(list(DTYPES))
        batch, has_bias = chance.choice((1, 1, 1, chance.randint(2, 24))), chance.random() < 1 / 4
        made = Drawn(*sizes, dtype, order, batch, has_bias)
        if batch * made.k * max(made.m, made.n) < BIG:
            count -= 1
            yield made


def main(arguments: list[str] | None = None) -> int:
    """Compiles the choices and prints what is wrong with any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--most", type=int, default=16384, help="of a side")
    parser.add_argument("--target", default="sm_90a", help="whose code is made")
    given = parser.parse_args(arguments)
    os.environ["TILEC_TARGET"] = given.target
    found = 0
    for one in draw(given.seed, given.count, given.most):
        complaint = one.complaint()
        if complaint is not None:
            found += 1
            print(f"{one}: {complaint}", flush=True)
    print(f"{given.count} products of seed {given.seed} for {given.target}: {found} wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]
    sys.exit(main())
