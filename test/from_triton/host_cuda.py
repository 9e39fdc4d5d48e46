"""Stands for `torch.cuda` on a machine without a GPU: tensors of device "cuda" are in host memory.

What Triton's own tests ask of a device before a launch, and no more; launches themselves go to
tilec's emulator (`triton_tests.py`).
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch


class _Mode(torch.overrides.TorchFunctionMode):
    """Puts the host in the place of a GPU wherever torch is given a device."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if "device" in named:
            named["device"] = _host(named["device"])
        if function is torch.Tensor.to:
            args = [_host(value) for value in args]
        if function is torch.Tensor.cuda:
            return args[0]
        return function(*args, **named)


def _host(value: Any) -> Any:
    """ "cpu" for a GPU; anything else as it is."""
    is_gpu = isinstance(value, str) and value.startswith("cuda")
    is_gpu |= isinstance(value, torch.device) and value.type == "cuda"
    return torch.device("cpu") if is_gpu else value


def pretend(capability: tuple[int, int], shared_bytes: int) -> None:
    """From now on torch has a GPU of a compute capability, with so much shared memory a CTA, as far
    as it is asked here."""
    device = types.SimpleNamespace(
        name="tilec's emulator", major=capability[0], minor=capability[1], total_memory=1 << 34,
        multi_processor_count=4, warp_size=32, shared_memory_per_block_optin=shared_bytes,
    )  # fmt: skip
    answers: Mapping[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_capability": capability,
        "device": contextlib.nullcontext(),
        "get_device_name": device.name,
        "get_device_properties": device,
        "synchronize": None,
        "empty_cache": None,
        "manual_seed_all": None,
        "mem_get_info": (1 << 34, 1 << 34),
        "current_stream": types.SimpleNamespace(cuda_stream=0, synchronize=lambda: None),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, _always(answer))
    torch.version.cuda = torch.version.cuda or "13.0"
    _Mode().__enter__()


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *arguments, **named: answer
