// What would need a buffer or a barrier that is not written, or would trap, is an error at its line.
// RUN: tilec opt %s --passes keep-explicit --target sm_80 --num-warps 2 --split-input-file --verify-diagnostics

!rows = tensor<64x64xf32, #gpu_tile.layout<"T(64):(1@0) V(64):(1@1)">>
!columns = tensor<64x64xf32, #gpu_tile.layout<"T(64):(1@1) V(64):(1@0)">>
func.func @conversion(%x: !rows) -> !columns attributes {tile.kernel, tile.explicit} {
  // expected-error @below {{this moves elements between threads, which takes a buffer and a barrier}}
  %y = "gpu_tile.convert_layout"(%x) : (!rows) -> !columns
  return %y : !columns
}

// -----

func.func @reduction(%x: tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">>) attributes {tile.kernel, tile.explicit} {
  // expected-error @below {{this moves elements between threads}}
  %y = "tile.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    gpu.yield %c : f32
  }) {axis = 0 : i32} : (tensor<64xf32, #gpu_tile.layout<"T(64):(1@0) V():()">>) -> tensor<f32, #gpu_tile.layout<"T(64):(0) V():()">>
  return
}

// -----

!slot = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
func.func @copy(%a: memref<?x?xbf16, strided<[?, 1]>>, %m: index, %k: index) attributes {tile.kernel, tile.explicit} {
  %yes = arith.constant true
  %s = "gpu_tile.alloc"() {options = {}} : () -> !slot
  // expected-error @below {{a copy of 16 bytes, of which 2 are provably aligned}}
  "gpu_tile.cp_async"(%a, %s, %yes, %m, %k) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (memref<?x?xbf16, strided<[?, 1]>>, !slot, i1, index, index) -> ()
  return
}

// -----

!padded = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"(64,64):(68,1)">>
func.func @padded(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.facts = {align = 16 : i32, strides = array<i32: 8, 1>}}) attributes {tile.kernel, tile.explicit} {
  %yes = arith.constant true
  %zero = arith.constant 0 : index
  %s = "gpu_tile.alloc"() {options = {}} : () -> !padded
  // expected-error @below {{a copy of 16 bytes, of which 8 are provably aligned: the buffer holds no longer run of neighbours}}
  "gpu_tile.cp_async"(%a, %s, %yes, %zero, %zero) {dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"} : (memref<?x?xbf16, strided<[?, 1]>>, !padded, i1, index, index) -> ()
  return
}

// -----

func.func @rings_of_its_own(%n: index) attributes {tile.kernel, tile.explicit} {
  // expected-error @below {{stages was asked for, but a kernel that calls tilec.language.gpu writes its rings itself}}
  scf.for %k = %n to %n step %n {
  } {tile.stages = 2 : i32}
  return
}

// -----

// expected-error @below {{settled was asked for, but a kernel that calls tilec.language.gpu waits for earlier launches where its author says so}}
func.func @waits_itself(%a: memref<?xf32, strided<[1]>> {tile.settled = true}) attributes {tile.kernel, tile.explicit} {
  return
}
