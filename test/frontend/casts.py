# Casts between every kind of dtype.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


# CHECK-LABEL: func.func @casts(
@tilec.kernel
def casts(h: tl.array, q: tl.array, e: tl.array):
    t, i, s = tl.load(h, 0, 8), tl.load(q, 0, 8), tl.load(e, 0, 8)
    # CHECK: arith.extf %{{.*}} : tensor<8xf16> to tensor<8xf32>
    tl.store(h, 0, tl.exp(t.to(tl.f32)).to(tl.f16))
    # CHECK: %[[W:.*]] = arith.extf %{{.*}} : tensor<8xf16> to tensor<8xf32>
    # CHECK: arith.truncf %[[W]] : tensor<8xf32> to tensor<8xbf16>
    tl.store(h, 0, t.to(tl.bf16).to(tl.f16))
    # CHECK: arith.fptosi %{{.*}} : tensor<8xf16> to tensor<8xi32>
    tl.store(q, 0, t.to(tl.i32))
    # CHECK: arith.sitofp %{{.*}} : tensor<8xi32> to tensor<8xf16>
    tl.store(h, 0, i.to(tl.f16))
    # CHECK: %[[P:.*]] = arith.cmpi sgt, %{{.*}} : tensor<8xi32>
    # CHECK: arith.extui %[[P]] : tensor<8xi1> to tensor<8xi32>
    tl.store(q, 0, (i > 0).to(tl.i32))
    # CHECK: arith.cmpf une, %{{.*}} : tensor<8xf16>
    tl.store(q, 0, t.to(tl.i1).to(tl.i32))
    # CHECK: %[[F:.*]] = arith.sitofp %{{.*}} : tensor<8xi32> to tensor<8xf32>
    # CHECK: arith.truncf %[[F]] : tensor<8xf32> to tensor<8xf8E5M2>
    tl.store(e, 0, i.to(tl.f8e5m2))
    # CHECK: %[[X:.*]] = arith.extf %{{.*}} : tensor<8xf8E5M2> to tensor<8xf32>
    # CHECK: arith.fptosi %[[X]] : tensor<8xf32> to tensor<8xi32>
    tl.store(q, 0, s.to(tl.i32))
    # CHECK: arith.bitcast %{{.*}} : tensor<8xf32> to tensor<8xi32>
    tl.store(q, 0, t.to(tl.f32).bitcast(tl.i32))
    # CHECK: arith.extsi %{{.*}} : tensor<8xi8> to tensor<8xi32>
    tl.store(q, 0, i.to(tl.i8).to(tl.i32))


print(casts.source_module(["h:f16[?]", "q:i32[?]", "e:f8e5m2[?]"]))
