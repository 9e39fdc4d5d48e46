"""What PTX's approximating instructions do at their worst, as LLVM IR for the CPU.

The right result in double, then moved by as much as PTX ISA 9.0 allows the instruction to be off,
in a way that depends on the argument's bits: @hw.NAME stands for @llvm.nvvm.NAME.
"""

from __future__ import annotations

HARDWARE = r"""
declare double @llvm.exp2.f64(double)
declare double @llvm.log2.f64(double)
declare double @llvm.sin.f64(double)
declare double @llvm.cos.f64(double)
declare double @tanh(double)
declare double @llvm.sqrt.f64(double)
declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.abs.i64(i64, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.minnum.f32(float, float)
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.copysign.f32(float, float)

; -reach .. reach, by the bits of %x
define internal i32 @step(float %x, i32 %reach) {
  %b = bitcast float %x to i32
  %h = mul i32 %b, -1640531535
  %s = lshr i32 %h, 15
  %span = shl i32 %reach, 1
  %count = add i32 %span, 1
  %m = urem i32 %s, %count
  %d = sub i32 %m, %reach
  ret i32 %d
}
; %v moved by up to %reach of its ulps, then rounded; zeros, infinities, NaN, denormal results and
; results of zero arguments are only rounded
define internal float @blur(double %v, float %x, i32 %reach) {
  %d = call i32 @step(float %x, i32 %reach)
  %b = bitcast double %v to i64
  %e = and i64 %b, 9218868437227405312
  %binade = bitcast i64 %e to double
  %ulp = fmul double %binade, 0x3E80000000000000
  %n = sitofp i32 %d to double
  %off = fmul double %ulp, %n
  %s = fadd double %v, %off
  %tiny = fcmp olt double %binade, 0x3810000000000000
  %huge = fcmp oge double %binade, 0x47F0000000000000
  %zero = fcmp oeq float %x, 0.0
  %k0 = or i1 %tiny, %huge
  %keep = or i1 %k0, %zero
  %r = select i1 %keep, double %v, double %s
  %f = fptrunc double %r to float
  ret float %f
}
define internal float @ftz(float %x) {
  %a = call float @llvm.fabs.f32(float %x)
  %tiny = fcmp olt float %a, 0x3810000000000000
  %z = call float @llvm.copysign.f32(float 0.0, float %x)
  %r = select i1 %tiny, float %z, float %x
  ret float %r
}
; 2**x of a small negative x is below one, if only a double says 1.0: its ulp is the smaller one
define float @hw.ex2.approx.f32(float %x) {
  %w = fpext float %x to double
  %e = call double @llvm.exp2.f64(double %w)
  %negative = fcmp olt float %x, 0.0
  %one = fcmp oeq double %e, 1.0
  %less = and i1 %negative, %one
  %p = select i1 %less, double 0x3FEFFFFFFFFFFFFF, double %e
  %r = call float @blur(double %p, float %x, i32 2)
  ret float %r
}
define float @hw.ex2.approx.ftz.f32(float %x) {
  %a = call float @ftz(float %x)
  %v = call float @hw.ex2.approx.f32(float %a)
  %r = call float @ftz(float %v)
  ret float %r
}
define float @hw.lg2.approx.ftz.f(float %x0) {
  %x = call float @ftz(float %x0)
  %w = fpext float %x to double
  %p = call double @llvm.log2.f64(double %w)
  %rel = call float @blur(double %p, float %x, i32 2)
  %d = call i32 @step(float %x, i32 2)
  %df = sitofp i32 %d to double
  %off = fmul double %df, 0x3E80000000000000
  %s = fadd double %p, %off
  %abs = fptrunc double %s to float
  %c0 = fcmp ogt float %x, 0.5
  %c1 = fcmp olt float %x, 2.0
  %one = fcmp une float %x, 1.0
  %c2 = and i1 %c0, %c1
  %c = and i1 %c2, %one
  %r0 = select i1 %c, float %abs, float %rel
  %r = call float @ftz(float %r0)
  ret float %r
}
define float @hw.rcp.approx.ftz.f(float %x) {
  %a = call float @ftz(float %x)
  %w = fpext float %a to double
  %q = fdiv double 1.0, %w
  %b = call float @blur(double %q, float %a, i32 1)
  %r = call float @ftz(float %b)
  ret float %r
}
define float @hw.sqrt.approx.f(float %x) {
  %w = fpext float %x to double
  %p = call double @llvm.sqrt.f64(double %w)
  %r = call float @blur(double %p, float %x, i32 1)
  ret float %r
}
define float @hw.sqrt.approx.ftz.f(float %x) {
  %a = call float @ftz(float %x)
  %r = call float @hw.sqrt.approx.f(float %a)
  ret float %r
}
define float @hw.rsqrt.approx.f(float %x) {
  %w = fpext float %x to double
  %p = call double @llvm.sqrt.f64(double %w)
  %q = fdiv double 1.0, %p
  %r = call float @blur(double %q, float %x, i32 1)
  ret float %r
}
define float @hw.rsqrt.approx.ftz.f(float %x) {
  %a = call float @ftz(float %x)
  %r = call float @hw.rsqrt.approx.f(float %a)
  ret float %r
}
define float @hw.div.full(float %x, float %y) {
  %v = fpext float %x to double
  %w = fpext float %y to double
  %q = fdiv double %v, %w
  %r = call float @blur(double %q, float %x, i32 2)
  ret float %r
}
define float @hw.div.approx.ftz.f(float %x, float %y) {
  %a = call float @ftz(float %x)
  %b = call float @ftz(float %y)
  %q = call float @hw.div.full(float %a, float %b)
  %r = call float @ftz(float %q)
  ret float %r
}
define float @hw.sin.approx.ftz.f(float %x) {
  %w = fpext float %x to double
  %p = call double @llvm.sin.f64(double %w)
  %r = call float @shift(double %p, float %x)
  ret float %r
}
define float @hw.cos.approx.ftz.f(float %x) {
  %w = fpext float %x to double
  %p = call double @llvm.cos.f64(double %w)
  %r = call float @shift(double %p, float %x)
  ret float %r
}
; +- 2**-20.5 or less
define internal float @shift(double %p, float %x) {
  %d = call i32 @step(float %x, i32 1)
  %df = sitofp i32 %d to double
  %off = fmul double %df, 0x3EA6A09E60000000
  %s = fadd double %p, %off
  %f = fptrunc double %s to float
  %r = call float @ftz(float %f)
  ret float %r
}
; relative error 2**-11
define float @hw.tanh.f32(float %x) {
  %w = fpext float %x to double
  %p = call double @tanh(double %w)
  %d = call i32 @step(float %x, i32 2)
  %df = sitofp i32 %d to double
  %rel = fmul double %df, 0x3F30000000000000
  %off = fmul double %rel, %p
  %s = fadd double %p, %off
  %zero = fcmp oeq double %p, 0.0
  %v = select i1 %zero, double %p, double %s
  %r = fptrunc double %v to float
  ret float %r
}
define float @hw.fma.rn.sat.f(float %x, float %y, float %z) {
  %s = call float @llvm.fma.f32(float %x, float %y, float %z)
  %l = call float @llvm.maxnum.f32(float %s, float 0.0)
  %r = call float @llvm.minnum.f32(float %l, float 1.0)
  %nan = fcmp uno float %s, %s
  %q = select i1 %nan, float 0.0, float %r
  ret float %q
}
; exact in double for the magnitudes it is used with, then rounded down
define float @hw.fma.rm.f(float %x, float %y, float %z) {
  %a = fpext float %x to double
  %b = fpext float %y to double
  %c = fpext float %z to double
  %p = fmul double %a, %b
  %s = fadd double %p, %c
  %n = fptrunc double %s to float
  %w = fpext float %n to double
  %up = fcmp ogt double %w, %s
  %i = bitcast float %n to i32
  %j = sub i32 %i, 1
  %k = select i1 %up, i32 %j, i32 %i
  %r = bitcast i32 %k to float
  ret float %r
}
; toward zero
define float @hw.d2f.rz(double %x) {
  %n = fptrunc double %x to float
  %w = fpext float %n to double
  %a = call double @llvm.fabs.f64(double %w)
  %b = call double @llvm.fabs.f64(double %x)
  %far = fcmp ogt double %a, %b
  %i = bitcast float %n to i32
  %j = sub i32 %i, 1
  %k = select i1 %far, i32 %j, i32 %i
  %r = bitcast i32 %k to float
  ret float %r
}
; what is left of the highest 24 bits is a float
define float @hw.ull2f.rz(i64 %x) {
  %zeros = call i64 @llvm.ctlz.i64(i64 %x, i1 false)
  %more = sub i64 40, %zeros
  %below = call i64 @llvm.smax.i64(i64 %more, i64 0)
  %mask = shl i64 -1, %below
  %high = and i64 %x, %mask
  %r = uitofp i64 %high to float
  ret float %r
}
define float @hw.ll2f.rz(i64 %x) {
  %m = call i64 @llvm.abs.i64(i64 %x, i1 false)
  %f = call float @hw.ull2f.rz(i64 %m)
  %n = fneg float %f
  %neg = icmp slt i64 %x, 0
  %r = select i1 %neg, float %n, float %f
  ret float %r
}
define float @hw.i2f.rz(i32 %x) {
  %w = sext i32 %x to i64
  %r = call float @hw.ll2f.rz(i64 %w)
  ret float %r
}
define float @hw.ui2f.rz(i32 %x) {
  %w = zext i32 %x to i64
  %r = call float @hw.ull2f.rz(i64 %w)
  ret float %r
}
"""
