// A loop's counter that begins at 0 or above is not negative: branches that ask for that are gone.
// RUN: tilec opt %s --passes simplify --target sm_80 | filecheck %s

!t = tensor<8xf32>
!m = memref<?xf32, strided<[1]>>

// CHECK-LABEL: @decided
// CHECK: scf.for %[[K:.*]] = %{{.*}} to
// CHECK-NOT: scf.if
// CHECK: "tile.store"(%{{.*}}, %{{.*}}, %[[K]])
// CHECK-NOT: "tile.store"
// CHECK: return
func.func @decided(%n: i32, %t: !t, %x: !m) attributes {tile.kernel} {
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %end = arith.index_cast %n : i32 to index
  scf.for %k = %c2 to %end step %c1 {
    %i = arith.index_cast %k : index to i32
    %counted = arith.cmpi sge, %i, %zero : i32
    scf.if %counted {
      "tile.store"(%t, %x, %k) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
    }
    %below = arith.cmpi slt, %i, %zero : i32
    scf.if %below {
      "tile.store"(%t, %x, %c2) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
    }
  }
  return
}

// Not what begins anywhere, nor what 32 bits may not hold, nor other comparisons.
// CHECK-LABEL: @open
// CHECK-COUNT-3: scf.if
// CHECK: return
func.func @open(%first: index, %end: index, %t: !t, %x: !m) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  scf.for %k = %first to %end step %c1 {
    %any = arith.cmpi sge, %k, %c0 : index
    scf.if %any {
      "tile.store"(%t, %x, %k) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
    }
  }
  scf.for %k = %c0 to %end step %c1 {
    %i = arith.index_cast %k : index to i32
    %wrapped = arith.cmpi sge, %i, %zero : i32
    scf.if %wrapped {
      "tile.store"(%t, %x, %k) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
    }
    %more = arith.cmpi sgt, %k, %c0 : index
    scf.if %more {
      "tile.store"(%t, %x, %k) {dims = array<i32: 0>, options = {}} : (!t, !m, index) -> ()
    }
  }
  return
}
