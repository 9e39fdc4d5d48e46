"""A mixture of experts: tokens gathered by expert, multiplied, weighed and scattered back.

A slot is one of the TOP experts of a token. The slots of an expert fill whole tiles of rows
(`arrange`); each program gathers the tokens of its rows, multiplies them by its expert's matrix,
and scatters the products to their slots. Nothing is copied to be sorted.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import tilec
import tilec.language as tl
from tilec.examples.running import compare, launch, poisoned


@tilec.kernel(grid=lambda experts, products, BN: (experts.shape[0], tl.cdiv(products.shape[1], BN)))
def multiply_by_experts(
    tokens: tl.array,
    matrices: tl.array,
    slots: tl.array,
    experts: tl.array,
    weights: tl.array,
    products: tl.array,
    TOP: tl.const,
    BM: tl.const = 64,
    BN: tl.const = tl.auto,
    BK: tl.const = tl.auto,
):
    """products[s] = weights[s] * tokens[s // TOP] @ matrices[e], for the slots s of expert e.

    slots: row by row, -1 where a tile has none; experts: of each tile of BM rows.
    """
    tile, n = tl.program_id(0), tl.program_id(1) * BN
    expert = tl.load(experts, tile, ())
    slot = tl.load(slots, tile * BM, BM)
    token = (slot // TOP)[:, None]
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, tokens.shape[1], BK):
        rows = tl.gather(tokens, (token, k + tl.arange(BK)[None, :]))
        acc = tl.dot(rows, tl.load(matrices, (expert, k, n), (BK, BN)), acc)
    weighed = acc * tl.gather(weights, slot)[:, None]
    columns = n + tl.arange(BN)[None, :]
    tl.scatter(products, (slot[:, None], columns), weighed.to(products.dtype))


@tilec.kernel(grid=lambda out, BN: (out.shape[0], tl.cdiv(out.shape[1], BN)))
def add_slots(products: tl.array, out: tl.array, TOP: tl.const, BN: tl.const = 512):
    """out = the sum of each token's TOP products."""
    token, n = tl.program_id(0), tl.program_id(1) * BN
    parts = tl.load(products, (token * TOP, n), (TOP, BN)).to(tl.f32)
    tl.store(out, (token, n), tl.sum(parts, 0).to(out.dtype))


def arrange(choice: np.ndarray, count: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """`slots` and `experts` of `multiply_by_experts`, from each token's experts (tokens, TOP)."""
    slots, experts = [], []
    for expert in range(count):
        (own,) = np.nonzero(choice.reshape(-1) == expert)
        tiles = -(-len(own) // rows)
        slots.append(np.full(tiles * rows, -1))
        slots[-1][: len(own)] = own
        experts += [expert] * tiles
    return np.concatenate(slots).astype(np.int32), np.array(experts, np.int32)


def main() -> None:
    """Tokens that choose two of four experts each; nobody chooses the third."""
    rng = np.random.default_rng(0)
    top, k, n, dtype = 2, 72, 40, ml_dtypes.bfloat16
    choice = np.array([rng.permutation([0, 1, 3])[:top] for _ in range(45)])
    tokens = rng.standard_normal((45, k)).astype(dtype)
    matrices = rng.standard_normal((4, k, n)).astype(dtype)
    weights = rng.random(45 * top, np.float32)
    products, out = poisoned((45 * top, n), np.float32), poisoned((45, n), dtype)
    tiles = {"TOP": top, "BM": 64}
    arranged = arrange(choice, 4, tiles["BM"])
    launch(multiply_by_experts, tokens, matrices, *arranged, weights, products, **tiles)
    launch(add_slots, products, out, TOP=top)
    by_slot = np.einsum("tk,tskn->tsn", tokens.astype(float), matrices[choice].astype(float))
    expected = (by_slot * weights.reshape(45, top, 1)).sum(1)
    compare("mixture_of_experts", out, expected, 8e-3)


if __name__ == "__main__":
    main()
