"""xFormers: rows chosen and added, norms, products of parts."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch
from triton.language.extra import libdevice

from library_calls.draw import Draw, bare_package, stand_in

REPOSITORY = "facebookresearch/xformers"


def prepare(folder: Path) -> None:
    """`folder`: of the repository. Its packages ask for its compiled library."""
    for name in ("xformers", "xformers.ops", "xformers.ops._triton", "xformers.triton"):
        bare_package(name, folder.joinpath(*name.split(".")))
    stand_in("xformers.triton.importing", libdevice_find=lambda name: getattr(libdevice, name))
    model = {"early_config_prune": lambda configs, *_, **__: configs}
    model["estimate_matmul_time"] = lambda *_, **__: 1.0
    stand_in("xformers.ops._triton.matmul_perf_model", **model)


def _of(name: str) -> Any:
    return importlib.import_module(f"xformers.ops._triton.{name}")


def chosen_rows(draw: Draw) -> None:
    m = _of("k_index_select_cat")
    b, d, count = draw.size((9, 64, 5), (8192, 4096, 3000))
    source = draw.normal(b, d)
    index = torch.randperm(b, device=draw.device)[:count]
    m.index_select_cat_fwd(draw.normal(count, d), source, index)
    m.index_select_cat_bwd(torch.zeros_like(source), index, draw.normal(count, d))


def added_rows(draw: Draw) -> None:
    """Rows times a vector added to others, and the gradients."""
    m = _of("k_scaled_index_add")
    b, rows, d, count = draw.size((6, 5, 64, 3), (64, 256, 1024, 40))
    x, source = draw.normal(b, rows, d), draw.normal(count, rows, d)
    index, scaling = torch.randperm(b, device=draw.device)[:count], draw.normal(d)
    m.scaled_index_add_fwd(x, index, source, scaling, 0.7)
    grads = torch.empty_like(source), torch.empty_like(source)
    m.scaled_index_add_bwd(draw.normal(b, rows, d), *grads, source, scaling, index, 0.7)


def norms(draw: Draw) -> None:
    m = _of("rmsnorm_kernels")
    x = draw.normal(*draw.size((7, 200), (4096, 4096)))
    m._rms_norm_forward(x, draw.normal(x.shape[1]), 1e-6)
    m._rms_norm_add_forward(x.clone(), draw.normal(*x.shape), draw.normal(x.shape[1]), 1e-6)


def products_of_parts(draw: Draw) -> None:
    """Of two matrices that are cut into three parts each way."""
    m = _of("tiled_matmul_kernels")
    ms, ns, ks = draw.size(
        ([64, 32], [32, 64], [64, 32]), ([2048, 1024], [1024, 2048], [2048, 1024])
    )
    a, b, c = (
        [[draw.normal(rows, columns) for columns in two] for rows in one]
        for one, two in ((ms, ks), (ks, ns), (ms, ns))
    )
    m._launch_triton_matmul(a, b, c, ms, ns, ks)


CALLS = {
    "chosen_rows": chosen_rows,
    "added_rows": added_rows,
    "norms": norms,
    "products_of_parts": products_of_parts,
}
