// Integer arithmetic for asynchronous instructions moves in front of the first wait it can pass.
// RUN: tilec opt %s --passes hoist-addresses | filecheck %s

// CHECK-LABEL: llvm.func @copy
// CHECK-NEXT: arith.constant
// CHECK-NEXT: arith.muli
// CHECK-NEXT: mbarrier.try_wait
// CHECK-NEXT: griddepcontrol.wait
// CHECK-NEXT: cp.async.bulk.tensor
llvm.func @copy(%full: i32, %slot: i32) {
  %bytes = arith.constant 16384 : i32
  llvm.inline_asm has_side_effects "mbarrier.try_wait [$0];", "r,~{memory}" %full : (i32) -> ()
  llvm.inline_asm has_side_effects "griddepcontrol.wait;", "~{memory}" : () -> ()
  %at = arith.muli %slot, %bytes : i32
  llvm.inline_asm has_side_effects "cp.async.bulk.tensor [$0];", "r,~{memory}" %at : (i32) -> ()
  llvm.return
}

// What the first wait's neighbour gives is there behind it only: in front of the second wait.
// CHECK-LABEL: llvm.func @between
// CHECK-NEXT: mbarrier.try_wait{{.*}}first
// CHECK-NEXT: %[[READ:.*]] = llvm.inline_asm has_side_effects "ld
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[READ]]
// CHECK-NEXT: mbarrier.try_wait{{.*}}second
// CHECK-NEXT: wgmma.mma_async{{.*}} %[[SUM]]
llvm.func @between(%full: i32, %slot: i32) {
  llvm.inline_asm has_side_effects "mbarrier.try_wait [$0]; // first", "r,~{memory}" %full : (i32) -> ()
  %read = llvm.inline_asm has_side_effects "ld $0;", "=r,~{memory}" : () -> i32
  llvm.inline_asm has_side_effects "mbarrier.try_wait [$0]; // second", "r,~{memory}" %full : (i32) -> ()
  %at = arith.addi %read, %slot : i32
  llvm.inline_asm has_side_effects "wgmma.mma_async $0;", "r,~{memory}" %at : (i32) -> ()
  llvm.return
}

// Neither a division that could fail, nor floats, nor what no asynchronous instruction needs.
// CHECK-LABEL: llvm.func @stays
// CHECK-NEXT: mbarrier.try_wait
// CHECK-NEXT: arith.divui
// CHECK-NEXT: cvt.rna.tf32
// CHECK-NEXT: arith.addi
// CHECK-NEXT: wgmma.mma_async
// CHECK-NEXT: "st
llvm.func @stays(%full: i32, %slot: i32, %x: f32) {
  llvm.inline_asm has_side_effects "mbarrier.try_wait [$0];", "r,~{memory}" %full : (i32) -> ()
  %ratio = arith.divui %slot, %full : i32
  %rounded = llvm.inline_asm "cvt.rna.tf32.f32 $0, $1;", "=r,f" %x : (f32) -> i32
  %other = arith.addi %slot, %full : i32
  llvm.inline_asm has_side_effects "wgmma.mma_async $0, $1;", "r,r,~{memory}" %ratio, %rounded : (i32, i32) -> ()
  llvm.inline_asm has_side_effects "st $0;", "r,~{memory}" %other : (i32) -> ()
  llvm.return
}
