"""`compiled.asm` of a kernel that tilec compiles: Triton's texts, and tilec's PTX."""

from __future__ import annotations

from typing import Any

from tilec.compile.compiler import compile_module
from tilec.hardware.target import target_for_device
from tilec.triton.ahead import module_ahead
from tilec.triton.takeover.backend import STAGE, TEXT

PTX = "ptx"


class Assembly(dict[str, Any]):
    """A dict of texts by their stage. "ptx" is that of the last launch; before any, what the text
    alone decides."""

    def __init__(self, compiled: Any) -> None:
        super().__init__(compiled.asm)
        self._compiled = compiled

    def __missing__(self, stage: str) -> str:
        if stage != PTX:
            raise KeyError(stage)
        function = self._compiled.function
        if function is not None and function.latest is not None:
            return function.latest.ptx
        arch = self._compiled.metadata.target.arch
        target = target_for_device((arch // 10, arch % 10))
        if target is None:
            raise KeyError(stage)
        text, name = bytes(self[STAGE]).decode(), f"{self._compiled.name}.{TEXT}"
        return compile_module(module_ahead(text, name), target).ptx


def with_assembly(compiled: Any) -> Any:
    """A compiled kernel of Triton's, with `Assembly` if tilec launches it."""
    ours = getattr(getattr(compiled, "metadata", None), STAGE, False)
    if ours and not isinstance(compiled.asm, Assembly):
        compiled.asm = Assembly(compiled)
    return compiled
