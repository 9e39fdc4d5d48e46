// What a kernel may say of itself and its parameters.
// RUN: tilec opt %s --split-input-file --verify-diagnostics

// expected-error @below {{kernel "a b" needs a name of letters, digits and underscores}}
func.func @"a b"() attributes {tile.kernel} { return }

// -----
// expected-error @below {{kernel "k" attribute 'tile.index_bits' must be an i32 integer, found 32 : i64}}
func.func @k() attributes {tile.kernel, tile.index_bits = 32 : i64} { return }

// -----
// expected-error @below {{kernel "k" attribute 'tile.constants' must be a dictionary, found 3 : i32}}
func.func @k() attributes {tile.kernel, tile.constants = 3 : i32} { return }

// -----
// expected-error @below {{kernel "k" attribute 'tile.auto' must hold strings, found 3 : i32}}
func.func @k() attributes {tile.kernel, tile.auto = {BM = 3 : i32}} { return }

// -----
// expected-error @below {{kernel "k" attribute 'tile.grid' must be one to three strings, found 3 : i32}}
func.func @k() attributes {tile.kernel, tile.grid = 3 : i32} { return }

// -----
// expected-error @below {{kernel "k" attribute 'tile.grid' must be one to three strings}}
func.func @k() attributes {tile.kernel, tile.grid = ["1", "1", "1", "1"]} { return }

// -----
// expected-error @below {{kernel "k" has a wrong grid rule 'cdiv(y.shape[0], 4)', column 6: }}
func.func @k(%x: memref<?xf32> {tile.name = "x"}) attributes {tile.kernel, tile.grid = ["cdiv(y.shape[0], 4)"]} { return }

// -----
// expected-error @below {{kernel "k" has a wrong grid rule 'x.shape[1]', column 1: }}
func.func @k(%x: memref<?xf32> {tile.name = "x"}) attributes {tile.kernel, tile.grid = ["x.shape[1]"]} { return }

// -----
// expected-error @below {{parameter 'arg0' has the unknown attribute 'tile.fact'; known: tile.name, tile.facts}}
func.func @k(%x: i32 {tile.fact = 3 : i32}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' attribute 'tile.name' must be a string, found 3 : i32}}
func.func @k(%x: i32 {tile.name = 3 : i32}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'a-b' needs a name of letters, digits and underscores}}
func.func @k(%x: i32 {tile.name = "a-b"}) attributes {tile.kernel} { return }

// -----
func.func @k(%x: i32 {tile.name = "n"},
    // expected-error @below {{parameter 'n' has the name 'n' of another parameter}}
    %y: i32 {tile.name = "n"}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' attribute 'tile.facts' has the unknown option 'odd'; known: align, sizes, strides}}
func.func @k(%x: memref<4xf32> {tile.facts = {odd = true}}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' has 'tile.settled', which is about arrays, but is i32}}
func.func @settled(%n: i32 {tile.settled = true}) attributes {tile.kernel} {
  return
}

// -----
// expected-error @below {{parameter 'arg0' has facts, which are about arrays, but is i32}}
func.func @k(%x: i32 {tile.facts = {align = 16 : i32}}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' is memref<4xf32>, but 'tile.dtype' is f8E8M0FNU, which is i8 here}}
func.func @k(%x: memref<4xf32> {tile.dtype = "f8E8M0FNU"}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' is i64, but 'tile.dtype' is ui32, which is i32 here}}
func.func @k(%n: i64 {tile.dtype = "ui32"}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' is a scalar of f8E8M0FNU, which comes in arrays only}}
func.func @k(%n: i8 {tile.dtype = "f8E8M0FNU"}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' attribute 'tile.dtype' must be one of}}
func.func @k(%n: i8 {tile.dtype = "i8"}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' has a wrong fact: align must be a power of two, found 12}}
func.func @k(%x: memref<4xf32> {tile.facts = {align = 12 : i32}}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' has a wrong fact: sizes must name one divisor per dimension (1)}}
func.func @k(%x: memref<4xf32> {tile.facts = {sizes = array<i32: 1, 1>}}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' has a wrong fact: strides must be positive, found [0]}}
func.func @k(%x: memref<4xf32> {tile.facts = {strides = array<i32: 0>}}) attributes {tile.kernel} { return }

// -----
func.func @right(%x: memref<?x?xf32, strided<[?, 1]>> {tile.name = "x", tile.facts = {align = 16 : i32, sizes = array<i32: 1, 8>}}, %n: i32)
    attributes {tile.kernel, tile.grid = ["cdiv(x.shape[0], 4)", "arg1"], tile.num_warps = 4 : i32, tile.index_bits = 32 : i32, tile.constants = {B = 4 : i64}} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.total_warps' must be an i32 integer, found 8}}
func.func @k() attributes {tile.kernel, tile.total_warps = 8 : i64} {
  return
}

// -----
// expected-error @below {{kernel "k" a CTA has 1 to 32 warps, found 33}}
func.func @k() attributes {tile.kernel, tile.total_warps = 33 : i32} {
  return
}

// -----
// expected-error @below {{kernel "k" a multiprocessor has 1 to 32 CTAs, found 0 : i32}}
func.func @k() attributes {tile.kernel, tile.ctas_per_sm = 0 : i32} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.stripes' must be from 1 to 1024, found 0}}
func.func @k() attributes {tile.kernel, tile.stripes = 0 : i32} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.parts' must be a multiple of tile.stripes, found 10 of 4}}
func.func @k() attributes {tile.kernel, tile.stripes = 4 : i32, tile.parts = 10 : i32} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.parts': CTAs or clusters share the programs already}}
func.func @k() attributes {tile.kernel, tile.parts = 2 : i32, tile.cluster = array<i32: 2>} {
  return
}

// -----
// expected-error @below {{parameter 'arg0' attribute 'tile.workspace' must be}}
func.func @k(%flags: memref<4xi32> {tile.workspace = "more"}) attributes {tile.kernel} {
  return
}

// -----
// expected-error @below {{parameter 'arg0' is memory of the launch's, an array, but is f32}}
func.func @k(%flags: f32 {tile.workspace = "sums"}) attributes {tile.kernel} {
  return
}

// -----
// expected-error @below {{parameter 'arg0' is memory of the launch's, of known sizes, but is memref<?xi32>}}
func.func @k(%flags: memref<?xi32> {tile.workspace = "flags"}) attributes {tile.kernel} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.stripes' must be an i32 integer, found "8"}}
func.func @k() attributes {tile.kernel, tile.stripes = "8"} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.stripes': CTAs or clusters share the programs already}}
func.func @k() attributes {tile.kernel, tile.stripes = 2 : i32, tile.cluster = array<i32: 2>} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.programs_per_cta' must be from 1 to 32, found 33}}
func.func @k() attributes {tile.kernel, tile.persistent = true, tile.programs_per_cta = 33 : i32} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.lanes' must be a power of two from 4 to 32, found 12}}
func.func @k() attributes {tile.kernel, tile.lanes = 12 : i32} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.lanes': only programs of one warp share it}}
func.func @k() attributes {tile.kernel, tile.num_warps = 2 : i32, tile.lanes = 8 : i32} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.programs_per_cta' must be from 1 to 128, found 129}}
func.func @k() attributes {tile.kernel, tile.num_warps = 1 : i32, tile.persistent = true, tile.lanes = 8 : i32, tile.programs_per_cta = 129 : i32} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.programs_per_cta': only CTAs that share the programs run several}}
func.func @k() attributes {tile.kernel, tile.programs_per_cta = 8 : i32} {
  return
}

// -----
// expected-error @below {{kernel "k" attribute 'tile.programs_per_cta': only programs of one warp share a CTA}}
func.func @k() attributes {tile.kernel, tile.num_warps = 2 : i32, tile.persistent = true, tile.programs_per_cta = 8 : i32} {
  return
}

// -----
// expected-error @below {{parameter 'arg0' has the unbounded dimensions [1]; expected distinct ones below 1}}
func.func @k(%x: memref<?xf32> {tile.unbounded = array<i32: 1>}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' has unbounded dimensions, which are an array's, but is i32}}
func.func @k(%n: i32 {tile.unbounded = array<i32: 0>}) attributes {tile.kernel} { return }

// -----
func.func @right(%x: memref<?x?xf32> {tile.unbounded = array<i32: 1, 0>}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' is flat, which lists of dense arrays of one dimension are, but is memref<?xmemref<?x?xf32>>}}
func.func @k(%x: memref<?xmemref<?x?xf32>> {tile.flat = true}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parameter 'arg0' has a wrong fact: sizes must name one divisor per dimension (2)}}
func.func @k(%x: memref<?xmemref<?x?xf32>> {tile.facts = {sizes = array<i32: 4>}}) attributes {tile.kernel} { return }

// -----
// expected-error @below {{parts(x, 64)', column 1: 'x' is no list of arrays}}
func.func @k(%x: memref<?xf32> {tile.name = "x"}) attributes {tile.kernel, tile.grid = ["parts(x, 64)"]} { return }

// -----
func.func @right(%x: memref<?xmemref<?xf32, strided<[1]>>> {tile.name = "x", tile.flat = true, tile.unbounded = array<i32: 0>}) attributes {tile.kernel, tile.grid = ["len(x) + parts(x, 64)"]} { return }
