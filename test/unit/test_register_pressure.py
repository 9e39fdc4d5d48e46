"""How many registers the compiler counts: what takes none of its own, and verdicts at the boundary
that ptxas shares (`test/bench/register_verdicts.py` compares many)."""

from __future__ import annotations

import warnings

import pytest
from mlir import ir

from tilec.compile.assembler import assemble
from tilec.dialects.context import make_context
from tilec.examples.tile_scales import tile_scaled_matmul
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import PerformanceWarning
from tilec.ops.attention_kernel import attention
from tilec.ops.matmul_kernel import product
from tilec.passes.analysis.register_pressure import most_live_registers

TILE = '#gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">'
ROW = '#gpu_tile.layout<"T(4,8,4):(0,1@0,16@0) V(2):(8@0)">'
PART = '#gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,2):(1@1,8@0,8@1)">'
RIGHT = '#gpu_tile.layout<"T(4,8,4):(2@0,1@1,0) V(2,2,8):(1@0,8@0,8@1)">'
LARGE = '#gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,32):(1@1,8@0,8@1)">'
LANE = '#gpu_tile.layout<"T(128):(1@0) V(64):(1@1)">'
COLUMNS = '#gpu_tile.layout<"T(128):(0) V(64):(1@0)">'
ALIASES = {
    "!y": f"tensor<128x64xf32, {LANE}>",
    "!c": f"tensor<64xf32, {COLUMNS}>",
    "!z": '!gpu_tile.buffer<tensor<64xf32>, #gpu_tile.shared<"(64):(1)">>',
    "!l": f"tensor<64x256xf32, {LARGE}>",
    "!f": f"tensor<64x64xf32, {TILE}>",
    "!h": f"tensor<64x64xbf16, {TILE}>",
    "!i": f"tensor<64x64xindex, {TILE}>",
    "!b": f"tensor<64x64xi1, {TILE}>",
    "!r": f"tensor<64xf32, {ROW}>",
    "!n": f"tensor<64xindex, {ROW}>",
    "!p": f"tensor<64x16xbf16, {PART}>",
    "!q": f"tensor<16x64xbf16, {RIGHT}>",
    "!s": '!gpu_tile.buffer<tensor<64x16xbf16>, #gpu_tile.shared<"(64,16):(16,1)">>',
    "!t": '!gpu_tile.buffer<tensor<16x64xbf16>, #gpu_tile.shared<"(16,64):(64,1)">>',
}
MULTIPLY = (
    '"gpu_tile.mma"({}, {}, {}) {{instruction = "mma.m16n8k16.f32.bf16.bf16"}} : (!p, !q, !f) -> !f'
)
NETWORK = "\n".join(
    f"%v{n + 1} = arith.minimumf %v{n}, %w{n} : !p\n%w{n + 1} = arith.maximumf %v{n}, %w{n} : !p"
    for n in range(400)
)
"""What is compared over and over: 2^400 ways from its end to its beginning."""
CASES = {
    # The lower of a pair beside both.
    "a sorting network": (
        4 + 4 + 4,
        "%s: !s",
        f"""%v0 = "gpu_tile.buffer_load"(%s) : (!s) -> !p
        %w0 = arith.negf %v0 : !p
        {NETWORK}""",
        "%v400 : !p",
    ),
    "sums of two tiles": (32 + 32, "%x: !f, %y: !f", "%z = arith.addf %x, %y : !f", "%z : !f"),
    "a row beside a tile": (
        32 + 2,
        "%x: !f, %r: !r",
        """%w = "tile.broadcast"(%r) {dims = array<i32: 0>} : (!r) -> !f
        %z = arith.subf %x, %w : !f""",
        "%z : !f",
    ),
    # The row stays until the tile that repeats it is read.
    "a row that waits": (
        32 + 32 + 2,
        "%x: !f, %y: !f, %r: !r",
        """%w = "tile.broadcast"(%r) {dims = array<i32: 0>} : (!r) -> !f
        %e = arith.mulf %x, %y : !f
        %z = arith.subf %e, %w : !f""",
        "%z : !f",
    ),
    # `%e` of elements of `%x`, which are there until the end.
    "a tile that comes as it is added": (
        32 + 32 + 2,
        "%x: !f, %y: !f, %r: !r",
        """%w = "tile.broadcast"(%r) {dims = array<i32: 0>} : (!r) -> !f
        %e = arith.mulf %x, %w : !f
        %n = arith.negf %e : !f
        %s = arith.addf %n, %y : !f
        %z = arith.addf %s, %x : !f""",
        "%z : !f",
    ),
    "halves that become words where they are read": (
        32 + 16,
        "%x: !f, %h: !h",
        """%w = arith.extf %h : !h to !f
        %s = arith.addf %x, %w : !f
        %z = arith.mulf %s, %w : !f""",
        "%z : !f",
    ),
    # Each thread has one row, and an element of the other for each of its own.
    "a row that comes as it is added": (
        64 + 32,
        "%x: !y, %s: !z",
        """%r = "gpu_tile.buffer_load"(%s) : (!z) -> !c
        %w = "tile.broadcast"(%r) {dims = array<i32: 1>} : (!c) -> !y
        %z = arith.addf %x, %w : !y""",
        "%z : !y",
    ),
    "distances of columns from rows": (
        32 + 2,
        "%x: !f, %n: !n",
        """%at = "tile.iota"() {axis = 1 : i32} : () -> !i
        %rows = "tile.broadcast"(%n) {dims = array<i32: 0>} : (!n) -> !i
        %far = arith.subi %rows, %at : !i
        %wide = arith.index_cast %far : !i to tensor<64x64xi64, LAYOUT>
        %d = arith.sitofp %wide : tensor<64x64xi64, LAYOUT> to !f
        %z = arith.addf %x, %d : !f""",
        "%z : !f",
    ),
    # Computed piece by piece: `%e` is never whole.
    "a large tile and what it becomes": (
        128,
        "%x: !l",
        """%e = math.exp %x : !l
        %z = arith.divf %x, %e : !l""",
        "%z : !l",
    ),
    "fragments where a product reads them": (
        32 + 4 + 16,
        "%x: !f, %s: !s, %t: !t",
        f"""%a = "gpu_tile.buffer_load"(%s) : (!s) -> !p
        %b = "gpu_tile.buffer_load"(%t) : (!t) -> !q
        %c = "gpu_tile.buffer_load"(%s) : (!s) -> !p
        %d = "gpu_tile.buffer_load"(%t) : (!t) -> !q
        %y = {MULTIPLY.format("%a", "%b", "%x")}
        %z = {MULTIPLY.format("%c", "%d", "%y")}""",
        "%z : !f",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_count(name: str) -> None:
    expected, arguments, body, result = CASES[name]
    kind = result.split(" : ")[1]
    attributes = "{tile.kernel, tile.index_bits = 32 : i32}"
    head = f"func.func @f({arguments}) -> {kind} attributes {attributes}"
    text = f"{head} {{ {body}\n return {result} }}"
    text = text.replace("LAYOUT", TILE)
    declared = "\n".join(f"{alias} = {of}" for alias, of in ALIASES.items())
    with make_context() as context:
        module = ir.Module.parse(f"{declared}\n{text}", context)
        assert most_live_registers(module.body.operations[0].regions[0].blocks[0]) == expected


@pytest.mark.parametrize(("head", "spills"), [(256, True), (192, False)])
def test_heads_of_attention(head: int, spills: bool) -> None:
    specs = [f"{name}:bf16[?,?,?,?:8;?:8,?:8,?:8,1]" for name in "qkvo"]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PerformanceWarning)
        tiles = {"D": head, "BM": 128, "BN": 128}
        attention.compile([*specs, "scale:f32"], tiles, target="sm_90a")
    assert any("for a thread, which has 248" in str(w.message) for w in said) is spills


def test_a_residual_comes_as_it_is_added() -> None:
    """Its 64 registers, and 128 once it is wide, are not held beside 128 of sums."""
    row = "[?,?:8;?:8,1]"
    specs = [*(f"{name}:bf16{row}" for name in "abc"), "bias:i32", "row_scale:i32"]
    specs += ["column_scale:i32", "scale:i32", "factor:f64", f"residual:bf16{row}"]
    tiles = {"BM": 128, "BN": 256, "BK": 64, "PARTS": ("residual",)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerformanceWarning)
        product.compile(specs, tiles, target="sm_90a")


@pytest.mark.parametrize(("columns", "bias"), [(160, "f32"), (192, "f32"), (192, "bf16")])
def test_a_bias_comes_as_it_is_added(columns: int, bias: str) -> None:
    """Beside 192 of a sum in tensor memory there is no room for 192 of a row that all threads
    have: ptxas takes 240 registers, and spills none."""
    row = "[?,?:8;?:8,1]"
    specs = [*(f"{name}:bf16{row}" for name in "ab"), "c:bf16[?,?]", f"bias:{bias}[?]"]
    specs += ["row_scale:i32", "column_scale:i32", "scale:i32", "factor:f64", "residual:i32"]
    tiles = {"BM": 128, "BN": columns, "BK": 64, "PARTS": ("bias",)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerformanceWarning)
        warnings.filterwarnings("ignore", ".*array: ", PerformanceWarning)
        kernel = product.demanding(cluster=(2, 1)).compile(specs, tiles, target="sm_100a")
    assert assemble(kernel.ptx, find_target("sm_100a")).spills == 0


def test_tensor_memory_is_read_at_once() -> None:
    """ptxas spills here: tcgen05.ld has all its registers when it is waited for."""
    names = zip(("a", "a_scales", "b", "b_scales", "c"), "8f8fb", strict=True)
    kinds = {"8": "f8E4M3FN[?,?:16;?:16,1]", "f": "f32[?,?]", "b": "bf16[?,?:8;?:8,1]"}
    specs = [f"{name}:{kinds[letter]}" for name, letter in names]
    with pytest.warns(PerformanceWarning, match="role 'compute', which has 248"):
        tile_scaled_matmul.compile(specs, {"BM": 128, "BN": 128}, target="sm_100a")
