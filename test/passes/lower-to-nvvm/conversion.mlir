// Conversions inside a warp: a butterfly between selects, a computed lane, the lane's own half.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?xf32, strided<[1]>>
!first = tensor<64xf32, #gpu_tile.layout<"T(2,16):(2@0,4@0) V(2):(1@0)">>
!second = tensor<64xf32, #gpu_tile.layout<"T(2,16):(1@0,4@0) V(2):(2@0)">>
!up = tensor<32xf32, #gpu_tile.layout<"T(32):(1@0) V():()">>
!turned = tensor<32xf32, #gpu_tile.layout<"T(2,16):(16@0,1@0) V():()">>
!all = tensor<2xf32, #gpu_tile.layout<"T(32):(0) V(2):(1@0)">>
!one = tensor<2xf32, #gpu_tile.layout<"T(2,16):(1@0,0) V():()">>

// A register's bit against a lane's: one of two registers is sent, to the neighbour.
// CHECK-LABEL: llvm.func @exchange
// CHECK: %[[BIT:.*]] = arith.cmpi ne
// CHECK-NEXT: %[[KEPT:.*]] = arith.select %[[BIT]], %[[B:.*]], %[[A:.*]] : i32
// CHECK-NEXT: %[[SENT:.*]] = arith.select %[[BIT]], %[[A]], %[[B]] : i32
// CHECK-NEXT: %[[GOT:.*]] = nvvm.shfl.sync  bfly %{{.*}}, %[[SENT]], %{{.*}}, %{{.*}} : i32 -> i32
// CHECK-NOT: nvvm.shfl.sync
// CHECK-COUNT-2: arith.select {{.*}} : i32
// CHECK: llvm.return
func.func @exchange(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !first
  %w = "gpu_tile.convert_layout"(%v) : (!first) -> !second
  "tile.store"(%w, %x, %c0) {dims = array<i32: 0>, options = {}} : (!second, !m, index) -> ()
  return
}

// CHECK-LABEL: llvm.func @lanes
// CHECK: %[[HIGH:.*]] = arith.shli
// CHECK-NEXT: %[[LANE:.*]] = arith.ori %{{.*}}, %[[HIGH]] : i32
// CHECK-NEXT: nvvm.shfl.sync  idx %{{.*}}, %{{.*}}, %[[LANE]],
// CHECK-NOT: arith.select {{.*}} : i32
// CHECK: llvm.return
func.func @lanes(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !up
  %w = "gpu_tile.convert_layout"(%v) : (!up) -> !turned
  "tile.store"(%w, %x, %c0) {dims = array<i32: 0>, options = {}} : (!turned, !m, index) -> ()
  return
}

// CHECK-LABEL: llvm.func @copies
// CHECK-NOT: nvvm.shfl.sync
// CHECK: arith.select {{.*}} : i32
// CHECK-NOT: nvvm.shfl.sync
// CHECK: llvm.return
func.func @copies(%x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!m, index) -> !all
  %w = "gpu_tile.convert_layout"(%v) : (!all) -> !one
  "tile.store"(%w, %x, %c0) {dims = array<i32: 0>, options = {}} : (!one, !m, index) -> ()
  return
}
