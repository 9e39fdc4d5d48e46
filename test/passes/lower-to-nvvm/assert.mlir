// One test per thread; the message carries the source line.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!t = tensor<64xi1, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>

// CHECK: llvm.func @__assertfail(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64)
// CHECK-DAG: "k\00"
// CHECK-DAG: "kernels.py\00"
// CHECK-DAG: "all is well\00"
// CHECK-LABEL: llvm.func @k(
func.func @k() attributes {tile.kernel} {
  %ok = arith.constant dense<true> : !t
  // CHECK: %[[LINE:.*]] = arith.constant 17 : i32
  // CHECK: scf.if
  // CHECK: llvm.call @__assertfail(%{{.*}}, %{{.*}}, %[[LINE]], %{{.*}}, %{{.*}})
  // CHECK-NOT: llvm.call
  "tile.assert"(%ok) {message = "all is well"} : (!t) -> () loc("kernels.py":17:5)
  return
}
