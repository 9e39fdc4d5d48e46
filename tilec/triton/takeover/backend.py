"""Triton's backend for NVIDIA's GPUs, but where tilec compiles it ends at TTIR.

    ttir -> ttgir -> llir -> ptx -> cubin    Triton
    ttir -> tilec                            tilec: the text, once all of it could be imported

What a kernel is compiled to depends on the arguments of a launch. So Triton's compiled kernel, and
its cache on disk, hold the text; `launcher.py` launches it.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from tilec.call.dependencies import compiler_digest
from tilec.messages.diagnostics import CompileError
from tilec.triton.ahead import module_ahead
from tilec.triton.reader import SEPARATE, read_kernel
from tilec.triton.takeover.emulated import emulated_target, emulator
from tilec.triton.takeover.wish import TRITON, FallbackWarning, wish

STAGE = "tilec"
"""The stage behind TTIR. What it gives is what Triton calls the kernel's binary; a field of this
name in the kernel's metadata says whether it is tilec's."""
TEXT = "ttir"
HOST = "cpu"
"""The target of what torch.compile writes for tensors in host memory."""

Stage = Callable[[Any, dict[str, Any]], Any]


def backend_class(theirs: Any) -> Any:
    """A subclass of Triton's backend class that asks who compiles."""

    class Backend(theirs):
        """See the module. An instance keeps the wish that it was made under."""

        def __init__(self, target: Any) -> None:
            super().__init__(target)
            self.wish = wish()
            if self.wish is not None:
                self.binary_ext = STAGE

        def add_stages(self, stages: dict[str, Stage], options: Any, *language: Any) -> None:
            super().add_stages(stages, options, *language)
            if self.wish is not None:
                contracts = getattr(options, "enable_fp_fusion", True)
                end_at_text(stages, self.wish.otherwise, contracts=contracts)

        def hash(self) -> str:
            plain = super().hash()
            if self.wish is None:
                return plain
            return f"{plain}-{STAGE}-{self.wish.otherwise}-{compiler_digest()}"

    return Backend


def host_backend_class(backend: Any) -> Any:
    """A subclass of `backend_class`'s for the target of host memory, which is the emulator."""

    class HostBackend(backend):
        """See the function."""

        def __init__(self, target: Any) -> None:
            self.supports_target = backend.supports_target  # which Triton asks of what it made
            super().__init__(emulated_target())

        @staticmethod
        def supports_target(target: Any) -> bool:
            return target.backend == HOST and emulator() is not None

    return HostBackend


def end_at_text(stages: dict[str, Stage], otherwise: str, *, contracts: bool = True) -> None:
    """Puts tilec's stage in place of those behind TTIR, which it runs where it may and must.
    `contracts`: whether a product and a sum may be one rounding."""
    names = list(stages)
    first = names.index(TEXT) + 1 if TEXT in names else 0
    behind = {name: stages.pop(name) for name in names[first:]}
    stages[STAGE] = functools.partial(_imported, behind, otherwise, contracts)


def _imported(
    behind: Mapping[str, Stage], otherwise: str, contracts: bool, module: Any,
    metadata: dict[str, Any],
) -> Any:  # fmt: skip
    """The text of a kernel that tilec imports, else Triton's machine code or a CompileError."""
    text = str(module)
    try:
        text = text if contracts else _separate(text)
        metadata["name"] = _name_of(text)
    except CompileError as error:
        if otherwise != TRITON:
            raise
        warnings.warn(f"Triton compiles this kernel: {error}", FallbackWarning, stacklevel=2)
        metadata[STAGE] = False
        for stage in behind.values():
            module = stage(module, metadata)
        return module
    # What the CTAs of a launch have of these, the launch decides.
    metadata.update({STAGE: True, "shared": 0, "tmem_size": 0})
    return text


def _separate(text: str) -> str:
    """A text whose module says that products and sums are rounded each. CompileError for one
    without a module."""
    made, count = re.subn(
        r"^module(?: attributes \{(.*?)\})? \{", rf"module attributes {{{SEPARATE}, \1}} {{", text,
        count=1, flags=re.MULTILINE,
    )  # fmt: skip
    if not count:
        raise CompileError("enable_fp_fusion=False of a text without a module")
    return made.replace(f"{SEPARATE}, }}", f"{SEPARATE}}}", 1)


def _name_of(text: str) -> str:
    """Returns the name of the kernel in a text of Triton's IR. CompileError if part of that kernel
    cannot be imported."""
    if "tt.func" not in text:
        raise CompileError("not a kernel of triton.language (Gluon is not imported)")
    name = read_kernel(text).name
    module_ahead(text, f"{name}.{TEXT}")
    return name
