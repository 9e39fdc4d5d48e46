"""Wrong kernels: one error, at the right place, with the right words. `@@` marks the place."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from frontend_cases import PRELUDE_LINES, build

from tilec.messages.diagnostics import CompileError

SPECS = ("x:f32[?,?]", "v:f32[?]", "h:f16[?]", "q:i32[?]", "e:f8e4m3[?,?]", "n:i32", "f:f32")
CONSTANTS = {"BM": 16, "BN": 32, "NAME": "abc"}
HEADER = "def k(x, v, h, q, e, n, f, BM, BN, NAME):\n"

CASES: dict[str, tuple[str, str]] = {
    # names
    "unknown_name": ("y = @@foo + 1", "unknown name 'foo'"),
    "unknown_tl_function": ("y = @@tl.laod(v, 0, 16)", "did you mean 'load'"),
    "python_builtin": ("y = @@sorted((1, 2))", "Python's 'sorted' is not available"),
    "used_before_assignment": ("y = @@z + 1\nz = 2", "'z' is used before it is assigned"),
    "global_list": ("y = @@LIST", "no compile-time constant"),
    "undefined_on_a_path": (
        "if n > 0:\n    y = 1\ntl.store(v, 0, @@y + f)",
        "'y' may be undefined here",
    ),
    "undefined_after_loop": (
        "for i in range(n):\n    y = f\ntl.store(v, 0, @@y)",
        "'y' may be undefined here",
    ),
    "loop_variable_after_loop": (
        "for i in range(n):\n    pass\ntl.store(q, @@i, 1)",
        "has no value after its loop",
    ),
    # shapes
    "shapes_do_not_broadcast": (
        "y = @@tl.load(x, (0, 0), (16, 8)) + tl.load(v, 0, 7)",
        "shapes (16, 8) and (7,) do not broadcast: 8 and 7",
    ),
    "runtime_shape": ("y = tl.load(v, 0, @@n)", "must be made of compile-time constants"),
    "runtime_shape_from_array": (
        "y = tl.zeros(@@(x.shape[0], 4), tl.f32)",
        "must be made of compile-time constants",
    ),
    "negative_size": ("y = tl.zeros(@@(4, -4), tl.f32)", "must be positive, found -4"),
    "zero_size": ("y = tl.zeros(@@0, tl.f32)", "must be positive, found 0"),
    "float_size": ("y = tl.zeros(@@4.0, tl.f32)", "must be made of integers"),
    "bool_size": ("y = tl.zeros(@@True, tl.f32)", "must be made of integers"),
    "huge_tile": ("y = tl.zeros(@@(4096, 4096), tl.f32)", "more than 1048576 elements"),
    "huge_broadcast": (
        "y = @@tl.zeros((4096, 1), tl.f32) + tl.zeros((1, 4096), tl.f32)",
        "more than 1048576 elements",
    ),
    "dot_contraction": (
        "y = @@tl.dot(tl.zeros((16, 8), tl.f16), tl.zeros((16, 8), tl.f16))",
        "contraction sizes differ: (16, 8) @ (16, 8)",
    ),
    "dot_rank": ("y = tl.dot(@@tl.load(v, 0, 8), tl.load(v, 0, 8))", "at least 2 dimensions"),
    "dot_acc_shape": (
        "a = tl.zeros((16, 16), tl.f16)\ny = tl.dot(a, a, @@tl.zeros((16, 8), tl.f32))",
        "acc must have shape (16, 16)",
    ),
    "dot_acc_dtype": (
        "a = tl.zeros((16, 16), tl.bf16)\ny = tl.dot(a, a, @@tl.zeros((16, 16), tl.f16))",
        "a dot of bf16 accumulates in f32, not f16",
    ),
    "dot_mixed": (
        "y = @@tl.dot(tl.zeros((16, 8), tl.f16), tl.zeros((8, 16), tl.bf16))",
        "one dtype, found f16 and bf16",
    ),
    "dot_precision": (
        "a = tl.zeros((16, 16), tl.f16)\ny = tl.dot(a, a, precision=@@'tf32')",
        "is for f32 inputs",
    ),
    "dot_unknown_precision": (
        "a = tl.zeros((16, 16), tl.f32)\ny = tl.dot(a, a, precision=@@'fast')",
        "precision must be 'tf32' or 'ieee'",
    ),
    "dot_i32": (
        "a = tl.zeros((16, 16), tl.i32)\ny = @@tl.dot(a, a)",
        "dot is not defined for i32",
    ),
    "reshape_count": ("y = tl.reshape(tl.zeros(12, tl.f32), @@(5, 2))", "has 12 elements"),
    "reshape_inferred": ("y = tl.reshape(tl.zeros(12, tl.f32), @@(5, -1))", "does not reshape"),
    "reshape_sizes": ("y = tl.zeros(12, tl.f32).reshape(@@5, 'a')", "must be made of integers"),
    "permutation": ("y = tl.permute(tl.zeros((2, 3), tl.f32), @@(0, 0))", "no permutation"),
    "axis": ("y = tl.sum(tl.zeros((2, 3), tl.f32), @@2)", "axis 2 is out of range"),
    "axis_runtime": ("y = tl.sum(tl.zeros((2, 3), tl.f32), @@n)", "must be a constant integer"),
    "split_parts": ("y = tl.split(tl.zeros(9, tl.f32), @@2)", "does not split into 2"),
    "cat_sizes": (
        "y = tl.cat(@@(tl.zeros((2, 3), tl.f32), tl.zeros((2, 4), tl.f32)), 0)",
        "sizes off axis 0 differ",
    ),
    "cat_dtypes": ("y = tl.cat(@@(tl.zeros(2, tl.f32), tl.zeros(2, tl.f16)))", "one dtype"),
    "cat_no_tuple": ("y = tl.cat(@@tl.zeros(2, tl.f32))", "expects a tuple of tiles"),
    "take_shape": (
        "y = tl.take(tl.zeros((4, 8), tl.f32), @@tl.zeros((4, 9), tl.i32), 0)",
        "only along axis 0",
    ),
    "exchange_of_a_scalar": ("y = tl.exchange(@@n, 1)", "expected a tile, found a scalar"),
    "exchange_mask": ("y = tl.exchange(tl.zeros(8, tl.i32), @@0)", "mask must be a positive"),
    "exchange_size": (
        "y = tl.exchange(tl.zeros(12, tl.i32), @@5)",
        "mask 5 exchanges among 8 elements, of which 12 along axis 0 is no multiple",
    ),
    "sort_of_a_scalar": ("y = tl.sort(@@n)", "sort expects a tile"),
    "sort_of_fp8": ("y = @@tl.sort(tl.load(e, (0, 0), (4, 4)))", "sort is not defined for f8e4m3"),
    "sort_axis": ("y = tl.sort(tl.zeros(8, tl.i32), @@1)", "axis 1 is out of range"),
    "sort_way": (
        "y = tl.sort(tl.zeros(8, tl.i32), descending=@@1)",
        "descending must be True or False",
    ),
    "topk_indices": (
        "y = tl.topk(tl.zeros(8, tl.i32), 2, return_indices=@@None)",
        "return_indices must be True or False",
    ),
    "topk_of_none": ("y = tl.topk(tl.zeros(8, tl.i32), @@0)", "k must be a constant from 1 to 8"),
    "topk_of_more": ("y = tl.topk(tl.zeros(8, tl.i32), @@9)", "k must be a constant from 1 to 8"),
    "max_indices": (
        "y = tl.max(tl.zeros(8, tl.i32), 0, return_indices=@@2)",
        "return_indices must be True or False",
    ),
    "max_indices_axis": (
        "y = tl.max(tl.zeros(8, tl.i32), @@None, return_indices=True)",
        "axis must be a constant integer",
    ),
    "histogram_of_floats": (
        "y = tl.histogram(@@tl.zeros(8, tl.f32), 4)",
        "expected a tile of integers",
    ),
    "histogram_of_a_scalar": ("y = tl.histogram(@@n, 4)", "expected a tile of integers"),
    "histogram_bins": ("y = tl.histogram(tl.arange(8), @@n)", "bins must be a constant"),
    "histogram_bins_tuple": ("y = tl.histogram(tl.arange(8), @@(4, 4))", "bins must be a constant"),
    "histogram_no_bins": ("y = tl.histogram(tl.arange(8), @@0)", "bins must be positive, found 0"),
    "histogram_many_bins": (
        "y = tl.histogram(tl.arange(8), @@2097152)",
        "more than 1048576 elements",
    ),
    "histogram_mask": (
        "y = tl.histogram(tl.arange(8), 4, mask=@@tl.arange(8))",
        "a mask must be i1",
    ),
    "histogram_in_combine": (
        "y = tl.reduce(tl.arange(8), 0, lambda a, b: @@tl.histogram(a, 4))",
        "not possible in a combine function",
    ),
    "broadcast_to": (
        "y = @@tl.broadcast_to(tl.zeros((4, 8), tl.f32), (4, 9))",
        "does not broadcast to (4, 9)",
    ),
    "transpose_of_three": ("y = @@tl.zeros((2, 3, 4), tl.f32).T", ".T is for two dimensions"),
    # loads and stores
    "offset_count": (
        "y = tl.load(x, @@(0, 0, 0), (4, 4))",
        "one offset per dimension of 'x' (2), found 3",
    ),
    "offset_float": ("y = tl.load(v, @@f, 4)", "an offset must be an integer scalar"),
    "offset_tile": ("y = tl.load(v, @@tl.arange(4), 4)", "an offset must be an integer scalar"),
    "load_scalar": ("y = tl.load(@@n, 0, 4)", "expects an array parameter"),
    "load_rank": ("y = @@tl.load(v, 0, (4, 4))", "a tile of 2 dimensions does not fit 'v'"),
    "dims_count": ("y = tl.load(x, (0, 0), 4, dims=@@(0, 1))", "one array dimension per tile"),
    "dims_range": ("y = tl.load(x, (0, 0), 4, dims=@@2)", "dims 2 is out of range"),
    "dims_twice": ("y = tl.load(x, (0, 0), (4, 4), dims=@@(1, 1))", "dims must be distinct"),
    "padding_type": ("y = tl.load(q, 0, 4, padding=@@1.5)", "padding: the constant 1.5 is no i32"),
    "padding_range": ("y = tl.load(q, 0, 4, padding=@@1 << 40)", "does not fit i32"),
    "padding_fp8": ("y = tl.load(e, (0, 0), 4, padding=@@-tl.inf)", "f8e4m3 has no infinity"),
    "padding_runtime": ("y = tl.load(v, 0, 4, padding=@@f)", "padding must be a constant"),
    "cache": ("y = tl.load(v, 0, 4, cache=@@'fast')", "cache must be one of 'evict_first'"),
    "store_dtype": (
        "tl.store(h, 0, @@tl.load(v, 0, 4))",
        "'h' holds f16, found a tile (4,) of f32",
    ),
    "store_constant": ("tl.store(q, 0, @@1.5)", "the constant 1.5 is no i32"),
    "store_string": ("tl.store(q, 0, @@NAME)", "expected a number or a tile"),
    "gather_indices": ("y = tl.gather(x, @@(tl.arange(4),))", "one index per dimension of 'x' (2)"),
    "gather_float_index": (
        "y = tl.gather(v, @@tl.zeros(4, tl.f32))",
        "an index must be an integer",
    ),
    "gather_mask": (
        "y = tl.gather(v, tl.arange(4), mask=@@tl.arange(4))",
        "a mask must be i1",
    ),
    "gather_other": (
        "y = tl.gather(v, tl.arange(4), other=@@tl.arange(4))",
        "'v' holds f32",
    ),
    "atomic_float_and": ("tl.atomic_and(@@v, 0, 1)", "atomic_and is not defined for f32"),
    "atomic_fp8": ("tl.atomic_add(@@e, (0, 0), 1)", "atomic_add is not defined for f8e4m3"),
    "atomic_order": ("tl.atomic_add(q, 0, 1, order=@@'seq')", "order must be one of 'relaxed'"),
    "atomic_scope": ("tl.atomic_add(q, 0, 1, scope=@@'grid')", "scope must be one of 'cta'"),
    "fence_order": ("tl.fence(@@'relaxed')", "order must be one of 'acq_rel'"),
    # dtypes
    "fp8_arithmetic": (
        "y = @@tl.load(e, (0, 0), 4) + 1",
        "'+' is not defined for f8e4m3",
    ),
    "fp8_math": ("y = @@tl.exp(tl.load(e, (0, 0), 4))", "exp is not defined for f8e4m3"),
    "fp8_comparison": ("y = @@tl.load(e, (0, 0), 4) > 0", "'>' is not defined for f8e4m3"),
    "fp8_select_mixed": (
        "y = @@tl.where(True, tl.load(e, (0, 0), 4), f)",
        "fp8 values do not promote",
    ),
    "fp8_sum": ("y = @@tl.sum(tl.load(e, (0, 0), 4))", "sum is not defined for f8e4m3"),
    "float_bitwise": ("y = @@f & 1", "'&' is for integers and booleans"),
    "float_shift": ("y = @@f << 1", "'<<' is for integers"),
    "shift_amount": ("y = @@n << 32", "shift amount 32 is not in 0..31"),
    "invert_float": ("y = @@~f", "'~' is for integers"),
    "constant_too_large": ("y = @@n + (1 << 40)", "does not fit i32"),
    "division_by_zero": ("y = @@n // 0", "division by zero"),
    "constant_division_by_zero": ("y = @@1 // 0", "division by zero"),
    "bitcast_width": ("y = tl.bitcast(f, @@tl.i16)", "one width, found f32 and i16"),
    "cast_no_dtype": ("y = f.to(@@32)", "dtype must be a dtype such as tl.f32"),
    "where_condition": (
        "y = tl.where(@@tl.arange(4), 1, 2)",
        "the condition must be i1",
    ),
    "math_on_runtime": ("y = @@math.sqrt(f)", "help: use tl.sqrt"),
    "string_arithmetic": ("y = @@NAME + 1", "can only concatenate str"),
    "array_arithmetic": ("y = @@x + 1", "help: an array is no pointer"),
    "dtype_arithmetic": ("y = @@tl.f32 + 1", "'+' does not apply to the dtype f32"),
    "cdiv_float": ("y = @@tl.cdiv(f, 2)", "cdiv is for integers"),
    "arange_runtime": ("y = tl.arange(@@n)", "arange needs constant integers"),
    "arange_empty": ("y = @@tl.arange(4, 4)", "arange is empty"),
    "arange_float": ("y = tl.arange(4, dtype=@@tl.f32)", "arange makes integers"),
    "arange_i8": ("y = @@tl.arange(200, dtype=tl.i8)", "does not fit i8"),
    # control flow
    "condition_tile": (
        "if @@tl.load(v, 0, 4) > 0:\n    pass",
        "a condition must be a scalar, found a tile (4,) of i1",
    ),
    "condition_array": ("if @@x:\n    pass", "a condition must be a scalar"),
    "while_tile": ("while @@tl.arange(4) > 0:\n    pass", "a condition must be a scalar"),
    "loop_dtype": (
        "acc = tl.zeros(4, tl.f32)\nfor i in range(n):\n    @@acc = acc.to(tl.f16)",
        "a tile (4,) of f32 before the loop, a tile (4,) of f16 after an iteration",
    ),
    "loop_shape": (
        "acc = tl.zeros(4, tl.f32)\n"
        "for i in range(n):\n    @@acc = acc + tl.zeros((4, 4), tl.f32)\n"
        "tl.store(x, (0, 0), acc)",
        "'acc' changes in the loop",
    ),
    "loop_number_to_tile": (
        "acc = 0.0\nfor i in range(n):\n    @@acc += tl.load(v, i, 4)\ntl.store(v, 0, acc)",
        "the constant 0.0 before the loop, a tile (4,) of f32 after",
    ),
    "while_dtype": (
        "i = n\nwhile i > 0:\n    @@i = i - 0.5",
        "a scalar of i32 before the loop, a scalar of f32 after",
    ),
    "branch_types": (
        "if n > 0:\n    y = f\nelse:\n    y = n\ntl.store(v, 0, @@y)",
        "a scalar of f32 on one path, a scalar of i32 on the other",
    ),
    "expression_types": ("y = @@f if n > 0 else n", "the sides of a conditional expression differ"),
    "loop_over_tile": ("for i in @@tl.arange(4):\n    pass", "cannot loop over a tile"),
    "loop_over_number": ("for i in @@4:\n    pass", "cannot loop over the constant 4"),
    "range_float": ("for i in @@range(f):\n    pass", "must be an integer scalar"),
    "range_mixed": (
        "u = tl.load(v, 0, ()).to(tl.u64)\nfor i in @@range(tl.program_id(0), u):\n    pass",
        "index and u64 do not mix",
    ),
    "range_zero_step": ("for i in @@range(0, n, 0):\n    pass", "must not be 0"),
    "static_range_runtime": ("for i in @@tl.static_range(n):\n    pass", "needs constant integers"),
    "static_range_long": ("for i in @@tl.static_range(100000):\n    pass", "at most 4096"),
    "stages": ("for i in tl.range(n, stages=@@0):\n    pass", "stages must be a constant from 1"),
    "any_order": (
        "for i in tl.range(n, any_order=@@1):\n    pass",
        "any_order must be True or False",
    ),
    "any_order_with_break": (
        "@@for i in tl.range(n, any_order=True):\n    if i > 3:\n        break",
        "'any_order' is impossible: demands are for loops without 'break'",
    ),
    "stages_with_break": (
        "@@for i in tl.range(n, stages=2):\n    if i > 3:\n        break",
        "'stages' is impossible: demands are for loops without 'break'",
    ),
    "return_in_loop": (
        "for i in range(n):\n    if i > 3:\n        @@return",
        "'return' inside a loop that runs on the GPU",
    ),
    "unrolled_beyond_63_bits": (
        "for i in @@tl.static_range(2**64):\n    pass",
        "static_range would unroll 18446744073709551616 iterations; at most 4096",
    ),
    "items_beyond_63_bits": (
        "x = @@[i for i in range(0, -(2**70), -3)]",
        "a comprehension has at most 4096 items",
    ),
    "break_in_unrolled": (
        "@@for i in tl.static_range(3):\n    if n > i:\n        break",
        "inside an unrolled loop",
    ),
    "return_value": ("@@return n", "a kernel returns nothing"),
    "for_else": ("for i in range(n):\n    pass\nelse:\n    @@pass", "'else' of a loop"),
    "tuple_target": ("for @@i, j in range(n):\n    pass", "must be one name"),
    "static_assert": ("@@tl.static_assert(BM == 3, 'BM is wrong')", "BM is wrong"),
    "static_assert_runtime": ("tl.static_assert(@@n > 3)", "needs a compile-time constant"),
    "assert_constant": ("@@assert BM == 3, 'bad'", "bad"),
    "assert_message": ("@@assert n > 3, n", "must be a string constant"),
    "unpack_count": ("@@a, b = (1, 2, 3)", "cannot unpack 3 values into 2 names"),
    "unpack_scalar": ("@@a, b = n", "cannot unpack a scalar"),
    "element_assignment": ("@@x[0, 0] = 1", "help: write with tl.store"),
    "attribute_assignment": ("@@x.y = 1", "cannot assign to this"),
    # indexing
    "index_tile": ("y = tl.arange(4)[@@0]", "a tile is indexed with ':', '...' and None only"),
    "slice_tile": ("y = tl.arange(4)[@@1:3]", "a tile is indexed with"),
    "too_many_indices": ("y = @@tl.arange(4)[:, :]", "too many indices"),
    "index_array": ("y = @@x[0, 0]", "an array cannot be indexed"),
    "index_range": ("y = @@x.shape[2]", "index 2 is out of range"),
    "index_runtime": ("y = @@(1, 2)[n]", "an index must be a constant integer"),
    "attribute": ("y = @@x.foo", "an array has no 'foo'"),
    "tile_attribute": ("y = @@tl.arange(4).dtyp", "did you mean 'dtype'"),
    # calls
    "missing_argument": ("y = @@tl.load(v, 0)", "missing a required argument: 'shape'"),
    "unknown_keyword": ("y = @@tl.load(v, 0, 4, mask=True)", "unexpected keyword argument 'mask'"),
    "too_many_arguments": ("y = @@tl.exp(f, True, 3)", "too many positional arguments"),
    "not_callable": ("y = @@n(3)", "a scalar of i32 cannot be called"),
    "none_is_not_callable": ("y = @@None(3)", "the constant None cannot be called"),
    "call_star": ("y = tl.load(@@*x)", "'*' wants a tuple, found the 2-dimensional array 'x'"),
    "tuple_star": ("y = (1, @@*n)", "'*' wants a tuple, found a scalar"),
    "call_double_star": ("y = tl.load(v, **@@NAME)", "unsupported syntax: '**' in a call"),
    "method_argument": ("y = f.to(@@'f16')", "dtype must be a dtype"),
    "helper_arguments": ("y = @@helper(1)", "missing a required argument: 'b'"),
    "recursion": ("y = @@recursive(n)", "recursion is not possible"),
    "helper_star": ("y = @@star(1, 2)", "unsupported syntax: '*values' parameters"),
    "kernel_call": ("@@other(x)", "a kernel cannot call the kernel"),
    "class_call": ("y = @@Exception('x')", "Python's 'Exception' is not available"),
    # reductions
    "combine_count": (
        "y = tl.reduce((tl.arange(4), tl.arange(4)), 0, @@lambda a, b, c, d: a + c)",
        "must give 2 values, found 1",
    ),
    "combine_parameters": (
        "y = @@tl.reduce(tl.arange(4), 0, lambda a: a)",
        "the lambda takes 1 values, found 2",
    ),
    "combine_dtype": (
        "y = tl.reduce(tl.arange(4), 0, @@lambda a, b: a + 0.5)",
        "gives a scalar of f32 where the tile holds i32",
    ),
    "combine_no_function": ("y = tl.reduce(tl.arange(4), 0, @@3)", "combine must be a function"),
    "combine_load": (
        "y = tl.reduce(tl.load(v, 0, 4), 0, lambda a, b: @@tl.program_id(0) + a)",
        "not possible in a combine function",
    ),
    "combine_capture": (
        "y = tl.reduce(tl.load(v, 0, 4), 0, lambda a, b: a + b * @@f)",
        "a lambda cannot use the run-time value 'f'",
    ),
    "combine_tile": (
        "y = tl.reduce(tl.load(v, 0, 4), 0, lambda a, b: @@tl.full(4, a))",
        "not possible in a combine function",
    ),
    "combine_if": (
        "y = tl.reduce(tl.load(v, 0, 4), 0, lambda a, b: @@a if a > b else b)",
        "help: choose with tl.where",
    ),
    "reduce_scalar": ("y = tl.sum(@@f)", "sum expects a tile"),
    "reduce_shapes": (
        "y = tl.reduce(@@(tl.arange(4), tl.arange(5)), 0, lambda a, b, c, d: (a, b))",
        "must have one shape",
    ),
    # program
    "program_axis": ("y = tl.program_id(@@3)", "axis must be 0, 1 or 2"),
    "assume_nothing": ("y = @@tl.assume(n)", "assume needs multiple_of, min or max"),
    "assume_float": ("y = tl.assume(@@f, min=0)", "is about an integer scalar"),
    "assume_bounds": ("y = tl.assume(n, min=@@4, max=3)", "min 4 is above max 3"),
    "print_array": ("@@print(x)", "cannot print the 2-dimensional array 'x'"),
    "print_braces": ("@@print('{}', n)", "braces cannot be printed"),
    "print_shapes": ("@@print(tl.arange(4), tl.arange(5))", "must have one shape"),
    "print_many": ("@@print(n, n, n, n, n, n, n, n, n)", "at most 8 values, found 9"),
    "ptx_count": (
        "y = tl.inline_ptx('mov.b32 $0, $1;', @@'=r', n, tl.i32)",
        "1 outputs and 1 inputs need as many constraints",
    ),
    "ptx_letter": (
        "y = tl.inline_ptx('mov.b32 $0, $1;', @@'=r,q', n, tl.i32)",
        "unknown constraint 'q'",
    ),
    "ptx_width": (
        "y = tl.inline_ptx('mov.b32 $0, $1;', @@'=r,l', n, tl.i32)",
        "constraint 'l' does not hold i32",
    ),
    "ptx_inputs": (
        "y = tl.inline_ptx('', '=r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r', "
        "@@(n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n), tl.i32)",
        "inline_ptx takes at most 16 inputs, found 17",
    ),
    "ptx_outputs": (
        "i = tl.i32\ny = tl.inline_ptx('', '=r,=r,=r,=r,=r,=r,=r,=r,=r,r', n, "
        "@@(i, i, i, i, i, i, i, i, i))",
        "inline_ptx takes at most 8 outputs, found 9",
    ),
    "ptx_text": ("y = @@tl.inline_ptx(n, '=r,r', n, tl.i32)", "must be constant strings"),
    # syntax
    "try": ("@@try:\n    pass\nexcept Exception:\n    pass", "unsupported syntax: 'try'"),
    "with": ("with @@n:\n    pass", "'with' is for roles (gpu.role) in a kernel"),
    "raise": ("@@raise ValueError", "unsupported syntax: 'raise'"),
    "global": ("@@global LIST", "unsupported syntax: 'global'"),
    "nested_def": ("@@def g():\n    pass", "a function defined in a kernel"),
    "class": ("@@class C:\n    pass", "a class defined in a kernel"),
    "import": ("@@import os", "'import' in a kernel"),
    "import_from": ("@@from os import path", "'import' in a kernel"),
    "delete": ("@@del n", "'del'"),
    "yield": ("@@yield n", "'yield'"),
    "dict": ("y = @@{1: 2}", "a dictionary"),
    "set": ("y = @@{1, 2}", "a set"),
    "dict_comprehension": ("y = @@{i: i for i in range(3)}", "a dictionary comprehension"),
    "walrus": ("y = (@@z := 3)", "':='"),
    "match": ("@@match n:\n    case 1:\n        pass", "'match'"),
    "lambda_arguments": ("y = lambda: 1\n@@y(1)", "the lambda takes 0 values"),
    "complex": ("y = @@1j", "unsupported literal of type complex"),
    "bytes": ("y = @@b'x'", "unsupported literal of type bytes"),
    "comprehension_over_tile": ("y = @@[i for i in tl.arange(3)]", "needs compile-time items"),
    "format_spec": ("print(f'{@@n:3}')", "format specifications are not supported"),
    "huge_power": ("y = @@10 ** 100000", "is too large"),
    "huge_shift": ("y = @@1 << 1000000", "is too large"),
    "max_of_array": ("y = @@max(x, 1)", "expected a number or a tile"),
    "percent_format": ("y = @@'%s' % 3", "use an f-string"),
    "repeated_string": ("y = @@'a' * 100000000", "is not supported"),
}

MODULE = """
LIST = [1, 2]

def helper(a, b):
    return a + b

def recursive(a):
    return @recursive(a)

def star(*values):
    return 1

@tilec.kernel
def other(x: tl.array):
    pass

"""


def marked(body: str) -> tuple[str, int, int]:
    """The module's text without the mark, and the mark's line and column."""
    text = MODULE.replace("@recursive", "recursive") + HEADER + textwrap.indent(body, "    ")
    before, _, after = text.partition("@@")
    line = PRELUDE_LINES + before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return before + after, line, column


@pytest.mark.parametrize("name", CASES)
def test_error(name: str, tmp_path: Path) -> None:
    body, message = CASES[name]
    text, line, column = marked(body)
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, SPECS, CONSTANTS)
    error = caught.value
    assert message in str(error)
    assert len(error.errors) == 1
    assert error.location is not None
    found = (error.location.line, error.location.column)
    if name not in ("recursion", "helper_star"):  # these point into the function called
        assert found == (line, column), str(error)
    assert "Traceback" not in str(error)


def test_error_in_a_helper_names_the_call(tmp_path: Path) -> None:
    text = """
        def helper(a):
            return a + tl.arange(3)

        def k(v):
            y = helper(tl.load(v, 0, 4))
    """
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, ["v:i32[?]"])
    shown = str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.line == PRELUDE_LINES + 3
    assert f":{PRELUDE_LINES + 6}:9: note: in 'helper', called here" in shown
    assert "        y = helper(tl.load(v, 0, 4))" in shown.replace("    y =", "        y =")


def test_error_in_the_library_points_to_the_author(tmp_path: Path) -> None:
    text = """
        def k(e):
            y = tl.softmax(tl.load(e, 0, 4))
    """
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, ["e:f8e4m3[?]"])
    error = caught.value
    assert error.location is not None
    assert (error.location.line, error.location.column) == (PRELUDE_LINES + 3, 9)
    assert "in tl.softmax" in str(error)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("lambda y: y.shape[0]", "takes 'y', which is no parameter"),
        ("lambda x: x.shape[0] / 2", "use // or tl.cdiv"),
        ("lambda x: x.shape[5]", "tuple index out of range"),
        ("lambda x: 1 if x.shape[0] > 3 else 2", "use min and max"),
        ("lambda x: 1.5", "a grid size is an integer"),
        ("lambda x: x", "found the array 'x'; its sizes are x.shape[0], ..."),
        ("lambda x: (1, 2, 3, 4)", "gives 4 sizes"),
        ("lambda x: 1 // 0", "ZeroDivisionError"),
        ("'abc'", "a grid size is an integer"),
    ],
)
def test_wrong_grid(grid: str, message: str, tmp_path: Path) -> None:
    text = f"""
        @tilec.kernel(grid={grid})
        def k(x: tl.array):
            pass
    """
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, ["x:f32[?]"])
    assert message in str(caught.value)
    assert caught.value.location is not None
