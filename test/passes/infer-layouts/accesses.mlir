// Accesses of one tile that want different widths, rows that are reduced, and single elements.
// RUN: tilec opt %s --passes infer-layouts --target sm_80 --num-warps 4 | filecheck %s

!v = memref<?xf32, strided<[1]>>
!m = memref<?x?xf32, strided<[?, 1]>>

// One of three begins anywhere: its elements come one by one, those of the others in vectors.
// CHECK-LABEL: @one_misaligned
// CHECK-COUNT-2: "tile.load"{{.*}} -> tensor<1024xf32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
// CHECK-NOT: convert_layout
func.func @one_misaligned(%a: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}, %i: index,
                          %b: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<1024xf32>
  %y = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<1024xf32>
  %z = arith.addf %x, %y : tensor<1024xf32>
  "tile.store"(%z, %b, %c0) {dims = array<i32: 0>, options = {}} : (tensor<1024xf32>, !v, index) -> ()
  return
}

// Two of three: neighbouring threads take neighbouring elements.
// CHECK-LABEL: @two_misaligned
// CHECK-COUNT-2: "tile.load"{{.*}} -> tensor<1024xf32, #gpu_tile.layout<"T(128):(1@0) V(8):(128@0)">>
func.func @two_misaligned(%a: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}, %i: index,
                          %b: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<1024xf32>
  %y = "tile.load"(%b, %i) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<1024xf32>
  %z = arith.addf %x, %y : tensor<1024xf32>
  "tile.store"(%z, %b, %c0) {dims = array<i32: 0>, options = {}} : (tensor<1024xf32>, !v, index) -> ()
  return
}

// A row of one warp is summed without shared memory.
// CHECK-LABEL: @rows
// CHECK: "tile.load"{{.*}} -> tensor<4x128xf32, #gpu_tile.layout<"T(32,4):(1@1,1@0) V(4):(32@1)">>
func.func @rows(%a: !m, %b: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = "tile.load"(%a, %c0, %c0) {dims = array<i32: 0, 1>, padding = 0.0 : f32, options = {}} : (!m, index, index) -> tensor<4x128xf32>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 1 : i32} : (tensor<4x128xf32>) -> tensor<4xf32>
  "tile.store"(%s, %b, %c0) {dims = array<i32: 0>, options = {}} : (tensor<4xf32>, !v, index) -> ()
  return
}

// Elements from a run-time number on are neighbours, if not aligned ones; those by loaded numbers
// are anywhere, and lie as the rest likes.
// CHECK-LABEL: @gathers
// CHECK-COUNT-2: "tile.gather"{{.*}} -> tensor<512x{{.*}}, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>
// CHECK: -> tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>
func.func @gathers(%columns: memref<?xi32, strided<[1]>>, %v: !v, %start: i32, %o: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : tensor<512xi1>
  %none = arith.constant dense<0> : tensor<512xi32>
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<512xi32>
  %first = tensor.splat %start : tensor<512xi32>
  %at = arith.addi %first, %i : tensor<512xi32>
  %c = "tile.gather"(%columns, %all, %none, %at) {options = {}} : (memref<?xi32, strided<[1]>>, tensor<512xi1>, tensor<512xi32>, tensor<512xi32>) -> tensor<512xi32>
  %x = "tile.gather"(%v, %all, %zero, %c) {options = {}} : (!v, tensor<512xi1>, tensor<512xf32>, tensor<512xi32>) -> tensor<512xf32>
  %s = "tile.reduce"(%x) ({
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    gpu.yield %r : f32
  }) {axis = 0 : i32} : (tensor<512xf32>) -> tensor<f32>
  "tile.store"(%s, %o, %c0) {dims = array<i32>, options = {}} : (tensor<f32>, !v, index) -> ()
  return
}

// Two gathers that count up from anywhere outweigh an aligned load.
// CHECK-LABEL: @counting
// CHECK: "tile.load"{{.*}} -> tensor<1024xf32, #gpu_tile.layout<"T(128):(1@0) V(8):(128@0)">>
func.func @counting(%a: !v {tile.facts = {align = 16 : i32, sizes = array<i32: 4>, strides = array<i32: 1>}}, %start: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant dense<true> : tensor<1024xi1>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %i = "tile.iota"() {axis = 0 : i32} : () -> tensor<1024xi32>
  %first = tensor.splat %start : tensor<1024xi32>
  %at = arith.addi %first, %i : tensor<1024xi32>
  %x = "tile.load"(%a, %c0) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}} : (!v, index) -> tensor<1024xf32>
  %y = "tile.gather"(%a, %all, %zero, %at) {options = {}} : (!v, tensor<1024xi1>, tensor<1024xf32>, tensor<1024xi32>) -> tensor<1024xf32>
  %z = arith.addf %x, %y : tensor<1024xf32>
  "tile.scatter"(%z, %a, %all, %at) {options = {}} : (tensor<1024xf32>, !v, tensor<1024xi1>, tensor<1024xi32>) -> ()
  return
}
