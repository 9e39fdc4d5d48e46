"""One launch as LLVM IR: a function of the stream and of the arrays' addresses, for one GPU.

    i32 @launch_<n>(ptr %stream, i64 %array0, ...)      the driver's CUresult

Shapes are fixed where XLA compiles, so that a launch is what changes: the argument block
(`tilec.runtime.cuda.argument_block`) is copied to the stack, addresses are written into it, tensor
maps are encoded, the driver is called. Nothing is shared: threads launch side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.executable.kernel import TENSOR_MAP_BYTES
from tilec.records import dataclass
from tilec.runtime.cuda.argument_block import MAP_ALIGNMENT
from tilec.runtime.cuda.kernel_launch import CONFIG_STREAM

DRIVER_FUNCTIONS = (
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuLaunchKernelEx",
    "cuTensorMapEncodeTiled",
    "cuTensorMapEncodeIm2col",
    "cuGetErrorName",
)
"""What handlers call, by the names that the driver's library exports."""


@dataclass(frozen=True)
class MapCode:
    """A tensor map of a launch: of the array of number `array`, or at a fixed `address` where that
    array is empty. `sizes` to `modes`: what cuTensorMapEncodeTiled takes, in its order. `lower` and
    `upper`: what cuTensorMapEncodeIm2col takes in front of the box; not empty of an im2col map."""

    array: int
    address: int | None
    dtype: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    modes: tuple[int, ...]
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()


@dataclass(frozen=True)
class DeviceLaunch:
    """What a launch on one GPU is made of.

    `context`, `function`: the driver's. `config`: its CUlaunchConfig, but for the stream. `block`:
    the arguments, but for the arrays' addresses, which belong at the bytes `addresses`. `places`:
    the byte of each argument in the kernel's order but for tensor maps, which come last.
    """

    ordinal: int
    context: int
    function: int
    config: bytes
    block: bytes
    addresses: tuple[int, ...]
    places: tuple[int, ...]
    maps: tuple[MapCode, ...]


def launch_code(number: int, launch: DeviceLaunch, driver: Mapping[str, int]) -> str:
    """The LLVM IR of `@launch_<number>` and its constants. `driver`: addresses of
    `DRIVER_FUNCTIONS`."""
    maps_start = -(-len(launch.block) // MAP_ALIGNMENT) * MAP_ALIGNMENT
    table_start = maps_start + TENSOR_MAP_BYTES * len(launch.maps)
    places = [*launch.places, *range(maps_start, table_start, TENSOR_MAP_BYTES)]
    parameters = "".join(f", i64 %array{n}" for n in range(len(launch.addresses)))
    lines = [
        f"define internal i32 @launch_{number}(ptr %stream{parameters}) {{",
        f"  %block = alloca [{table_start + 8 * len(places)} x i8], align {MAP_ALIGNMENT}",
        f"  %config = alloca [{len(launch.config)} x i8], align 8",
        "  %result = alloca i32",
        "  %before = alloca ptr",
        *_copied("%block", f"@block{number}", launch.block),
        *_copied("%config", f"@config{number}", launch.config),
        *_stored("ptr %stream", "%config", CONFIG_STREAM),
    ]
    for n, place in enumerate(launch.addresses):
        lines += _stored(f"i64 %array{n}", "%block", place)
    for n, place in enumerate(places):
        lines += [_at(f"%argument{n}", "%block", place)]
        lines += _stored(f"ptr %argument{n}", "%block", table_start + 8 * n)
    lines += _step("enter", driver["cuCtxPushCurrent_v2"], f"ptr {pointer(launch.context)}", "end")
    for n, made in enumerate(launch.maps):
        target = f"%argument{len(launch.places) + n}"
        arguments = f"ptr {target}, {_map_arguments(number, n, made)}"
        encode = "cuTensorMapEncodeIm2col" if made.lower else "cuTensorMapEncodeTiled"
        lines += _step(f"encode{n}", driver[encode], arguments, "leave")
    function = pointer(launch.function)
    lines += [_at("%table", "%block", table_start)]
    arguments = f"ptr %config, ptr {function}, ptr %table, ptr null"
    lines += _step("launch", driver["cuLaunchKernelEx"], arguments, "leave")
    lines += [
        "  br label %leave",
        "leave:",
        f"  %left = call i32 {pointer(driver['cuCtxPopCurrent_v2'])}(ptr %before)",
        "  br label %end",
        "end:",
        "  %code = load i32, ptr %result",
        "  ret i32 %code",
        "}",
    ]
    return "\n".join([*_constants(number, launch), *lines, ""])


def pointer(address: int) -> str:
    """An address of this process as a constant of LLVM IR."""
    return f"inttoptr (i64 {address} to ptr)"


def constant_bytes(name: str, content: bytes) -> str:
    """A global constant of LLVM IR, aligned to 8 bytes."""
    text = "".join(f"\\{byte:02X}" for byte in content)
    return f'@{name} = private constant [{len(content)} x i8] c"{text}", align 8'


def constant_array(name: str, kind: str, values: Sequence[int]) -> str:
    """A global array of integers of LLVM IR."""
    items = ", ".join(f"{kind} {value}" for value in values)
    return f"@{name} = private constant [{len(values)} x {kind}] [{items}]"


def _constants(number: int, launch: DeviceLaunch) -> list[str]:
    found = [
        constant_bytes(f"block{number}", launch.block),
        constant_bytes(f"config{number}", launch.config),
    ]
    for n, made in enumerate(launch.maps):
        for name, kind in _LISTS.items():
            found.append(constant_array(f"{name}{number}_{n}", kind, getattr(made, name)))
    return found


def _map_arguments(number: int, n: int, made: MapCode) -> str:
    """What the driver takes behind the place of the map: an im2col map's box as two numbers."""
    address = f"%array{made.array}" if made.address is None else str(made.address)
    lists = {name: f"ptr @{name}{number}_{n}" for name in _LISTS if getattr(made, name)}
    if made.lower:
        lists["box"] = ", ".join(f"i32 {size}" for size in made.box)
    modes = ", ".join(f"i32 {mode}" for mode in made.modes)
    arguments = ", ".join(lists.values())
    return f"i32 {made.dtype}, i32 {len(made.sizes)}, i64 {address}, {arguments}, {modes}"


_LISTS = {
    "sizes": "i64",
    "strides": "i64",
    "lower": "i32",
    "upper": "i32",
    "box": "i32",
    "steps": "i32",
}
"""Numbers that the driver reads from memory, in its order, and their types."""


def _step(name: str, function: int, arguments: str, failed: str) -> list[str]:
    """A call of the driver; its result is kept, and anything but success goes to `failed`."""
    return [
        f"  %{name} = call i32 {pointer(function)}({arguments})",
        f"  store i32 %{name}, ptr %result",
        f"  %{name}_works = icmp eq i32 %{name}, 0",
        f"  br i1 %{name}_works, label %after_{name}, label %{failed}",
        f"after_{name}:",
    ]


def _at(name: str, memory: str, place: int) -> str:
    return f"  {name} = getelementptr i8, ptr {memory}, i64 {place}"


def _stored(value: str, memory: str, place: int) -> list[str]:
    """Writes a value at a byte of some memory."""
    at = f"{memory}_{place}"
    return [_at(at, memory, place), f"  store {value}, ptr {at}"]


def _copied(memory: str, source: str, content: bytes) -> list[str]:
    """Copies a constant to the beginning of some memory."""
    return [
        f"  call void @llvm.memcpy.p0.p0.i64(ptr align 8 {memory}, ptr align 8 {source}, "
        f"i64 {len(content)}, i1 false)"
    ]
