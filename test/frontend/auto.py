# ruff: noqa: E501
# tl.auto: constants get the size of their role, and the module says why.
# RUN: %python %s | filecheck %s

import tilec
import tilec.language as tl
from tilec.examples.matmul import matmul
from tilec.ops.attention_kernel import attention


def product(dtype, output, precision="ieee"):
    specs = [f"a:{dtype}[?,?]", f"b:{dtype}[?,?]", f"c:{output}[?,?]"]
    print(matmul.source_module(specs, {"PRECISION": precision}))


# CHECK: tile.auto = {BK = "32: k of a dot of bf16, usually 64 bytes", BM = "128: m of a dot of bf16 on tensor cores of {{.*}}", BN = "128: n of
# CHECK-SAME: tile.constants = {BK = 32 : i64, BM = 128 : i64, BN = 128 : i64
# CHECK-SAME: tile.grid = ["cdiv(c.shape[0], 128)"
product("bf16", "bf16")
# CHECK: tile.constants = {BK = 32 : i64, BM = 64 : i64, BN = 64 : i64
product("f32", "f32")
# CHECK: tile.constants = {BK = 16 : i64, BM = 128 : i64, BN = 128 : i64
product("f32", "f32", "tf32")
# CHECK: tile.constants = {BK = 64 : i64, BM = 128 : i64, BN = 128 : i64
product("i8", "i32")


# CHECK: tile.auto = {B = "2048: elementwise tile of 4096 bytes"}
@tilec.kernel
def copy(x: tl.array, B: tl.const = tl.auto):
    tl.store(x, 0, tl.load(x, 0, B))


print(copy.source_module(["x:bf16[?]"]))


# CHECK: tile.auto = {R = "2: its part of {{.*}}", S = "512: its part of
@tilec.kernel
def copy2(x: tl.array, R: tl.const = tl.auto, S: tl.const = tl.auto):
    tl.store(x, (0, 0), tl.load(x, (0, 0), (R, S)))


print(copy2.source_module(["x:f32[?,?]"]))


# Queries: three warpgroups where narrow heads leave them the registers.
def attend(heads, target):
    specs = [f"{name}:bf16[?,?,?,{heads}]" for name in "qkvo"]
    print(attention.source_module([*specs, "scale:f32"], {"D": heads}, target=target))


# CHECK: tile.auto = {BM = "192: m of dots of one loop by three warpgroups of sm_90a", BN
attend(64, "sm_90a")
# CHECK: tile.auto = {BM = "128: m of a dot of bf16 on tensor cores of sm_90a", BN
attend(128, "sm_90a")
# CHECK: tile.auto = {BM = "128: m of a dot of bf16 on tensor cores of sm_80", BN
attend(64, "sm_80")
