// Elements that came out of one word, or were rounded as one vector, leave as that.
// RUN: tilec opt %s --split-input-file --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s

!h = memref<?xbf16, strided<[1]>>
!t = tensor<64xbf16, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>

// CHECK-LABEL: llvm.func @copied
// CHECK:       %[[WORD:.+]] = llvm.inline_asm {{.*}} "@$3 ld.global.b32 $0, [$2];"
// CHECK-NOT:   llvm.insertelement
// CHECK:       llvm.inline_asm {{.*}} "@$2 st.global.b32 [$0], $1;", {{.*}} %[[WORD]],
func.func @copied(%x: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}},
                  %y: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0.0 : bf16, options = {}} : (!h, index) -> !t
  "tile.store"(%v, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, !h, index) -> ()
  return
}

// -----

!h = memref<?xbf16, strided<[1]>>
!t = tensor<64xbf16, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>
!w = tensor<64xf32, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>

// CHECK-LABEL: llvm.func @rounded
// CHECK:       %[[PAIR:.+]] = arith.truncf {{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK-NOT:   llvm.insertelement
// CHECK:       %[[WORD:.+]] = llvm.bitcast %[[PAIR]] : vector<2xbf16> to i32
// CHECK:       llvm.inline_asm {{.*}} "@$2 st.global.b32 [$0], $1;", {{.*}} %[[WORD]],
func.func @rounded(%z: f32, %y: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %s = tensor.splat %z : !w
  %v = arith.truncf %s : !w to !t
  "tile.store"(%v, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, !h, index) -> ()
  return
}

// -----

// A byte of a truth may be any number; what is stored is 0 or 1.
!b = memref<?xi1, strided<[1]>>
!t = tensor<64xi1, #gpu_tile.layout<"T(32):(2@0) V(2):(1@0)">>

// CHECK-LABEL: llvm.func @truths
// CHECK-COUNT-2: arith.cmpi ne, {{.*}} : i8
// CHECK-COUNT-2: arith.extui {{.*}} : i1 to i8
// CHECK-COUNT-2: llvm.insertelement
func.func @truths(%x: !b {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}},
                  %y: !b {tile.facts = {align = 16 : i32, sizes = array<i32: 8>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %false = arith.constant false
  %v = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = false, options = {}} : (!b, index) -> !t
  "tile.store"(%v, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, !b, index) -> ()
  return
}
