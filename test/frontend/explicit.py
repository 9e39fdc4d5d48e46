# ruff: noqa: E501
# tilec.language.gpu: ops as they are written, layouts through operators, roles, pending accumulators.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl
from tilec.language import gpu

WGMMA = "wgmma.m64n64k16.f32.bf16.bf16"


# CHECK-LABEL: func.func @roles
# CHECK-SAME: tile.explicit
# CHECK-SAME: tile.num_warps = 8
@tilec.kernel(num_warps=8)
def roles(x: tl.array, y: tl.array, steps: tl.i32):
    # CHECK: %[[MAP:.*]] = "gpu_tile.make_tensor_map"(%arg0) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"}
    source = gpu.make_tensor_map(x, (64, 64))
    # CHECK: %[[RING:.*]] = "gpu_tile.alloc"() {options = {}} : () -> !gpu_tile.buffer<tensor<3x64x64xbf16>
    ring = gpu.alloc((64, 64), tl.bf16, gpu.swizzled((64, 64), tl.bf16), slots=3)
    # CHECK: %[[FULL:.*]] = "gpu_tile.barrier_init"() {count = 1 : i32, options = {}, slots = 3 : i32}
    full = gpu.barrier_init(count=1, slots=3)
    # CHECK: "gpu_tile.fence"() {kind = "barrier_init"}
    # CHECK: "gpu_tile.sync"() {barrier = 0 : i32, mode = "sync", warps = 8 : i32}
    gpu.fence("barrier_init")
    gpu.sync()
    # CHECK: "gpu_tile.role"() ({
    with gpu.role("load", first_warp=4, warps=4, registers=40):
        # CHECK: scf.for
        for i in tl.range(steps):
            slot, parity = gpu.ring_position(i, slots=3)
            # CHECK: "gpu_tile.barrier_expect"(%[[FULL]], %{{.*}}) {bytes = 8192 : i32}
            full.expect(slot, bytes=ring.bytes)
            # CHECK: %[[SLOT:.*]] = "gpu_tile.slot"(%[[RING]], %{{.*}})
            # CHECK: "gpu_tile.tma_load"(%[[MAP]], %[[SLOT]], %[[FULL]], %{{.*}}) {cache = "evict_first"}
            gpu.tma_load(source, ring.slot(slot), full, slot, (0, i * 64), cache="evict_first")
    # CHECK: {first_warp = 4 : i32, name = "load", registers = 40 : i32, warps = 4 : i32}
    # CHECK: "gpu_tile.role"() ({
    with gpu.role("multiply", first_warp=0, warps=4):
        # CHECK: %[[START:.*]] = "gpu_tile.wgmma_fence"
        acc = gpu.wgmma_fence(gpu.zeros((64, 64), tl.f32, gpu.accumulator(WGMMA, (64, 64))))
        # CHECK: %[[END:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[START]]) -> (!gpu_tile.pending<
        for i in tl.range(steps):
            slot, parity = gpu.ring_position(i, slots=3)
            # CHECK: "gpu_tile.barrier_wait"(%[[FULL]], %{{.*}}, %{{.*}})
            full.wait(slot, parity)
            # CHECK: %[[NEXT:.*]] = "gpu_tile.wgmma"(%{{.*}}, %{{.*}}, %[[ACC]])
            acc = gpu.wgmma(ring.slot(slot), ring.slot(slot), acc, WGMMA)
            # CHECK: scf.yield %[[NEXT]]
        # CHECK: %[[DONE:.*]] = "gpu_tile.wgmma_wait"(%[[END]]) {pending = 0 : i32} : {{.*}} -> tensor<64x64xf32
        done = gpu.wgmma_wait(acc)
        # CHECK: "gpu_tile.sync"() {barrier = 1 : i32, mode = "sync", warps = 4 : i32}
        gpu.sync(barrier=1)
        # CHECK: arith.truncf %[[DONE]] : tensor<64x64xf32, #gpu_tile.layout<"[[L:.*]]">> to tensor<64x64xbf16, #gpu_tile.layout<"[[L]]">>
        tl.store(y, (0, 0), done.to(tl.bf16))
    # CHECK: {first_warp = 0 : i32, name = "multiply", registers = 0 : i32, warps = 4 : i32}


print(roles.source_module(["x:bf16[?,?]", "y:bf16[?,?]", "steps:i32"]))


# CHECK-LABEL: func.func @operators
@tilec.kernel(num_warps=1)
def operators(x: tl.array):
    # CHECK-DAG: arith.constant dense<1.000000e+00> : tensor<32x4xf32, #gpu_tile.layout<"T(32):(1@0) V(4):(1@1)">>
    # CHECK-DAG: %[[ONE:.*]] = arith.constant dense<2.000000e+00> : tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
    t = gpu.load(x, (0, 0), (32, 4), gpu.layout("T(32):(1@0) V(4):(1@1)"))
    # CHECK: "tile.iota"() {axis = 0 : i32} : () -> tensor<4xi32, #gpu_tile.layout<"T(32):(0) V(4):(1@0)">>
    t = t + 1.0 + tl.arange(4).to(tl.f32)
    # CHECK: "tile.reduce"
    # CHECK: -> tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
    rows = tl.sum(t, axis=1) * 2.0
    # CHECK: "tile.broadcast"({{.*}}) {dims = array<i32: 0>} : (tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>) -> tensor<32x4xf32, #gpu_tile.layout<"T(32):(1@0) V(4):(1@1)">>
    tl.store(x, (0, 0), t - rows[:, None])


print(operators.source_module(["x:f32[?,?]"]))
