"""Tiles of gathers that no multiprocessor holds: an error with the reason."""

from __future__ import annotations

import pytest

import tilec.triton
from tilec.compile.compiler import compile_module
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import DoesNotFit
from tilec.triton.ahead import parameters_ahead
from tilec.triton.importer import build_module


def gathered(name: str, rows: int, columns: int) -> str:
    """A tile at rows whose numbers are loaded."""
    tile, line = f"tensor<{rows}x{columns}x", f"tensor<{rows}x"
    row = f"tensor<1x{columns}xi32>"
    return f"""
      %{name}0 = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : {line}i32>
      %{name}1 = tt.splat %index : !tt.ptr<i32> -> {line}!tt.ptr<i32>>
      %{name}2 = tt.addptr %{name}1, %{name}0 : {line}!tt.ptr<i32>>, {line}i32>
      %{name}t = tt.splat %k : i32 -> {line}i32>
      %{name}u = tt.addptr %{name}2, %{name}t : {line}!tt.ptr<i32>>, {line}i32>
      %{name}3 = tt.load %{name}u : {line}!tt.ptr<i32>>
      %{name}4 = tt.expand_dims %{name}3 {{axis = 1 : i32}} : {line}i32> -> tensor<{rows}x1xi32>
      %{name}5 = tt.broadcast %{name}4 : tensor<{rows}x1xi32> -> {tile}i32>
      %{name}6 = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32>
      %{name}7 = tt.expand_dims %{name}6 {{axis = 0 : i32}} : tensor<{columns}xi32> -> {row}
      %{name}8 = tt.broadcast %{name}7 : {row} -> {tile}i32>
      %{name}9 = arith.addi %{name}5, %{name}8 : {tile}i32>
      %{name}p = tt.splat %x : !tt.ptr<bf16> -> {tile}!tt.ptr<bf16>>
      %{name}q = tt.addptr %{name}p, %{name}9 : {tile}!tt.ptr<bf16>>, {tile}i32>
      %{name} = tt.load %{name}q : {tile}!tt.ptr<bf16>>"""


TEXT = f"""
module {{
  tt.func public @large(%x: !tt.ptr<bf16>, %index: !tt.ptr<i32>, %out: !tt.ptr<f32>, %n: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<256x256xf32>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x256xf32>) : i32 {{
{gathered("a", 256, 512)}
{gathered("b", 512, 256)}
      %d = tt.dot %a, %b, %acc : tensor<256x512xbf16> * tensor<512x256xbf16> -> tensor<256x256xf32>
      scf.yield %d : tensor<256x256xf32>
    }}
    %r = tt.make_range {{end = 256 : i32, start = 0 : i32}} : tensor<256xi32>
    %s = "tt.reduce"(%sum) <{{axis = 1 : i32}}> ({{
    ^bb0(%one: f32, %two: f32):
      %t = arith.addf %one, %two : f32
      tt.reduce.return %t : f32
    }}) : (tensor<256x256xf32>) -> tensor<256xf32>
    %o = tt.splat %out : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
    %q = tt.addptr %o, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
    tt.store %q, %s : tensor<256x!tt.ptr<f32>>
    tt.return
  }}
}}
"""


def test_operands_of_gathers_that_do_not_fit() -> None:
    plan = tilec.triton.kernel(TEXT, "large.ttir").plan()
    with pytest.raises(DoesNotFit, match="bytes of shared memory"):
        compile_module(build_module(plan, parameters_ahead(plan)), find_target("sm_90a"))
