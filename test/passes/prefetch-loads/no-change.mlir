// An array that the loop writes, rows whose number an iteration computes for the next, warps that
// wait for each other, large tiles, a kernel with roles, and one whose tiles hold rows stay as they are.
// RUN: tilec opt %s --target sm_90a --num-warps 1 > %t.before
// RUN: tilec opt %s --passes prefetch-loads --target sm_90a --num-warps 1 | diff %t.before -

!x = memref<?x32xf32, strided<[32, 1]>>
#l = #gpu_tile.layout<"T(32):(1@0) V():()">
!t = tensor<32xf32, #l>
!s = !gpu_tile.buffer<tensor<32xf32>, #gpu_tile.shared<"(32):(1)">>
!large = tensor<2048xf32, #gpu_tile.layout<"T(32):(4@0) V(4,16):(1@0,128@0)">>
!w = tensor<256xf32, #gpu_tile.layout<"T(32):(1@0) V(8):(32@0)">>
!line = memref<?xf32, strided<[1]>>

func.func @written(%x: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !x
  scf.for %i = %c0 to %n step %c1 {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    %next = arith.addi %i, %c1 : index
    "tile.store"(%v, %x, %next, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
  }
  return
}

func.func @carried(%x: !x, %y: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %n = memref.dim %x, %c0 : !x
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%row = %c0) -> (index) {
    %v = "tile.load"(%x, %row, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    "tile.store"(%v, %y, %i, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
    %next = arith.addi %row, %c5 : index
    scf.yield %next : index
  }
  return
}

func.func @meet(%x: !x, %y: !x) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : !x
  scf.for %i = %c0 to %n step %c1 {
    %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
    %s = "gpu_tile.alloc"() {options = {}} : () -> !s
    "gpu_tile.buffer_store"(%v, %s) : (!t, !s) -> ()
    %w = "gpu_tile.buffer_load"(%s) : (!s) -> !t
    "tile.store"(%w, %y, %i, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
  }
  return
}

func.func @large(%x: !line, %y: !line) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %n = memref.dim %x, %c0 : !line
  scf.for %i = %c0 to %n step %c2048 {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!line, index) -> !large
    "tile.store"(%v, %y, %i) {dims = array<i32: 0>, options = {}} : (!large, !line, index) -> ()
  }
  return
}

func.func @roles(%x: !x, %y: !x) attributes {tile.kernel} {
  "gpu_tile.role"() ({
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !x
    scf.for %i = %c0 to %n step %c1 {
      %v = "tile.load"(%x, %i, %c0) {dims = array<i32: 1>, options = {}, padding = 0.0 : f32} : (!x, index, index) -> !t
      "tile.store"(%v, %y, %i, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
    }
    gpu.yield
  }) {name = "compute", first_warp = 0 : i32, warps = 1 : i32, registers = 0 : i32} : () -> ()
  return
}

// Rows of a sparse matrix in long steps: memory says where each begins, and where it ends.
func.func @sparse(%x: !line, %y: !x, %of: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : !w
  %p = "tile.program_id"() {axis = 0 : i32} : () -> index
  %p1 = arith.addi %p, %c1 : index
  %b = "tile.load"(%of, %p) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %e = "tile.load"(%of, %p1) {dims = array<i32>, padding = 0 : i32, options = {}} : (memref<?xi32, strided<[1]>>, index) -> tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %b32 = tensor.extract %b[] : tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %e32 = tensor.extract %e[] : tensor<i32, #gpu_tile.layout<"T(32):(0) V():()">>
  %from = arith.index_cast %b32 : i32 to index
  %to = arith.index_cast %e32 : i32 to index
  %r = scf.for %i = %from to %to step %c256 iter_args(%h = %zero) -> (!w) {
    %v = "tile.load"(%x, %i) {dims = array<i32: 0>, options = {}, padding = 0.0 : f32} : (!line, index) -> !w
    %next = arith.addf %h, %v : !w
    scf.yield %next : !w
  }
  "tile.store"(%r, %y, %p, %c0) {dims = array<i32: 1>, options = {}} : (!w, !x, index, index) -> ()
  return
}

// Its tiles hold the rows that loops walk along: there is hardly a second iteration.
func.func @held(%x: !line, %y: !x, %columns: memref<?xi32, strided<[1]>>) attributes {tile.kernel, tile.holds_rows} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : !t
  %ok = arith.constant dense<true> : tensor<32xi1, #l>
  %n = memref.dim %columns, %c0 : memref<?xi32, strided<[1]>>
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%h = %zero) -> (!t) {
    %at = "tile.load"(%columns, %i) {dims = array<i32: 0>, options = {}, padding = 0 : i32} : (memref<?xi32, strided<[1]>>, index) -> tensor<32xi32, #l>
    %v = "tile.gather"(%x, %ok, %zero, %at) {options = {}} : (!line, tensor<32xi1, #l>, !t, tensor<32xi32, #l>) -> !t
    %next = arith.addf %h, %v : !t
    scf.yield %next : !t
  }
  "tile.store"(%r, %y, %c0, %c0) {dims = array<i32: 1>, options = {}} : (!t, !x, index, index) -> ()
  return
}
