"""generative-recommenders: attention of user histories (HSTU), and rows of unlike lengths."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package

REPOSITORY = "meta-recsys/generative-recommenders"


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    for name in ("generative_recommenders", "generative_recommenders.ops",
                 "generative_recommenders.ops.triton"):  # fmt: skip
        bare_package(name, folder.joinpath(*name.split(".")))


def _of(module: str) -> Any:
    return importlib.import_module(f"generative_recommenders.ops.triton.triton_{module}")


class Histories:
    """Of unlike lengths, one behind another."""

    def __init__(self, draw: Draw) -> None:
        self.b, self.longest, self.d = draw.size((3, 50, 32), (64, 1024, 256))
        self.lengths = draw.integers(self.longest, self.b) + 1
        self.lengths[0] = self.longest
        self.starts = _starts(self.lengths)
        self.total = int(self.starts[-1])


def _starts(lengths: Any) -> Any:
    starts = torch.zeros(len(lengths) + 1, dtype=torch.int64, device=lengths.device)
    starts[1:] = lengths.cumsum(0)
    return starts


def attention(draw: Draw) -> None:
    one = Histories(draw)
    heads, d = draw.size((2, 32), (4, 128))
    q, k, v = (draw.normal(one.total, heads, d, grad=True, scale=0.3) for _ in range(3))
    f = _of("hstu_attention").triton_hstu_mha
    f(one.longest, 1 / d, q, k, v, one.starts, None, 0, 0, False, False)
    targets = torch.ones_like(one.lengths)
    f(one.longest, 1 / d, q, k, v, one.starts, targets, 20, 0, False, False)


def attention_gradients(draw: Draw) -> None:
    one = Histories(draw)
    heads, d = draw.size((2, 32), (4, 128))
    q, k, v = (draw.normal(one.total, heads, d, grad=True, scale=0.3) for _ in range(3))
    f = _of("hstu_attention").triton_hstu_mha
    draw.backward(f(one.longest, 1 / d, q, k, v, one.starts, None, 0, 0, False, False))


def new_targets(draw: Draw) -> None:
    """Attention of a history's last elements alone."""
    one = Histories(draw)
    heads, d, last = draw.size((2, 32, 4), (4, 128, 16))
    k, v = (draw.normal(one.total, heads, d, scale=0.3) for _ in range(2))
    q = draw.normal(one.b * last, heads, d, scale=0.3)
    f = _of("hstu_attention").triton_cached_hstu_mha
    f(one.longest, 1 / d, q, k, v, one.starts, None)


def rows_of_unlike_lengths(draw: Draw) -> None:
    one = Histories(draw)
    m = _of("jagged")
    x = draw.normal(one.total, one.d, grad=True)
    dense = draw.normal(one.b, one.d, one.d, grad=True, scale=0.2)
    bias = draw.normal(one.b, one.d, grad=True)
    draw.backward(m._JaggedDenseBmmAddFunction.apply(one.longest, one.starts, x, dense, bias))
    draw.backward(m._JaggedDenseBmmFunction.apply(one.longest, one.starts, x, dense))
    draw.backward(m._JaggedDenseBroadcastAddFunction.apply(one.longest, one.starts, x, bias))


def joined_rows(draw: Draw) -> None:
    one, two = Histories(draw), Histories(draw)
    m = _of("jagged_tensors")
    a, b = (draw.normal(x.total, x.d, grad=True) for x in (one, two))
    whole = m.triton_concat_2D_jagged(
        2 * one.longest, a, b, one.longest, two.longest, one.starts, two.starts
    )
    draw.backward(whole)
    left, right = m.triton_split_2D_jagged(
        2 * one.longest, whole.detach().requires_grad_(), None, None, one.longest, two.longest,
        one.starts, two.starts,
    )  # fmt: skip
    draw.backward(left, right)


def norms(draw: Draw) -> None:
    m = _of("layer_norm")
    x = draw.normal(*draw.size((7, 200), (16384, 512)), grad=True)
    w, b = (draw.normal(x.shape[1], grad=True) for _ in range(2))
    draw.backward(m.LayerNormFunction.apply(x, w, b, 1e-5))
    draw.backward(m.LayerNormFunction.apply(x, None, None, 1e-5))
    draw.backward(m.RMSNormFunction.apply(x, w, 1e-5, True))
    draw.backward(m.SwishLayerNormFunction.apply(x, w, b, 1e-5))


def norm_gate_product(draw: Draw) -> None:
    """Dropout, too."""
    m = _of("hstu_linear")
    n, heads, d = draw.size((20, 2, 32), (16384, 4, 128))
    x, u = (draw.normal(n, heads * d, grad=True) for _ in range(2))
    w, b = (draw.normal(heads * d, grad=True) for _ in range(2))
    draw.backward(m.LayerNormMulDropoutFunction.apply(x, u, w, b, 1e-5, 0.1, True))
    w, b = (draw.normal(heads, grad=True) for _ in range(2))
    rest = (1e-5, 0.1, True, False, False, heads, d)
    draw.backward(m.GroupNormMulDropoutFunction.apply(x, u, w, b, *rest))


def products(draw: Draw) -> None:
    m, n, k = draw.size((70, 64, 96), (8192, 2048, 512))
    x, w = draw.normal(m, k, grad=True), draw.normal(k, n, grad=True, scale=0.2)
    y = draw.normal(n, grad=True)
    draw.backward(_of("addmm")._AddMmFunction.apply(x, w, y))


CALLS = {
    "attention": attention,
    "attention_gradients": attention_gradients,
    "new_targets": new_targets,
    "rows_of_unlike_lengths": rows_of_unlike_lengths,
    "joined_rows": joined_rows,
    "norms": norms,
    "norm_gate_product": norm_gate_product,
    "products": products,
}
