"""The emulator against a GPU: the same PTX on the same random inputs, compared lane by lane.

python3 test/gpu/test_emulator_conformance.py [--only TEXT] [--seeds N] [--dry-run] [--assemble]

Prints a line per kernel, then the failures with their first differing elements, then
`N passed, M failed`; emulator-conformance.json in $OUT, else in build/, has it all. Needs a GPU,
cuda-python, NumPy, ml_dtypes and tqdm. --dry-run puts a second run of the emulator in the place of
the GPU; --assemble gives every PTX to ptxas and runs nothing.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "emulator"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from conformance_case import DTYPES, Case, Launch, Rule
from conformance_kernels import all_cases
from worker_pool import JobResult, run_jobs

from tilec.runtime.cuda.driver import CudaError, check, load_driver
from tilec.runtime.emulator import Pointer, TensorMap, load
from tilec.runtime.emulator.program import dimensions

ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT = 90.0
_LOG_BYTES = 1 << 14
_GUARD = 1024
_STATIC_SHARED = 48 << 10


@cache
def named_cases() -> dict[str, Case]:
    cases = all_cases()
    named = {case.name: case for case in cases}
    if len(named) != len(cases):
        raise ValueError(
            f"cases of one name: {[n for n, c in Counter(x.name for x in cases).items() if c > 1]}"
        )
    return named


def emulate(launch: Launch) -> None:
    load(launch.text).run(
        launch.entry, launch.grid, launch.block, launch.arguments,
        shared_bytes=launch.shared_bytes, cluster=launch.cluster,
    )  # fmt: skip


# -- the GPU -------------------------------------------------------------------------------------


@cache
def context() -> Any:
    driver = load_driver()
    device = check(driver.cuDeviceGet(0), "getting device 0")
    primary = check(driver.cuDevicePrimaryCtxRetain(device), "retaining the context")
    check(driver.cuCtxSetCurrent(primary), "entering the context")
    return driver


class DeviceCopies:
    """Copies of arrays in GPU memory, one per array, with poisoned bytes before and behind."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.copies: dict[int, tuple[np.ndarray, int]] = {}

    def address_of(self, array: np.ndarray) -> int:
        """Address of the copy of a contiguous array."""
        if id(array) not in self.copies:
            if not array.flags.c_contiguous:
                raise ValueError("a contiguous array is needed")
            start = int(check(self.driver.cuMemAlloc(array.nbytes + 2 * _GUARD), "allocating"))
            image = np.full(array.nbytes + 2 * _GUARD, 0xA5, np.uint8)
            image[_GUARD : _GUARD + array.nbytes] = array.reshape(-1).view(np.uint8)
            check(self.driver.cuMemcpyHtoD(start, image.ctypes.data, image.nbytes), "copying in")
            self.copies[id(array)] = array, start
        return self.copies[id(array)][1] + _GUARD

    def copy_back(self) -> None:
        """Fills the arrays with what the GPU left. ValueError if bytes around them changed."""
        for array, start in self.copies.values():
            image = np.empty(array.nbytes + 2 * _GUARD, np.uint8)
            check(self.driver.cuMemcpyDtoH(image.ctypes.data, start, image.nbytes), "copying out")
            check(self.driver.cuMemFree(start), "freeing")
            array.reshape(-1).view(np.uint8)[:] = image[_GUARD : _GUARD + array.nbytes]
            if (image[:_GUARD] != 0xA5).any() or (image[_GUARD + array.nbytes :] != 0xA5).any():
                raise ValueError("the GPU wrote outside an array")


def load_module(driver: Any, text: str) -> Any:
    options = driver.CUjit_option
    log = bytearray(_LOG_BYTES)
    keys = [options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    image = text.encode() + b"\0"
    result = driver.cuModuleLoadDataEx(image, len(keys), keys, [log, _LOG_BYTES])
    reason = log.split(b"\0", 1)[0].decode(errors="replace").strip()
    return check(result, f"assembling: {reason}")


def encode_tensor_map(driver: Any, tensor_map: TensorMap, address: int) -> bytes:
    """The 128 bytes that the driver makes of the emulator's description."""
    types, swizzles = driver.CUtensorMapDataType, driver.CUtensorMapSwizzle
    name = np.dtype(tensor_map.element_type()).name
    kinds = {
        "uint8": "UINT8", "int8": "UINT8", "uint16": "UINT16", "uint32": "UINT32",
        "int32": "INT32", "uint64": "UINT64", "int64": "INT64", "float16": "FLOAT16",
        "float32": "FLOAT32", "float64": "FLOAT64", "bfloat16": "BFLOAT16",
        "float8_e4m3fn": "UINT8", "float8_e5m2": "UINT8",
    }  # fmt: skip
    rank = len(tensor_map.dims)
    suffix = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}[tensor_map.swizzle]
    fill = driver.CUtensorMapFloatOOBfill
    fill_name = "NAN_REQUEST_ZERO_FMA" if tensor_map.nan_fill else "NONE"
    box = [driver.cuuint32_t(x) for x in tensor_map.box]
    encode, moves, steps = driver.cuTensorMapEncodeTiled, [box], (1,) * rank
    if tensor_map.im2col is not None:
        lower, upper, through = dataclasses.astuple(tensor_map.im2col)
        moves, steps = [list(lower), list(upper), *box], (1, *through, 1)
        encode = driver.cuTensorMapEncodeIm2col
    encoded = check(
        encode(
            getattr(types, f"CU_TENSOR_MAP_DATA_TYPE_{kinds[name]}"), rank, address,
            [driver.cuuint64_t(x) for x in tensor_map.dims],
            [driver.cuuint64_t(x) for x in tensor_map.strides or (16,)],
            *moves,
            [driver.cuuint32_t(step) for step in steps],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(swizzles, f"CU_TENSOR_MAP_SWIZZLE_{suffix}"),
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
            getattr(fill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill_name}"),
        ),
        "encoding a tensor map",
    )  # fmt: skip
    return ctypes.string_at(int(encoded.getPtr()), 128)


def argument_bytes(driver: Any, copies: DeviceCopies, argument: Any, size: int) -> bytes:
    """What the parameter of `size` bytes holds."""
    if isinstance(argument, (np.ndarray, Pointer)):
        pointer = argument if isinstance(argument, Pointer) else Pointer(argument)
        return (copies.address_of(pointer.array) + pointer.byte_offset).to_bytes(8, "little")
    if isinstance(argument, TensorMap):
        return encode_tensor_map(driver, argument, copies.address_of(argument.array))
    if isinstance(argument, (bytes, np.generic)):
        raw = bytes(argument) if isinstance(argument, bytes) else argument.tobytes()
    elif isinstance(argument, float):
        raw = np.array(argument, f"f{size}").tobytes()
    else:
        raw = (int(argument) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    if len(raw) != size:
        raise ValueError(f"{argument!r} is no value of {size} bytes")
    return raw


def run_on_gpu(launch: Launch, sizes: list[int]) -> None:
    """Launches and waits. `sizes`: bytes of the parameters. CudaError if anything fails."""
    driver = context()
    module = load_module(driver, launch.text)
    function = check(driver.cuModuleGetFunction(module, launch.entry.encode()), "finding the entry")
    if launch.shared_bytes > _STATIC_SHARED:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(driver.cuFuncSetAttribute(function, attribute, launch.shared_bytes), "shared memory")
    copies = DeviceCopies(driver)
    raws = [
        argument_bytes(driver, copies, argument, size)
        for argument, size in zip(launch.arguments, sizes, strict=True)
    ]
    buffers = [ctypes.create_string_buffer(raw, len(raw)) for raw in raws]
    pointers = (ctypes.c_void_p * max(len(buffers), 1))(*(ctypes.addressof(b) for b in buffers))
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = dimensions(launch.grid, "grid")
    config.blockDimX, config.blockDimY, config.blockDimZ = dimensions(launch.block, "block")
    config.sharedMemBytes = launch.shared_bytes
    cluster = dimensions(launch.cluster, "cluster")
    if cluster != (1, 1, 1):
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x = cluster[0]
        attribute.value.clusterDim.y = cluster[1]
        attribute.value.clusterDim.z = cluster[2]
        config.attrs, config.numAttrs = [attribute], 1
    check(driver.cuLaunchKernelEx(config, function, ctypes.addressof(pointers), 0), "launching")
    check(driver.cuCtxSynchronize(), "running")
    copies.copy_back()
    check(driver.cuModuleUnload(module), "unloading")


# -- comparing -----------------------------------------------------------------------------------


def arrays_of(launch: Launch) -> dict[int, np.ndarray]:
    """Position of each argument that is an array, a Pointer or a TensorMap -> its array."""
    result = {}
    for position, argument in enumerate(launch.arguments):
        array = argument.array if isinstance(argument, (Pointer, TensorMap)) else argument
        if isinstance(array, np.ndarray):
            result[position] = array
    return result


def compare(gpu: Launch, emulated: Launch) -> list[str]:
    """A line for every argument that differs."""
    complaints = []
    want = arrays_of(emulated)
    for position, got in arrays_of(gpu).items():
        rule = gpu.rules.get(position, Rule("u8"))
        bad = rule.differing(got, want[position])
        if not bad.size:
            continue
        dtype = DTYPES[rule.dtype]
        flat = [np.ascontiguousarray(x).reshape(-1).view(dtype) for x in (got, want[position])]
        if rule.unordered:
            flat = [np.sort(x) for x in flat]
        lines = [f"argument {position}: {bad.size} of {flat[0].size} {rule.dtype} differ"]
        for index in bad[:6]:
            lines.append(
                f"  [{index}] GPU {shown(flat[0][index])} emulator {shown(flat[1][index])}"
                f"{inputs_of(gpu, int(index), position, flat[0].size)}"
            )
        complaints.append("\n".join(lines))
    return complaints


def inputs_of(launch: Launch, index: int, output: int, count: int) -> str:
    """What the thread of a differing element read, for kernels of one element a thread."""
    read = []
    for position, array in arrays_of(launch).items():
        if position not in launch.rules and position != output and array.size == count:
            read.append(shown(array.reshape(-1)[index]))
    return f"  inputs {', '.join(read)}" if read else ""


def shown(value: Any) -> str:
    bits = int(np.asarray(value).view(f"u{np.asarray(value).dtype.itemsize}"))
    return f"{value} (0x{bits:0{2 * np.asarray(value).dtype.itemsize}x})"


def run_case(job: tuple[str, int, bool]) -> dict[str, Any]:
    """Both runs of a case. A failure is text in the record's `error`; `lost`: the GPU's context."""
    name, seed, dry = job
    launch = named_cases()[name].make(seed)
    other = copy.deepcopy(launch)
    start = time.monotonic()
    try:
        emulate(other)
        emulator_seconds = time.monotonic() - start
        if dry:
            emulate(launch)
        else:
            entry = load(launch.text).module.entries[launch.entry]
            run_on_gpu(launch, [parameter.size for parameter in entry.parameters])
    except CudaError as error:
        lost = not str(error).startswith("assembling")
        return {"error": str(error), "lost": lost, "stage": "GPU"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:1500]}", "stage": "launch"}
    record: dict[str, Any] = {"emulator_seconds": emulator_seconds}
    complaints = compare(launch, other)
    return record | ({"error": "\n".join(complaints), "stage": "values"} if complaints else {})


def is_lost(record: dict[str, Any] | None) -> bool:
    return bool(record and record.get("lost"))


def record_of(result: JobResult) -> dict[str, Any]:
    name, seed, _ = result.job
    record = result.value or {"error": result.error, "stage": "process"}
    family = named_cases()[name].family
    return {"case": name, "seed": seed, "family": family, "seconds": result.seconds} | record


def test_rules_find_what_differs() -> None:
    """The comparison itself, for pytest; needs no GPU."""
    want = np.array([1.0, np.nan, np.inf, 0.0], np.float32)
    got = want.copy()
    got[1] = -np.nan
    assert Rule("f32").differing(got, want).size == 0
    got[0], got[3] = np.nextafter(np.float32(1), np.float32(2)), -0.0
    assert Rule("f32").differing(got, want).tolist() == [0, 3]
    assert Rule("f32", ulp=1).differing(got, want).size == 0
    got[0], got[2] = 1.5, -np.inf
    assert Rule("f32", ulp=1, scaled=0.1).differing(got, want).tolist() == [0, 2]
    numbers = np.arange(4, dtype=np.uint32)
    assert Rule("u32").differing(numbers[::-1], numbers).size == 4
    assert Rule("u32", unordered=True).differing(numbers[::-1], numbers).size == 0
    assert Rule("u32", unordered=True).differing(numbers[::-1] + 1, numbers).size == 4


# -- the program ---------------------------------------------------------------------------------


def assemble(names: list[str]) -> list[dict[str, Any]]:
    """A record for each case whose PTX ptxas refuses for the GPU's architecture."""
    ptxas = next((ROOT / ".venv").rglob("nvidia/cu13/bin/ptxas"), Path("ptxas"))
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            case = named_cases()[name]
            path = Path(folder) / "kernel.ptx"
            path.write_text(case.make(0).text)
            command = [str(ptxas), "-arch=sm_90a", str(path), "-o", str(path.with_suffix(".cubin"))]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            record = {"case": name, "seed": 0, "family": case.family, "seconds": 0.0}
            error = {"error": done.stderr[:1500], "stage": "ptxas"} if done.returncode else {}
            records.append(record | error)
            print(f"{'FAILED' if error else 'ok':7}{name}", flush=True)
    return records


def run_all(names: list[str], options: argparse.Namespace) -> list[dict[str, Any]]:
    jobs = [(name, seed, options.dry_run) for seed in range(options.seeds) for name in names]
    records = []
    for result in run_jobs(
        run_case, jobs, timeout=_TIMEOUT, processes=options.processes, spent=is_lost
    ):
        record = record_of(result)
        records.append(record)
        word = "FAILED" if "error" in record else "ok"
        where = f" ({record['stage']})" if "error" in record else ""
        print(f"{word:7}{record['case']} seed {record['seed']}{where}", flush=True)
    return records


def report(records: list[dict[str, Any]]) -> int:
    """Prints failures, families and the closing line; writes the JSON. Returns the exit code."""
    failed = [record for record in records if "error" in record]
    for record in failed:
        print(f"\n{record['case']} seed {record['seed']}, {record['stage']}:\n{record['error']}")
    families = Counter(record["family"] for record in records)
    bad = Counter(record["family"] for record in failed)
    print()
    for family, count in families.items():
        print(f"{family:16}{count - bad[family]:5} passed{bad[family]:5} failed")
    folder = Path(os.environ.get("OUT") or ROOT / "build")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(summary(records, failed, families), indent=1)
    (folder / "emulator-conformance.json").write_text(text + "\n")
    print(f"{len(records) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def summary(
    records: list[dict[str, Any]], failed: list[dict[str, Any]], families: Counter[str]
) -> dict[str, Any]:
    """The record of a run: when, on what, how, and each case's name."""
    names: dict[str, list[str]] = {}
    for record in records:
        listed = names.setdefault(record["family"], [])
        if record["case"] not in listed:
            listed.append(record["case"])
    return {
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["python3", *sys.argv]),
        "versions": versions(),
        "passed": len(records) - len(failed),
        "failed": failed,
        "runs": families,
        "cases": {family: " ".join(listed) for family, listed in names.items()},
    }


def versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0], "numpy": np.__version__}
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    if shutil.which(query[0]):
        done = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
        found["gpu"] = done.stdout.strip()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name or family contains this")
    parser.add_argument("--seeds", type=int, default=1, help="random inputs per case")
    parser.add_argument("--processes", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--dry-run", action="store_true", help="the emulator in the GPU's place")
    parser.add_argument("--assemble", action="store_true", help="ptxas only")
    options = parser.parse_args()
    names = [c.name for c in named_cases().values() if options.only in f"{c.family} {c.name}"]
    if options.assemble:
        return report(assemble(names))
    return report(run_all(names, options))


if __name__ == "__main__":
    sys.exit(main())
