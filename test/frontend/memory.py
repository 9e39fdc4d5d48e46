# ruff: noqa: E501
# Indexed access and atomics: masks, fill values and indices broadcast to one shape and type.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


# CHECK-LABEL: func.func @indexed(
@tilec.kernel
def indexed(x: tl.array, q: tl.array):
    rows, columns = tl.arange(4)[:, None], tl.program_id(0) + tl.arange(8)
    # CHECK: "tile.gather"(%arg0, %{{.*}}) {options = {cache = "evict_last"}} : (memref<?x?xf32, strided<[?, 1]>>, tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xindex>, tensor<4x8xindex>) -> tensor<4x8xf32>
    t = tl.gather(x, (rows, columns), mask=columns < 5, other=-1, cache="evict_last")
    # CHECK: "tile.scatter"({{.*}}) {options = {}} : (tensor<4x8xf32>, memref<?x?xf32, strided<[?, 1]>>, tensor<4x8xi1>, tensor<4x8xi32>, tensor<4x8xi32>) -> ()
    tl.scatter(x, (rows, tl.arange(8)), t)
    # CHECK: "tile.atomic_rmw"({{.*}}) {kind = "addf", options = {}, order = "relaxed", scope = "gpu"} : (tensor<4x8xf32>
    tl.atomic_add(x, (rows, columns), t)
    # CHECK: "tile.atomic_rmw"({{.*}}) {kind = "maxs", options = {}, order = "acq_rel", scope = "sys"} : (tensor<i32>, memref<?xi32, strided<[1]>>, tensor<i1>, tensor<index>) -> tensor<i32>
    tl.atomic_max(q, tl.program_id(0), 3, order="acq_rel", scope="sys")
    # CHECK: "tile.atomic_cas"({{.*}}) {order = "acquire", scope = "cta"} : (tensor<8xi32>, tensor<8xi32>, memref<?xi32, strided<[1]>>, tensor<8xi1>, tensor<8xi32>) -> tensor<8xi32>
    tl.atomic_cas(q, tl.arange(8), 0, 1, order="acquire", scope="cta")
    # CHECK: "tile.fence"() {order = "seq_cst", scope = "sys"}
    tl.fence("seq_cst", "sys")


print(indexed.source_module(["x:f32[?,?]", "q:i32[?]"]))
