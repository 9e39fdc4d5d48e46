"""flash-linear-attention: linear and sparse attention, recurrences, and layers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from library_calls.draw import Draw, bare_package

REPOSITORY = "fla-org/flash-linear-attention"

FREE_ORDER = {"csr.prepare_block_csr_kernel": {"csr_indices": "csr_offsets"}}
"""By kernel: arrays whose order within a group is arbitrary, as its docstring says, and the arrays
of where the groups begin."""


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    bare_package("fla", folder / "fla", __version__="")
    for name in ("fla.ops", "fla.modules", "fla.models", "fla.layers"):
        bare_package(name, folder.joinpath(*name.split(".")))


class Sizes:
    """Batches, length, heads, elements of a key and of a value."""

    def __init__(self, draw: Draw) -> None:
        self.b, self.t, self.h, self.k, self.v = draw.size(
            (1, 96, 2, 32, 32), (2, 4096, 16, 128, 128)
        )


def _gate(draw: Draw, *shape: int) -> Any:
    """Logarithms of decays, float32."""
    return (functional.logsigmoid(draw.normal(*shape, dtype=torch.float32)) / 8).requires_grad_()


KINDS: dict[str, Callable[[Draw, Sizes], Any]] = {
    "key": lambda d, s: d.normal(s.b, s.t, s.h, s.k, grad=True),
    "unit": lambda d, s: functional.normalize(
        d.normal(s.b, s.t, s.h, s.k, dtype=torch.float32), dim=-1
    ).to(d.half).requires_grad_(),
    "value": lambda d, s: d.normal(s.b, s.t, s.h, s.v, grad=True),
    "share": lambda d, s: d.uniform(s.b, s.t, s.h, dtype=d.half, grad=True),
    "unit32": lambda d, s: KINDS["unit"](d, s).detach().float().requires_grad_(),
    "share32": lambda d, s: d.uniform(s.b, s.t, s.h, grad=True),
    "share_query": lambda d, s: d.uniform(s.b, s.t, 16 * s.h, dtype=d.half, grad=True),
    "share_key": lambda d, s: d.uniform(s.b, s.t, s.h, s.k, dtype=d.half, grad=True),
    "share_value": lambda d, s: d.uniform(s.b, s.t, s.h, s.v, dtype=d.half, grad=True),
    "gate": lambda d, s: _gate(d, s.b, s.t, s.h),
    "gate_key": lambda d, s: _gate(d, s.b, s.t, s.h, s.k),
    "gate_value": lambda d, s: _gate(d, s.b, s.t, s.h, s.v),
    "slot": lambda d, s: d.normal(s.b, s.t, s.h, 32, grad=True),
    "gate_slot": lambda d, s: _gate(d, s.b, s.t, s.h, 32),
    "head_key": lambda d, s: d.normal(s.h, s.k, grad=True),
    "negative_unit": lambda d, s: (-KINDS["unit"](d, s).detach()).requires_grad_(),
    "query_16": lambda d, s: d.normal(s.b, s.t, s.h, 16, scale=0.2, grad=True),
    "grouped_query": lambda d, s: d.normal(s.b, s.t, 16 * s.h, s.k, grad=True),
    "lambda": lambda d, s: (d.uniform(s.h, s.k) + 0.5).requires_grad_(),
}  # fmt: skip


def _op(
    module: str, name: str, kinds: str, *, is_forward: bool = False, **rest: Any
) -> Callable[[Draw], None]:
    """Forward and backward of a function whose arguments are of `kinds` (name=kind); `is_forward`:
    it has no backward, or refuses it with this Triton (a product that Triton gets wrong)."""

    def call(draw: Draw) -> None:
        sizes = Sizes(draw)
        given = {}
        for word in kinds.split():
            argument, _, kind = word.partition("=")
            given[argument] = KINDS[kind or {"q": "key", "k": "key", "v": "value"}[argument]](
                draw, sizes
            )
        function = getattr(importlib.import_module(f"fla.ops.{module}"), name)
        out = function(**given, **rest)
        if not is_forward:
            draw.backward(*(out if isinstance(out, tuple | list) else (out,)))

    return call


def _rows(draw: Draw) -> Any:
    return draw.normal(*draw.size((2, 50, 256), (4, 4096, 2048)), grad=True)


def _layer(
    module: str, name: str, count: int = 1, vectors: int = 0, **rest: Any
) -> Callable[[Draw], None]:
    """Of `count` arrays of rows, and vectors as long as a row."""

    def call(draw: Draw) -> None:
        rows = [_rows(draw) for _ in range(count)]
        more = [draw.normal(rows[0].shape[-1], grad=True) for _ in range(vectors)]
        out = getattr(importlib.import_module(f"fla.modules.{module}"), name)(*rows, *more, **rest)
        draw.backward(*(out if isinstance(out, tuple) else (out,)))

    return call


def rotary(draw: Draw) -> None:
    s = Sizes(draw)
    angle = draw.uniform(s.t, s.k // 2)
    module = importlib.import_module("fla.modules.rotary")
    x = draw.normal(s.b, s.t, s.h, s.k, grad=True)
    draw.backward(module.rotary_embedding(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype)))


def short_convolution(draw: Draw) -> None:
    x = _rows(draw)
    w, b = draw.normal(x.shape[-1], 4, grad=True), draw.normal(x.shape[-1], grad=True)
    module = importlib.import_module("fla.modules.conv.causal_conv1d")
    out = module.causal_conv1d(x, w, b, activation="swish", backend="triton")
    draw.backward(*(out if isinstance(out, tuple) else (out,)))


def cross_entropy(draw: Draw) -> None:
    rows, words = draw.size((9, 500), (4096, 32000))
    x, target = draw.normal(rows, words, grad=True), draw.integers(words, rows)
    f = importlib.import_module("fla.modules.fused_cross_entropy").cross_entropy_loss
    draw.backward(f(x, target)[0])


def linear_cross_entropy(draw: Draw) -> None:
    rows, d, words = draw.size((32, 32, 300), (4096, 2048, 32000))
    x, w = draw.normal(rows, d, grad=True), draw.normal(words, d, scale=0.05, grad=True)
    f = importlib.import_module("fla.modules.fused_linear_cross_entropy")
    draw.backward(f.fused_linear_cross_entropy_loss(x, draw.integers(words, rows), w))


def linear_kl_div(draw: Draw) -> None:
    rows, d, words = draw.size((32, 32, 300), (2048, 2048, 32000))
    x, y = draw.normal(rows, d, grad=True), draw.normal(rows, d)
    v, w = draw.normal(words, d, scale=0.05, grad=True), draw.normal(words, d, scale=0.05)
    draw.backward(importlib.import_module("fla.modules.fused_kl_div").fused_kl_div_loss(x, y, v, w))


def grpo(draw: Draw) -> None:
    b, n, words = draw.size((2, 7, 300), (4, 512, 32000))
    x = draw.normal(b, n + 1, words, grad=True)
    f = importlib.import_module("fla.modules.grpo").fused_grpo_loss
    ref = draw.normal(b, n, dtype=torch.float32) - 7
    mask = torch.ones(b, n, dtype=torch.int64, device=draw.device)
    out = f(x, ref, draw.integers(words, b, n), draw.normal(b, dtype=torch.float32), 0.1, mask)
    draw.backward(*(out if isinstance(out, tuple) else (out,)))


def rwkv4(draw: Draw) -> None:
    b, t, c = draw.size((1, 20, 64), (8, 1024, 2048))
    f = importlib.import_module("fla.ops.rwkv4.fused_recurrent").fused_recurrent_rwkv4
    w, u = (draw.normal(c, dtype=torch.float32, grad=True) for _ in range(2))
    k, v = (draw.normal(b, t, c, dtype=torch.float32, grad=True) for _ in range(2))
    state = torch.zeros(b, 3, 1, c, device=draw.device)
    draw.backward(f(w, u, k, v, state)[0])


def rwkv7_layer(draw: Draw) -> None:
    """What stands around the recurrence."""
    x = _rows(draw)
    vectors = [draw.normal(1, 1, x.shape[-1], grad=True) for _ in range(6)]
    f = importlib.import_module("fla.ops.rwkv7.fused_addcmul").fused_addcmul_rwkv7
    draw.backward(*f(x, _rows(draw), *vectors))
    f = importlib.import_module("fla.ops.rwkv7.fused_k_update").fused_k_rwkv7
    draw.backward(f(_rows(draw), _rows(draw), draw.normal(x.shape[-1], grad=True)))


def hgrn(draw: Draw) -> None:
    b, t, d = draw.size((1, 70, 64), (4, 4096, 2048))
    for module, name in (("chunk", "chunk_hgrn"), ("fused_recurrent", "fused_recurrent_hgrn")):
        x, g = draw.normal(b, t, d, dtype=torch.float32, grad=True), _gate(draw, b, t, d)
        f = getattr(importlib.import_module(f"fla.ops.hgrn.{module}"), name)
        draw.backward(f(x, g)[0])


def sums(draw: Draw) -> None:
    """Cumulative ones, of chunks and altogether."""
    s = Sizes(draw)
    module = importlib.import_module("fla.ops.utils.cumsum")
    for x in (_gate(draw, s.b, s.t, s.h).detach(), _gate(draw, s.b, s.t, s.h, s.k).detach()):
        module.chunk_local_cumsum(x, 64)
        module.chunk_global_cumsum(x)


def utilities(draw: Draw) -> None:
    s = Sizes(draw)
    of = lambda name: importlib.import_module(f"fla.ops.utils.{name}")  # noqa: E731
    x = draw.normal(s.b * s.t, s.h * s.k)
    of("softmax").softmax_bwd(of("softmax").softmax_fwd(x), draw.normal(*x.shape))
    of("logsumexp").logsumexp_fwd(x)
    of("matmul").matmul(x, draw.normal(s.h * s.k, s.h * s.k))
    draw.backward(of("pooling").mean_pooling(draw.normal(s.b, s.t, s.h, s.k, grad=True), 64))
    a = draw.normal(s.b, s.t, s.h, 64, dtype=torch.float32, scale=0.1)
    row = torch.arange(s.t, device=draw.device)[None, :, None, None] % 64
    of("solve_tril").solve_tril(a * (row > torch.arange(64, device=draw.device)))


QKV = "q k v"
CALLS: dict[str, Callable[[Draw], None]] = {
    "abc": _op("abc.chunk", "chunk_abc", "q k v s=slot"),
    "attn": _op("attn.parallel", "parallel_attn", QKV),
    "based": _op("based.parallel", "parallel_based", "q=query_16 k=query_16 v"),
    "based_fused": _op("based.fused_chunk", "fused_chunk_based", "q=query_16 k=query_16 v"),
    "rebased": _op("rebased.parallel", "parallel_rebased", "q=query_16 k=query_16 v"),
    "comba": _op(
        "comba.chunk", "chunk_comba", "q k=unit v p=unit g=gate beta=share", is_forward=True
    ),
    "comba_recurrent": _op(
        "comba.fused_recurrent", "fused_recurrent_comba", "q k=unit v p=unit g=gate beta=share",
        is_forward=True,
    ),
    "delta_rule": _op("delta_rule.chunk", "chunk_delta_rule", "q k=unit v beta=share"),
    "delta_rule_recurrent": _op(
        "delta_rule.fused_recurrent", "fused_recurrent_delta_rule", "q k=unit v beta=share"
    ),
    "forgetting_attn": _op("forgetting_attn.parallel", "parallel_forgetting_attn", "q k v g=gate"),
    "gated_delta_rule": _op(
        "gated_delta_rule.chunk", "chunk_gated_delta_rule", "q k=unit v g=gate beta=share",
        is_forward=True,
    ),
    "gated_delta_rule_recurrent": _op(
        "gated_delta_rule.fused_recurrent", "fused_recurrent_gated_delta_rule",
        "q k=unit v g=gate beta=share", is_forward=True,
    ),
    "dplr": _op(
        "generalized_delta_rule.dplr", "chunk_dplr_delta_rule",
        "q k v a=negative_unit b=unit gk=gate_key",
    ),
    "iplr": _op(
        "generalized_delta_rule.iplr", "chunk_iplr_delta_rule", "q k v a=negative_unit b=unit",
        is_forward=True,
    ),
    "gla": _op("gla.chunk", "chunk_gla", "q k v g=gate_key"),
    "gla_recurrent": _op("gla.fused_recurrent", "fused_recurrent_gla", "q k v gk=gate_key"),
    "gsa": _op("gsa.chunk", "chunk_gsa", "q k v s=slot g=gate_slot"),
    "gsa_recurrent": _op("gsa.fused_recurrent", "fused_recurrent_gsa", "q k v s=slot g=gate_slot"),
    "hgrn": hgrn,
    "kda": _op("kda.chunk", "chunk_kda", "q=unit k=unit v g=gate_key beta=share"),
    "kda_recurrent": _op(
        "kda.fused_recurrent", "fused_recurrent_kda", "q=unit k=unit v g=gate_key beta=share",
        is_forward=True,
    ),
    "lightning_attn": _op(
        "lightning_attn.chunk", "chunk_lightning_attn", QKV, layer_idx=3, num_layers=12
    ),
    "linear_attn": _op("linear_attn.fused_chunk", "fused_chunk_linear_attn", QKV, normalize=False),
    "mesa_net": _op(
        "mesa_net.chunk", "chunk_mesa_net", "q=unit k=unit v g=gate beta=share lamb=lambda",
        max_CG_iteration=4,
    ),
    "nsa": _op(
        "nsa.parallel", "parallel_nsa", "q=grouped_query k v g_cmp=share_query g_slc=share_query",
        block_counts=2, block_size=32,
    ),
    "path_attn": _op("path_attn.parallel", "parallel_path_attn", "q k v w=unit32 beta=share32"),
    "retention": _op("retention.chunk", "chunk_retention", QKV),
    "retention_parallel": _op("retention.parallel", "parallel_retention", QKV),
    "rwkv4": rwkv4,
    "rwkv6": _op("rwkv6.chunk", "chunk_rwkv6", "r=key k v w=gate_key u=head_key"),
    "rwkv6_recurrent": _op(
        "rwkv6.fused_recurrent", "fused_recurrent_rwkv6", "r=key k v w=gate_key u=head_key"
    ),
    "rwkv7": _op(
        "rwkv7.chunk", "chunk_rwkv7", "r=key w=gate_key k v a=negative_unit b=unit"
    ),
    "rwkv7_layer": rwkv7_layer,
    "simple_gla": _op("simple_gla.chunk", "chunk_simple_gla", "q k v g=gate", is_forward=True),
    "simple_gla_fused": _op("simple_gla.fused_chunk", "fused_chunk_simple_gla", "q k v g=gate"),
    "simple_gla_parallel": _op("simple_gla.parallel", "parallel_simple_gla", "q k v g=gate"),
    "oja": _op(
        "gated_oja_rule.chunk", "chunk_gated_oja_rule", "q k=unit v gv=gate_value beta=share"
    ),
    "gdn2": _op(
        "gdn2.chunk", "chunk_gdn2", "q=unit k=unit v g=gate_key b=share_key w=share_value"
    ),
    "wall_attn": _op("wall_attn.parallel", "parallel_wall_attn", "q k v g=gate_key"),
    "sums": sums,
    "utilities": utilities,
    "layer_norm": _layer("layernorm", "layer_norm", vectors=2),
    "rms_norm": _layer("layernorm", "rms_norm", vectors=1, bias=None),
    "group_norm": _layer("layernorm", "group_norm", vectors=2, num_groups=8),
    "rms_norm_gated": _layer("fused_norm_gate", "rms_norm_gated", count=2, vectors=1, bias=None),
    "rmsnorm_gated": _layer("layernorm_gated", "rmsnorm_fn", vectors=1, bias=None),
    "l2norm": _layer("l2norm", "l2norm"),
    "token_shift": _layer("token_shift", "token_shift"),
    "swish": _layer("activations", "swish"),
    "sigmoid": _layer("activations", "sigmoid"),
    "logsigmoid": _layer("activations", "logsigmoid"),
    "swiglu": _layer("activations", "swiglu", count=2),
    "sigmoidglu": _layer("activations", "sigmoidglu", count=2),
    "powglu": _layer("activations", "powglu", count=2),
    "rotary": rotary,
    "short_convolution": short_convolution,
    "cross_entropy": cross_entropy,
    "linear_cross_entropy": linear_cross_entropy,
    "linear_kl_div": linear_kl_div,
    "grpo": grpo,
}  # fmt: skip
