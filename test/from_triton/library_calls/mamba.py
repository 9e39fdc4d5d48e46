"""mamba: chunked state-space scans, and what stands around them."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import torch

from library_calls.draw import Draw, bare_package

REPOSITORY = "state-spaces/mamba"
TURNS = {"angle_dt.angle_dt_fwd_kernel": {"OUT": 2 * math.pi, "OUTPUT_STATE": 2 * math.pi}}


def prepare(folder: Path) -> None:
    """`folder`: of the repository."""
    for name in ("mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.triton", "mamba_ssm.utils"):
        bare_package(name, folder.joinpath(*name.split(".")))
    bare_package("mamba_ssm.ops.triton.mamba3", folder / "mamba_ssm/ops/triton/mamba3")


def _of(module: str) -> Any:
    return importlib.import_module(f"mamba_ssm.ops.triton.{module}")


def _scan(draw: Draw, gated: bool) -> None:
    b, t, h, p, g, n, chunk = draw.size((1, 100, 2, 32, 1, 32, 32), (4, 4096, 64, 64, 1, 128, 256))
    x, dt = draw.normal(b, t, h, p, grad=True), draw.normal(b, t, h, grad=True)
    a = (-draw.uniform(h).exp()).requires_grad_()
    bb, c = (draw.normal(b, t, g, n, grad=True) for _ in range(2))
    d, bias = (draw.normal(h, dtype=torch.float32, grad=True) for _ in range(2))
    z = draw.normal(b, t, h, p, grad=True) if gated else None
    f = _of("ssd_combined").mamba_chunk_scan_combined
    draw.backward(f(x, dt, a, bb, c, chunk, D=d, z=z, dt_bias=bias, dt_softplus=True))


def scan(draw: Draw) -> None:
    _scan(draw, False)


def gated_scan(draw: Draw) -> None:
    _scan(draw, True)


def varlen_scan(draw: Draw) -> None:
    """Several sequences in one."""
    t, h, p, n, chunk = draw.size((100, 2, 32, 32, 32), (8192, 64, 64, 128, 256))
    x, dt = draw.normal(1, t, h, p), draw.normal(1, t, h)
    a = -draw.uniform(h).exp()
    b, c = (draw.normal(1, t, 1, n) for _ in range(2))
    ends = torch.tensor([0, t // 3, t // 2, t], device=draw.device, dtype=torch.int32)
    ids = torch.repeat_interleave(torch.arange(3, device=draw.device), ends.diff())[None].int()
    f = _of("ssd_combined").mamba_chunk_scan_combined
    f(
        x,
        dt,
        a,
        b,
        c,
        chunk,
        seq_idx=ids,
        cu_seqlens=ends,
        dt_softplus=True,
        return_varlen_states=True,
    )


def state_update(draw: Draw) -> None:
    b, h, p, n = draw.size((3, 4, 32, 16), (256, 64, 64, 128))
    state = draw.normal(b, h, p, n, dtype=torch.float32)
    x, z, dt = draw.normal(b, h, p), draw.normal(b, h, p), draw.normal(b, h, 1).expand(b, h, p)
    a = (-draw.uniform(h, 1, 1)).expand(h, p, n)
    d, bias = draw.uniform(h, 1).expand(h, p), draw.uniform(h, 1).expand(h, p)
    f = _of("selective_state_update").selective_state_update
    f(state, x, dt, a, draw.normal(b, 1, n), draw.normal(b, 1, n), d, z, bias, dt_softplus=True)


def _norm(draw: Draw, rms: bool) -> None:
    rows, d = draw.size((9, 200), (8192, 4096))
    x, residual = draw.normal(rows, d, grad=True), draw.normal(rows, d, grad=True)
    w = draw.normal(d, grad=True)
    bias = None if rms else draw.normal(d, grad=True)
    f = _of("layer_norm").layer_norm_fn
    draw.backward(*f(x, w, bias, residual=residual, prenorm=True, is_rms_norm=rms))


def layer_norm(draw: Draw) -> None:
    _norm(draw, False)


def rms_norm(draw: Draw) -> None:
    _norm(draw, True)


def rms_norm_gated(draw: Draw) -> None:
    rows, d = draw.size((9, 256), (8192, 4096))
    x, z, w = (
        draw.normal(rows, d, grad=True),
        draw.normal(rows, d, grad=True),
        draw.normal(d, grad=True),
    )
    f = _of("layernorm_gated").rmsnorm_fn
    draw.backward(f(x, w, None, z, group_size=d // 2, norm_before_gate=False))


def swiglu(draw: Draw) -> None:
    rows, d = draw.size((9, 200), (8192, 8192))
    draw.backward(_of("k_activations").swiglu(draw.normal(rows, d, grad=True)))


def angles(draw: Draw) -> None:
    b, t, h, d = draw.size((1, 100, 2, 16), (4, 4096, 32, 32))
    angle, dt = draw.normal(b, t, h, d, dtype=torch.float32), draw.uniform(b, h, t)
    m = _of("mamba3.angle_dt")
    out = m.angle_dt_fwd(angle, dt)
    out = out[0] if isinstance(out, tuple) else out
    m.angle_dt_bwd(torch.randn_like(out), angle, dt)


def segment_sums(draw: Draw) -> None:
    b, h, t = draw.size((1, 2, 96), (4, 32, 4096))
    m = _of("mamba3.mamba3_mimo_utils")
    m.compute_dacs_segsum_triton(-draw.uniform(b, h, t), 32)


CALLS = {
    "scan": scan,
    "gated_scan": gated_scan,
    "varlen_scan": varlen_scan,
    "state_update": state_update,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "rms_norm_gated": rms_norm_gated,
    "swiglu": swiglu,
    "angles": angles,
    "segment_sums": segment_sums,
}
