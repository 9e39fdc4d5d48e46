// Numbers of which nothing is known, a divisor that a loop changes, steps of more than one around
// other loops, and divisors that LLVM multiplies by instead, stay as they are.
// RUN: tilec opt %s --target sm_90a > %t.before
// RUN: tilec opt %s --passes reduce-divisions --target sm_90a | diff %t.before -

!x = memref<?xf32, strided<[1]>>

func.func @stays(%x: !x, %n: index, %j: i32) attributes {tile.kernel, tile.index_bits = 32 : i32} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %size = memref.dim %x, %c0 : !x
  %anything = arith.index_cast %j : i32 to index
  scf.for %i = %c0 to %size step %c1 {
    %q = arith.floordivsi %i, %n : index
    %r = arith.remsi %anything, %size : index
    %s = arith.divui %i, %c7 : index
    %more = arith.addi %i, %c1 : index
    %t = arith.divui %size, %more : index
    %low = arith.cmpi slt, %r, %c0 : index
    "tile.assume"(%q) {facts = {}} : (index) -> ()
    "tile.assume"(%s) {facts = {}} : (index) -> ()
    "tile.assume"(%t) {facts = {}} : (index) -> ()
    %u = arith.select %low, %r, %q : index
    "tile.assume"(%u) {facts = {}} : (index) -> ()
  }
  scf.for %i = %c0 to %size step %c2 {
    %q = arith.divui %i, %size : index
    scf.for %k = %c0 to %q step %c1 {
      "tile.assume"(%k) {facts = {}} : (index) -> ()
    }
  }
  return
}
