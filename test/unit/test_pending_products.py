"""Programs that come in between passes, and leave products pending whose operands are written anew.

There are no rings yet in them, whose turns would say so: the buffers themselves are played.
"""

from __future__ import annotations

import pytest
from mlir import ir

from tilec.dialects.context import make_context
from tilec.hardware.target import find_target
from tilec.messages.diagnostics import CompileError
from tilec.passes.checks.verify_rings import verify_rings
from tilec.passes.contract import PassContext

ACC = 'tensor<64x32xf32, #gpu_tile.layout<"T(4,8,4):(2@1,1@0,16@0) V(2,2,4):(1@1,8@0,8@1)">>'
TILE = 'tensor<32x32xbf16, #gpu_tile.layout<"T(4,32):(8@1,1@0) V(8):(1@1)">>'
LEFT = '!gpu_tile.buffer<tensor<64x32xbf16>, #gpu_tile.shared<"S<2,4,3> o (64,32):(32,1)">>'
ONE = '!gpu_tile.buffer<tensor<32x32xbf16>, #gpu_tile.shared<"S<2,4,3> o (32,32):(32,1)">>'
TWO = ONE.replace("tensor<", "tensor<2x")
PENDING = f"!gpu_tile.pending<{ACC}>"
WHOLE = f'%s = "gpu_tile.alloc"() {{options = {{}}}} : () -> {ONE}'
SLOT = f"""%ring = "gpu_tile.alloc"() {{options = {{}}}} : () -> {TWO}
      %at = arith.remui %i, %c2 : i32
      %s = "gpu_tile.slot"(%ring, %at) : ({TWO}, i32) -> {ONE}"""


def program(buffer: str, pending: int) -> str:
    """A loop that stores a tile to a buffer, and multiplies with it."""
    return f"""
  func.func @k(%n: i32) attributes {{tile.kernel}} {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %zero = arith.constant dense<0.0> : {ACC}
    %tile = arith.constant dense<1.0> : {TILE}
    %left = "gpu_tile.alloc"() {{options = {{}}}} : () -> {LEFT}
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> ({ACC}) : i32 {{
      {buffer}
      "gpu_tile.buffer_store"(%tile, %s) : ({TILE}, {ONE}) -> ()
      %in = "gpu_tile.wgmma_fence"(%acc) : ({ACC}) -> {PENDING}
      %out = "gpu_tile.wgmma"(%left, %s, %in) {{instruction = "wgmma.m64n32k16.f32.bf16.bf16"}}
        : ({LEFT}, {ONE}, {PENDING}) -> {PENDING}
      %next = "gpu_tile.wgmma_wait"(%out) {{pending = {pending} : i32}} : ({PENDING}) -> {ACC}
      scf.yield %next : {ACC}
    }}
    return
  }}"""


def verify(text: str) -> None:
    """As a program that comes in is."""
    with make_context():
        verify_rings(ir.Module.parse(text), PassContext(find_target("sm_90a")))


@pytest.mark.parametrize(("buffer", "pending"), [(WHOLE, 0), (SLOT, 0), (SLOT, 1)])
def test_what_nothing_reads_any_more_is_written(buffer: str, pending: int) -> None:
    verify(program(buffer, pending))


@pytest.mark.parametrize(("buffer", "pending"), [(WHOLE, 1), (SLOT, 2)])
def test_what_pending_products_read_is_written(buffer: str, pending: int) -> None:
    with pytest.raises(CompileError, match="writes what products may still read") as caught:
        verify(program(buffer, pending))
    assert caught.value.location is not None
    line = program(buffer, pending).splitlines()[caught.value.location.line - 1]
    assert "buffer_store" in line
