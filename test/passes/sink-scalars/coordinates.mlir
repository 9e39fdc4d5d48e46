// RUN: tilec opt %s --passes sink-scalars --target sm_90a --split-input-file | filecheck %s

// Three divisions say where the result goes, and nothing in the loop of products asks: they are
// computed while its last products run. What the loop reads, too, stays, and so do floats.
// CHECK-LABEL: func.func @sink(
// CHECK-NEXT: %[[TWICE:.*]] = arith.addi
// CHECK-NEXT: arith.addf
// CHECK-NEXT: scf.for
// CHECK: %[[Q:.*]] = arith.divui %arg0, %[[TWICE]]
// CHECK-NEXT: %[[R:.*]] = arith.remui %arg0, %[[TWICE]]
// CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[Q]], %[[R]]
// CHECK-NEXT: "pmevent 0;"
// CHECK-NEXT: "wgmma.wait_group.sync.aligned 0;"
// CHECK-NEXT: "use {{.*}} %[[ROW]]
func.func @sink(%n: i32, %columns: i32, %x: f32) {
  %twice = arith.addi %columns, %columns : i32
  %q = arith.divui %n, %twice : i32
  %r = arith.remui %n, %twice : i32
  %row = arith.muli %q, %r : i32
  %dead = arith.subi %row, %q : i32
  %float = arith.addf %x, %x : f32
  %acc = scf.for %k = %n to %twice step %columns iter_args(%a = %x) -> (f32) : i32 {
    %p = llvm.inline_asm has_side_effects "wgmma.mma_async $0;", "=f,0" %a : (f32) -> f32
    scf.yield %p : f32
  }
  %sum = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,0" %acc : (f32) -> f32
  llvm.inline_asm has_side_effects "use $0 $1 $2", "r,f,f" %row, %sum, %float : (i32, f32, f32) -> ()
  return
}

// -----
// Nothing to move leaves no event. A value that the loop, or the wait's own branch, reads stays.
// CHECK-LABEL: func.func @stays(
// CHECK-NEXT: arith.divui
// CHECK-NEXT: scf.for
// CHECK-NOT: pmevent
// CHECK: return
func.func @stays(%n: i32, %columns: i32, %x: f32) {
  %q = arith.divui %n, %columns : i32
  %acc = scf.for %k = %n to %columns step %columns iter_args(%a = %x) -> (f32) : i32 {
    %p = llvm.inline_asm has_side_effects "wgmma.mma_async $0 $1;", "=f,r,0" %q, %a : (i32, f32) -> f32
    scf.yield %p : f32
  }
  %sum = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,0" %acc : (f32) -> f32
  llvm.inline_asm has_side_effects "use $0 $1", "r,f" %q, %sum : (i32, f32) -> ()
  return
}

// -----
// Loops without products of their own, waits that are not the last, and what stands between.
// CHECK-LABEL: func.func @others(
// CHECK-NEXT: arith.divui
// CHECK-NEXT: arith.remui
// CHECK-NEXT: arith.addi
// CHECK-NEXT: scf.for
// CHECK-NOT: pmevent
// CHECK: return
func.func @others(%n: i32, %columns: i32, %x: f32) {
  %q = arith.divui %n, %columns : i32
  %r = arith.remui %n, %columns : i32
  %s = arith.addi %n, %columns : i32
  %acc = scf.for %k = %n to %columns step %columns iter_args(%a = %x) -> (f32) : i32 {
    %p = llvm.inline_asm has_side_effects "other $0;", "=f,0" %a : (f32) -> f32
    scf.yield %p : f32
  }
  %one = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,0" %acc : (f32) -> f32
  %second = scf.for %k = %n to %columns step %columns iter_args(%a = %one) -> (f32) : i32 {
    %p = llvm.inline_asm has_side_effects "wgmma.mma_async $0;", "=f,0" %a : (f32) -> f32
    scf.yield %p : f32
  }
  %two = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 1;", "=f,0" %second : (f32) -> f32
  %third = scf.for %k = %n to %columns step %columns iter_args(%a = %two) -> (f32) : i32 {
    %p = llvm.inline_asm has_side_effects "wgmma.mma_async $0;", "=f,0" %a : (f32) -> f32
    scf.yield %p : f32
  }
  llvm.inline_asm has_side_effects "mbarrier.arrive", "" : () -> ()
  %sum = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,0" %third : (f32) -> f32
  llvm.inline_asm has_side_effects "use $0 $1 $2 $3", "r,r,r,f" %q, %r, %s, %sum : (i32, i32, i32, f32) -> ()
  return
}
