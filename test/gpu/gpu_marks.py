"""What makes a test file one for GPUs under pytest, which files that also run alone do without."""

from __future__ import annotations

from typing import Any

from tilec.runtime.cuda.driver import no_device_reason

try:
    import pytest
except ImportError:
    pytest: Any = None


def needs_gpu() -> list[Any]:
    """Marks of a module, `pytestmark`: its tests are of `-m gpu`, and skipped where there is none;
    no marks where pytest is missing."""
    if pytest is None:
        return []
    no_gpu = no_device_reason() is not None
    return [pytest.mark.gpu, pytest.mark.skipif(no_gpu, reason="needs an NVIDIA GPU")]
