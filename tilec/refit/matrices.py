"""Room on a GPU for many sets of a product's matrices, filled from one random pattern."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from tilec.hardware.sizes import ALLOCATION_BYTES
from tilec.refit.drawn_products import KINDS, DrawnProduct
from tilec.runtime.cuda.driver import check
from tilec.runtime.host import numpy_dtype

PATTERN = (1 << 22) + 15
"""Elements that repeat: odd, so that no two rows of a matrix begin alike."""
MOST_SETS = 96
"""Of matrices: each costs CPU time to launch on."""
CACHES = 4
"""Times L2 that all sets of a product take together, so that none is found there."""
SAMPLED = 64
"""Rows and columns of a result that are compared: their crossings are elements of all of its tiles
but small ones' and warps'."""
POISON = 0xFF
"""Every byte of results before they are computed: NaN in each floating type."""


class Matrices:
    """`room_bytes` for operands, and as much for results. Free it with `free`."""

    def __init__(self, device: Any, room_bytes: int, l2_bytes: int) -> None:
        self._context = device.context
        self._room = room_bytes // ALLOCATION_BYTES * ALLOCATION_BYTES
        self._wanted_bytes = CACHES * l2_bytes
        self._patterns: dict[str, np.ndarray] = {}
        self._kind = ""
        with self._context.entered():
            doing = f"allocating {2 * self._room} bytes for matrices"
            self._start = int(check(self._context.driver.cuMemAlloc(2 * self._room), doing))

    def free(self) -> None:
        """Gives the memory back."""
        with self._context.entered():
            self._context.driver.cuMemFree(self._start)

    def fill(self, kind: str, rng: np.random.Generator) -> None:
        """Fills the operands' room with normally distributed elements of a kind's dtype."""
        if kind == self._kind:
            return
        self._kind, driver = kind, self._context.driver
        if kind not in self._patterns:
            dtype = numpy_dtype(KINDS[kind].dtype.mlir)
            count = min(PATTERN, self._room // dtype.itemsize)
            self._patterns[kind] = rng.standard_normal(count, np.float32).astype(dtype)
        values = self._patterns[kind]
        with self._context.entered():
            copied = driver.cuMemcpyHtoD(self._start, values.ctypes.data, values.nbytes)
            check(copied, "copying to the GPU")
            filled = values.nbytes
            while filled < self._room:
                more = min(filled, self._room - filled)
                copied = driver.cuMemcpyDtoDAsync(self._start + filled, self._start, more, 0)
                check(copied, "filling matrices")
                filled += more
            check(driver.cuCtxSynchronize(), "filling matrices")

    def sets(self, product: DrawnProduct) -> int:
        """The number of sets of a product's matrices: so many that none is in L2."""
        operands, results = self._spans(product)
        fitting = min(self._room // operands, self._room // results)
        return max(1, min(MOST_SETS, fitting, ceil(self._wanted_bytes / (operands + results)) + 1))

    def addresses(self, product: DrawnProduct, number: int) -> dict[str, int]:
        """The addresses of a, b and out of a set."""
        operands, results = self._spans(product)
        a = self._start + number * operands
        out = self._start + self._room + number * results
        return {"a": a, "b": a + _aligned(product.span_bytes("a")), "out": out}

    def _spans(self, product: DrawnProduct) -> tuple[int, int]:
        """Bytes of the operands and of the result of a set."""
        a, b, out = (_aligned(product.span_bytes(name)) for name in ("a", "b", "out"))
        return a + b, out

    def poison(self, product: DrawnProduct) -> None:
        """Makes the first set's result what no product is."""
        nbytes = product.span_bytes("out")
        address = self.addresses(product, 0)["out"]
        driver = self._context.driver
        with self._context.entered():
            check(driver.cuMemsetD8(address, POISON, nbytes), "poisoning a result")
            check(driver.cuCtxSynchronize(), "poisoning a result")

    def error(self, product: DrawnProduct, rng: np.random.Generator) -> float:
        """The largest error of the first set's result, at crossings of drawn rows and columns,
        against float64, relative to the largest element there; NaN where one is."""
        rows, columns = (_drawn(size, rng) for size in (product.m, product.n))
        along = np.arange(product.k)
        a = self._elements(product, "a", rows, along)
        expected = a @ self._elements(product, "b", along, columns)
        found = self._rows(product, rows)[:, columns].astype(np.float64)
        return float(np.abs(found - expected).max() / np.abs(expected).max())

    def _elements(
        self, product: DrawnProduct, name: str, rows: np.ndarray, columns: np.ndarray
    ) -> np.ndarray:
        """The operands' elements of the first set, from the pattern that they were filled with."""
        width = product.dtype_of(name).bits // 8
        first = (self.addresses(product, 0)[name] - self._start) // width
        strides = product.strides[name]
        places = first + rows[:, None] * strides[0] + columns[None, :] * strides[1]
        pattern = self._patterns[self._kind]
        return pattern[places % pattern.size].astype(np.float64)

    def _rows(self, product: DrawnProduct, rows: np.ndarray) -> np.ndarray:
        """Rows of the first set's result, copied from the GPU."""
        dtype = numpy_dtype(product.dtype_of("out").mlir)
        found = np.empty((len(rows), product.n), dtype)
        address, pitch = self.addresses(product, 0)["out"], product.n * dtype.itemsize
        driver = self._context.driver
        with self._context.entered():
            for row, target in zip(rows, found, strict=True):
                source = address + int(row) * pitch
                copied = driver.cuMemcpyDtoH(target.ctypes.data, source, pitch)
                check(copied, "copying from the GPU")
        return found


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALLOCATION_BYTES) * ALLOCATION_BYTES


def _drawn(size: int, rng: np.random.Generator) -> np.ndarray:
    """Draws some of the first `size` numbers, the first and the last among them."""
    inner = rng.choice(size, min(size, SAMPLED), replace=False)
    return np.unique(np.concatenate([inner, [0, size - 1]]))
