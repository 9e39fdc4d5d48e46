// The sums of a product leave by rows whose numbers are made in any layout: lanes of a warp exchange
// what they hold, so that each has whole vectors, and only what is stored is converted.
// RUN: tilec opt %s --passes infer-layouts --target sm_90a --num-warps 4 | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!t = tensor<64x64xbf16>
!i = tensor<64x64xi32>
!c = tensor<64x64xf32>

// CHECK-LABEL: @rows
// CHECK: %[[ROWS:.*]] = "tile.broadcast"({{.*}} -> tensor<64x64xi32, #gpu_tile.layout<"T(4,8,4):(8@1,1@0,16@0) V(8,2,2):(1@1,8@0,32@1)">>
// CHECK: %[[NARROW:.*]] = arith.truncf {{.*}} to tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
// CHECK: %[[OUT:.*]] = "gpu_tile.convert_layout"(%[[NARROW]]) {{.*}} -> tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(8@1,1@0,16@0) V(8,2,2):(1@1,8@0,32@1)">>
// CHECK: "tile.scatter"(%[[OUT]], %{{.*}}, %{{.*}}, %[[ROWS]],
// CHECK-NOT: convert_layout
func.func @rows(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %n: memref<?xi32, strided<[1]>>, %a: !t, %b: !t) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %ok = arith.constant dense<true> : tensor<64x64xi1>
  %of = "tile.load"(%n, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<64xi32>
  %row = "tile.broadcast"(%of) {dims = array<i32: 0>} : (tensor<64xi32>) -> !i
  %column = "tile.iota"() {axis = 1 : i32} : () -> !i
  %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!t, !t, !c) -> !c
  %narrow = arith.truncf %sum : !c to !t
  "tile.scatter"(%narrow, %c, %ok, %row, %column) {options = {}} : (!t, !m, tensor<64x64xi1>, !i, !i) -> ()
  return
}

// A mask, or numbers, computed of what is made in any layout are such themselves.
// CHECK-LABEL: @computed
// CHECK: arith.andi {{.*}} : tensor<64x64xi1, #gpu_tile.layout<"T(4,8,4):(8@1,1@0,16@0) V(8,2,2):(1@1,8@0,32@1)">>
// CHECK: %[[OUT:.*]] = "gpu_tile.convert_layout"(%{{.*}}) {{.*}} -> tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(8@1,1@0,16@0) V(8,2,2):(1@1,8@0,32@1)">>
// CHECK: "tile.scatter"(%[[OUT]],
// CHECK-NOT: convert_layout
func.func @computed(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %n: memref<?xi32, strided<[1]>>, %a: !t, %b: !t) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !c
  %ok = arith.constant dense<true> : tensor<64x64xi1>
  %of = "tile.load"(%n, %c0) {dims = array<i32: 0>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<64xi32>
  %row = "tile.broadcast"(%of) {dims = array<i32: 0>} : (tensor<64xi32>) -> !i
  %column = "tile.iota"() {axis = 1 : i32} : () -> !i
  %end = arith.constant dense<56> : !i
  %left = arith.cmpi slt, %row, %end : !i
  %above = arith.cmpi slt, %column, %end : !i
  %inside = arith.andi %left, %above : tensor<64x64xi1>
  %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!t, !t, !c) -> !c
  %narrow = arith.truncf %sum : !c to !t
  "tile.scatter"(%narrow, %c, %inside, %row, %column) {options = {}} : (!t, !m, tensor<64x64xi1>, !i, !i) -> ()
  return
}

// A mask that is computed of the sums would have to be converted, too: it stays.
// CHECK-LABEL: @masked
// CHECK-NOT: convert_layout
// CHECK: "tile.scatter"({{.*}}tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @masked(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %a: !t, %b: !t) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : !c
  %row = "tile.iota"() {axis = 0 : i32} : () -> !i
  %column = "tile.iota"() {axis = 1 : i32} : () -> !i
  %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!t, !t, !c) -> !c
  %ok = arith.cmpf ogt, %sum, %zero : !c
  %narrow = arith.truncf %sum : !c to !t
  "tile.scatter"(%narrow, %c, %ok, %row, %column) {options = {}} : (!t, !m, tensor<64x64xi1>, !i, !i) -> ()
  return
}

// So is what is added, of which nobody reads what was there before: by 16 bytes at once.
// CHECK-LABEL: @added
// CHECK: %[[OUT:.*]] = "gpu_tile.convert_layout"(%{{.*}}) {{.*}} -> tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(8@1,1@0,16@0) V(8,2,2):(1@1,8@0,32@1)">>
// CHECK: "tile.atomic_rmw"(%[[OUT]],
// CHECK-NOT: convert_layout
func.func @added(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %a: !t, %b: !t) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : !c
  %ok = arith.constant dense<true> : tensor<64x64xi1>
  %row = "tile.iota"() {axis = 0 : i32} : () -> !i
  %column = "tile.iota"() {axis = 1 : i32} : () -> !i
  %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!t, !t, !c) -> !c
  %narrow = arith.truncf %sum : !c to !t
  %old = "tile.atomic_rmw"(%narrow, %c, %ok, %row, %column) {kind = "addf", order = "relaxed", scope = "gpu", options = {}} : (!t, !m, tensor<64x64xi1>, !i, !i) -> !t
  return
}

// Where somebody reads that, elements are added one by one, as the sums lie.
// CHECK-LABEL: @read
// CHECK-NOT: convert_layout
// CHECK: "tile.atomic_rmw"({{.*}}tensor<64x64xbf16, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,8):(1@1,8@0,8@1)">>
func.func @read(%c: !m {tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>, strides = array<i32: 8, 1>}}, %a: !t, %b: !t) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : !c
  %ok = arith.constant dense<true> : tensor<64x64xi1>
  %row = "tile.iota"() {axis = 0 : i32} : () -> !i
  %column = "tile.iota"() {axis = 1 : i32} : () -> !i
  %sum = "tile.dot"(%a, %b, %zero) {options = {instruction = "wgmma.m64n64k16.f32.bf16.bf16"}} : (!t, !t, !c) -> !c
  %narrow = arith.truncf %sum : !c to !t
  %old = "tile.atomic_rmw"(%narrow, %c, %ok, %row, %column) {kind = "addf", order = "relaxed", scope = "gpu", options = {}} : (!t, !m, tensor<64x64xi1>, !i, !i) -> !t
  %more = arith.addf %old, %narrow : !t
  %again = "tile.atomic_rmw"(%more, %c, %ok, %row, %column) {kind = "addf", order = "relaxed", scope = "gpu", options = {}} : (!t, !m, tensor<64x64xi1>, !i, !i) -> !t
  return
}
