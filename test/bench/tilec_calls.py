"""tilec's peers: what the artefacts of the build launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from tensors import DTYPES

from tilec.runtime.artefact import load

Tensors = Mapping[str, torch.Tensor]

NO_EPILOGUE = (0, 0, 0, 0, 1.0, 0)
"""bias, row_scale, column_scale, scale, factor and residual of a plain `tilec.ops.matmul`."""


def with_folder(folder: Path, entry: dict[str, Any]) -> dict[str, Any]:
    """A manifest entry with the whole paths of its artefacts."""
    names = ("file", "combine", "list")
    copies = {
        name: copy | {"file": str(folder / copy["file"])}
        for name, copy in entry.get("copies", {}).items()
    }
    whole: dict[str, Any] = {name: str(folder / entry[name]) for name in names if name in entry}
    if "steps" in entry:
        whole["steps"] = [str(folder / name) for name in entry["steps"]]
    return entry | whole | {"copies": copies}


def tilec_call(case: Any, entry: Mapping[str, Any], device: str) -> Callable[[Tensors], Any]:
    """The launch of a variant; `entry`: of the build's manifest, with whole paths."""
    if "steps" in entry:
        return _layer_call(case, entry)
    if entry["kernel"] == "ops.matmul":
        return _ops_call(case, entry, device)
    launcher = load(entry["file"])
    if "list" in entry:
        return _arranged_call(case, entry, device)

    def call(t: Tensors) -> None:
        launcher(*(t[spec.name] for spec in case.arrays), *case.scalars)

    return call


def _layer_call(case: Any, entry: Mapping[str, Any]) -> Callable[[Tensors], Any]:
    """The launches of a layer one behind the other."""
    launchers = [load(file) for file in entry["steps"]]

    def call(t: Tensors) -> None:
        for launcher, step in zip(launchers, case.steps, strict=True):
            launcher(*(t[a] if isinstance(a, str) else a for a in step.arguments))

    return call


def _arranged_call(case: Any, entry: Mapping[str, Any], device: str) -> Callable[[Tensors], Any]:
    """Lists the tiles of groups, then multiplies them."""
    launcher, arrange = load(entry["file"]), load(entry["list"])
    tiles = torch.empty(case.listed(entry["block"]).shape, dtype=torch.int32, device=device)

    def call(t: Tensors) -> None:
        arrange(t["ends"], tiles)
        launcher(t["a"], t["b"], tiles, t["c"])

    return call


def _ops_call(case: Any, entry: Mapping[str, Any], device: str) -> Callable[[Tensors], Any]:
    """One kernel, or with split K one that leaves partial sums and one that adds them up; in front
    of them the copies of unaligned operands."""
    launcher = load(entry["file"])
    aligned = {
        name: _copier(copy, DTYPES[case.dtype], device) for name, copy in entry["copies"].items()
    }

    def arrays(t: Tensors) -> tuple[Any, Any, Any]:
        a, b = (aligned[name](t[name]) if name in aligned else t[name] for name in "ab")
        return (b.mT, a.mT, t["c"].mT) if entry["transposed"] else (a, b, t["c"])

    if "tail" in entry:
        partial = torch.empty(entry["sums_shape"], dtype=DTYPES[entry["sums"]], device=device)
        flags = torch.zeros(entry["sums_shape"][0], dtype=torch.int32, device=device)
        return lambda t: launcher(*arrays(t), *NO_EPILOGUE, partial, flags)
    if "combine" not in entry:
        return lambda t: launcher(*arrays(t), *NO_EPILOGUE)
    *lead, m, n = case.arrays[-1].shape
    shape = (entry["splits"], *lead, *((n, m) if entry["transposed"] else (m, n)))
    sums = torch.empty(shape, dtype=DTYPES[entry["sums"]], device=device)
    combine = load(entry["combine"])

    def call(t: Tensors) -> None:
        a, b, c = arrays(t)
        launcher(a, b, sums, *NO_EPILOGUE)
        combine(sums, c, *NO_EPILOGUE)

    return call


def _copier(copy: Mapping[str, Any], dtype: Any, device: str) -> Callable[[Any], torch.Tensor]:
    """Copies a matrix to aligned rows; gives the copy in the matrix's shape."""
    launcher = load(copy["file"])
    rows, columns = copy["shape"]
    made = torch.empty((rows, copy["pitch"]), dtype=dtype, device=device)[:, :columns]
    transposed = copy["along"] == 0

    def call(matrix: torch.Tensor) -> torch.Tensor:
        launcher(matrix.T if transposed else matrix, made)
        return made.T if transposed else made

    return call
