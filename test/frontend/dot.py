# ruff: noqa: E501
# tl.dot: accumulators by input dtype, precision only for f32.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl


@tilec.kernel
def product(a: tl.array, b: tl.array, c: tl.array, PRECISION: tl.const = "ieee"):
    d = tl.dot(tl.load(a, (0, 0), (16, 32)), tl.load(b, (0, 0), (32, 48)), precision=PRECISION)
    tl.store(c, (0, 0), d.to(c.dtype))


def show(inputs, output, precision="ieee"):
    specs = [f"a:{inputs}[?,?]", f"b:{inputs}[?,?]", f"c:{output}[?,?]"]
    print(product.source_module(specs, {"PRECISION": precision}))


# CHECK: arith.constant dense<0.000000e+00> : tensor<16x48xf32>
# CHECK: "tile.dot"{{.*}} {options = {}} : (tensor<16x32xbf16>, tensor<32x48xbf16>, tensor<16x48xf32>) -> tensor<16x48xf32>
show("bf16", "bf16")
# CHECK: "tile.dot"{{.*}} {options = {precision = "ieee"}} : (tensor<16x32xf32>
show("f32", "f32")
# CHECK: "tile.dot"{{.*}} {options = {precision = "tf32"}} : (tensor<16x32xf32>
show("f32", "f32", "tf32")
# CHECK: "tile.dot"{{.*}} {options = {}} : (tensor<16x32xi8>, tensor<32x48xi8>, tensor<16x48xi32>)
show("i8", "i32")
# CHECK: "tile.dot"{{.*}} {options = {}} : (tensor<16x32xf8E4M3FN>, tensor<32x48xf8E4M3FN>, tensor<16x48xf32>)
show("f8e4m3", "f16")
# CHECK: "tile.dot"{{.*}} {options = {}} : (tensor<16x32xf64>, tensor<32x48xf64>, tensor<16x48xf64>)
show("f64", "f64")
