// Bytes are combined by fours and become floats by pairs, without instructions that convert.
// RUN: tilec opt %s --split-input-file --passes lower-to-nvvm --target sm_90a --num-warps 1 | filecheck %s
// RUN: tilec opt %s --split-input-file --passes lower-to-nvvm --target sm_80 --num-warps 1 | filecheck %s --check-prefix=OLD

!i = memref<?xi8, strided<[1]>>
!h = memref<?xf16, strided<[1]>>
!c = tensor<128xi8, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
!t = tensor<128xf16, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>

// CHECK-LABEL: llvm.func @halves
// CHECK-DAG:   %[[MASK:.+]] = arith.constant 252645135 : i32
// CHECK-DAG:   %[[UPPER:.+]] = arith.constant 1684300900 : i32
// CHECK-DAG:   %[[BASE:.+]] = arith.constant 1.024000e+03 : f16
// CHECK:       %[[WORD:.+]] = llvm.inline_asm {{.*}} "@$3 ld.global.b32 $0, [$2];"
// CHECK:       %[[LOW:.+]] = arith.andi %[[WORD]], %[[MASK]] : i32
// CHECK:       llvm.call_intrinsic "llvm.nvvm.prmt"(%[[LOW]], %[[UPPER]], %{{.*}})
// CHECK:       llvm.call_intrinsic "llvm.nvvm.prmt"(%[[LOW]], %[[UPPER]], %{{.*}})
// CHECK-COUNT-2: arith.subf {{.*}} : vector<2xf16>
// What they are multiplied with comes in words, too.
// CHECK-COUNT-2: %[[PAIR:.+]] = arith.mulf {{.*}} : vector<2xf16>
// CHECK-NOT:   llvm.insertelement
// CHECK:       "@$3 st.global.v2.b32 [$0], {$1, $2};"
// CHECK-NOT:   arith.sitofp
func.func @halves(%x: !i {tile.facts = {align = 16 : i32, sizes = array<i32: 16>, strides = array<i32: 1>}},
                  %s: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 16>, strides = array<i32: 1>}},
                  %y: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 16>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %mask = arith.constant dense<15> : !c
  %codes = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i8, options = {}} : (!i, index) -> !c
  %scales = "tile.load"(%s, %c0) {dims = array<i32: 0>, padding = 0.0 : f16, options = {}} : (!h, index) -> !t
  %low = arith.andi %codes, %mask : !c
  %float = arith.sitofp %low : !c to !t
  %scaled = arith.mulf %float, %scales : !t
  "tile.store"(%scaled, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, !h, index) -> ()
  return
}

// -----

!i = memref<?xi8, strided<[1]>>
!h = memref<?xbf16, strided<[1]>>
!c = tensor<128xi8, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>
!t = tensor<128xbf16, #gpu_tile.layout<"T(32):(4@0) V(4):(1@0)">>

// The sign of bf16 comes apart; without arithmetic of bf16 one by one.
// CHECK-LABEL: llvm.func @signed
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK-COUNT-2: arith.subf {{.*}} : vector<2xbf16>
// OLD-LABEL: llvm.func @signed
// OLD-COUNT-4: arith.sitofp {{.*}} : i8 to bf16
func.func @signed(%x: !i {tile.facts = {align = 16 : i32, sizes = array<i32: 16>, strides = array<i32: 1>}},
                  %y: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 16>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %codes = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i8, options = {}} : (!i, index) -> !c
  %float = arith.sitofp %codes : !c to !t
  "tile.store"(%float, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, !h, index) -> ()
  return
}

// -----

!i = memref<?xi8, strided<[1]>>
!h = memref<?xf16, strided<[1]>>
!c = tensor<32xi8, #gpu_tile.layout<"T(32):(1@0) V():()">>
!t = tensor<32xf16, #gpu_tile.layout<"T(32):(1@0) V():()">>

// No words: a byte a thread.
// CHECK-LABEL: llvm.func @alone
// CHECK: arith.sitofp {{.*}} : i8 to f16
func.func @alone(%x: !i {tile.facts = {align = 16 : i32, sizes = array<i32: 16>, strides = array<i32: 1>}},
                 %y: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 16>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %codes = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i8, options = {}} : (!i, index) -> !c
  %float = arith.sitofp %codes : !c to !t
  "tile.store"(%float, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, !h, index) -> ()
  return
}

// -----

!i = memref<?xi8, strided<[1]>>
!h = memref<?xbf16, strided<[1]>>
!c = tensor<128xi8, #gpu_tile.layout<"T(32):(2@0) V(2,2):(1@0,64@0)">>
!t = tensor<128xbf16, #gpu_tile.layout<"T(32):(2@0) V(2,2):(1@0,64@0)">>

// Bytes by twos: half words are put together, not the bytes.
// CHECK-LABEL: llvm.func @twos
// CHECK: %[[ONE:.*]] = llvm.insertelement %{{.*}}, %{{.*}} : vector<2xi16>
// CHECK: %[[BOTH:.*]] = llvm.insertelement %{{.*}}, %[[ONE]]
// CHECK: llvm.bitcast %[[BOTH]] : vector<2xi16> to i32
// CHECK-NOT: llvm.insertelement
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"
func.func @twos(%x: !i {tile.facts = {align = 16 : i32, sizes = array<i32: 128>, strides = array<i32: 1>}},
                %y: !h {tile.facts = {align = 16 : i32, sizes = array<i32: 128>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %codes = "tile.load"(%x, %c0) {dims = array<i32: 0>, padding = 0 : i8, options = {}} : (!i, index) -> !c
  %float = arith.sitofp %codes : !c to !t
  "tile.store"(%float, %y, %c0) {dims = array<i32: 0>, options = {}} : (!t, !h, index) -> ()
  return
}
