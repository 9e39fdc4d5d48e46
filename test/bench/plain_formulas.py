"""What the kernels of `plain_kernels` compute, in torch: torch.compile's source, and the reference
where the inputs are float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F

Tensors = Mapping[str, torch.Tensor]


def _wide(x: torch.Tensor) -> torch.Tensor:
    """As f32, or f64 where the reference is computed."""
    return x if x.dtype == torch.float64 else x.float()


def option_prices(t: Tensors):
    s, k, time = t["x"], t["strikes"], t["times"]
    spread = 0.3 * time.sqrt()
    d = ((s / k).log() + 0.065 * time) / spread
    near, far = (0.5 * (1 + torch.erf(each * 0.7071067811865476)) for each in (d, d - spread))
    return (s * near - k * torch.exp(-0.02 * time) * far,)


def divergences(t: Tensors):
    p, q = _wide(t["x"]), _wide(t["z"])
    return ((p.exp() * (p - q)).sum(1),)


def channel_norm(t: Tensors):
    x = _wide(t["x"])
    mean = x.mean(1, keepdim=True)
    scale = ((x - mean).square().mean(1, keepdim=True) + 1e-6).rsqrt()
    w, b = (_wide(t[name])[None, :, None] for name in ("weight", "bias"))
    return ((x - mean) * scale * w + b,)


def add_norm_quantise(t: Tensors):
    v = _wide(t["x"]) + _wide(t["residual"])
    n = v * (v.square().mean(1, keepdim=True) + 1e-6).rsqrt() * _wide(t["weight"])
    scale = n.abs().amax(1).clamp_min(1e-10) / 448
    return v, n / scale[:, None], scale


def best_expert(t: Tensors):
    v = _wide(t["x"])
    return v.softmax(1).amax(1), v.argmax(1)


def lion(t: Tensors):
    p, m, g = (_wide(t[name]) for name in "pmg")
    return p - 1e-3 * ((0.9 * m + 0.1 * g).sign() + 0.01 * p), 0.99 * m + 0.01 * g


def rank_one(t: Tensors):
    return (_wide(t["y"]) + 0.125 * _wide(t["u"])[:, None] * _wide(t["v"])[None, :],)


def largest_places(t: Tensors):
    return (t["x"].argmax(1),)


def double_bilinear(t: Tensors):
    x = _wide(t["x"])
    return (F.interpolate(x[None], scale_factor=2, mode="bilinear")[0],)


def depthwise(t: Tensors):
    x, taps = _wide(t["x"]), _wide(t["taps"])
    c = len(taps)
    x = x.reshape(-1, c, *x.shape[1:])
    padded = F.pad(x, (1, 1, 1, 1))
    h, w = x.shape[2:]
    parts = (
        padded[:, :, a : a + h, b : b + w] * taps[None, :, 3 * a + b, None, None]
        for a in range(3)
        for b in range(3)
    )
    return (sum(parts).reshape(-1, h, w),)


def depthwise_own(t: Tensors):
    """cuDNN's."""
    x, c = t["x"], len(t["taps"])
    x = x.reshape(-1, c, *x.shape[1:])
    y = F.conv2d(x, t["taps"].reshape(c, 1, 3, 3), padding=1, groups=c)
    return (y.reshape(-1, *y.shape[2:]),)


def square_parts(t: Tensors):
    x, y = _wide(t["x"]), t["y"]
    padded = F.pad(x, (0, len(y) * 16384 - len(x)))
    return (padded.reshape(len(y), 16384).square().sum(1),)


def middle_softmax(t: Tensors):
    return (_wide(t["x"]).softmax(1),)


def normal_images(t: Tensors):
    x = t["x"].to(torch.float64 if t["y"].dtype == torch.float64 else torch.float32)
    return (((x / 255 - 0.45) / 0.226).transpose(1, 2),)


def causal_scores(t: Tensors):
    x = _wide(t["x"])
    n = x.shape[1]
    place = torch.arange(n, device=x.device)
    x = x.reshape(-1, n, n) * 0.125
    return (x.masked_fill(place[None] > place[:, None], -torch.inf).softmax(2).reshape(-1, n),)


def column_logs(t: Tensors):
    return (_wide(t["x"]).logsumexp(0),)


def cosines(t: Tensors):
    return (F.normalize(t["x"], dim=1) @ F.normalize(t["z"], dim=1).T,)


def newton_step(t: Tensors):
    return (3.4445 * t["x"] - 4.775 * (t["x"] @ t["x"]),)


def classify(t: Tensors):
    return (_wide(t["x"] @ t["w"] + t["bias"]).log_softmax(1),)


def gru_gates(t: Tensors):
    (r, z, n, _), (a, b, c, _) = (_wide(t[name]).unbind(2) for name in ("x", "h"))
    new = (n + (r + a).sigmoid() * c).tanh()
    return (new + (z + b).sigmoid() * (_wide(t["y"]) - new),)


def add_rows_at(t: Tensors):
    return (t["y"].index_add(0, t["places"], t["x"]),)


def nearest_point(t: Tensors):
    a, b = t["x"][:, None, :3], t["z"][None, :, :3]
    return ((a - b).square().sum(2).amin(1),)


def running_products(t: Tensors):
    return (_wide(t["x"]).cumprod(1),)


def join_interleaved(t: Tensors):
    return (torch.stack((t["x"], t["z"]), 3).flatten(2),)


def fold_planes(t: Tensors):
    return (_wide(t["x"]).sum(0),)


def gated_pair(t: Tensors):
    return (F.silu(t["x"] @ t["w"].T) * (t["x"] @ t["v"].T),)


def batch_gelu(t: Tensors):
    return (F.gelu(torch.baddbmm(t["bias"][:, None], t["x"], t["w"])),)


FORMULAS: dict[str, Callable[[Tensors], tuple[torch.Tensor, ...]]] = {
    name: made
    for name, made in list(globals().items())
    if callable(made) and getattr(made, "__module__", "") == __name__ and not name.startswith("_")
}
