"""What tests of products with torch tensors share; such a test file also runs without pytest."""

from __future__ import annotations

import traceback
import unittest
from collections.abc import Mapping
from typing import Any

from tilec.runtime.cuda.driver import no_device_reason

try:
    import torch
except ImportError:
    torch: Any = None


def needs_torch() -> None:
    """Skips where there is no torch that sees the GPU."""
    if torch is None or not torch.cuda.is_available():
        raise unittest.SkipTest("needs torch with CUDA")


def random(*shape: int, dtype: Any) -> Any:
    """Random values of a torch dtype on the GPU."""
    if dtype == torch.int8:
        return torch.randint(-128, 128, shape, device="cuda", dtype=dtype)
    return torch.randn(shape, device="cuda").to(dtype)


def check(found: Any, expected: Any, tolerance: float) -> None:
    """The largest error, relative to the largest value; NaN is wrong."""
    assert found.shape == expected.shape, (found.shape, expected.shape)
    error = float((found.double() - expected).abs().max() / expected.abs().max())
    assert error <= tolerance, error


def run_tests(named: Mapping[str, Any]) -> int:
    """Runs the functions named test_... one by one; gives the number that failed."""
    reason = no_device_reason()
    if reason is not None:
        print(f"no GPU: {reason}")
        return 1
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for test in [value for name, value in named.items() if name.startswith("test_")]:
        try:
            test()
            counts["passed"] += 1
        except unittest.SkipTest as skip:
            counts["skipped"] += 1
            print(f"SKIPPED {test.__name__}: {skip}")
        except Exception:
            counts["failed"] += 1
            print(f"FAILED {test.__name__}")
            traceback.print_exc()
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return counts["failed"]
