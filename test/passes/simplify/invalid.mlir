// A dimension that its array does not have.
// RUN: tilec opt %s --passes simplify --target sm_80 --split-input-file --verify-diagnostics

func.func @k(%x: memref<?xf32>) attributes {tile.kernel} {
  %c1 = arith.constant 1 : index
  // expected-error @below {{memref.dim: memref<?xf32> has no dimension 1}}
  %n = memref.dim %x, %c1 : memref<?xf32>
  return
}

// -----
func.func @k(%x: memref<?xf32>) attributes {tile.kernel} {
  %before = arith.constant -1 : index
  // expected-error @below {{memref.dim: memref<?xf32> has no dimension -1}}
  %n = memref.dim %x, %before : memref<?xf32>
  return
}

// -----
func.func @k(%n: i64) attributes {tile.kernel} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // expected-error @below {{'scf.for' op compares as unsigned; count the iterations of such a loop from 0}}
  scf.for unsigned %i = %zero to %n step %one : i64 { scf.yield }
  return
}
