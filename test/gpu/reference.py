"""What each kernel must give, in float64, and how far each element may be from it.

An element may differ by the rounding of its own dtype plus what float32 (or tensor-core)
accumulation may cost, so that one wrong, missing or unwritten element in a billion is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Expected = tuple[torch.Tensor, torch.Tensor]
"""The float64 result and the largest error allowed, elementwise, before the output's rounding."""

_F32 = 2.0**-24
_SUM_DEPTH = 128
"""Roundings a summand may pass through: elements of one thread in turn, then a tree."""

PRODUCT_ERROR: dict[tuple[str, str], float] = {
    ("f64", "ieee"): 2.0**-48,
    ("f32", "ieee"): 2.0**-20,
    ("f32", "tf32"): 2.0**-9,
    ("f16", "ieee"): 2.0**-18,
    ("bf16", "ieee"): 2.0**-18,
    ("f8E4M3FN", "ieee"): 2.0**-12,
    ("f8E5M2", "ieee"): 2.0**-12,
    ("i8", "ieee"): 0.0,
}
"""(operand dtype, precision) -> error of sum(a b) relative to sum |a b|.

tf32 rounds or truncates both operands to 11 bits. Tensor cores align the summands of one
instruction and truncate.
"""

_RUNNING_SUM_ERROR = 2.0**-13
_INSTRUCTION_K = 32
"""With fp8 operands the running sum is truncated, too, to 14 bits at every 32 elements of k
(DeepSeek-V3 technical report, 2024, section 3.3.2), so what is lost grows with k: on an H200, with
k = 1152, one of 1.3 million sums lost 2**-10.9 of sum |a b|."""


def vector_add(x: torch.Tensor, y: torch.Tensor) -> Expected:
    """x + y, correctly rounded."""
    result = x.double() + y.double()
    return result, torch.zeros_like(result)


def softmax(x: torch.Tensor) -> Expected:
    """exp(x - max) / sum; the exponent loses what float32 loses of x - max."""
    wide = x.double()
    result = torch.softmax(wide, -1)
    spread = wide.amax(-1, keepdim=True) - wide
    return result, result * (_SUM_DEPTH + 2 * spread) * _F32


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> Expected:
    """(x - mean) / sqrt(variance + eps) * weight + bias; eps as the float32 it is passed as."""
    wide, w, b = x.double(), weight.double(), bias.double()
    mean = wide.mean(-1, keepdim=True)
    eps = torch.tensor(eps, dtype=torch.float32).item()
    scale = 1 / torch.sqrt(wide.var(-1, keepdim=True, unbiased=False) + eps)
    normal = (wide - mean) * scale
    cancelled = wide.abs().mean(-1, keepdim=True) * scale
    bound = ((normal.abs() + cancelled) * w.abs() + b.abs()) * _SUM_DEPTH * _F32
    return normal * w + b, bound


def row_sum(x: torch.Tensor) -> Expected:
    """Sum of each row."""
    wide = x.double()
    return wide.sum(-1), wide.abs().sum(-1) * _SUM_DEPTH * _F32


def matmul(a: torch.Tensor, b: torch.Tensor, relative_error: float) -> Expected:
    """a @ b; integers are exact in float64 as long as K < 2**39."""
    wide_a, wide_b = a.double(), b.double()
    bound = wide_a.abs() @ wide_b.abs() * relative_error
    if relative_error and a.element_size() == 1:
        bound += _running_sums(wide_a, wide_b) * _RUNNING_SUM_ERROR
    return wide_a @ wide_b, bound


def _running_sums(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Sum of the magnitudes of the running sum behind each instruction's part of k."""
    running = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    total = torch.zeros_like(running)
    for k in range(0, a.shape[1], _INSTRUCTION_K):
        running += a[:, k : k + _INSTRUCTION_K] @ b[k : k + _INSTRUCTION_K]
        total += running.abs()
    return total


ROUNDING: dict[torch.dtype, tuple[float, float]] = {
    torch.float64: (2.0**-53, 0.0),
    torch.float32: (2.0**-24, 2.0**-126),
    torch.float16: (2.0**-11, 2.0**-25),
    torch.bfloat16: (2.0**-8, 2.0**-126),
    torch.float8_e4m3fn: (2.0**-4, 2.0**-10),
    torch.float8_e5m2: (2.0**-3, 2.0**-17),
    torch.int32: (0.0, 0.0),
}
"""dtype -> unit roundoff, half a subnormal step (float32 and bf16 results may flush to zero)."""


@dataclass
class Comparison:
    """`wrong` elements of `count`; the first of them; ||out - expected|| / ||expected||."""

    count: int = 0
    wrong: int = 0
    first: str = ""
    difference_squared: float = 0.0
    expected_squared: float = 0.0

    @property
    def relative_error(self) -> float:
        """Norm of the difference over the norm of what was expected."""
        if self.expected_squared == 0.0:
            return 0.0 if self.difference_squared == 0.0 else float("inf")
        return (self.difference_squared / self.expected_squared) ** 0.5

    def add(self, out: torch.Tensor, expected: Expected, origin: int = 0) -> None:
        """Compares a part of the output that begins at row `origin`."""
        result, bound = expected
        unit, least = ROUNDING[out.dtype]
        wide = out.double()
        allowed = bound + (result.abs() + bound) * unit * (1 + 2.0**-20) + least
        wrong = ~((wide - result).abs() <= allowed)
        self.count += out.numel()
        self.difference_squared += float(((wide - result) ** 2).sum())
        self.expected_squared += float((result**2).sum())
        if bad := int(wrong.sum()):
            if not self.wrong:
                self.first = _describe(wrong, wide, result, allowed, origin)
            self.wrong += bad


def _describe(
    wrong: torch.Tensor,
    out: torch.Tensor,
    result: torch.Tensor,
    allowed: torch.Tensor,
    origin: int,
) -> str:
    at = tuple(int(i) for i in wrong.nonzero()[0])
    index = (at[0] + origin, *at[1:])
    return (
        f"at {list(index)}: expected {result[at].item():.9g} +- {allowed[at].item():.2g}, "
        f"found {out[at].item():.9g}"
    )


CHUNK = 1 << 26
"""Elements compared at a time, so that float64 copies of large arrays fit in memory."""


def compare_rows(
    out: torch.Tensor,
    inputs: Sequence[torch.Tensor],
    expected: Callable[..., Expected],
) -> Comparison:
    """Compares `out` with `expected(*inputs)`, where rows (axis 0) of all of them correspond."""
    comparison = Comparison()
    rows = out.shape[0]
    width = max(t.numel() // max(rows, 1) for t in (out, *inputs))
    step = max(1, CHUNK // max(width, 1))
    for start in range(0, rows, step):
        parts: list[Any] = [tensor[start : start + step] for tensor in inputs]
        comparison.add(out[start : start + step], expected(*parts), start)
    return comparison
