"""What torch.compile's Inductor has to know while tilec compiles its kernels.

Its worker processes know nothing of tilec, and its static launcher takes machine code from Triton's
cache: both are off meanwhile. What is left of Triton's compilation, its front end, is run in this
process. For the emulator it writes Triton's kernels for tensors in host memory, too.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import Any

from tilec.runtime.when_imported import when_imported
from tilec.triton.takeover.wish import wish

_CONFIG = "torch._inductor.config"
_WHILE_TAKEN: Mapping[str, Any] = {"compile_threads": 1, "use_static_cuda_launcher": False}
"""Fields of the configuration; releases of torch that have no such launcher lack the field."""
_WHILE_EMULATED: Mapping[str, Any] = {**_WHILE_TAKEN, "cpu_backend": "triton"}

_before: dict[str, Any] = {}


def tell_inductor() -> None:
    """Sets what holds under the wish that holds now; where there is no Inductor yet, and loading it
    takes seconds, when it is imported."""
    if _CONFIG in sys.modules:
        _configure()
    else:
        _watch()


@functools.cache
def _watch() -> None:
    when_imported(_CONFIG, _configure)


def _configure() -> None:
    config = sys.modules[_CONFIG]
    for name, value in _before.items():
        setattr(config, name, value)
    _before.clear()
    now = wish()
    if now is not None:
        for name, value in (_WHILE_EMULATED if now.device else _WHILE_TAKEN).items():
            if hasattr(config, name):
                _before[name] = getattr(config, name)
                setattr(config, name, value)
    _forget_keys()


def _forget_keys() -> None:
    """torch keeps the key of Triton's backend, by which it finds what was compiled before."""
    keys = sys.modules.get("torch.utils._triton")
    for name in ("triton_backend", "triton_hash_with_backend"):
        if keys is not None:
            getattr(keys, name).cache_clear()
