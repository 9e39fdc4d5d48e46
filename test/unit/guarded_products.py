"""One product in many spellings of its control flow; `guarded_kernels.py` has others.

All products compute c = a @ b where `rows` (or `keep`) lets them, and leave the rest of c alone.
`rows`: programs that start at or behind it do nothing. `keep`: per block of BK of k, whether it is
added; for guards that memory decides, per row of programs.
"""

from __future__ import annotations

import tilec
import tilec.language as tl

_PRODUCT = tilec.kernel(grid=lambda c, BM, BN: (tl.cdiv(c.shape[0], BM), tl.cdiv(c.shape[1], BN)))


@tilec.function
def step(a, b, m, n, k, acc, BM, BN, BK):
    """acc plus the product of one block of k."""
    return tl.dot(tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN)), acc)


@tilec.function
def whole(a, b, c, m, n, depth, BM, BN, BK):
    """One tile of c, of the first `depth` of k."""
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, depth, BK):
        acc = step(a, b, m, n, k, acc, BM, BN, BK)
    tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def straight(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """No control flow but the loop."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    whole(a, b, c, m, n, a.shape[1], BM, BN, BK)


@_PRODUCT
def guard(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`if` around the whole body."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    if m < rows:
        whole(a, b, c, m, n, a.shape[1], BM, BN, BK)


@_PRODUCT
def early_return(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`return` in a branch."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    if m >= rows:
        return
    whole(a, b, c, m, n, a.shape[1], BM, BN, BK)


@_PRODUCT
def two_guards(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """A guard in a guard, the inner one on what memory says."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    if m < rows:  # noqa: SIM102 - that is the spelling
        if tl.load(keep, (tl.program_id(0),), ()) > 0:
            whole(a, b, c, m, n, a.shape[1], BM, BN, BK)


@_PRODUCT
def guarded_loop(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """The loop under a guard, the store under another."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    if m < rows:
        for k in tl.range(0, a.shape[1], BK):
            acc = step(a, b, m, n, k, acc, BM, BN, BK)
    if m < rows:
        tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def zero_trips(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """A trip count that tl.where makes 0."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, tl.where(m < rows, a.shape[1], 0), BK):
        acc = step(a, b, m, n, k, acc, BM, BN, BK)
    if m < rows:
        tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def bounds_from_if(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """A trip count that a branch, with a load of its own, gives."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    depth = 0
    if m < rows:
        depth = tl.where(tl.load(keep, (tl.program_id(0),), ()) > 0, a.shape[1], 0)
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, depth, BK):
        acc = step(a, b, m, n, k, acc, BM, BN, BK)
    if depth > 0:
        tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def address_from_if(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """Coordinates that branches give, one in the loop."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    if m < rows:  # noqa: SIM108 - that is the spelling
        row = BM * tl.load(keep, (tl.program_id(0),), ())
    else:
        row = BM * (tl.program_id(0) % 2)
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        at = k
        if row == 0:
            at = BK * tl.load(keep, (k // BK,), ())
        acc = step(a, b, row, n, at, acc, BM, BN, BK)
    if m < rows:
        tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def counting_while(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`while` that counts."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    k = 0
    while k < a.shape[1]:
        acc = step(a, b, m, n, k, acc, BM, BN, BK)
        k += BK
    tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def searching_while(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`while` whose end memory says."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    k = 0
    while (k < a.shape[1]) & (tl.load(keep, (k // BK,), ()) > 0):
        acc = step(a, b, m, n, k, acc, BM, BN, BK)
        k += BK
    tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def jumping_while(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`while` along a list in memory: each block names the next, the last a negative one."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    at = tl.load(keep, (0,), ())
    while at >= 0:
        acc = step(a, b, m, n, at * BK, acc, BM, BN, BK)
        at = tl.load(keep, (at,), ())
    tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def breaking_loop(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`break` where memory says so."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        if tl.load(keep, (k // BK,), ()) == 0:
            break
        acc = step(a, b, m, n, k, acc, BM, BN, BK)
    tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def skipped_blocks(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`if` around what an iteration does."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        if tl.load(keep, (k // BK,), ()) > 0:
            acc = step(a, b, m, n, k, acc, BM, BN, BK)
    tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def continuing_loop(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """`continue` in front of it."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        if tl.load(keep, (k // BK,), ()) == 0:
            continue
        acc = step(a, b, m, n, k, acc, BM, BN, BK)
    tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def skipped_product(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """Loads in front of the `if`, the product in it."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    for k in tl.range(0, a.shape[1], BK):
        left, right = tl.load(a, (m, k), (BM, BK)), tl.load(b, (k, n), (BK, BN))
        if tl.load(keep, (k // BK,), ()) > 0:
            acc = tl.dot(left, right, acc)
    tl.store(c, (m, n), acc.to(c.dtype))


@_PRODUCT
def either_loop(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """A loop in each branch."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.f32)
    if m < rows:
        for k in tl.range(0, a.shape[1], BK):
            acc = step(a, b, m, n, k, acc, BM, BN, BK)
    else:
        for k in tl.range(0, tl.minimum(a.shape[1], BK), BK):
            acc = step(a, b, m, n, k, acc, BM, BN, BK)
    tl.store(c, (m, n), acc.to(c.dtype))


@tilec.kernel(grid=lambda c: (3,))
def own_programs(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """A loop over tiles that the author wrote, with a guard in it."""
    columns = tl.cdiv(c.shape[1], BN)
    total = tl.cdiv(c.shape[0], BM) * columns
    for tile in tl.range(tl.program_id(0), total, tl.num_programs(0)):
        m, n = tile // columns * BM, tile % columns * BN
        if m < rows:
            whole(a, b, c, m, n, a.shape[1], BM, BN, BK)


@tilec.kernel(grid=lambda c: (3,))
def own_programs_while(
    a: tl.array, b: tl.array, c: tl.array, keep: tl.array, rows: tl.i32,
    BM: tl.const = 128, BN: tl.const = 128, BK: tl.const = 64,
):  # fmt: skip
    """The same by `while`."""
    columns = tl.cdiv(c.shape[1], BN)
    total = tl.cdiv(c.shape[0], BM) * columns
    tile = tl.program_id(0)
    while tile < total:
        m, n = tile // columns * BM, tile % columns * BN
        if m < rows:
            whole(a, b, c, m, n, a.shape[1], BM, BN, BK)
        tile += tl.num_programs(0)


PRODUCTS = (
    straight,
    guard,
    early_return,
    two_guards,
    guarded_loop,
    zero_trips,
    bounds_from_if,
    address_from_if,
    counting_while,
    searching_while,
    jumping_while,
    breaking_loop,
    skipped_blocks,
    continuing_loop,
    skipped_product,
    either_loop,
    own_programs,
    own_programs_while,
)
