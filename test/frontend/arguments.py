# ruff: noqa: E501
# Arguments: names, facts, static strides and sizes; scalars; constants, grid and demands.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


@tilec.kernel(grid=lambda a, n, B: (tl.cdiv(a.shape[0], B) * 2, min(n, 7), a.shape[1]), num_warps=8)
def arguments(
    a: tl.array, v: tl.array, n: tl.i64, x, flag: bool, B: tl.const = 32, D: tl.const = tl.f16
):
    tl.store(v, n, tl.full((), x, tl.f32))


# CHECK:      func.func @arguments(
# CHECK-SAME: memref<?x128xbf16, strided<[?, 1]>> {tile.facts = {align = 16 : i32, sizes = array<i32: 8, 128>, strides = array<i32: 8, 1>}, tile.name = "a"}
# CHECK-SAME: memref<?xf32, strided<[?]>> {tile.facts = {align = 4 : i32, sizes = array<i32: 1>, strides = array<i32: 1>}, tile.name = "v"}
# CHECK-SAME: i64 {tile.name = "n"}
# CHECK-SAME: f32 {tile.name = "x"}
# CHECK-SAME: i1 {tile.name = "flag"}
# CHECK-SAME: tile.constants = {B = 64 : i64, D = "f16"}
# CHECK-SAME: tile.grid = ["(cdiv(a.shape[0], 64) * 2)", "min(n, 7)", "128"]
# CHECK-SAME: tile.index_bits = 64 : i32, tile.kernel, tile.num_warps = 8 : i32
print(
    arguments.source_module(
        ["a:bf16[?:8,128;?:8,1]", "v:f32[?;?]@1", "n:i64", "x:f32", "flag:i1"],
        {"B": 64},
        index_bits=64,
    )
)
