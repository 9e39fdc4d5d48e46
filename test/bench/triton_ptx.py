"""Launches products that Triton compiled to PTX elsewhere: pointers, sizes and row strides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cuda.bindings import driver

DTYPES = {"fp16": "f16", "s8": "i8"}
"""How a meta.json calls a dtype, where MLIR or this bench calls it otherwise."""
C_TYPES = {"u64": np.uint64, "u32": np.uint32}


class TritonPtx:
    """One kernel of a @ b with b as (N, K), and its launch on tensors a, b and c.

    `meta`: file, entry, params (PTX types), shared (bytes), warps, bm, bn, dt.
    """

    def __init__(self, folder: Path, meta: Mapping[str, Any]) -> None:
        self.meta = meta
        self.dtype = DTYPES.get(meta["dt"], meta["dt"])
        self.label = Path(meta["file"]).stem.split("_", 2)[2]
        text = (folder / meta["file"]).read_bytes() + b"\0"
        self._module = _checked(driver.cuModuleLoadData(text))
        self._kernel = _checked(driver.cuModuleGetFunction(self._module, meta["entry"].encode()))
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _checked(driver.cuFuncSetAttribute(self._kernel, most, meta["shared"]))

    def __call__(self, t: Mapping[str, torch.Tensor]) -> None:
        """Launches on the current stream."""
        a, b, c = t["a"], t["b"], t["c"]
        pointers = a.data_ptr(), b.data_ptr(), c.data_ptr()
        m, n, k = *c.shape, a.shape[1]
        # Behind the strides of rows come two scratch pointers, unused.
        values = (*pointers, m, n, k, a.stride(0), b.stride(1), c.stride(0), 0, 0)
        held = [
            np.array([value], dtype=C_TYPES[kind])
            for kind, value in zip(self.meta["params"], values, strict=True)
        ]
        arguments = np.array([array.ctypes.data for array in held], dtype=np.uint64)
        programs = -(-m // self.meta["bm"]) * -(-n // self.meta["bn"])
        block, shared = 32 * self.meta["warps"], self.meta["shared"]
        stream = torch.cuda.current_stream().cuda_stream
        grid = (programs, 1, 1, block, 1, 1)
        pointer = arguments.ctypes.data
        _checked(driver.cuLaunchKernel(self._kernel, *grid, shared, stream, pointer, 0))


def load_folder(folder: Path) -> list[TritonPtx]:
    """The products (kind "mm") of a folder's meta.json."""
    metas = json.loads((folder / "meta.json").read_text())
    return [TritonPtx(folder, meta) for meta in metas if meta["kind"] == "mm"]


def _checked(answer: tuple[Any, ...]) -> Any:
    """The driver's answer without its error code. RuntimeError for an error."""
    if int(answer[0]):
        raise RuntimeError(f"the driver says {answer[0]!r}")
    return answer[1] if len(answer) > 1 else None
