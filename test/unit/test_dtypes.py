"""The table of dtypes is their one home, and its columns agree with NumPy, MLIR and struct."""

from __future__ import annotations

import ast
import copy
import pickle
import struct

import ml_dtypes
import numpy as np
import pytest
from mlir import ir
from test_layering import ROOT, SOURCES, tree_of

import tilec
import tilec.language as tl
from tilec.runtime.host import numpy_dtype
from tilec.terms.dtypes import BY_ARRAY, DTYPES, ELEMENT_BYTES, DType

COUNTED_WITH = ("i1", "i32", "i64", "index", "f32")
"""What the compiler counts, decides and computes addresses with, whatever a kernel has."""

ALLOWED = {
    "tilec/terms/dtypes.py": "the table",
    "tilec/hardware/mma_shapes.py": "instructions of products",
    "tilec/hardware/tensor_tiles.py": "those of tensor memory",
    "tilec/hardware/ptx_forms.py": "PTX versions of instructions",
    "tilec/call/auto_constants.py": "which unit multiplies",
    "tilec/frontend/code_floats.py": "casts from formats that IR has as bytes",
    "tilec/frontend/conversion.py": "casts by way of bf16",
    "tilec/frontend/kernel_module.py": "Python's float",
    "tilec/cli/drawn_arguments.py": "Python's float",
    "tilec/frontend/sort_keys.py": "integers that are in order as floats of 16 bits are",
    "tilec/frontend/tl_matmul.py": "products",
    "tilec/frontend/tl_reduction.py": "what small integers add up in",
    "tilec/frontend/tl_scaled.py": "products",
    "passes/analysis/vector_additions.py": "atomic additions",
    "tilec/ops/": "products",
    "tilec/costs/": "which unit multiplies, and how fast",
    "tilec/refit/": "products, and what results are compared in",
    "tilec/tuning/agreement.py": "what results are compared in",
    "tilec/examples/": "kernels",
    "tilec/c_source/tables.py": "C's names",
    "tilec/triton/": "Triton's names, and functions of its libraries",
    "dialects/tile/matmul.py": "products",
    "dialects/gpu_tile/wgmma.py": "products",
    "passes/multiply_out.py": "products",
    "passes/select_mma.py": "products",
    "passes/dots/": "products",
    "passes/lower_to_nvvm/": "instructions",
    "passes/math/": "functions and conversions that the hardware lacks",
    "passes/expand_math.py": "those",
    "passes/copies/tensor_map_rules.py": "what the copy engine combines",
    "passes/lower_to_nvvm/inline_ptx.py": "registers of inline PTX",
    "runtime/emulator/": "shares no table with the compiler",
}
"""Files and folders that may name a dtype: the table, and its instructions."""

_SPELLINGS = {
    spelling
    for dtype in DTYPES
    if dtype.name not in COUNTED_WITH
    for spelling in (dtype.name, dtype.mlir, dtype.array)
} - {"i8"}  # a byte of memory, in LLVM's address arithmetic
_MLIR_TYPES = {"F16Type", "BF16Type", "F64Type", "Float8E4M3FNType", "Float8E5M2Type"}


def named_in(tree: ast.AST) -> set[str]:
    """The dtypes that code names: as a text, a variable, a member or a class of MLIR's."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name)
    return found & (_SPELLINGS | _MLIR_TYPES)


def test_a_dtype_is_named_in_the_table_and_by_its_instructions_only() -> None:
    naming = {str(p.relative_to(ROOT)): found for p in SOURCES if (found := named_in(tree_of(p)))}
    assert naming["tilec/terms/dtypes.py"] == _SPELLINGS
    wrong = {path: found for path, found in naming.items() if not path.startswith(tuple(ALLOWED))}
    assert wrong == {}
    assert [place for place in ALLOWED if not any(p.startswith(place) for p in naming)] == []


@pytest.mark.parametrize(
    "text",
    ['x = "f16"', "from tilec.terms.dtypes import bf16", "tl.f8e5m2", "f64", "ir.F64Type.get()"],
)
def test_every_way_of_naming_one_is_seen(text: str) -> None:
    assert len(named_in(ast.parse(text))) == 1
    assert named_in(ast.parse('x = "needs bf16"')) == set()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_there_is_one_object_a_dtype(dtype: DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is dtype


def test_no_two_dtypes_share_a_spelling() -> None:
    for column in ("name", "mlir", "array", "typestr", "dlpack"):
        found = [getattr(dtype, column) for dtype in DTYPES if getattr(dtype, column)]
        assert len(set(found)) == len(found) > 7, column


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_mlir_has_the_type_of_its_elements(dtype: DType) -> None:
    with ir.Context():
        kind = ir.Type.parse(dtype.in_ir)
        assert isinstance(kind, ir.IndexType) or kind.width == dtype.bits
        if not dtype.is_pair:
            ir.Type.parse(dtype.mlir)


@pytest.mark.parametrize("dtype", BY_ARRAY.values(), ids=str)
def test_sizes_and_limits_are_those_of_numpy(dtype: DType) -> None:
    if dtype.is_pair:
        assert ELEMENT_BYTES[dtype.mlir] == 1
        return
    kind = np.dtype(getattr(ml_dtypes, dtype.array, None) or dtype.array)
    assert ELEMENT_BYTES[dtype.mlir] == dtype.bytes == kind.itemsize
    if dtype.is_integer:
        assert dtype.limits == (np.iinfo(kind).min, np.iinfo(kind).max)
    if dtype.bits > 8:  # the copy engine has no signed 16 bits, and only moves bytes
        assert dtype.copied_as == ("UINT16" if dtype.name == "i16" else dtype.array.upper())
    if dtype.packed and dtype.encoding is None:
        code = "?" if dtype.is_bool else dtype.packed
        assert struct.pack(code, 1) == np.ones((), kind).tobytes()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.encoding], ids=str)
def test_encodings_are_those_of_ml_dtypes(dtype: DType) -> None:
    found, kind = dtype.encoding, ml_dtypes.finfo(getattr(ml_dtypes, dtype.array))
    assert (found.exponent_bits, found.mantissa_bits) == (kind.nexp, kind.nmant)
    assert found.largest == float(kind.max)
    with np.errstate(all="ignore"):
        infinity, nan = (np.array([x], kind.dtype) for x in (np.inf, np.nan))
    view = f"u{dtype.bytes}"
    assert found.nan == nan.view(view)[0] & (1 << (dtype.bits - 1)) - 1
    if found.infinity is None:
        assert not np.isinf(infinity.astype(float)).any()
    else:
        assert found.infinity == infinity.view(view)[0]


def kept(out: tl.array, n):
    tl.store(out, 1, tl.full(5, n))


@pytest.mark.parametrize("dtype", [d for d in BY_ARRAY.values() if d.packed], ids=str)
def test_a_scalar_argument_of_every_dtype(dtype: DType) -> None:
    kept.__annotations__["n"] = dtype
    kind = numpy_dtype(dtype.mlir)
    number = 1 if dtype.is_bool else 5 if dtype.limits[0] == 0 else -5
    out = np.zeros(8, kind)
    tilec.kernel(kept).on("emulator")[1](out, number)
    assert out.tolist() == [0, *[kind.type(number)] * 5, 0, 0]
