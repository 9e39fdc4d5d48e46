// A branch around one guarded arrival becomes part of its guard.
// RUN: tilec opt %s --passes hoist-addresses | filecheck %s

// CHECK-LABEL: llvm.func @release
// CHECK-SAME: %[[FULL:.*]]: i32, %[[SLOT:.*]]: i32, %[[FIRST:.*]]: i1, %[[LATER:.*]]: i1
// CHECK-NEXT: %[[AT:.*]] = arith.addi
// CHECK-NEXT: mbarrier.try_wait
// CHECK-NEXT: %[[BOTH:.*]] = arith.andi %[[LATER]], %[[FIRST]] : i1
// CHECK-NEXT: mbarrier.arrive{{.*}} %[[AT]], %[[BOTH]]
// CHECK-NEXT: llvm.return
llvm.func @release(%full: i32, %slot: i32, %first: i1, %later: i1) {
  llvm.inline_asm has_side_effects "mbarrier.try_wait [$0];", "r,~{memory}" %full : (i32) -> ()
  scf.if %later {
    %at = arith.addi %slot, %full : i32
    llvm.inline_asm has_side_effects "@$1 mbarrier.arrive [$0];", "r,b,~{memory}" %at, %first : (i32, i1) -> ()
  }
  llvm.return
}

// Two instructions, an alternative or no guard keep their branch.
// CHECK-LABEL: llvm.func @branches
// CHECK-COUNT-3: scf.if
llvm.func @branches(%full: i32, %first: i1, %later: i1) {
  llvm.inline_asm has_side_effects "mbarrier.try_wait [$0];", "r,~{memory}" %full : (i32) -> ()
  scf.if %later {
    llvm.inline_asm has_side_effects "fence;", "~{memory}" : () -> ()
    llvm.inline_asm has_side_effects "@$1 mbarrier.arrive [$0];", "r,b,~{memory}" %full, %first : (i32, i1) -> ()
  }
  scf.if %later {
    llvm.inline_asm has_side_effects "@$1 mbarrier.arrive [$0];", "r,b,~{memory}" %full, %first : (i32, i1) -> ()
  } else {
    llvm.inline_asm has_side_effects "fence;", "~{memory}" : () -> ()
  }
  scf.if %later {
    llvm.inline_asm has_side_effects "mbarrier.arrive [$0];", "r,~{memory}" %full : (i32) -> ()
  }
  llvm.return
}
