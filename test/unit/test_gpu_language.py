"""`tilec.language.gpu`: every op of `gpu_tile` is offered, as the op itself says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from mlir import ir

import tilec.language as tl
from tilec.dialects import gpu_tile
from tilec.dialects.context import make_context
from tilec.frontend.rules import RULES
from tilec.frontend.tl_gpu import METHODS_OF, OPS
from tilec.hardware.layout import Layout, normalize, parse_layout
from tilec.hardware.shared_layout import parse_shared_layout
from tilec.language import gpu
from tilec.language.gpu import layouts
from tilec.passes.layouts.panels import operand_layout

FOR_PASSES = {
    "cp_async_gather": "gathers whose elements neighbour each other, which passes prove",
    "cluster_send": "sums of parts of a loop, on their way to the CTA that adds them up",
    "cluster_store": "what the CTAs of a row that is spread over a cluster tell each other",
    "make_im2col_map": "rows of a gather that the copy engine counts, which passes prove",
    "program_in_cta": "programs of one warp that share a CTA",
    "programs_in_cta": "programs of one warp that share a CTA",
    "release_tensor_memory": "what a kernel that has tensor memory does at its end",
    "reserve_tensor_memory": "what a kernel that has tensor memory does at its start",
    "reshape_view": "the halves of a reshape that crosses threads",
    "scale": "a multiplication that warps skip where it changes nothing",
    "scan_carry": "the halves of a scan across warps",
    "shift_vectors": "what a load beside an aligned place is made of",
    "tma_pair_multicast": "what pairs of a cluster load alike, where `cluster=` asks for several",
    "thread_reduce": "what each thread has of a sum, before threads meet",
    "warp_reduce": "the halves of a reduction across warps",
    "warp_spread": "what elements of a search are compared with in each warp",
    "warp_scan": "the halves of a scan across warps",
}
"""Ops that no author writes: passes make them where a kernel leaves the way open."""

STUBS = {name: getattr(gpu, name) for name in gpu.__all__ if name not in layouts.__all__}
LIKE_AN_OP = {name: stub for name, stub in STUBS.items() if name in OPS}


def parameters(name: str) -> dict[str, inspect.Parameter]:
    """The parameters of a stub."""
    return dict(inspect.signature(STUBS[name].__tilec_builtin__).parameters)


def test_every_op_is_offered() -> None:
    assert set(OPS) - set(STUBS) == set(FOR_PASSES)


@pytest.mark.parametrize("name", LIKE_AN_OP)
def test_parameters_are_the_fields_of_the_op(name: str) -> None:
    op = OPS[name]
    fields = {field.name for field in (*op.OPERANDS, *op.ATTRIBUTES)} - {"options"}
    more = {"alloc": {"shape", "dtype", "shared", "slots"}, "view": {"shape"}}
    more["tcgen05_mma"] = {"barrier", "slot", "commit"}
    with_layout = {"buffer_load": {"layout"}, "convert_layout": {"layout"}}
    assert set(parameters(name)) == fields | more.get(name, with_layout.get(name, set()))


@pytest.mark.parametrize("name", LIKE_AN_OP)
def test_defaults_are_the_ops(name: str) -> None:
    for field in OPS[name].ATTRIBUTES:
        if field.name in parameters(name) and field.default not in (None, {}):
            assert parameters(name)[field.name].default == field.default


@pytest.mark.parametrize("name", STUBS)
def test_a_function_is_implemented_and_documented(name: str) -> None:
    assert gpu_tile.Op.ALL
    assert STUBS[name] in RULES.builtins
    assert STUBS[name].__doc__
    with pytest.raises(TypeError, match=rf"gpu\.{name} can only be called inside"):
        STUBS[name]()


@pytest.mark.parametrize("name", gpu.__all__)
def test_every_name_is_in_the_readme(name: str) -> None:
    text = (Path(gpu.__file__).parent / "README.md").read_text()
    assert re.search(rf"\b{name}\b", text)


def test_methods_are_functions_of_gpu() -> None:
    for methods in METHODS_OF.values():
        assert set(methods.values()) <= set(STUBS.values())


MMA = "mma.m16n8k16.f32.bf16.bf16"
SCALED = "mma.mx.m16n8k32.f32.e4m3.e5m2"


def joined(text: str) -> Layout:
    """A layout from its text, in the one form that `gpu` gives."""
    return normalize(parse_layout(text))


def test_fragments_are_those_of_the_instruction() -> None:
    acc = gpu.accumulator(MMA, (128, 128), 2, 2)
    assert acc == joined("T(4,8,2,2):(2@1,1@0,64@0,64@1) V(2,2,4,8):(1@1,8@0,16@0,8@1)")
    lhs, rhs = gpu.lhs_fragments(MMA, acc), gpu.rhs_fragments(MMA, acc)
    assert lhs == joined("T(4,8,2,2):(2@1,1@0,64@0,0) V(2,2,2,4):(1@1,8@0,8@1,16@0)")
    assert rhs == joined("T(4,8,2,2):(2@0,1@1,0,64@1) V(2,2,8):(1@0,8@0,8@1)")
    narrow = gpu.accumulator(SCALED, (32, 32))
    assert gpu.lhs_scales(SCALED, narrow, 4) == joined("T(4,8):(8@0,1@0) V(4):(1@1)")
    assert gpu.rhs_scales(SCALED, narrow, 2) == joined("T(4,8):(8@1,1@1) V(2):(1@0)")
    wide = gpu.accumulator("wgmma.m64n256k16.f32.bf16.bf16", (128, 256), 2)
    assert wide == joined("T(4,8,8):(2@1,1@0,16@0) V(2,2,32):(1@1,8@0,8@1)")


@pytest.mark.parametrize(
    ("shape", "warps", "width", "contiguous"),
    [((128, 64), 4, 8, -1), ((64, 128), 4, 4, 0), ((8, 8), 4, 1, -1), ((1024,), 2, 4, 0)],
)
def test_blocked_holds_every_element(
    shape: tuple[int, ...], warps: int, width: int, contiguous: int
) -> None:
    layout = gpu.blocked(shape, warps, width, contiguous)
    assert layout.num_threads == 32 * warps
    assert layout.is_exact(shape)
    assert width == 1 or layout.values[0].size >= width


def test_blocked_neighbours_are_neighbouring_threads() -> None:
    expected = "T(8,16):(8@1,1@0) V(8,8):(1@1,16@0)"
    assert gpu.blocked((128, 64), 4, 8) == parse_layout(expected)


def test_sliced_is_what_a_reduction_leaves() -> None:
    layout = parse_layout("T(8,16):(8@1,1@0) V(8,8):(1@1,16@0)")
    assert gpu.sliced(layout, -1) == layout.slice(1)


@pytest.mark.parametrize("contiguous", [0, 1])
@pytest.mark.parametrize("shape", [(128, 64), (64, 256), (64, 32), (16, 16), (96, 192)])
def test_swizzled_is_what_the_passes_choose(shape: tuple[int, int], contiguous: int) -> None:
    """The wgmma operands of the passes and of the author lie alike."""

    with make_context():
        expected = operand_layout(shape, ir.BF16Type.get(), contiguous)
    assert gpu.swizzled(shape, tl.bf16, contiguous) == expected


def test_padded_rows() -> None:
    assert gpu.padded((64, 32), 4) == parse_shared_layout("(64,32):(36,1)")
    assert gpu.padded((4, 8, 16)) == parse_shared_layout("(4,8,16):(128,16,1)")
