// A histogram counts into a buffer of zeros: a row of counts for each warp where those are small.
// RUN: tilec opt %s --passes split-reductions --target sm_80 | filecheck %s

// CHECK-LABEL: @few_bins
// CHECK-SAME: (%[[V:.*]]: tensor<512xi32{{.*}}, %[[OK:.*]]: tensor<512xi1
func.func @few_bins(%v: tensor<512xi32, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>, %ok: tensor<512xi1, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>) attributes {tile.kernel} {
  // CHECK: %[[ZEROS:.*]] = arith.constant dense<0> : tensor<4x256xi32, #gpu_tile.layout<"T(128):(2@1) V(2,4):(1@1,1@0)">>
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"()
  // CHECK: "gpu_tile.buffer_store"(%[[ZEROS]], %[[B]])
  // CHECK: "gpu_tile.buffer_count"(%[[V]], %[[OK]], %[[B]])
  // CHECK: %[[ROWS:.*]] = "gpu_tile.buffer_load"(%[[B]])
  // CHECK: %[[SUM:.*]] = "tile.reduce"(%[[ROWS]])
  // CHECK: arith.addi
  // CHECK: axis = 0 : i32
  // CHECK-NOT: tile.histogram
  %h = "tile.histogram"(%v, %ok) : (tensor<512xi32, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>, tensor<512xi1, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>) -> tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
  // CHECK: arith.addi %[[SUM]], %[[SUM]]
  %twice = arith.addi %h, %h : tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
  return
}

// One row for all: a row a warp would take 16 KB.
// CHECK-LABEL: @many_bins
func.func @many_bins(%v: tensor<512xi32, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>, %ok: tensor<512xi1, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>) attributes {tile.kernel} {
  // CHECK: "gpu_tile.alloc"() {{.*}} -> !gpu_tile.buffer<tensor<1x1024xi32>
  %h = "tile.histogram"(%v, %ok) : (tensor<512xi32, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>, tensor<512xi1, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>) -> tensor<1024xi32, #gpu_tile.layout<"T(128):(4@0) V(4,2):(1@0,512@0)">>
  return
}

// Nobody reads the sum before the end: all tiles are counted in one buffer.
// CHECK-LABEL: @sum_of_tiles
// CHECK-SAME: %[[START:[a-z0-9]*]]: tensor<256xi32
func.func @sum_of_tiles(%n: index, %ok: tensor<512xi1, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>, %start: tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>, %again: !gpu_tile.buffer<tensor<512xi32>, #gpu_tile.shared<"(512):(1)">>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[B:.*]] = "gpu_tile.alloc"()
  // CHECK: "gpu_tile.buffer_store"(%{{.*}}, %[[B]])
  // CHECK: %[[L:.*]] = scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[START]])
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %start) -> (tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>) {
    // CHECK: "gpu_tile.buffer_count"(%{{.*}}, %{{.*}}, %[[B]])
    // CHECK-NOT: gpu_tile.buffer_load"(%[[B]])
    // CHECK: scf.yield %[[SUM]]
    %v = "gpu_tile.buffer_load"(%again) : (!gpu_tile.buffer<tensor<512xi32>, #gpu_tile.shared<"(512):(1)">>) -> tensor<512xi32, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>
    %h = "tile.histogram"(%v, %ok) : (tensor<512xi32, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>, tensor<512xi1, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>) -> tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
    %next = arith.addi %sum, %h : tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
    scf.yield %next : tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
  }
  // CHECK: %[[ROWS:.*]] = "gpu_tile.buffer_load"(%[[B]])
  // CHECK: %[[TOTAL:.*]] = "tile.reduce"(%[[ROWS]])
  // CHECK: %[[ALL:.*]] = arith.addi %[[L]], %[[TOTAL]]
  // CHECK: arith.muli %[[ALL]], %[[ALL]]
  %square = arith.muli %l, %l : tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
  return
}

// Somebody does.
// CHECK-LABEL: @read_sum
func.func @read_sum(%n: index, %v: tensor<512xi32, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>, %ok: tensor<512xi1, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>, %start: tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for
  // CHECK: "gpu_tile.buffer_store"
  // CHECK: "gpu_tile.buffer_count"
  // CHECK: "gpu_tile.buffer_load"
  // CHECK: scf.yield
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %start) -> (tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>) {
    %h = "tile.histogram"(%v, %ok) : (tensor<512xi32, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>, tensor<512xi1, #gpu_tile.layout<"T(128):(1@0) V(4):(128@0)">>) -> tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
    %twice = arith.addi %sum, %sum : tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
    %next = arith.addi %twice, %h : tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
    scf.yield %next : tensor<256xi32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
  }
  return
}
