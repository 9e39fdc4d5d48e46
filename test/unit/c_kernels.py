"""Compiles kernels' C by the C compiler at hand, with a driver that records; calls it from here."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tilec.c_source.source import CSource, c_source
from tilec.executable.kernel import TENSOR_MAP_BYTES, CompiledKernel
from tilec.runtime.arrays import ArrayView
from tilec.terms.dtypes import DTYPES, ELEMENT_BYTES

HERE = Path(__file__).resolve().parent
DTYPE_NUMBERS = {
    mlir: number for number, mlir in enumerate(d.mlir for d in DTYPES if d.mlir in ELEMENT_BYTES)
}
STATUS = (
    *("OK", "DRIVER", "NO_CODE", "DTYPE", "RANK", "ALIGNMENT", "SIZE", "STRIDE"),
    *("TOO_LARGE", "TENSOR_MAP", "LIMIT", "GRID"),
)
C_NUMBERS = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "int": ctypes.c_int,
    **{f"int{n}_t": getattr(ctypes, f"c_int{n}") for n in (8, 16, 32, 64)},
    **{f"uint{n}_t": getattr(ctypes, f"c_uint{n}") for n in (8, 16, 32, 64)},
}


class Array(ctypes.Structure):
    """tilec_array."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_int),
        ("shape", ctypes.c_int64 * 8),
        ("strides", ctypes.c_int64 * 8),
    )


class Error(ctypes.Structure):
    """tilec_error."""

    _fields_ = tuple((name, ctypes.c_int) for name in ("status", "argument", "axis", "result"))


class Launch(ctypes.Structure):
    """What c_driver.c records."""

    _fields_ = (
        ("place", ctypes.c_uint32 * 7),
        ("is_early", ctypes.c_uint32),
        ("stream", ctypes.c_uint64),
        ("function", ctypes.c_char * 64),
        ("arguments", (ctypes.c_char * TENSOR_MAP_BYTES) * 64),
    )


class EncodedMap(ctypes.Structure):
    """What c_driver.c records."""

    _fields_ = (
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("address", ctypes.c_uint64),
        ("sizes", ctypes.c_uint64 * 5),
        ("strides", ctypes.c_uint64 * 4),
        ("box", ctypes.c_uint32 * 5),
        ("steps", ctypes.c_uint32 * 5),
        ("modes", ctypes.c_int32 * 4),
        ("walks", ctypes.c_int32),
        ("lower", ctypes.c_int32 * 3),
        ("upper", ctypes.c_int32 * 3),
    )


class Recorded(NamedTuple):
    """A launch: grid, threads and bytes; stream; bytes of each argument but tensor maps; these."""

    function: str
    place: tuple[int, ...]
    stream: int
    is_early: bool
    arguments: list[bytes]
    maps: list[tuple[Any, ...]]


def cuda_include() -> Path:
    """The folder of cuda.h that the package of ptxas brings along."""
    found = [*Path(sysconfig.get_paths()["purelib"]).glob("nvidia/*/include/cuda.h")]
    if not found or shutil.which("cc") is None:
        pytest.skip("needs a C compiler and cuda.h")
    return found[0].parent


FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O0", "-fPIC", "-shared")


class Library:
    """Kernels compiled together with the driver that records."""

    def __init__(self, folder: Path, kernels: Sequence[Sequence[CompiledKernel]]) -> None:
        include = cuda_include()
        self.sources = [c_source(each) for each in kernels]
        for source in self.sources:
            write(source, folder)
        files = [str(folder / f"{source.name}.c") for source in self.sources]
        command = ["cc", *FLAGS, f"-isystem{include}", *files, str(HERE / "c_driver.c")]
        made = folder / "kernels.so"
        done = subprocess.run(
            [*command, "-Wl,-Bsymbolic", "-o", str(made)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        self.functions = ctypes.CDLL(str(made))
        self.launch = Launch.in_dll(self.functions, "last_launch")

    def number(self, name: str) -> ctypes.c_int32:
        """A variable of the driver."""
        return ctypes.c_int32.in_dll(self.functions, name)

    def loaded(self, kernel: CompiledKernel) -> CKernel:
        """A kernel that is loaded. AssertionError where that fails."""
        found = CKernel(self, kernel)
        assert found.load() == "OK"
        return found


def write(source: CSource, folder: Path) -> None:
    """Writes header and source."""
    (folder / f"{source.name}.h").write_text(source.header)
    (folder / f"{source.name}.c").write_text(source.source)


class CKernel:
    """One kernel of a library: its functions in C, with Python's values."""

    def __init__(self, library: Library, kernel: CompiledKernel) -> None:
        self.library, self.kernel = library, kernel
        self.memory = ctypes.create_string_buffer(4096)
        self.error = Error()

    def _call(self, name: str, *arguments: Any) -> str:
        function = getattr(self.library.functions, f"{self.kernel.name}_{name}")
        function.restype = Error
        self.error = function(self.memory, *arguments)
        return STATUS[self.error.status]

    def load(self) -> str:
        """Loads; the status."""
        return self._call("load")

    def unload(self) -> str:
        """Unloads; the status."""
        return self._call("unload")

    def explained(self) -> str:
        """The last error as text."""
        text = ctypes.create_string_buffer(256)
        explain = getattr(self.library.functions, f"{self.kernel.name}_explain")
        explain.restype = ctypes.c_char_p
        return explain(self.error, text, ctypes.c_size_t(256)).decode()

    def run(self, values: Sequence[Any], stream: int, grid: Sequence[int] | None = None) -> str:
        """Launches on views and numbers; the status."""
        given: list[Any] = []
        for parameter, value in zip(self.kernel.parameters, values, strict=True):
            if isinstance(value, ArrayView):
                given.append(ctypes.byref(array_of(value)))
            else:
                given.append(C_NUMBERS[_c_type(parameter.dtype)](value))
        if grid is not None:
            given.append((ctypes.c_int64 * 3)(*grid))
        slots = [slot for slot in self.kernel.abi() if slot.field != "tensor_map"]
        widths = [8 if s.field == "pointer" else ELEMENT_BYTES[s.dtype] for s in slots]
        self.library.number("width_count").value = len(widths)
        table = (ctypes.c_int32 * 64).in_dll(self.library.functions, "widths")
        table[: len(widths)] = widths
        self.library.number("map_count").value = 0
        return self._call("launch", *given, ctypes.c_void_p(stream))

    def recorded(self) -> Recorded:
        """What the driver was told at the last launch."""
        found, functions = self.library.launch, self.library.functions
        count = self.library.number("width_count").value
        widths = (ctypes.c_int32 * 64).in_dll(functions, "widths")
        maps = (EncodedMap * 64).in_dll(functions, "maps")
        return Recorded(
            found.function.decode(),
            tuple(found.place),
            found.stream,
            bool(found.is_early),
            [ctypes.string_at(found.arguments[n], widths[n]) for n in range(count)],
            [_shown(maps[n]) for n in range(self.library.number("map_count").value)],
        )


def _shown(made: EncodedMap) -> tuple[Any, ...]:
    rank = made.rank
    lists = (made.sizes[:rank], made.strides[: max(1, rank - 1)])
    box = made.box[: 2 if made.walks else rank]
    corners = [made.lower[: rank - 2], made.upper[: rank - 2]] if made.walks else [(), ()]
    return (made.dtype, made.address, *lists, box, made.steps[:rank], list(made.modes), *corners)


def _c_type(dtype: str) -> str:
    from tilec.c_source.tables import C_TYPES

    return C_TYPES[dtype]


def array_of(view: ArrayView) -> Array:
    """A view as C has it."""
    found = Array(view.pointer, DTYPE_NUMBERS[view.dtype], len(view.shape))
    found.shape[: len(view.shape)] = view.shape
    found.strides[: len(view.shape)] = view.strides
    return found
