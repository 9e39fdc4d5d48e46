"""Wrong explicit kernels: one error, at the right place, with the right words. `@@` marks it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from frontend_cases import PRELUDE_LINES, build

from tilec.messages.diagnostics import CompileError

SPECS = ("x:bf16[?,?:8;?:8,1]", "v:f32[?]", "y:f32[?,?]", "n:i32", "f:f32")
HEADER = """\
MMA = "mma.m16n8k16.f32.bf16.bf16"
WGMMA = "wgmma.m64n64k16.f32.bf16.bf16"

@tilec.kernel(num_warps=4)
def k(x: tl.array, v: tl.array, y: tl.array, n: tl.i32, f: tl.f32):
    L = gpu.blocked((64, 64), warps=4, width=4)
    L2 = gpu.blocked((64, 64), warps=4, width=1)
    V = gpu.layout("T(128):(1@0) V():()")
    B = gpu.alloc((64, 64), tl.f32, gpu.padded((64, 64)))
    H = gpu.alloc((64, 64), tl.bf16, gpu.swizzled((64, 64), tl.bf16), slots=2)
    BAR = gpu.barrier_init(count=1, slots=2)
    MAP = gpu.make_tensor_map(x, (64, 64))
    T = gpu.load(y, (0, 0), (64, 64), L)
    U = gpu.load(y, (0, 0), (64, 64), L2)
    ACC = gpu.zeros((64, 64), tl.f32, gpu.accumulator(WGMMA, (64, 64)))
"""

CASES: dict[str, tuple[str, str]] = {
    # layouts
    "layout_text": ("z = @@gpu.layout('T(32)')", "layout: malformed layout 'T(32)'"),
    "layout_threads_power": (
        "z = @@gpu.layout('T(48):(1@0) V():()')",
        "thread mode of size 48 is no power of two",
    ),
    "layout_of_runtime_value": ("z = gpu.layout(@@f)", "text must be a compile-time constant"),
    "shared_text": ("z = @@gpu.shared('64')", "shared: malformed shared layout '64'"),
    "unknown_instruction": (
        "z = @@gpu.accumulator('mma.foo', (64, 64))",
        "unknown instruction 'mma.foo'",
    ),
    "accumulator_not_whole": (
        "z = @@gpu.accumulator(MMA, (24, 64), along_m=2)",
        "24 along m is not 2 times whole 16s of mma.m16n8k16.f32.bf16.bf16",
    ),
    "fragments_of_fma": (
        "z = @@gpu.lhs_fragments('fma.f32', L)",
        "fma.f32 has no fragments",
    ),
    "scales_of_others": (
        "z = @@gpu.lhs_scales(MMA, gpu.accumulator(MMA, (64, 64), 4), 4)",
        "mma.m16n8k16.f32.bf16.bf16 has no scales",
    ),
    "no_scales": (
        "z = @@gpu.rhs_scales('mma.nv.m16n8k64.f32.e2m1.e2m1', L, 0)",
        "expected a shape of 1 to",
    ),
    "fragments_depth": (
        "z = @@gpu.lhs_fragments(MMA, gpu.accumulator(MMA, (64, 64), 4), 24)",
        "k must be a multiple of 16",
    ),
    "rhs_of_wgmma": (
        "z = @@gpu.rhs_fragments(WGMMA, L)",
        "reads its rhs from shared memory",
    ),
    "blocked_width": (
        "z = @@gpu.blocked((64, 63), 4, 4)",
        "63 elements are not whole vectors of 4",
    ),
    "blocked_rank": ("z = @@gpu.blocked(64, 4, 4)", "blocked: "),
    "swizzled_rows": (
        "z = @@gpu.swizzled((64, 20), tl.bf16)",
        "rows of 40 bytes are not whole panels of 32, 64 or 128 bytes",
    ),
    "swizzled_span": (
        "z = @@gpu.swizzled((64, 16), tl.bf16, span=128)",
        "rows of 32 bytes are not whole panels of 128 bytes",
    ),
    "swizzled_rank": ("z = @@gpu.swizzled((4, 64, 64), tl.bf16)", "has two dimensions, found 3"),
    "too_few_threads": (
        "z = gpu.load(y, (0, 0), (64, 64), @@gpu.blocked((64, 64), 2))",
        "is for 64 threads, the kernel has 128",
    ),
    "layout_too_small": (
        "z = gpu.zeros((64, 128), tl.f32, @@L)",
        "leaves elements of the tile (64, 128) to nobody",
    ),
    "layout_rank": ("z = gpu.zeros(4096, tl.f32, @@L)", "has 2 dimensions, the tile (4096,) has 1"),
    "layout_expected": ("z = gpu.zeros((64, 64), tl.f32, @@'T')", "expected a register layout"),
    "shared_layout_as_layout": (
        "z = gpu.zeros((64, 64), tl.f32, @@gpu.padded((64, 64)))",
        "expected a register layout",
    ),
    "different_layouts": ("z = @@T + U", "the tiles have different layouts"),
    "different_layouts_where": ("z = @@tl.where(T > 0, T, U)", "the tiles have different layouts"),
    "no_layout_left": (
        "z = @@tl.load(y, (0, 0), (64, 64))\ntl.store(y, (0, 0), z)",
        "this tile (64, 64) has no layout",
    ),
    "load_without_layout_in_sum": (
        "z = @@T + tl.load(y, (0, 0), (64, 64))",
        "the tile (64, 64) has no layout: it is made by 'tile.load'",
    ),
    "dot_without_layouts": (
        "z = @@tl.dot(T, T)",
        "chooses its instructions itself",
    ),
    "broadcast_of_wrong_vector": (
        "z = @@gpu.load(v, 0, 128, V)[:, None] + gpu.zeros((128, 4), tl.f32, "
        "gpu.blocked((128, 4), 4))",
        "does not lie so that it can be repeated to (128, 4)",
    ),
    "carried_without_layout": (
        "z = tl.zeros((64, 64), tl.f32)\nfor i in range(n):\n    z = @@z + T\n"
        "tl.store(y, (0, 0), z)",
        "the tile (64, 64) has no layout: it comes from around a loop",
    ),
    "convert_number": (
        "z = gpu.convert_layout(@@1, L)",
        "src must be a tile, found the constant 1",
    ),
    "carried_in_two_layouts": (
        "z = T\nfor i in range(n):\n    @@z = U\ntl.store(y, (0, 0), z)",
        "'z' changes in the loop",
    ),
    # buffers
    "alloc_layout_shape": (
        "z = gpu.alloc((64, 32), tl.f32, @@gpu.padded((32, 64)))",
        "the layout is for 32x64, the buffer is 64x32",
    ),
    "alloc_layout_type": (
        "z = gpu.alloc((64, 32), tl.f32, @@L)",
        "shared must be a shared-memory layout",
    ),
    "alloc_slots": (
        "z = gpu.alloc((4, 4), tl.f32, gpu.padded((4, 4)), slots=@@0)",
        "slots must be a positive constant, found the constant 0",
    ),
    "alloc_most_slots": (
        "z = gpu.alloc((4, 4), tl.f32, gpu.padded((4, 4)), slots=@@1 << 90)",
        "slots must be at most 1048576, found 1237940039285380274899124224",
    ),
    "alloc_dtype": ("z = gpu.alloc((4, 4), @@4, gpu.padded((4, 4)))", "dtype must be a dtype"),
    "slot_of_plain_buffer": ("z = @@B.slot(0)", "expected a ring of buffers"),
    "slot_float": ("z = H.slot(@@f)", "index must be an integer scalar, found a scalar of f32"),
    "slot_bool": ("z = H.slot(@@True)", "index must be an integer scalar"),
    "slot_of_tile": ("z = gpu.slot(@@T, 0)", "src must be a buffer (gpu.alloc), found a tile"),
    "view_past_end": (
        "z = B.view(@@(0, 48), (64, 32))",
        "the view 64x32 at 48 reaches past the buffer 64x64",
    ),
    "view_too_large": ("z = @@B.view((n, 0), (128, 64))", "does not fit in 64x64"),
    "view_offsets": (
        "z = @@B.view((0,), (64, 64))",
        "expected one offset per dimension (2), found 1",
    ),
    "load_ring": ("z = @@H.load(L)", "src is a ring of 2 buffers; take one with .slot(i)"),
    "wgmma_ring": (
        "z = gpu.wgmma(@@H, H.slot(1), gpu.wgmma_fence(ACC), WGMMA)",
        "lhs is a ring of 2 buffers",
    ),
    "reshape": ("z = @@tl.reshape(T, (32, 128))\ntl.store(y, (0, 0), z)", "has no layout"),
    "load_no_layout": ("z = B.load(@@(4, 4))", "expected a register layout"),
    "store_shape": (
        "@@B.store(gpu.zeros((64, 32), tl.f32, gpu.blocked((64, 32), 4)))",
        "tile is 64x32, buffer 64x64",
    ),
    "store_dtype": ("@@B.store(T.to(tl.bf16))", "element types differ: tile bf16, buffer f32"),
    "store_without_layout": (
        "B.store(@@tl.zeros((64, 64), tl.f32))",
        "value has no layout: a tile (64, 64) of f32",
    ),
    "store_number": ("B.store(@@0.0)", "value must be a tile, found the constant 0.0"),
    "unknown_method": ("@@B.fill(0)", "has no 'fill'"),
    "misspelt_method": ("@@B.laod(L)", "help: did you mean 'load'?"),
    "misspelt_function": ("@@gpu.cp_asinc(x, B, (0, 0))", "help: did you mean 'cp_async'?"),
    "unknown_keyword": ("@@gpu.sync(warp=4)", "sync(): got an unexpected keyword argument 'warp'"),
    # copies
    "copy_to_ring": (
        "gpu.cp_async(x, @@H, (0, 0))",
        "dst is a ring of 2 buffers",
    ),
    "copy_dtype": (
        "@@gpu.cp_async(x, B, (0, 0))",
        "element types differ: array bf16, buffer f32",
    ),
    "copy_from_tile": ("gpu.cp_async(@@T, H.slot(0), (0, 0))", "must be an array parameter"),
    "copy_offsets": (
        "@@gpu.cp_async(x, H.slot(0), 0)",
        "expected one offset per array dimension (2), found 1",
    ),
    "copy_bytes": (
        "@@gpu.cp_async(x, H.slot(0), (0, 0), bytes=12)",
        "bytes must be 4, 8 or 16 and whole elements, found 12",
    ),
    "copy_cache": (
        "gpu.cp_async(x, H.slot(0), (0, 0), cache=@@'l2')",
        "cache must be one of 'ca', 'cg', found the constant 'l2'",
    ),
    "copy_cg_bytes": (
        "@@gpu.cp_async(x, H.slot(0), (0, 0), bytes=8, cache='cg')",
        "cache 'cg' copies 16 bytes, found 8",
    ),
    "copy_mask_tile": (
        "gpu.cp_async(x, H.slot(0), (0, 0), mask=@@T > 0)",
        "a condition must be a scalar",
    ),
    "wait_negative": ("@@gpu.cp_async_wait(-1)", "pending must not be negative, found -1"),
    "wait_runtime": ("gpu.cp_async_wait(@@n)", "pending must be an i32 integer, found a scalar"),
    "map_swizzle": (
        "z = gpu.make_tensor_map(x, (64, 64), swizzle=@@'256B')",
        "swizzle must be one of",
    ),
    "map_box": ("z = @@gpu.make_tensor_map(x, (512, 64))", "box sizes must be 1 to 256"),
    "map_of_buffer": ("z = gpu.make_tensor_map(@@B, (64, 64))", "must be an array parameter"),
    "tma_not_boxes": (
        "@@gpu.tma_load(MAP, B, BAR, 0, (0, 0))",
        "element types differ: array bf16, buffer f32",
    ),
    "tma_ring": (
        "gpu.tma_load(MAP, @@H, BAR, 0, (0, 0))",
        "dst is a ring of 2 buffers",
    ),
    "tma_barrier": (
        "gpu.tma_load(MAP, H.slot(0), @@H, 0, (0, 0))",
        "barrier must be a ring of barriers (gpu.barrier_init) or one of gpu.make_ring, found a "
        "buffer (2, 64, 64) of bf16",
    ),
    "tma_map": (
        "gpu.tma_load(@@x, H.slot(0), BAR, 0, (0, 0))",
        "map must be a tensor map (gpu.make_tensor_map), found the 2-dimensional array 'x'",
    ),
    "tma_coordinates": (
        "@@gpu.tma_load(MAP, H.slot(0), BAR, 0, (0, 0, 0))",
        "expected one coordinate per array dimension (2), found 3",
    ),
    "tma_combine": (
        "gpu.tma_store(H.slot(0), MAP, (0, 0), combine=@@'xor')",
        "combine must be one of",
    ),
    # barriers and roles
    "sync_number": ("@@gpu.sync(barrier=16)", "barrier must be 0 to 15, found 16"),
    "sync_mode": ("gpu.sync(mode=@@'wait')", "mode must be one of 'sync', 'arrive', found"),
    "sync_in_role": (
        "with gpu.role('a', 0, 2):\n    @@gpu.sync()",
        "barrier 0 is the whole CTA's; a role has barriers 1 to 15",
    ),
    "fence_kind": ("gpu.fence(@@'shared')", "kind must be one of 'async_shared'"),
    "barrier_count": ("z = @@gpu.barrier_init(count=0)", "count must be 1 to"),
    "barrier_bytes": ("gpu.barrier_expect(BAR, 0, @@n)", "bytes must be an i32 integer"),
    "barrier_per": ("BAR.arrive(0, @@'block')", "per must be one of 'thread', 'warp', 'warpgroup'"),
    "barrier_parity": ("BAR.wait(0, @@T > 0)", "a condition must be a scalar"),
    "role_warps": (
        "with gpu.role('a', first_warp=2, warps=@@4):\n    pass",
        "warps 2 to 5 are not all in the kernel, which has 4",
    ),
    "role_registers": (
        "with @@gpu.role('a', 0, 4, registers=30):\n    pass",
        "registers must be a multiple of 8 from 24 to 256, found 30",
    ),
    "role_registers_of_two_warps": (
        "with @@gpu.role('a', 0, 2, registers=40):\n    pass",
        "registers are given to whole warpgroups of 4 warps",
    ),
    "role_in_role": (
        "with gpu.role('a', 0, 4):\n    @@with gpu.role('b', 0, 2):\n        pass",
        "a role stands inside another",
    ),
    "role_in_loop": (
        "for i in range(n):\n    @@with gpu.role('b', 0, 2):\n        pass",
        "a role stands outside loops and branches",
    ),
    "role_in_branch": (
        "if n > 0:\n    @@with gpu.role('b', 0, 2):\n        pass",
        "a role stands outside loops and branches",
    ),
    "role_layout": (
        "with gpu.role('a', 0, 2):\n    z = @@T + 1.0",
        "is for 128 threads, the role has 64",
    ),
    "value_leaves_role": (
        "with gpu.role('a', 0, 2):\n    z = n + 1\nw = @@z + 1",
        "'z' has no value here",
    ),
    "return_in_role": (
        "@@with gpu.role('a', 0, 2):\n    return",
        "'return' does not lead out of a role",
    ),
    "role_as": ("@@with gpu.role('a', 0, 2) as r:\n    pass", "is for one role"),
    "role_without_with": ("z = gpu.role('a', 0, 2)\nw = @@z + 1", "does not apply to the role 'a'"),
    # tensor cores
    "mma_layout": ("z = @@gpu.mma(T.to(tl.bf16), U.to(tl.bf16), T, MMA)", "lhs: "),
    "mma_types": ("z = @@gpu.mma(T, T, T, MMA)", "multiplies bf16, bf16 and f32, found f32"),
    "mma_shapes": (
        "z = @@gpu.mma(gpu.zeros((64, 32), tl.bf16, gpu.blocked((64, 32), 4)), T, T, MMA)",
        "shapes do not multiply: 64x32 by 64x64 into 64x64",
    ),
    "mma_instruction": ("z = @@gpu.mma(T, T, T, 'mma.foo')", "unknown instruction 'mma.foo'"),
    "mma_warpgroup": (
        "z = @@gpu.wgmma(H.slot(0), H.slot(1), gpu.wgmma_fence(ACC), MMA)",
        "is no instruction of a warpgroup",
    ),
    "mma_number": ("z = gpu.mma(T, T, @@0, MMA)", "acc must be a tile, found the constant 0"),
    "wgmma_unfenced": (
        "z = gpu.wgmma(H.slot(0), H.slot(1), @@ACC, WGMMA)",
        "acc must be a pending accumulator (gpu.wgmma_fence), found a tile",
    ),
    "pending_used": (
        "z = gpu.wgmma(H.slot(0), H.slot(1), gpu.wgmma_fence(ACC), WGMMA)\nw = @@z + 1.0",
        "a pending tile (64, 64) of f32",
    ),
    "pending_stored": (
        "z = gpu.wgmma_fence(ACC)\ntl.store(y, (0, 0), @@z)",
        "a pending tile (64, 64) of f32",
    ),
    "wait_for_tile": (
        "z = gpu.wgmma_wait(@@ACC)",
        "acc must be a pending accumulator (gpu.wgmma), found a tile",
    ),
    "pending_twice": (
        "p = gpu.wgmma_fence(ACC)\nz = gpu.wgmma(H.slot(0), H.slot(1), p, WGMMA)\n"
        "w = gpu.wgmma(H.slot(0), H.slot(1), @@p, WGMMA)",
        "acc is used a second time",
    ),
    "slot_past_ring": ("z = H.slot(@@2)", "slot 2 of a ring of 2"),
    "negative_slot": ("z = H.slot(@@-1)", "slot -1 of a ring of 2"),
    "barrier_slot": ("BAR.wait(@@2, True)", "slot 2 of a ring of 2"),
    "tma_slot": ("gpu.tma_load(MAP, H.slot(0), BAR, @@5, (0, 0))", "slot 5 of a ring of 2"),
    "sync_more_than_all": (
        "gpu.sync(barrier=1, warps=@@8)",
        "8 warps of a kernel that has 4",
    ),
    "branch_without_layout": (
        "z = T\n@@if n > 0:\n    z = tl.load(y, (0, 0), (64, 64))\ntl.store(y, (0, 0), z)",
        "has no layout",
    ),
    "gather_layouts": (
        "i = gpu.convert_layout(tl.arange(128), V)\n"
        "j = gpu.convert_layout(tl.arange(128), gpu.layout('T(4,32):(32@0,1@0) V():()'))\n"
        "z = @@tl.gather(y, (i, j))",
        "the tiles have different layouts",
    ),
    "wait_pending": (
        "z = @@gpu.wgmma_wait(gpu.wgmma_fence(ACC), 8)",
        "pending must be 0 to 7, found 8",
    ),
    "buffer_carried": (
        "z = H.slot(0)\nfor i in range(n):\n    w = z.load(gpu.blocked((64, 64), 4))\n"
        "    @@z = H.slot(1)",
        "'z' changes in the loop",
    ),
    "in_combine": (
        "def_ = tl.reduce(T, 0, lambda a, b: @@gpu.sync())",
        "'gpu.sync' is not possible in a combine function",
    ),
    "ring_slots": ("z = @@gpu.ring_position(n, 0)", "slots must be positive, found 0"),
    "order": ("z = gpu.tile_order(n, n, n, @@'spiral')", "order must be one of"),
    "buffer_condition": ("if @@B:\n    pass", "a condition must be a scalar, found a buffer"),
    "buffer_sum": ("z = @@B + 1", "'+' does not apply to a buffer (64, 64) of f32"),
    "buffer_index": ("z = @@B[0]", "a buffer (64, 64) of f32 cannot be indexed"),
}


def marked(body: str) -> tuple[str, int, int]:
    """The module's text without the mark, and the mark's line and column."""
    text = HEADER + textwrap.indent(body, "    ")
    before, _, after = text.partition("@@")
    line = PRELUDE_LINES + before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return before + after, line, column


@pytest.mark.parametrize("name", CASES)
def test_error(name: str, tmp_path: Path) -> None:
    body, message = CASES[name]
    text, line, column = marked(body)
    with pytest.raises(CompileError) as caught:
        build(text, tmp_path, SPECS)
    error = caught.value
    assert message in str(error)
    assert len(error.errors) == 1
    assert error.location is not None
    assert (error.location.line, error.location.column) == (line, column), str(error)


def test_an_explicit_kernel_says_its_number_of_warps(tmp_path: Path) -> None:
    text = """
        @tilec.kernel
        def k(y: tl.array):
            z = gpu.zeros((64, 64), tl.f32, gpu.blocked((64, 64), 4))
    """
    with pytest.raises(
        CompileError, match="an explicit kernel says how many warps it has"
    ) as found:
        build(text, tmp_path, ["y:f32[?,?]"])
    assert found.value.location is not None
    assert found.value.location.line == PRELUDE_LINES + 4


@pytest.mark.parametrize("warps", ["0", "33", "True", "4.0", "(1, 2)", "'4'"])
def test_num_warps_is_a_number_of_warps(warps: str, tmp_path: Path) -> None:
    text = f"""
        @tilec.kernel(num_warps={warps})
        def k(y: tl.array):
            gpu.sync()
    """
    with pytest.raises(CompileError, match="num_warps must be a number from 1 to 32, found"):
        build(text, tmp_path, ["y:f32[?,?]"])
