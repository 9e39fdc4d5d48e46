// A formula on a vector is applied to each element.
// RUN: tilec opt %s --passes expand-math | filecheck %s

// CHECK-LABEL: llvm.func @vector
llvm.func @vector(%x: vector<2xf32>) -> vector<2xf32> {
  // CHECK: %[[A:.*]] = llvm.extractelement
  // CHECK: %[[B:.*]] = llvm.extractelement
  // CHECK: llvm.call @__tilec_log_f32(%[[A]])
  // CHECK: llvm.call @__tilec_log_f32(%[[B]])
  // CHECK-COUNT-2: llvm.insertelement
  %0 = math.log %x : vector<2xf32>
  llvm.return %0 : vector<2xf32>
}
