"""Hand-written `gpu_tile` programs with roles and rings of mbarriers, as text."""

from __future__ import annotations

from emulated import array_type, tile_type
from mlir import ir
from warpgroup_kernels import buffer_type, load, panels, store

from tilec.compile.compiler import compile_module
from tilec.dialects.context import make_context
from tilec.executable.kernel import CompiledKernel
from tilec.hardware.fragments import accumulator_layout, warpgroup_grid
from tilec.hardware.mma_shapes import find_instruction
from tilec.hardware.shared_layout import strided
from tilec.hardware.target import find_target
from tilec.passes.layouts.candidates import blocked_layout

BARRIER = "!gpu_tile.barrier"
ROWS, COLUMNS = 16, 64


def compile_text(text: str, num_warps: int, target: str) -> CompiledKernel:
    """The kernel of a text."""
    with make_context(), ir.Location.unknown():
        return compile_module(ir.Module.parse(text), find_target(target), num_warps=num_warps)


def barriers(name: str, slots: int, count: int) -> str:
    """`barrier_init`."""
    return (
        f'{name} = "gpu_tile.barrier_init"() {{slots = {slots} : i32, count = {count} : i32, '
        f"options = {{}}}} : () -> {BARRIER}"
    )


def ready(warps: int) -> str:
    """What stands behind the barriers' making."""
    return (
        '"gpu_tile.fence"() {kind = "barrier_init"} : () -> ()\n  '
        f'"gpu_tile.sync"() {{barrier = 0 : i32, warps = {warps} : i32, mode = "sync"}} : () -> ()'
    )


def wait(name: str, parity: str) -> str:
    """`barrier_wait`."""
    return f'"gpu_tile.barrier_wait"({name}, %s, {parity}) : ({BARRIER}, i32, i1) -> ()'


def arrive(name: str, per: str) -> str:
    """`barrier_arrive`, or the arrival of copies."""
    if per == "copies":
        return f'"gpu_tile.cp_async_arrive"({name}, %s) : ({BARRIER}, i32) -> ()'
    return f'"gpu_tile.barrier_arrive"({name}, %s) {{per = "{per}"}} : ({BARRIER}, i32) -> ()'


def role(name: str, first: int, warps: int, body: str, registers: int = 0) -> str:
    """`role`."""
    return f""""gpu_tile.role"() ({{
{body}
    gpu.yield
  }}) {{name = "{name}", first_warp = {first} : i32, warps = {warps} : i32, registers = {registers} : i32}} : () -> ()"""  # noqa: E501


def position(slots: int) -> str:
    """Slot and phase of iteration %i."""
    return f'%s, %ph = "gpu_tile.ring_position"(%i) {{slots = {slots} : i32}} : (i32) -> (i32, i1)'


ARRIVALS = {"thread": 32, "copies": 32, "warp": 1}
"""How often a warp arrives."""


def sum_text(producer: str, *, slots: int, fill_warps: int, use_warps: int) -> str:
    """@k(x, y, z, n): a role brings n tiles of x by `producer` ("thread", "warp": plain stores;
    "copies": cp.async), another sums them into y and writes each, doubled, to z."""
    array = array_type(2, "f32")
    fill = blocked_layout((ROWS, COLUMNS), 1, 4, 32 * fill_warps)
    use = blocked_layout((ROWS, COLUMNS), 0, 1, 32 * use_warps)
    one = buffer_type((ROWS, COLUMNS), "f32", strided((ROWS, COLUMNS), (COLUMNS, 1)))
    ring = one.replace("tensor<", f"tensor<{slots}x", 1)
    source, tile = (tile_type((ROWS, COLUMNS), "f32", layout) for layout in (fill, use))
    if producer == "copies":
        put = f"""%yes = arith.constant true
      "gpu_tile.cp_async"(%x, %b, %yes, %row, %c0) {{dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"}} : ({array}, {one}, i1, index, index) -> ()"""  # noqa: E501
    else:
        put = f"""{load("%t", "%x", source, array, "f32", "%row, %c0")}
      "gpu_tile.buffer_store"(%t, %b) : ({source}, {one}) -> ()"""
    body = f"""    scf.for %i = %i0 to %n step %i1 : i32 {{
      {position(slots)}
      %no = arith.constant true
      %free = arith.xori %ph, %no : i1
      {wait("%empty", "%free")}
      %at = arith.index_cast %i : i32 to index   %row = arith.muli %at, %rows : index
      %b = "gpu_tile.slot"(%ring, %s) : ({ring}, i32) -> {one}
      {put}
      {arrive("%full", producer)}
    }}"""
    use_body = f"""    %zero = arith.constant dense<0.0> : {tile}
    %sum = scf.for %i = %i0 to %n step %i1 iter_args(%acc = %zero) -> ({tile}) : i32 {{
      {position(slots)}
      {wait("%full", "%ph")}
      %b = "gpu_tile.slot"(%ring, %s) : ({ring}, i32) -> {one}
      %t = "gpu_tile.buffer_load"(%b) : ({one}) -> {tile}
      {arrive("%empty", "warp")}
      %next = arith.addf %acc, %t : {tile}   %twice = arith.addf %t, %t : {tile}
      %at = arith.index_cast %i : i32 to index   %row = arith.muli %at, %rows : index
      {store("%twice", "%z", tile, array).replace("%c0, %c0", "%row, %c0")}
      scf.yield %next : {tile}
    }}
    {store("%sum", "%y", tile, array)}"""
    total = fill_warps + use_warps
    return f"""
func.func @k(%x: {array} {{tile.facts = {{align = 16 : i32, sizes = array<i32: 1, 4>, strides = array<i32: 4, 1>}}}}, %y: {array}, %z: {array}, %n: i32) attributes {{tile.kernel, tile.total_warps = {total} : i32}} {{
  %c0 = arith.constant 0 : index   %rows = arith.constant {ROWS} : index
  %i0 = arith.constant 0 : i32   %i1 = arith.constant 1 : i32
  %ring = "gpu_tile.alloc"() {{options = {{}}}} : () -> {ring}
  {barriers("%full", slots, ARRIVALS[producer] * fill_warps)}
  {barriers("%empty", slots, use_warps)}
  {ready(total)}
  {role("use", 0, use_warps, use_body)}
  {role("fill", use_warps, fill_warps, body)}
  return
}}"""  # noqa: E501


def product_text(
    producer: str, *, slots: int, use_warps: int = 4, m: int = 64, n: int = 64, depth: int = 64
) -> str:
    """@k(a, b, c, steps): c = a @ b over `steps` tiles along k, brought by `producer` ("copies":
    cp.async, "warp": plain stores, "tma") to warpgroups whose products stay in flight."""
    row = find_instruction(f"wgmma.m64n{n}k16.f32.bf16.bf16")
    fill_warps, total = 4, use_warps + 4
    grid = warpgroup_grid((m, n), use_warps)
    assert grid is not None
    acc = tile_type((m, n), "f32", accumulator_layout(row, (m, n), *grid))
    pending = f"!gpu_tile.pending<{acc}>"
    half, full = array_type(2, "bf16"), array_type(2, "f32")
    types = {}
    for name, sizes, contiguous in (("a", (m, depth), 1), ("b", (depth, n), 1)):
        types[name] = buffer_type(sizes, "bf16", panels(sizes, contiguous, 128, 2))
        types[name + "s"] = types[name].replace("tensor<", f"tensor<{slots}x", 1)
    known = "align = 16 : i32, sizes = array<i32: 8, 8>, strides = array<i32: 8, 1>"
    facts = f"{{tile.facts = {{{known}}}}}"
    made, fill, count = "", "", 1
    for name, sizes, at in (("a", (m, depth), "%c0, %k"), ("b", (depth, n), "%k, %c0")):
        if producer == "tma":
            made += f"""%map{name} = "gpu_tile.make_tensor_map"(%{name}) {{box = array<i32: {sizes[0]}, 64>, dims = array<i32: 0, 1>, swizzle = "128B"}} : ({half}) -> !gpu_tile.tensor_map
  """  # noqa: E501
            place = "%i0, %k32" if name == "a" else "%k32, %i0"
            fill += f"""
      "gpu_tile.tma_load"(%map{name}, %slot{name}, %full, %s, {place}) {{cache = "normal"}} : (!gpu_tile.tensor_map, {types[name]}, {BARRIER}, i32, i32, i32) -> ()"""  # noqa: E501
        elif producer == "copies":
            count = 32 * fill_warps
            fill += f"""
      "gpu_tile.cp_async"(%{name}, %slot{name}, %yes, {at}) {{dims = array<i32: 0, 1>, bytes = 16 : i32, cache = "cg"}} : ({half}, {types[name]}, i1, index, index) -> ()"""  # noqa: E501
        else:
            count = fill_warps
            layout = blocked_layout(sizes, 1, 8, 32 * fill_warps)
            tile = tile_type(sizes, "bf16", layout)
            fill += f"""
      {load(f"%t{name}", f"%{name}", tile, half, "bf16", at)}
      "gpu_tile.buffer_store"(%t{name}, %slot{name}) : ({tile}, {types[name]}) -> ()"""
    bytes_ = 2 * depth * (m + n)
    fill_registers = 0 if producer == "warp" else 40  # whole tiles go through its registers
    expect = (
        f'"gpu_tile.barrier_expect"(%full, %s) {{bytes = {bytes_} : i32}} : ({BARRIER}, i32) -> ()'
    )
    slot_ops = "\n      ".join(
        f'%slot{name} = "gpu_tile.slot"(%ring{name}, %s) '
        f": ({types[name + 's']}, i32) -> {types[name]}"
        for name in "ab"
    )
    body = f"""    %yes = arith.constant true
    scf.for %i = %i0 to %n step %i1 : i32 {{
      {position(slots)}
      %free = arith.xori %ph, %yes : i1
      {wait("%empty", "%free")}
      {expect if producer == "tma" else ""}
      %k32 = arith.muli %i, %depth : i32   %k = arith.index_cast %k32 : i32 to index
      {slot_ops}{fill}
      {"" if producer == "tma" else arrive("%full", producer)}
    }}"""
    use_body = f"""    %zero = arith.constant dense<0.0> : {acc}
    %p = "gpu_tile.wgmma_fence"(%zero) : ({acc}) -> {pending}
    %last = scf.for %i = %i0 to %n step %i1 iter_args(%acc = %p) -> ({pending}) : i32 {{
      {position(slots)}
      {wait("%full", "%ph")}
      {slot_ops}
      %next = "gpu_tile.wgmma"(%slota, %slotb, %acc) {{instruction = "{row.name}"}} : ({types["a"]}, {types["b"]}, {pending}) -> {pending}
      %safe = "gpu_tile.wgmma_wait"(%next) {{pending = 1 : i32}} : ({pending}) -> {pending}
      %later = arith.cmpi sgt, %i, %i0 : i32
      scf.if %later {{
        %before = arith.subi %i, %i1 : i32
        %sl, %pl = "gpu_tile.ring_position"(%before) {{slots = {slots} : i32}} : (i32) -> (i32, i1)
        {arrive("%empty", "warpgroup").replace("%s)", "%sl)")}
      }}
      scf.yield %safe : {pending}
    }}
    %sum = "gpu_tile.wgmma_wait"(%last) {{pending = 0 : i32}} : ({pending}) -> {acc}
    {store("%sum", "%c", acc, full)}"""  # noqa: E501
    return f"""
func.func @k(%a: {half} {facts}, %b: {half} {facts}, %c: {full}, %n: i32) attributes {{tile.kernel, tile.total_warps = {total} : i32}} {{
  %c0 = arith.constant 0 : index
  %i0 = arith.constant 0 : i32   %i1 = arith.constant 1 : i32   %depth = arith.constant {depth} : i32
  {made}%ringa = "gpu_tile.alloc"() {{options = {{}}}} : () -> {types["as"]}
  %ringb = "gpu_tile.alloc"() {{options = {{}}}} : () -> {types["bs"]}
  {barriers("%full", slots, count)}
  {barriers("%empty", slots, use_warps // 4)}
  {ready(total)}
  {role("fill", use_warps, fill_warps, body, fill_registers)}
  {role("use", 0, use_warps, use_body, 232 if fill_registers else 0)}
  return
}}"""  # noqa: E501


def turn_text(first_warps: int, second_warps: int) -> str:
    """@k(x, y, u, v): two roles transpose x into u and y into v, each through a buffer of its
    own."""
    array = array_type(2, "f32")
    rows, columns = (16, 64), (64, 16)
    put = buffer_type(rows, "f32", strided(rows, (64, 1)))
    bodies = []
    for warps, source, place in ((first_warps, "%x", "%u"), (second_warps, "%y", "%v")):
        read = tile_type(rows, "f32", blocked_layout(rows, 1, 4, 32 * warps))
        transposed = tile_type(columns, "f32", blocked_layout(columns, 1, 1, 32 * warps))
        back = tile_type(rows, "f32", blocked_layout(columns, 1, 1, 32 * warps).permute((1, 0)))
        bodies.append(f"""    {load("%t", source, read, array, "f32")}
    %b = "gpu_tile.alloc"() {{options = {{}}}} : () -> {put}
    "gpu_tile.buffer_store"(%t, %b) : ({read}, {put}) -> ()
    %r = "gpu_tile.buffer_load"(%b) : ({put}) -> {back}
    %s = "tile.transpose"(%r) {{permutation = array<i32: 1, 0>}} : ({back}) -> {transposed}
    {store("%s", place, transposed, array)}""")
    total = first_warps + second_warps
    return f"""
func.func @k(%x: {array}, %y: {array}, %u: {array}, %v: {array}) attributes {{tile.kernel, tile.total_warps = {total} : i32}} {{
  %c0 = arith.constant 0 : index
  {role("first", 0, first_warps, bodies[0])}
  {role("second", first_warps, second_warps, bodies[1])}
  return
}}"""  # noqa: E501
