"""unsloth: layers of fine-tuning."""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import triton
from packaging.version import Version

from library_calls.draw import Draw, bare_package, stand_in

REPOSITORY = "unslothai/unsloth"


def _settings(n: int) -> tuple[int, int]:
    """The library's: the tile of a row of `n`, and warps."""
    block = triton.next_power_of_2(n)
    return block, 32 if block >= 32768 else 16 if block >= 8192 else 8 if block >= 2048 else 4


def prepare(folder: Path) -> None:
    """`folder`: of the repository. Its `utils` asks for transformers and more."""
    from triton.language.extra import libdevice

    bare_package("unsloth", folder / "unsloth")
    bare_package("unsloth.kernels", folder / "unsloth" / "kernels")
    stand_in("unsloth.device_type", DEVICE_COUNT=1)
    stand_in(
        "unsloth.kernels.utils", calculate_settings=_settings, MAX_FUSED_SIZE=65536,
        triton_tanh=libdevice.tanh, triton_cast=triton.language.cast, is_cdna=lambda: False,
        torch_gpu_device=lambda device: contextlib.nullcontext(),
        torch_device_stream=lambda device: torch.cuda.current_stream(),
    )  # fmt: skip
    nothing = lambda *arguments, **named: None  # noqa: E731
    stand_in("unsloth_zoo")
    stand_in("unsloth_zoo.utils", Version=Version)
    stand_in("unsloth_zoo.patching_utils", patch_layernorm=nothing)
    stand_in(
        "unsloth_zoo.loss_utils", patch_loss_functions=nothing, post_patch_loss_function=nothing
    )
    llama = SimpleNamespace(logger=None, LlamaRMSNorm=torch.nn.Module)
    for name in ("transformers", "transformers.models", "transformers.models.llama"):
        stand_in(name)
    stand_in("transformers.models.llama.modeling_llama", **vars(llama))


def _of(module: str) -> Any:
    return importlib.import_module(f"unsloth.kernels.{module}")


def _rows(draw: Draw) -> Any:
    return draw.normal(*draw.size((1, 9, 300), (2, 2048, 11008)))


def _gated(module: str, forward: str, backward: str) -> Any:
    def call(draw: Draw) -> None:
        m, e, g = _of(module), _rows(draw), _rows(draw)
        getattr(m, forward)(e, g)
        flat = [x.view(-1, x.shape[-1]) for x in (_rows(draw), e, g)]
        getattr(m, backward)(*flat)

    return call


def _norm(draw: Draw) -> tuple[Any, Any]:
    x = draw.normal(*draw.size((2, 9, 300), (4, 2048, 4096)), grad=True)
    return x, draw.normal(x.shape[-1])


def rms_norm(draw: Draw) -> None:
    for gemma in (False, True):
        x, w = _norm(draw)
        draw.backward(_of("rms_layernorm").Fast_RMS_Layernorm.apply(x, w, 1e-6, gemma))


def layer_norm(draw: Draw) -> None:
    x, w = _norm(draw)
    draw.backward(_of("layernorm").Fast_Layernorm.apply(x, w, draw.normal(x.shape[-1]), 1e-6))


def rope(draw: Draw) -> None:
    b, n, h, hk, d = draw.size((2, 9, 4, 2, 32), (4, 2048, 32, 8, 128))
    angle = draw.uniform(n, d // 2).repeat(1, 2)
    m = _of("rope_embedding")
    q, k = draw.normal(b, h, n, d, grad=True), draw.normal(b, hk, n, d, grad=True)
    draw.backward(*m.Fast_RoPE_Embedding_QK.apply(q, k, angle.cos(), angle.sin(), None))
    q = draw.normal(b, n, h, d, grad=True)
    draw.backward(m.Fast_RoPE_Embedding.apply(q, angle.cos(), angle.sin()))


def cross_entropy(draw: Draw) -> None:
    f = _of("cross_entropy_loss").Fast_CrossEntropyLoss
    for rows, words in ((draw.size(9, 2048), draw.size(500, 32000)), (draw.size(3, 512), 128256)):
        x = draw.normal(rows, words, grad=True)
        draw.backward(f.apply(x, draw.integers(words, rows), 0, 0))


CALLS = {
    "geglu": _gated("geglu", "geglu_exact_forward_kernel", "geglu_exact_backward_kernel"),
    "geglu_tanh": _gated("geglu", "geglu_approx_forward_kernel", "geglu_approx_backward_kernel"),
    "swiglu": _gated("swiglu", "swiglu_fg_kernel", "swiglu_DWf_DW_dfg_kernel"),
    "rms_norm": rms_norm,
    "layer_norm": layer_norm,
    "rope": rope,
    "cross_entropy": cross_entropy,
}
