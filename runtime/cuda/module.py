"""Loads a compiled kernel into a context: the driver assembles the PTX, errors hold its log."""

from __future__ import annotations

from math import prod
from typing import Any

from tilec.executable.kernel import CompiledKernel
from tilec.hardware.ptx_version import newest_of_driver, printed_version, release_with, shown
from tilec.hardware.sizes import PORTABLE_CTAS
from tilec.records import dataclass
from tilec.runtime.cuda.argument_block import ArgumentLayout, lay_out
from tilec.runtime.cuda.context import CudaContext
from tilec.runtime.cuda.driver import check, cuda_error, relaxed_capture
from tilec.runtime.errors import DeviceError

_LOG_BYTES = 16384
"""Of what the driver's assembler says: the first of its messages are the ones to be read."""
STATIC_SHARED_BYTES = 48 * 1024
"""A launch may ask for this much dynamic shared memory without an attribute (CUDA C++ Programming
Guide, "Shared Memory")."""

FIRST_TO_LOAD_LATER = 12040
"""CUDA version that brought cuFuncLoad (CUDA C++ Programming Guide 12.0, "Lazy Loading": a kernel's
code comes with cuModuleGetFunction)."""


@dataclass(frozen=True, eq=False)
class LoadedKernel:
    """A kernel in a context. `function` is the CUfunction, `module` keeps it loaded.

    `resident_ctas`: how many CTAs run side by side on the GPU; known for persistent kernels
    that are not dynamic.
    """

    kernel: CompiledKernel
    context: CudaContext
    function: Any
    module: Any
    layout: ArgumentLayout
    resident_ctas: int = 0


def load_kernel(kernel: CompiledKernel, context: CudaContext) -> LoadedKernel:
    """Assembles and loads `kernel`; CudaError holds the assembler's log.

    Modules are never unloaded: a launch that uses one may still be queued, or recorded in a graph.
    """
    driver = context.driver
    with context.entered(), relaxed_capture(driver):
        module = _load_module(context, kernel)
        entry = kernel.name.encode()
        function = check(driver.cuModuleGetFunction(module, entry), f"finding entry {kernel.name}")
        if kernel.shared_bytes > STATIC_SHARED_BYTES:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            check(
                driver.cuFuncSetAttribute(function, attribute, kernel.shared_bytes),
                f"asking for {kernel.shared_bytes} bytes of shared memory for {kernel.name}",
            )
        if prod(kernel.cluster) > PORTABLE_CTAS:
            attribute = (
                driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            )
            check(
                driver.cuFuncSetAttribute(function, attribute, 1),
                f"asking for clusters of {prod(kernel.cluster)} CTAs for {kernel.name}",
            )
        # With lazy loading the first launch would load the code, which a stream capture forbids.
        # Drivers older than the function that asks for it load when they give the function out.
        if context.cuda_version >= FIRST_TO_LOAD_LATER:
            check(driver.cuFuncLoad(function), f"loading {kernel.name}")
        if kernel.tensor_maps:
            _ = context.zeros  # a capture forbids to allocate it when an array is empty
        shares = kernel.persistent and not kernel.dynamic
        resident = _resident_ctas(kernel, function, context) if shares else 0
    return LoadedKernel(kernel, context, function, module, lay_out(kernel), resident)


def _resident_ctas(kernel: CompiledKernel, function: Any, context: CudaContext) -> int:
    """CTAs of a kernel that the whole GPU holds at once. CudaError if it holds none."""
    if prod(kernel.cluster) > 1:
        return _resident_clusters(kernel, function, context) * prod(kernel.cluster)
    each = check(
        context.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            function, kernel.threads, kernel.shared_bytes
        ),
        f"asking how many CTAs of {kernel.name} run side by side",
    )
    if not each:
        raise DeviceError(
            f"no CTA of {kernel.name} fits on a multiprocessor of cuda:{context.index}"
        )
    return int(each) * context.multiprocessors


def _resident_clusters(kernel: CompiledKernel, function: Any, context: CudaContext) -> int:
    """Clusters that the whole GPU holds at once: they do not span its processor groups."""
    driver, size = context.driver, prod(kernel.cluster)
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    sizes = attribute.value.clusterDim
    sizes.x, sizes.y, sizes.z = size, 1, 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = size * context.multiprocessors, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = kernel.threads, 1, 1
    config.sharedMemBytes = kernel.shared_bytes
    config.attrs, config.numAttrs = [attribute], 1
    clusters = check(
        driver.cuOccupancyMaxActiveClusters(function, config),
        f"asking how many clusters of {kernel.name} run side by side",
    )
    if not clusters:
        raise DeviceError(
            f"no cluster of {size} CTAs of {kernel.name} fits on cuda:{context.index}"
        )
    return int(clusters)


def _load_module(context: CudaContext, kernel: CompiledKernel) -> Any:
    """The CUmodule of the cubin where the driver takes it, else of the PTX."""
    driver = context.driver
    if kernel.cubin is not None:
        result, module = driver.cuModuleLoadData(kernel.cubin)
        if not result:
            return module
        # A cubin runs on its own architecture alone; the PTX beside it is what runs elsewhere.
        if result != driver.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU:
            raise cuda_error(result, f"loading the cubin of {kernel.name}")
    log = bytearray(_LOG_BYTES)
    options = driver.CUjit_option
    keys = [
        options.CU_JIT_ERROR_LOG_BUFFER,
        options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ]
    image = kernel.ptx.encode() + b"\0"
    result, module = driver.cuModuleLoadDataEx(image, len(keys), keys, [log, _LOG_BYTES])
    if result:
        text = log.split(b"\0", 1)[0].decode(errors="replace").strip()
        if result == driver.CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
            text = _too_new(kernel, context)
        raise cuda_error(
            result,
            f"assembling the PTX of {kernel.name} ({kernel.target}) for cuda:{context.index}, a "
            f"device of compute capability {'.'.join(map(str, context.capability))}",
            f"\n{text}" if text else "",
        )
    return module


def _too_new(kernel: CompiledKernel, context: CudaContext) -> str:
    """What to do where the driver is older than the PTX."""
    version = printed_version(kernel.ptx)
    newest = newest_of_driver(context.cuda_version)
    return (
        f"the PTX is of version {shown(version)}, the driver takes {shown(newest)}: update it to "
        f"one of CUDA {release_with(version)} or later, or compile with ptx_version={newest}"
    )
