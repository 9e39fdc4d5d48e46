# Integers without a sign: MLIR's have none, so that ops and an attribute of the parameter say it.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


# CHECK-LABEL: func.func @unsigned(
# CHECK-SAME: memref<?xi32, strided<[1]>> {tile.dtype = "ui32"
# CHECK-SAME: i32 {tile.dtype = "ui32"
@tilec.kernel
def unsigned(x: tl.array, n: tl.u32):
    # Positions are signed, and i32 has not all of them.
    # CHECK: %[[N:.*]] = arith.extui %{{.*}} : i32 to i64
    # CHECK: %[[I:.*]] = arith.index_cast %[[N]] : i64 to index
    # CHECK: "tile.load"(%{{.*}}, %[[I]])
    a = tl.load(x, n, 8)
    # CHECK: %[[AT:.*]] = arith.extui %{{.*}} : tensor<8xi32> to tensor<8xi64>
    # CHECK: "tile.gather"({{.*}}%[[AT]])
    b = tl.gather(x, a)
    # CHECK: arith.divui
    # CHECK: arith.remui
    # CHECK: arith.cmpi ult,
    # CHECK: arith.shrui
    # CHECK: arith.maxui
    c = tl.where(a // b < a % b, a >> 3, tl.maximum(a, b))
    # CHECK: "tile.atomic_rmw"{{.*}}kind = "minu"
    tl.atomic_min(x, tl.arange(8), c)


print(unsigned.source_module(["x:u32[?]", "n:u32"]))
