"""Programs with one mistake each, as people write them who come from Triton, CUDA, NumPy or torch.

`messages.txt` has what each of them is told.
"""
# ruff: noqa
# pyright: basic, reportGeneralTypeIssues=false

import numpy as np

import tilec
import tilec.language as tl

x = np.arange(256, dtype=np.float32)
y = np.zeros(256, np.float32)
m = np.ones((64, 96), np.float32)
h = np.ones((64, 96), np.float16)
CASES = {}


def case(program):
    """Notes a program under its name."""
    CASES[program.__name__] = program
    return program


def kernel(fn=None, **options):
    """`tilec.kernel` for one program on the emulator."""
    options = {"grid": 1, "device": "emulator", **options}
    return tilec.kernel(fn, **options) if fn else lambda found: tilec.kernel(found, **options)


@case
def constexpr_annotation():
    @kernel
    def k(x, y, B: tl.constexpr = 64):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y)


@case
def triton_pointers():
    @kernel
    def k(x, y, B: tl.const = 64):
        offs = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + offs, tl.load(x + offs))

    k(x, y)


@case
def triton_load_of_offsets():
    @kernel
    def k(x, y):
        offs = tl.arange(0, 64)
        tl.store(y, offs, tl.load(x, offs))

    k(x, y)


@case
def mask_argument():
    @kernel
    def k(x, y, n):
        offs = tl.arange(0, 64)
        tl.store(y, 0, tl.load(x, 0, 64, mask=offs < n, other=0.0))

    k(x, y, 40)


@case
def subscript_array():
    @kernel
    def k(x, y):
        tl.store(y, 0, x[0:64])

    k(x, y)


@case
def assign_element():
    @kernel
    def k(x, y):
        i = tl.program_id(0)
        y[i] = x[i]

    k(x, y)


@case
def thread_index():
    @kernel
    def k(x, y):
        i = tl.thread_id(0)
        tl.store(y, i, tl.load(x, i, 1))

    k(x, y)


@case
def shape_from_argument():
    @kernel
    def k(x, y, n):
        tl.store(y, 0, tl.load(x, 0, n))

    k(x, y, 64)


@case
def shape_from_array():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, x.shape[0]))

    k(x, y)


@case
def forgotten_grid():
    @tilec.kernel(device="emulator")
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k(x, y)


@case
def grid_in_call_like_cuda():
    @tilec.kernel(device="emulator")
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k[(1,), (256,)](x, y)


@case
def grid_of_four():
    @tilec.kernel(device="emulator")
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k[1, 1, 1, 1](x, y)


@case
def grid_is_float():
    @tilec.kernel(device="emulator", grid=lambda x, B: x.shape[0] / B)
    def k(x, y, B: tl.const = 64):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y)


@case
def grid_rule_of_other_names():
    @tilec.kernel(device="emulator", grid=lambda META: tl.cdiv(256, META["B"]))
    def k(x, y, B: tl.const = 64):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y)


@case
def wrong_dtype_to_store():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k(x, np.zeros(64, np.int32))


@case
def shapes_do_not_match():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 64) + tl.load(x, 0, 32))

    k(x, y)


@case
def dot_of_wrong_shapes():
    @kernel
    def k(a, y):
        t = tl.dot(tl.load(a, (0, 0), (64, 32)), tl.load(a, (0, 0), (64, 32)))
        tl.store(y, (0, 0), t)

    k(h, m)


@case
def dot_of_one_dimension():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.dot(tl.load(x, 0, 64), tl.load(x, 0, 64)))

    k(x, y)


@case
def dot_of_mixed_dtypes():
    @kernel
    def k(a, b, y):
        tl.store(y, (0, 0), tl.dot(tl.load(a, (0, 0), (64, 64)), tl.load(b, (0, 0), (64, 64))))

    k(h, m, m)


@case
def wrong_rank_of_offsets():
    @kernel
    def k(a, y):
        tl.store(y, 0, tl.load(a, 0, 64))

    k(m, y)


@case
def while_true():
    @kernel
    def k(x, y):
        while True:
            tl.store(y, 0, tl.load(x, 0, 64))

    k(x, y)


@case
def python_list_append():
    @kernel
    def k(x, y):
        parts = []
        for i in range(4):
            parts.append(tl.load(x, i * 32, 32))
        tl.store(y, 0, parts[0])

    k(x, y)


@case
def numpy_in_kernel():
    @kernel
    def k(x, y):
        tl.store(y, 0, np.exp(tl.load(x, 0, 64)))

    k(x, y)


@case
def math_in_kernel():
    import math

    @kernel
    def k(x, y):
        tl.store(y, 0, math.exp(tl.load(x, 0, 64)))

    k(x, y)


@case
def torch_names():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 64)
        tl.store(y, 0, t.mean() + tl.softmax(t, dim=0))

    k(x, y)


@case
def axis_by_numpy_keyword():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.sum(tl.load(x, (0, 0), (64, 64)), dim=1))

    k(m, y)


@case
def axis_out_of_range():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.sum(tl.load(x, 0, 64), axis=1))

    k(x, y)


@case
def return_value():
    @kernel
    def k(x):
        return tl.sum(tl.load(x, 0, 64))

    k(x)


@case
def unknown_name():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, BLOCK))

    k(x, y)


@case
def global_array():
    @kernel
    def k(y):
        tl.store(y, 0, tl.load(x, 0, 64))

    k(y)


@case
def variable_changes_type():
    @kernel
    def k(x, y, n):
        t = 0
        for i in range(n):
            t = t + tl.load(x, i * 32, 32)
        tl.store(y, 0, t)

    k(x, y, 4)


@case
def variable_of_one_branch():
    @kernel
    def k(x, y, n):
        if n > 3:
            t = tl.load(x, 0, 32)
        tl.store(y, 0, t)

    k(x, y, 4)


@case
def branch_on_a_tile():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        if t > 0:
            t = t * 2
        tl.store(y, 0, t)

    k(x, y)


@case
def ands_of_tiles():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.store(y, 0, tl.where(t > 1 and t < 5, t, 0.0))

    k(x, y)


@case
def chained_comparison_of_tiles():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.store(y, 0, tl.where(1 < t < 5, t, 0.0))

    k(x, y)


@case
def inner_function():
    @kernel
    def k(x, y):
        def double(t):
            return t * 2

        tl.store(y, 0, double(tl.load(x, 0, 32)))

    k(x, y)


@case
def try_except():
    @kernel
    def k(x, y):
        try:
            tl.store(y, 0, tl.load(x, 0, 32))
        except ValueError:
            pass

    k(x, y)


@case
def dictionary():
    @kernel
    def k(x, y):
        d = {"a": 32}
        tl.store(y, 0, tl.load(x, 0, d["a"]))

    k(x, y)


@case
def string_formatting():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        print("%f" % t)
        tl.store(y, 0, t)

    k(x, y)


@case
def shared_memory_by_hand():
    @kernel
    def k(x, y):
        s = tl.shared((32,), tl.f32)
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, y)


@case
def barrier():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.syncthreads()
        tl.store(y, 0, t)

    k(x, y)


@case
def debug_barrier():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.debug_barrier()
        tl.store(y, 0, t)

    k(x, y)


@case
def float_index():
    @kernel
    def k(x, y):
        i = tl.program_id(0) / 2
        tl.store(y, 0, tl.load(x, i, 32))

    k(x, y)


@case
def array_instead_of_tile():
    @kernel
    def k(x, y):
        tl.store(y, 0, x + 1)

    k(x, y)


@case
def too_large_a_tile():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 1 << 24))

    k(x, y)


@case
def too_many_stages():
    @kernel
    def k(a, b, c):
        acc = tl.zeros((64, 64), tl.f32)
        for i in tl.range(0, 8, stages=40):
            acc += tl.dot(tl.load(a, (0, i * 64), (64, 64)), tl.load(b, (i * 64, 0), (64, 64)))
        tl.store(c, (0, 0), acc)

    big = np.ones((512, 512), np.float16)
    k(big, big, m)


@case
def num_warps_three():
    @kernel(num_warps=3)
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, y)


@case
def unknown_demand():
    @tilec.kernel(num_stages=3)
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, y)


@case
def missing_argument():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x)


@case
def list_of_numbers():
    @kernel
    def k(x: tl.array, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k([1.0, 2.0], y)


@case
def text_argument():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k("x", y)


@case
def read_only_output():
    z = np.zeros(64, np.float32)
    z.flags.writeable = False

    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, z)


@case
def complex_array():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x.astype(np.complex64), y)


@case
def float64_dot():
    @kernel
    def k(a, y):
        t = tl.load(a, (0, 0), (64, 64))
        tl.store(y, (0, 0), tl.dot(t, t))

    k(m.astype(np.float64), m)


@case
def const_given_an_array():
    @kernel
    def k(x, y, B: tl.const):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y, np.array([64]))


@case
def tile_size_zero():
    @kernel
    def k(x, y, B: tl.const):
        tl.store(y, 0, tl.load(x, 0, B))

    k(x, y, 0)


@case
def atomic_add_like_triton():
    @kernel
    def k(x, y):
        tl.atomic_add(y + tl.program_id(0), 1.0)

    k(x, y)


@case
def index_a_tile():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        tl.store(y, 0, tl.full((1,), t[0], tl.f32))

    k(x, y)


@case
def assign_into_tile():
    @kernel
    def k(x, y):
        t = tl.load(x, 0, 32)
        t[0] = 1.0
        tl.store(y, 0, t)

    k(x, y)


@case
def reshape_to_other_size():
    @kernel
    def k(x, y):
        tl.store(y, (0, 0), tl.load(x, 0, 64).reshape(8, 9))

    k(x, m)


@case
def astype():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32).astype(tl.f16))

    k(x, y)


@case
def dtype_as_torch():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32).to(tl.float16))

    k(x, y)


@case
def dtype_as_text():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32).to("float16"))

    k(x, y)


@case
def loop_over_array():
    @kernel
    def k(x, y):
        for v in x:
            tl.store(y, 0, tl.full((32,), v, tl.f32))

    k(x, y)


@case
def range_of_float():
    @kernel
    def k(x, y, n):
        for i in range(n / 2):
            tl.store(y, i * 32, tl.load(x, i * 32, 32))

    k(x, y, 4)


@case
def not_a_function():
    tilec.kernel(3)


@case
def class_method():
    class A:
        @kernel
        def k(self, x, y):
            tl.store(y, 0, tl.load(x, 0, 32))

    A().k(x, y)


@case
def kernel_from_kernel():
    @kernel
    def inner(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    @kernel
    def k(x, y):
        inner(x, y)

    k(x, y)


@case
def assert_shape_in_kernel():
    @kernel
    def k(x, y):
        assert x.shape[0] == 300, "length"
        tl.store(y, 0, tl.load(x, 0, 32))

    k(x, y)


@case
def lambda_source():
    tilec.kernel(lambda x, y: tl.store(y, 0, tl.load(x, 0, 32)), grid=1, device="emulator")(x, y)


@case
def fancy_cuda_names():
    @kernel
    def k(x, y):
        i = tl.blockIdx.x * 32
        tl.store(y, i, tl.load(x, i, 32))

    k(x, y)


@case
def store_swapped():
    @kernel
    def k(x, y):
        tl.store(tl.load(x, 0, 32), y, 0)

    k(x, y)


@case
def tile_power_of_none():
    @kernel
    def k(x, y, bias=None):
        tl.store(y, 0, tl.load(x, 0, 32) + bias)

    k(x, y)


@case
def device_unknown():
    tilec.device("gpu0")


@case
def target_unknown():
    @kernel
    def k(x, y):
        tl.store(y, 0, tl.load(x, 0, 32))

    k.compile(["x:f32[?]", "y:f32[?]"], target="hopper")


@case
def list_at_a_run_time_index():
    @kernel(grid=2)
    def k(xs, y):
        tl.store(y, 0, tl.load(xs[tl.program_id(0)], 0, 32))

    k([x, x], y)


@case
def loop_over_a_list():
    @kernel
    def k(xs: tl.arrays, y: tl.array):
        for x in xs:
            tl.store(y, 0, tl.load(x, 0, 32))

    k([x, x], y)


@case
def array_for_a_list():
    @kernel
    def k(xs: tl.arrays, y: tl.array):
        tl.store(y, 0, tl.load(xs[0], 0, 32))

    k(x, y)


@case
def list_of_two_dtypes():
    @kernel
    def k(xs: tl.flat_arrays, y: tl.array):
        tl.store(y, 0, tl.load(xs[0], 0, 32))

    k([x, h], y)


@case
def shorter_list():
    @kernel(grid=lambda xs: len(xs))
    def k(xs: tl.arrays, ys: tl.arrays):
        i = tl.program_id(0)
        tl.store(ys[i], 0, tl.load(xs[i], 0, 32))

    k.check([x, x], [y])


@case
def parts_of_an_array():
    @kernel(grid=lambda x: tl.parts(x, 64))
    def k(x: tl.array):
        i, start = tl.part(x, 64)

    k(x)
