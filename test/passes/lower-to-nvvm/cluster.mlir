// What CTAs of a cluster do to each other, and how one knows which it is.
// RUN: tilec opt %s --passes lower-to-nvvm --target sm_90a --num-warps 4 --split-input-file | filecheck %s

!m = memref<?x?xbf16, strided<[?, 1]>>
!b = !gpu_tile.buffer<tensor<64x64xbf16>, #gpu_tile.shared<"S<3,4,3> o (64,64):(64,1)">>
!map = !gpu_tile.tensor_map
!bar = !gpu_tile.barrier

// The launch has one dimension, so has the cluster.
// CHECK-LABEL: llvm.func @copy(
// CHECK-SAME: nvvm.cluster_dim = array<i32: 4, 1, 1>
func.func @copy(%a: !m, %k: i32, %n: i32, %parity: i1) attributes {tile.kernel, tile.persistent = true, tile.cluster = array<i32: 2, 2>} {
  %zero = arith.constant 0 : i32
  %ring = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !b
  %full = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 1 : i32, options = {offset = 8192 : i32}} : () -> !bar
  %empty = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 2 : i32, options = {offset = 8200 : i32}} : () -> !bar
  "gpu_tile.fence"() {kind = "barrier_init"} : () -> ()
  // CHECK: nvvm.cluster.arrive.relaxed
  // CHECK-NEXT: nvvm.cluster.wait
  "gpu_tile.cluster_sync"() {order = "relaxed"} : () -> ()
  %map = "gpu_tile.make_tensor_map"(%a) {box = array<i32: 64, 64>, dims = array<i32: 0, 1>, swizzle = "128B"} : (!m) -> !map
  // The CTAs of ranks 0 and 1, or of 2 and 3.
  // CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
  // CHECK: %[[Y:.*]] = arith.divui %[[RANK]], %c2
  // CHECK: %[[STEP:.*]] = arith.muli %[[Y]], %c2
  // CHECK: %[[MASK:.*]] = arith.shli %c3{{.*}}, %[[STEP]]
  %mask = "gpu_tile.cluster_mask"() {axes = array<i32: 0>} : () -> i32
  // CHECK: %[[BITS:.*]] = arith.trunci %[[MASK]] : i32 to i16
  // CHECK: "@$6 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, {$3, $4}], [$2], $5;", "r,l,r,r,r,h,b,~{memory}" {{.*}}, %[[BITS]], %
  "gpu_tile.tma_multicast"(%map, %ring, %full, %zero, %mask, %k, %n) {cache = "normal"} : (!map, !b, !bar, i32, i32, i32, i32) -> ()
  // CHECK: .multicast::cluster.L2::cache_hint [$0], [$1, {$3, $4}], [$2], $5, $6;", "r,l,r,r,r,h,l,b,~{memory}"
  "gpu_tile.tma_multicast"(%map, %ring, %full, %zero, %mask, %k, %n) {cache = "evict_last"} : (!map, !b, !bar, i32, i32, i32, i32) -> ()
  // Thread r of a warpgroup arrives in the CTA of rank r. Products that were waited for need no fence.
  // CHECK: %[[T:.*]] = arith.andi %{{.*}}, %c127
  // CHECK: %[[ONE:.*]] = arith.cmpi ult, %[[T]], %c4
  // CHECK: %[[BIT:.*]] = arith.shrui %[[MASK]],
  // CHECK: %[[HAS:.*]] = arith.trunci %[[BIT]]
  // CHECK: %[[DOES:.*]] = arith.andi %[[ONE]], %[[HAS]]
  // CHECK: mapa.shared::cluster.u32 remote, $0, $1;{{.*}}@$2 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];{{.*}}"r,r,b,~{memory}" %{{[^,]*}}, %[[T]], %[[DOES]]
  "gpu_tile.remote_arrive"(%empty, %zero, %mask) {per = "warpgroup"} : (!bar, i32, i32) -> ()
  // CHECK: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64
  "gpu_tile.barrier_wait"(%empty, %zero, %parity) : (!bar, i32, i1) -> ()
  // CHECK: mbarrier.try_wait.parity.shared::cta.b64
  "gpu_tile.barrier_wait"(%full, %zero, %parity) : (!bar, i32, i1) -> ()
  // CHECK: nvvm.cluster.arrive{{$}}
  // CHECK-NEXT: nvvm.cluster.wait
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

// -----
!bar = !gpu_tile.barrier
// What threads read and wrote themselves is released to the other CTAs.
// CHECK-LABEL: llvm.func @handed_over(
func.func @handed_over(%parity: i1) attributes {tile.kernel, tile.persistent = true, tile.cluster = array<i32: 2>} {
  %zero = arith.constant 0 : i32
  %empty = "gpu_tile.barrier_init"() {slots = 1 : i32, count = 2 : i32, options = {offset = 0 : i32}} : () -> !bar
  // CHECK: %[[ALL:.*]] = arith.constant 3 : i32
  %mask = "gpu_tile.cluster_mask"() {axes = array<i32: 0>} : () -> i32
  // CHECK: nvvm.read.ptx.sreg.clusterid.x
  %id = "gpu_tile.cluster_id"() : () -> i32
  // CHECK: nvvm.read.ptx.sreg.nclusterid.x
  %all = "gpu_tile.num_clusters"() : () -> i32
  // CHECK: "bar.warp.sync 0xffffffff;"
  // CHECK: mbarrier.arrive.release.cluster.shared::cluster.b64
  "gpu_tile.remote_arrive"(%empty, %zero, %mask) {per = "warp"} : (!bar, i32, i32) -> ()
  // One after the other.
  // CHECK-COUNT-2: mbarrier.arrive.release.cluster.shared::cluster.b64
  "gpu_tile.remote_arrive"(%empty, %zero, %mask) {per = "thread"} : (!bar, i32, i32) -> ()
  // CHECK-NOT: mbarrier.arrive
  // CHECK: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64
  "gpu_tile.barrier_wait"(%empty, %zero, %parity) : (!bar, i32, i1) -> ()
  return
}

// -----
// Parts of a program's loop: clusters of CTAs that follow one another.
// CHECK-LABEL: llvm.func @parts(
func.func @parts() attributes {tile.kernel, tile.stripes = 4 : i32, tile.parts = 20 : i32} {
  // CHECK: %[[CTA:.*]] = nvvm.read.ptx.sreg.ctaid.x
  // CHECK: arith.remui %[[CTA]], %c20
  %part = "tile.part_id"() : () -> index
  // CHECK: %[[SAME:.*]] = nvvm.read.ptx.sreg.ctaid.x
  // CHECK: arith.remui %[[SAME]], %c4
  %stripe = "tile.stripe_id"() : () -> index
  // CHECK: %[[NUMBER:.*]] = nvvm.read.ptx.sreg.ctaid.x
  // CHECK: arith.divui %[[NUMBER]], %c20
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  return
}

// -----
// Stripes of a program: CTAs that follow one another. Thread n writes to the n-th of them.
// CHECK-LABEL: llvm.func @stripes(
// CHECK-SAME: nvvm.cluster_dim = array<i32: 4, 1, 1>
func.func @stripes() attributes {tile.kernel, tile.stripes = 4 : i32} {
  // CHECK: %[[CTA:.*]] = nvvm.read.ptx.sreg.ctaid.x
  // CHECK: arith.remui %[[CTA]], %c4
  %stripe = "tile.stripe_id"() : () -> index
  // CHECK: %[[NUMBER:.*]] = nvvm.read.ptx.sreg.ctaid.x
  // CHECK: arith.divui %[[NUMBER]], %c4
  %row = "tile.program_id"() {axis = 0 : i32} : () -> index
  // CHECK: %[[GRID:.*]] = nvvm.read.ptx.sreg.nctaid.x
  // CHECK: arith.divui %[[GRID]], %c4
  %rows = "tile.num_programs"() {axis = 0 : i32} : () -> index
  // CHECK: %[[SECOND:.*]] = nvvm.read.ptx.sreg.ctaid.y
  // CHECK-NOT: arith.divui %[[SECOND]]
  %y = "tile.program_id"() {axis = 1 : i32} : () -> index
  %one = arith.constant dense<1.0> : tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>
  %all = "gpu_tile.alloc"() {options = {offset = 64 : i32}} : () -> !gpu_tile.buffer<tensor<4xf32>, #gpu_tile.shared<"(4):(1)">>
  // CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
  // CHECK: %[[STEP:.*]] = arith.muli %[[RANK]], %c4
  // CHECK: %[[TO:.*]] = arith.andi %{{.*}}, %c3
  // CHECK: %[[THERE:.*]] = llvm.inline_asm {{.*}}"mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r" %{{.*}}, %[[TO]]
  // CHECK: %[[MINE:.*]] = arith.cmpi ult, %{{.*}}, %c4
  // CHECK: "@$2 st.shared::cluster.b32 [$0], $1;", "r,r,b,~{memory}" %[[THERE]], %{{.*}}, %[[MINE]]
  "gpu_tile.cluster_store"(%one, %all) : (tensor<f32, #gpu_tile.layout<"T(128):(0) V():()">>, !gpu_tile.buffer<tensor<4xf32>, #gpu_tile.shared<"(4):(1)">>) -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

// -----
// Halves of a sum go to two CTAs: to where each has its own buffer, as far away as its shared memory.
// CHECK-LABEL: llvm.func @sent(
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
func.func @sent() attributes {tile.kernel, tile.stripes = 2 : i32} {
  %sums = arith.constant dense<1.0> : tensor<256xf32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>
  %b = "gpu_tile.alloc"() {options = {offset = 0 : i32}} : () -> !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>
  // CHECK: %[[OWN:.*]] = llvm.ptrtoint
  // CHECK: %[[THERE:.*]] = llvm.inline_asm {{.*}}"mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r" %[[OWN]], %{{.*}}
  // CHECK: %[[APART:.*]] = arith.subi %[[THERE]], %[[OWN]]
  // CHECK: %[[REMOTE:.*]] = arith.addi %{{.*}}, %[[APART]]
  // CHECK: "@$3 st.shared::cluster.v2.b32 [$0], {$1, $2};", "r,r,r,b,~{memory}" %[[REMOTE]]
  "gpu_tile.cluster_send"(%sums, %b) {axis = 0 : i32} : (tensor<256xf32, #gpu_tile.layout<"T(128):(2@0) V(2):(1@0)">>, !gpu_tile.buffer<tensor<128xf32>, #gpu_tile.shared<"(128):(1)">>) -> ()
  "gpu_tile.cluster_sync"() {order = "acq_rel"} : () -> ()
  return
}

// -----
// Stripes that never meet are no cluster, and need none.
// CHECK-LABEL: llvm.func @apart(
// CHECK-NOT: cluster_dim
func.func @apart() attributes {tile.kernel, tile.stripes = 4 : i32} {
  // CHECK: arith.remui
  %stripe = "tile.stripe_id"() : () -> index
  return
}
