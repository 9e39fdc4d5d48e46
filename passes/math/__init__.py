"""Scalar math functions as arithmetic: one module a family of functions, used by `expand_math`.

Every formula is a plain function `(ScalarBuilder, Scalar, ...) -> Scalar` over f32 or f64.
README.md holds the table of measured errors.
"""
