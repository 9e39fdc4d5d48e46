"""What the language says for names of Triton, torch, NumPy, CUDA and TileLang: for messages.

`x` and `y` stand for tiles, `n` for a size. A test compares what is said for NumPy's functions with
what they give.
"""

from __future__ import annotations

import sys

from tilec.terms.dtypes import DTYPES

_PLACES = "nothing: the compiler "
_BY_HAND = " (by hand: tilec.language.gpu)"
_THREADS = "operations on whole tiles: which thread computes what, the compiler chooses"
_NO_SUCH_SIZE = (
    "nothing: sizes of tiles are known when a kernel is compiled; tl.where, tl.sum and tl.cumsum "
    "of a condition select, count and number elements"
)
_LOAD = "tl.load(array, offsets, shape)"
_TRIANGLE = "rows being tl.arange(m)[:, None] and columns tl.arange(n)[None, :]"
_RANDOM = "tl.philox(seed, counter), four tiles of bits, or tl.rand and tl.randn"
_LOOP = "tl.range(begin, end, step, warp_specialize=True)"

_OPERATORS = {
    "add": "x + y",
    "subtract": "x - y",
    "multiply": "x * y",
    **dict.fromkeys(("divide", "true_divide"), "x / y"),
    "floor_divide": "x // y",
    **dict.fromkeys(("mod", "remainder"), "x % y"),
    "divmod": "x // y and x % y",
    "negative": "-x",
    "positive": "x",
    **dict.fromkeys(("absolute", "fabs"), "tl.abs(x)"),
    **dict.fromkeys(("power", "float_power"), "tl.pow(x, y)"),
    "square": "x * x",
    "reciprocal": "1 / x",
    "equal": "x == y",
    "not_equal": "x != y",
    "less": "x < y",
    "less_equal": "x <= y",
    "greater": "x > y",
    "greater_equal": "x >= y",
    **dict.fromkeys(("logical_and", "bitwise_and"), "x & y"),
    **dict.fromkeys(("logical_or", "bitwise_or"), "x | y"),
    **dict.fromkeys(("logical_xor", "bitwise_xor"), "x ^ y"),
    **dict.fromkeys(("logical_not", "bitwise_not", "invert"), "~x"),
    "left_shift": "x << y",
    "right_shift": "x >> y",
}
"""Functions that are operators here, most of them NumPy's."""

_ELEMENTS = {
    "arccos": "tl.acos(x)",
    "arcsin": "tl.asin(x)",
    "arctan": "tl.atan(x)",
    "arctan2": "tl.atan2(x, y)",
    "arccosh": "tl.acosh(x)",
    "arcsinh": "tl.asinh(x)",
    "arctanh": "tl.atanh(x)",
    "clip": "tl.clamp(x, low, high)",
    "clamp_min": "tl.maximum(x, low)",
    "clamp_max": "tl.minimum(x, high)",
    "deg2rad": "x * (3.141592653589793 / 180)",
    "rad2deg": "x * (180 / 3.141592653589793)",
    "fmax": "tl.maximum(x, y), which is NaN if either is",
    "fmin": "tl.minimum(x, y), which is NaN if either is",
    "fmod": "x - tl.trunc(x / y) * y",
    "hypot": "tl.sqrt(x * x + y * y)",
    "isfinite": "tl.abs(x) < tl.inf",
    "isinf": "tl.abs(x) == tl.inf",
    "logaddexp": "tl.maximum(x, y) + tl.log1p(tl.exp(-tl.abs(x - y)))",
    "nan_to_num": "tl.where(x == x, x, 0)",
    **dict.fromkeys(("rint", "around"), "tl.round(x)"),
    "sign": "tl.where(x > 0, 1, tl.where(x < 0, -1, 0))",
    "lerp": "x + (y - x) * weight",
    "relu": "tl.maximum(x, 0)",
    "leaky_relu": "tl.where(x > 0, x, slope * x)",
    "elu": "tl.where(x > 0, x, tl.expm1(x))",
    "gelu": "0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
    "softplus": "tl.maximum(x, 0) + tl.log1p(tl.exp(-tl.abs(x)))",
    "addcmul": "x + value * y * z",
    "masked_fill": "tl.where(mask, value, x)",
    "dropout": "tl.where(tl.rand(seed, counter) < keep, x / keep, 0)",
    "bernoulli": "tl.rand(seed, counter) < x",
}
"""Functions of single elements."""

_ROWS = {
    "mean": "tl.sum(x) / n",
    "average": "tl.sum(x * weights) / tl.sum(weights)",
    "var": "tl.sum((x - mean) * (x - mean)) / n, mean being tl.sum(x) / n",
    "std": "tl.sqrt(tl.sum((x - mean) * (x - mean)) / n), mean being tl.sum(x) / n",
    "amax": "tl.max(x, axis)",
    "amin": "tl.min(x, axis)",
    "ptp": "tl.max(x) - tl.min(x)",
    "nansum": "tl.sum(tl.where(x == x, x, 0))",
    "nanmax": "tl.max(tl.where(x == x, x, -tl.inf))",
    "nanmin": "tl.min(tl.where(x == x, x, tl.inf))",
    "count_nonzero": "tl.sum((x != 0).to(tl.i32))",
    "norm": "tl.sqrt(tl.sum(x * x))",
    "logsumexp": "m + tl.log(tl.sum(tl.exp(x - m))), m being tl.max(x)",
    "log_softmax": "x - m - tl.log(tl.sum(tl.exp(x - m))), m being tl.max(x)",
    "layer_norm": "(x - mean) * tl.rsqrt(variance + eps), both by tl.sum(...) / n",
    "rms_norm": "x * tl.rsqrt(tl.sum(x * x) / n + eps)",
    "cross_entropy": "tl.log(tl.sum(tl.exp(x - m))) + m - tl.load(logits, label, ()), m being "
    "tl.max(x)",
    "cumulative_sum": "tl.cumsum(x, axis)",
    "argsort": "tl.sort(x, return_indices=True)[1]",
    "argpartition": "tl.topk(x, k, return_indices=True)[1]",
    "median": "tl.sort(x), and tl.take of the element in the middle",
    **dict.fromkeys(("bincount", "digitize"), "tl.histogram(x, bins), of integers in [0, bins)"),
    "xor_sum": "tl.reduce(x, axis, lambda a, b: a ^ b)",
    "reduce_or": "tl.reduce(x, axis, lambda a, b: a | b)",
    "trace": "tl.sum(tl.where(rows == columns, x, 0)), " + _TRIANGLE,
    **dict.fromkeys(("argwhere", "nonzero", "flatnonzero", "unique", "compress"), _NO_SUCH_SIZE),
}
"""Sums, orders, counts."""

_SHAPES = {
    "trans": "x.T, or tl.permute(x, order)",
    "matrix_transpose": "x.T",
    **dict.fromkeys(("swapaxes", "moveaxis"), "tl.permute(x, order)"),
    "view": "tl.reshape(x, shape), or tl.bitcast(x, dtype)",
    **dict.fromkeys(("ravel", "flatten", "squeeze", "resize"), "tl.reshape(x, shape)"),
    "unsqueeze": "tl.expand_dims(x, axis), or x[:, None]",
    "newaxis": "None, as in x[:, None]",
    "atleast_2d": "x[None, :]",
    **dict.fromkeys(
        ("broadcast", "broadcast_arrays"),
        "tl.broadcast_to(x, shape), where x + y does not do it by itself",
    ),
    **dict.fromkeys(("concatenate", "hstack", "append"), "tl.cat((x, y), axis)"),
    **dict.fromkeys(("stack", "vstack", "column_stack"), "tl.join((x, y), axis), or tl.cat"),
    "tile": "tl.reshape(tl.broadcast_to(x[None, :], (times, n)), (n * times,))",
    "shape": "x.shape",
    "matmul": "tl.dot(x, y, acc); outside kernels tilec.ops.matmul(a, b)",
    "interleave": "tl.reshape(tl.join((x, y), 1), (2 * n,))",
    **dict.fromkeys(("array_split", "chunk", "unbind"), "tl.split(x, parts, axis)"),
    **dict.fromkeys(
        ("flip", "fliplr", "flipud", "rot90"), "tl.take(x, n - 1 - tl.arange(n), axis)"
    ),
    "roll": "tl.take(x, (tl.arange(n) - shift) % n, axis)",
    "repeat": "tl.reshape(tl.broadcast_to(x[:, None], (n, times)), (n * times,))",
    **dict.fromkeys(("slice", "narrow"), f"{_LOAD} of that part, or tl.split(x, parts, axis)"),
    **dict.fromkeys(("take_along_axis", "index_select"), "tl.take(x, indices, axis)"),
    **dict.fromkeys(("put", "put_along_axis"), "tl.scatter(array, indices, x), into an array"),
    **dict.fromkeys(
        ("scatter_add", "index_add"), "tl.atomic_add(array, indices, x), into an array"
    ),
    "pad": f"{_LOAD} of a larger shape, with padding=",
    **dict.fromkeys(("zeros_like", "empty_like"), "tl.zeros(x.shape, x.dtype)"),
    "empty": "tl.zeros(shape, dtype)",
    "ones": "tl.full(shape, 1, dtype)",
    "ones_like": "tl.full(x.shape, 1, x.dtype)",
    "full_like": "tl.full(x.shape, value, x.dtype)",
    **dict.fromkeys(
        ("eye", "identity"), "(tl.arange(n)[:, None] == tl.arange(n)[None, :]).to(dtype)"
    ),
    **dict.fromkeys(("tril", "tri"), "tl.where(rows >= columns, x, 0), " + _TRIANGLE),
    "triu": "tl.where(rows <= columns, x, 0), " + _TRIANGLE,
    **dict.fromkeys(
        ("diag", "diagonal"), "tl.sum(tl.where(rows == columns, x, 0), 1), " + _TRIANGLE
    ),
    "linspace": "begin + tl.arange(n) * ((end - begin) / (n - 1))",
    "meshgrid": "tl.arange(m)[:, None] and tl.arange(n)[None, :], which broadcast",
    "outer": "x[:, None] * y[None, :]",
    **dict.fromkeys(("inner", "vdot"), "tl.sum(x * y)"),
    **dict.fromkeys(
        ("mm", "bmm", "gemm", "tensordot", "mma", "mma_sync", "wmma", "wgmma", "wgmma_gemm"),
        "tl.dot(x, y, acc)",
    ),
    "addmm": "tl.dot(x, y, acc)",
    "mv": "tl.sum(x * y[None, :], 1)",
    "einsum": "tl.dot for products of matrices, tl.sum(x * y, axis) for others",
    "size": "x.shape",
    "numel": "the product of x.shape",
    **dict.fromkeys(("tuple", "list"), "(x, y): Python's tuples are the language's"),
    **dict.fromkeys(("float_", "pi", "e"), "the number: constants of Python are the language's"),
}
"""Shapes, new tiles, products."""

_TRITON = {
    "constexpr": "tl.const",
    "constexpr_function": "a plain function: with constants it runs when the kernel is compiled",
    "fdiv": "tl.div(x, y, approx=True)",
    "div_rn": "tl.div(x, y)",
    "sqrt_rn": "tl.sqrt(x)",
    **dict.fromkeys(("device_print", "static_print", "printf"), "tl.print"),
    **dict.fromkeys(("device_assert", "assert_", "trap"), "assert condition, text"),
    **dict.fromkeys(
        ("make_block_ptr", "block_ptr", "load_tensor_descriptor"),
        f"{_LOAD}, which respects the bounds",
    ),
    "advance": f"{_LOAD} at other offsets",
    **dict.fromkeys(
        ("make_tensor_descriptor", "tensor_descriptor", "tma_load"),
        f"{_LOAD}, a TMA copy where it can be",
    ),
    **dict.fromkeys(("store_tensor_descriptor", "tma_store"), "tl.store(array, offsets, x)"),
    "multiple_of": "tl.assume(x, multiple_of=n)",
    **dict.fromkeys(
        ("max_contiguous", "max_constancy"), f"{_PLACES}sees how indices follow each other"
    ),
    "swizzle2d": f"{_PLACES}chooses the order of programs that share what they load",
    "inline_asm_elementwise": "tl.inline_ptx(...)",
    "map_elementwise": "the function itself on tiles, with tl.where for its branches",
    **dict.fromkeys(("randint", "randint4x", "rand4x", "randn4x", "random"), _RANDOM),
    "num_ctas": "@tilec.kernel(cluster=...)",
    "num_warps": "@tilec.kernel(num_warps=...)",
    "num_stages": "tl.range(..., stages=n)",
    **dict.fromkeys(("warp_specialize", "async_task"), _LOOP + ", or nothing"),
    **dict.fromkeys(
        ("tensor", "Tensor", "ndarray", "pointer_type", "pointer"), "tl.array, of a parameter"
    ),
    "asarray": "the value itself: numbers and tiles go together",
    **dict.fromkeys(("to_tensor", "float_like"), "x.to(dtype)"),
    **dict.fromkeys(("libdevice", "math", "extra"), "tl.exp and so on: they are in tl itself"),
    "dtype": "x.dtype, or a dtype such as tl.f32",
}
"""Triton's names, which have another form here."""

_CUDA = {
    **dict.fromkeys(
        (
            "debug_barrier",
            "syncthreads",
            "sync_threads",
            "barrier",
            "__syncthreads",
            "syncwarp",
            "__syncwarp",
            "mbarrier",
        ),
        f"{_PLACES}places barriers{_BY_HAND}",
    ),
    **dict.fromkeys(
        (
            "thread_id",
            "thread_idx",
            "threadIdx",
            "threadIdx_x",
            "blockDim",
            "block_dim",
            "lane_id",
            "warp_id",
            "warpSize",
            "num_threads",
            "Parallel",
            "get_lane_id",
            "thread_rank",
        ),
        _THREADS,
    ),
    **dict.fromkeys(("blockIdx", "block_idx", "block_id", "pid"), "tl.program_id(axis)"),
    **dict.fromkeys(("gridDim", "grid_dim", "num_pids", "num_blocks"), "tl.num_programs(axis)"),
    **dict.fromkeys(
        ("shared", "shared_memory", "smem", "alloc_shared", "__shared__"),
        f"{_PLACES}places tiles in shared memory{_BY_HAND}",
    ),
    **dict.fromkeys(("alloc_fragment", "alloc_local", "fragment"), "tl.zeros(shape, dtype)"),
    **dict.fromkeys(("Pipelined", "pipelined"), "tl.range(begin, end, step, stages=n)"),
    "if_then_else": "tl.where(condition, x, y)",
    **dict.fromkeys(
        ("warp_reduce", "warp_sum", "block_reduce", "block_sum", "__reduce_add_sync"),
        "tl.sum(x), tl.max(x) or tl.reduce(x, axis, function)",
    ),
    **dict.fromkeys(
        (
            "shfl_sync",
            "__shfl_sync",
            "shfl_down_sync",
            "__shfl_down_sync",
            "shfl_xor_sync",
            "__shfl_xor_sync",
            "shuffle",
        ),
        "tl.take(x, indices, axis), tl.exchange, or a sum: tiles have no lanes",
    ),
    **dict.fromkeys(("ballot_sync", "__ballot_sync"), "tl.any(x), tl.all(x) or tl.sum(x)"),
    **dict.fromkeys(("__ldg", "ldg", "ldmatrix", "copy", "memcpy"), f"{_LOAD} and tl.store"),
    **dict.fromkeys(
        ("cp_async", "memcpy_async", "async_copy"),
        f"{_LOAD}: {_PLACES[9:]}makes it asynchronous{_BY_HAND}",
    ),
    **dict.fromkeys(
        ("half2", "float2", "float4", "make_float4", "make_float2"),
        f"{_PLACES}chooses how many elements an access moves",
    ),
    **dict.fromkeys(("threadfence", "__threadfence", "memory_fence"), "tl.fence()"),
    **dict.fromkeys(
        ("grid_sync", "this_grid", "cooperative_groups"),
        "a second kernel, or tl.atomic_add: programs of a grid need not run together",
    ),
    **dict.fromkeys(("clock", "clock64", "globaltimer"), "tl.inline_ptx(...)"),
    "atomicAdd": "tl.atomic_add(array, indices, x)",
    "atomicCAS": "tl.atomic_cas(array, indices, expected, x)",
    "atomicExch": "tl.atomic_xchg(array, indices, x)",
    "atomicSub": "tl.atomic_add(array, indices, -x)",
    **{f"{name}f": f"tl.{name}(x)" for name in ("exp", "log", "sqrt", "rsqrt", "sin", "tanh")},
    **{f"__{name}f": f"tl.{name}(x, approx=True)" for name in ("exp", "log", "sin", "cos")},
    "powf": "tl.pow(x, y)",
    "fmaf": "tl.fma(x, y, z)",
    "fmaxf": "tl.maximum(x, y)",
    "fminf": "tl.minimum(x, y)",
    "__popc": "tl.popc(x)",
}
"""Names of CUDA C++, and TileLang's."""

_DTYPES = {
    **{name: f"tl.{d.name}" for d in DTYPES for name in (d.array, *d.elsewhere) if name},
    **{"float": "tl.f32", "half": "tl.f16", "double": "tl.f64", "int": "tl.i32", "long": "tl.i64"},
}

INSTEAD = {**_OPERATORS, **_ELEMENTS, **_ROWS, **_SHAPES, **_TRITON, **_CUDA, **_DTYPES}
"""What to write for a name of theirs."""

_PACKAGE = {
    **dict.fromkeys(("jit", "Kernel", "func", "prim_func"), "@tilec.kernel(grid=...)"),
    "Config": "@tilec.autotune(configs=[{...}, ...])",
    "compile": "kernel.compile(specs, target=...), or the command tilec compile",
    "check": "kernel.check(...), or the command tilec run --check",
    "report": "kernel.report(...)",
    "save": "the command tilec compile --emit artefact",
    "next_power_of_2": "the number itself: tiles may have any size",
    **dict.fromkeys(("layers", "nn"), "tilec.torch.layers, norms and a loss"),
    "version": "tilec.__version__",
    "synchronize": "tilec.device('cuda').synchronize(), or the framework's",
    "set_device": "kernel.on('cuda:1'), or nothing: kernels run where their arrays are",
    "empty": "tilec.device('cuda').empty(shape, dtype), or the framework's",
    **{name: f"tilec.ops.{name}" for name in ("matmul", "attention")},
}
"""What to write for `tilec.NAME`."""

_PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "gemm", "linear", "dot", "scaled_mm", "einsum")
_ATTENTION = ("sdpa", "scaled_dot_product_attention", "flash_attention", "flash_attn", "mha")
_EXAMPLES = {
    **{name: name for name in ("softmax", "adam", "grouped_gemm")},
    **{name: name for name in ("mixture_of_experts", "quantized_weights")},
    **dict.fromkeys(("conv", "conv2d", "convolution"), "convolution"),
    **dict.fromkeys(("grouped_mm", "grouped_matmul"), "grouped_gemm"),
    "moe": "mixture_of_experts",
}
_LAYERS = {
    **{name: name for name in ("rms_norm", "layer_norm", "cross_entropy")},
    **{"rmsnorm": "rms_norm", "layernorm": "layer_norm", "cross_entropy_loss": "cross_entropy"},
}
_OPS = {
    **dict.fromkeys(_PRODUCTS, "tilec.ops.matmul"),
    **dict.fromkeys(_ATTENTION, "tilec.ops.attention"),
    **{name: f"tilec.torch.layers.{layer}" for name, layer in _LAYERS.items()},
    **{name: f"a kernel as in tilec/examples/{file}.py" for name, file in _EXAMPLES.items()},
}
"""What to write for `tilec.ops.NAME`."""


def of_package(name: str) -> str | None:
    """What to write for `tilec.NAME`, or None."""
    found = _PACKAGE.get(name) or INSTEAD.get(name)
    if found is None and name in sys.modules["tilec.language"].__all__:
        found = f"tl.{name}"
    return f"{found}, tl being tilec.language" if found and "tl." in found else found


def of_operations(name: str) -> str | None:
    """What to write for `tilec.ops.NAME`, or None."""
    return _OPS.get(name)


def instead_of(name: str) -> str | None:
    """What to write for a name of Triton, torch or NumPy, or None."""
    return INSTEAD.get(name)
