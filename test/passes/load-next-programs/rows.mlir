// A warp loads the next program's row before it works on this one, what all programs share once.
// RUN: tilec opt %s --passes pack-programs,load-next-programs --target sm_80 --num-warps 1 | filecheck %s

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
!t = tensor<64xf32, #gpu_tile.layout<"T(32):(1@0) V(2):(32@0)">>

// Also where the kernel works in place: no other program writes this one's row.
// CHECK-LABEL: @in_place
// CHECK-SAME: (%[[A:[^:]*]]: {{.*}}, %[[W:[^:]*]]: memref
// CHECK: scf.for
// CHECK: %[[SCALE:.*]] = "tile.load"(%[[W]],
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK-NEXT: "tile.load"(%[[A]],
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %[[END:.*]] step %[[STEP:.*]] iter_args(%[[X:.*]] = %[[FIRST]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[ROW]], %[[STEP]]
// CHECK: %[[NEXT:.*]] = scf.if
// CHECK-NEXT: "tile.load"(%[[A]], %[[AHEAD]]
// CHECK: scf.yield %[[X]]
// CHECK: %[[Z:.*]] = arith.mulf %[[X]], %[[SCALE]]
// CHECK: "tile.store"(%[[Z]], %[[A]], %[[ROW]]
// CHECK: scf.yield %[[NEXT]]
func.func @in_place(%a: !m, %w: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  %scale = "tile.load"(%w, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !t
  %z = arith.mulf %x, %scale : !t
  "tile.store"(%z, %a, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// What the program has written itself is loaded behind that.
// CHECK-LABEL: @own
// CHECK: scf.for %{{.*}} iter_args
// CHECK: "tile.store"
// CHECK-NEXT: %[[AGAIN:.*]] = "tile.load"
// CHECK-NEXT: "tile.store"(%[[AGAIN]]
func.func @own(%a: !m, %b: !m, %w: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%b, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  %scale = "tile.load"(%w, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> !t
  %z = arith.mulf %x, %scale : !t
  "tile.store"(%z, %a, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  %y = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !t
  "tile.store"(%y, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!t, !m, index, index) -> ()
  return
}

// Parts of a warp do so although they share nothing.
// CHECK-LABEL: @parts_of_a_warp
// CHECK: scf.for %{{.*}} iter_args
!p = tensor<64xf32, #gpu_tile.layout<"T(8):(1@0) V(8):(8@0)">>
func.func @parts_of_a_warp(%a: !m, %b: !m) attributes {tile.kernel, tile.lanes = 8 : i32} {
  %c0 = arith.constant 0 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !p
  "tile.store"(%x, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (!p, !m, index, index) -> ()
  return
}

// A number of the program itself that says which row it loads is loaded with the next one's row, and
// again where this program uses it.
// CHECK-LABEL: @numbered
// CHECK-SAME: (%[[NUMBERS:[^:]*]]: {{.*}}, %[[A:[^:]*]]: {{.*}}, %[[B:[^:]*]]: memref
// CHECK: %[[FIRST:.*]] = scf.if
// CHECK: "tile.load"(%[[NUMBERS]],
// CHECK: "tile.load"(%[[A]],
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %{{.*}} step %[[STEP:.*]] iter_args(%[[X:.*]] = %[[FIRST]])
// CHECK: %[[OWN:.*]] = "tile.load"(%[[NUMBERS]], %[[ROW]])
// CHECK: %[[AHEAD:.*]] = arith.addi %[[ROW]], %[[STEP]]
// CHECK: %[[NEXT:.*]] = scf.if
// CHECK: "tile.load"(%[[NUMBERS]], %[[AHEAD]])
// CHECK: "tile.load"(%[[A]],
// CHECK: "tile.store"(%[[X]], %[[B]],
// CHECK: scf.yield %[[NEXT]]
!i = memref<?xi32, strided<[1]>>
!n = tensor<i32, #gpu_tile.layout<"T(8):(0) V():()">>
func.func @numbered(%numbers: !i, %a: !m, %b: !m) attributes {tile.kernel, tile.lanes = 8 : i32} {
  %c0 = arith.constant 0 : index
  %program = "tile.program_id"() {axis = 0 : i32} : () -> index
  %row = "tile.load"(%numbers, %program) {dims = array<i32>, padding = 0 : i32, options = {}} : (!i, index) -> !n
  %word = tensor.extract %row[] : !n
  %n = arith.index_cast %word : i32 to index
  %x = "tile.load"(%a, %n, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> !p
  "tile.store"(%x, %b, %n, %c0) {dims = array<i32: 1>, options = {}} : (!p, !m, index, index) -> ()
  return
}

// Where a load begins may follow from an array's size.
// CHECK-LABEL: @halves
// CHECK-SAME: (%[[A:[^:]*]]: {{.*}}, %[[B:[^:]*]]: memref
// CHECK: scf.if
// CHECK: %[[FIRST:.*]] = memref.dim %[[B]]
// CHECK: "tile.load"(%[[A]], %{{.*}}, %[[FIRST]])
// CHECK: scf.for %{{.*}} iter_args(%[[X:[a-z0-9]+]] = %{{.*}}#0, %[[Y:[a-z0-9]+]] = %{{.*}}#1)
// CHECK: arith.mulf %[[X]], %[[Y]]
func.func @halves(%a: !m, %b: !m) attributes {tile.kernel, tile.lanes = 8 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  %x = "tile.load"(%a, %row, %c0) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<64xf32, #gpu_tile.layout<"T(8):(4@0) V(4,2):(1@0,32@0)">>
  %half = memref.dim %b, %c1 : !m
  %y = "tile.load"(%a, %row, %half) {dims = array<i32: 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<64xf32, #gpu_tile.layout<"T(8):(4@0) V(4,2):(1@0,32@0)">>
  %z = arith.mulf %x, %y : tensor<64xf32, #gpu_tile.layout<"T(8):(4@0) V(4,2):(1@0,32@0)">>
  "tile.store"(%z, %b, %row, %c0) {dims = array<i32: 1>, options = {}} : (tensor<64xf32, #gpu_tile.layout<"T(8):(4@0) V(4,2):(1@0,32@0)">>, !m, index, index) -> ()
  return
}
