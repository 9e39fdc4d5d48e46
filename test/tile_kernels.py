"""`.tile` kernels with sizes and element types as parameters, each with its NumPy reference."""
# ruff: noqa: E501 - an op stays on its line

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HEAD = "func.func @k"
ZERO = {"f64": "0.0", "f32": "0.0", "f16": "0.0", "bf16": "0.0", "i8": "0", "i32": "0"}
LOWEST = {"f64": "0xFFF0000000000000", "f32": "0xFF800000", "f16": "0xFC00", "bf16": "0xFF80"}
"""-inf as MLIR writes it."""


def matrix(element: str) -> str:
    """An array of run-time sizes, rows contiguous."""
    return f"memref<?x?x{element}, strided<[?, 1]>>"


def combine(op: str, element: str) -> str:
    """A combining region of one op."""
    return (
        f"({{ ^bb0(%lhs: {element}, %rhs: {element}): %both = {op} %lhs, %rhs : {element}   "
        f"gpu.yield %both : {element} }})"
    )


@dataclass(frozen=True)
class Matmul:
    """c = a @ b (+ bias) (+ residual), one m x n tile a program, k elements at a time."""

    m: int
    n: int
    k: int
    element: str = "bf16"
    acc: str = "f32"
    out: str = ""
    a_transposed: bool = False
    b_transposed: bool = False
    bias: bool = False
    residual: bool = False
    precision: str = ""

    @property
    def result(self) -> str:
        """Element type of c."""
        return self.out or self.element

    def text(self) -> str:
        """The kernel; arguments a, b, c, then bias and residual if it has them."""
        e, acc, m, n, k = self.element, self.acc, self.m, self.n, self.k
        extra = ", %bias: !vector" if self.bias else ""
        extra += ", %res: !result" if self.residual else ""
        options = f'precision = "{self.precision}"' if self.precision else ""
        a = self._load("%ta", "%a", "%i, %at", "!lhs", self.a_transposed)
        b = self._load("%tb", "%b", "%at, %j", "!rhs", self.b_transposed)
        return f"""
!array = {matrix(e)}
!result = {matrix(self.result)}
!vector = memref<?xf32, strided<[1]>>
!lhs = tensor<{m}x{k}x{e}>
!rhs = tensor<{k}x{n}x{e}>
!acc = tensor<{m}x{n}x{acc}>
!out = tensor<{m}x{n}x{self.result}>
!row = tensor<{n}xf32>
{HEAD}(%a: !array, %b: !array, %c: !result{extra}) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant {0 if self.a_transposed else 1} : index
  %bm = arith.constant {m} : index
  %bn = arith.constant {n} : index
  %bk = arith.constant {k} : index
  %zero = arith.constant dense<{ZERO[acc]}> : !acc
  %pm = "tile.program_id"() {{axis = 0 : i32}} : () -> index
  %pn = "tile.program_id"() {{axis = 1 : i32}} : () -> index
  %i = arith.muli %pm, %bm : index
  %j = arith.muli %pn, %bn : index
  %depth = memref.dim %a, %c1 : !array
  %acc = scf.for %at = %c0 to %depth step %bk iter_args(%so_far = %zero) -> (!acc) {{
    {a}
    {b}
    %next = "tile.dot"(%ta, %tb, %so_far) {{options = {{{options}}}}} : (!lhs, !rhs, !acc) -> !acc
    scf.yield %next : !acc
  }}
  {self._epilogue()}
  "tile.store"(%out, %c, %i, %j) {{dims = array<i32: 0, 1>, options = {{}}}}
    : (!out, !result, index, index) -> ()
  return
}}"""

    def _epilogue(self) -> str:
        """From %acc to %out."""
        add = "arith.addi" if self.acc == "i32" else "arith.addf"
        lines = [f"%sum = {add} %acc, %zero : !acc"]
        if self.bias:
            lines = [
                '%row = "tile.load"(%bias, %j) {dims = array<i32: 0>, padding = 0.0 : f32, options = {}}',
                "  : (!vector, index) -> !row",
                '%rows = "tile.broadcast"(%row) {dims = array<i32: 1>} : (!row) -> !acc',
                "%sum = arith.addf %acc, %rows : !acc",
            ]
        cast = "arith.truncf %sum : !acc to !out"
        lines.append(f"%cast = {cast if self.result != self.acc else f'{add} %sum, %zero : !acc'}")
        if not self.residual:
            return "\n  ".join(lines).replace("%cast", "%out")
        lines += [
            f'%old = "tile.load"(%res, %i, %j) {{dims = array<i32: 0, 1>, padding = 0.0 : {self.result}',
            "  , options = {}} : (!result, index, index) -> !out",
            "%out = arith.addf %cast, %old : !out",
        ]
        return "\n  ".join(lines)

    def _load(self, name: str, array: str, offsets: str, type_: str, flip: bool) -> str:
        dims = "1, 0" if flip else "0, 1"
        offsets = ", ".join(offsets.split(", ")[::-1]) if flip else offsets
        return (
            f'{name} = "tile.load"({array}, {offsets}) {{dims = array<i32: {dims}>, padding = '
            f"{ZERO[self.element]} : {self.element}, options = {{}}}} : (!array, index, index) -> {type_}"
        )

    def reference(
        self,
        a: np.ndarray,
        b: np.ndarray,
        bias: np.ndarray | None = None,
        residual: np.ndarray | None = None,
    ) -> np.ndarray:
        """The product in float64 (int64), rounded nowhere."""
        wide = np.int64 if self.acc == "i32" else np.float64
        left, right = a.astype(wide), b.astype(wide)
        left = left.T if self.a_transposed else left
        right = right.T if self.b_transposed else right
        total = left @ right
        if bias is not None:
            total = total + bias.astype(wide)
        return total if residual is None else total + residual.astype(wide)


@dataclass(frozen=True)
class Softmax:
    """y = softmax(x), one row of at most n elements a program."""

    n: int
    element: str = "bf16"

    def text(self) -> str:
        """The kernel; arguments x, y."""
        e, n = self.element, self.n
        row, raw = f"tensor<{n}xf32>", f"tensor<{n}x{e}>"
        highest, total = (combine(f"arith.{op}", "f32") for op in ("maximumf", "addf"))
        widen = f"%v = arith.extf %raw : {raw} to {row}"
        narrow = f"%out = arith.truncf %o : {row} to {raw}"
        if e == "f32":
            widen = f"%v = arith.addf %raw, %zero : {row}"
            narrow = f"%out = arith.addf %o, %zero : {row}"
        return f"""
!row = {row}
!raw = {raw}
!scalar = tensor<f32>
!array = {matrix(e)}
{HEAD}(%x: !array, %y: !array) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !row
  %i = "tile.program_id"() {{axis = 0 : i32}} : () -> index
  %raw = "tile.load"(%x, %i, %c0) {{dims = array<i32: 1>, padding = {LOWEST[e]} : {e}, options = {{}}}} : (!array, index, index) -> !raw
  {widen}
  %max = "tile.reduce"(%v) {highest} {{axis = 0 : i32}} : (!row) -> !scalar
  %maxb = "tile.broadcast"(%max) {{dims = array<i32>}} : (!scalar) -> !row
  %d = arith.subf %v, %maxb : !row
  %e = math.exp %d : !row
  %sum = "tile.reduce"(%e) {total} {{axis = 0 : i32}} : (!row) -> !scalar
  %sumb = "tile.broadcast"(%sum) {{dims = array<i32>}} : (!scalar) -> !row
  %o = arith.divf %e, %sumb : !row
  {narrow}
  "tile.store"(%out, %y, %i, %c0) {{dims = array<i32: 1>, options = {{}}}} : (!raw, !array, index, index) -> ()
  return
}}"""

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        """In float64."""
        wide = x.astype(np.float64)
        e = np.exp(wide - wide.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)


@dataclass(frozen=True)
class LayerNorm:
    """y = (x - mean) / sqrt(variance + 1e-5) * weight + bias, one row a program."""

    n: int
    element: str = "f32"

    def text(self) -> str:
        """The kernel; arguments x, weight, bias, y and `columns`."""
        n, row = self.n, f"tensor<{self.n}xf32>"
        vector = "memref<?xf32, strided<[1]>>"
        add = combine("arith.addf", "f32")
        load = f"{{dims = array<i32: %d>, padding = 0.0 : f32, options = {{}}}} : (%s) -> {row}"
        from_matrix = load % (1, f"{matrix('f32')}, index, index")
        from_vector = load % (0, f"{vector}, index")
        return f"""
!row = {row}
!places = tensor<{n}xi32>
!flags = tensor<{n}xi1>
!scalar = tensor<f32>
!array = {matrix("f32")}
!vector = {vector}
{HEAD}(%x: !array, %w: !vector, %b: !vector, %y: !array) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = "tile.program_id"() {{axis = 0 : i32}} : () -> index
  %columns = memref.dim %x, %c1 : !array
  %wide = arith.index_cast %columns : index to i32
  %count = arith.sitofp %wide : i32 to f32
  %counts = tensor.splat %count : !scalar
  %epsilon = arith.constant dense<1.0e-5> : !scalar
  %zero = arith.constant dense<0.0> : !row
  %v = "tile.load"(%x, %i, %c0) {from_matrix}
  %s = "tile.reduce"(%v) {add} {{axis = 0 : i32}} : (!row) -> !scalar
  %mean = arith.divf %s, %counts : !scalar
  %means = "tile.broadcast"(%mean) {{dims = array<i32>}} : (!scalar) -> !row
  %d0 = arith.subf %v, %means : !row
  %at = "tile.iota"() {{axis = 0 : i32}} : () -> !places
  %ends = tensor.splat %wide : !places
  %in = arith.cmpi slt, %at, %ends : !places
  %d = arith.select %in, %d0, %zero : !flags, !row
  %sq = arith.mulf %d, %d : !row
  %ss = "tile.reduce"(%sq) {add} {{axis = 0 : i32}} : (!row) -> !scalar
  %var = arith.divf %ss, %counts : !scalar
  %safe = arith.addf %var, %epsilon : !scalar
  %root = math.sqrt %safe : !scalar
  %roots = "tile.broadcast"(%root) {{dims = array<i32>}} : (!scalar) -> !row
  %normal = arith.divf %d, %roots : !row
  %tw = "tile.load"(%w, %c0) {from_vector}
  %tb = "tile.load"(%b, %c0) {from_vector}
  %scaled = arith.mulf %normal, %tw : !row
  %o = arith.addf %scaled, %tb : !row
  "tile.store"(%o, %y, %i, %c0) {{dims = array<i32: 1>, options = {{}}}} : (!row, !array, index, index) -> ()
  return
}}"""

    @staticmethod
    def reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        """In float64."""
        wide = x.astype(np.float64)
        centred = wide - wide.mean(1, keepdims=True)
        scale = np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        return centred / scale * weight.astype(np.float64) + bias.astype(np.float64)


@dataclass(frozen=True)
class RowSum:
    """y[i] = sum of row i, n elements at a time."""

    n: int
    element: str = "f32"

    def text(self) -> str:
        """The kernel; arguments x, y."""
        add = combine("arith.addf", "f32")
        return f"""
!row = tensor<{self.n}xf32>
!scalar = tensor<f32>
!array = {matrix("f32")}
!vector = memref<?xf32, strided<[1]>>
{HEAD}(%x: !array, %y: !vector) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %step = arith.constant {self.n} : index
  %i = "tile.program_id"() {{axis = 0 : i32}} : () -> index
  %columns = memref.dim %x, %c1 : !array
  %zero = arith.constant dense<0.0> : !row
  %acc = scf.for %at = %c0 to %columns step %step iter_args(%so_far = %zero) -> (!row) {{
    %v = "tile.load"(%x, %i, %at) {{dims = array<i32: 1>, padding = 0.0 : f32, options = {{}}}} : (!array, index, index) -> !row
    %next = arith.addf %so_far, %v : !row
    scf.yield %next : !row
  }}
  %s = "tile.reduce"(%acc) {add} {{axis = 0 : i32}} : (!row) -> !scalar
  "tile.store"(%s, %y, %i) {{dims = array<i32>, options = {{}}}} : (!scalar, !vector, index) -> ()
  return
}}"""


@dataclass(frozen=True)
class Attention:
    """Flash attention over heads x rows x depth arrays: m queries a program, n keys at a time."""

    m: int
    n: int
    depth: int
    element: str = "bf16"
    causal: bool = False

    def text(self) -> str:
        """The kernel; arguments q, k, v, o. Grid: (query tiles, heads)."""
        e, m, n, d = self.element, self.m, self.n, self.depth
        highest, total = (combine(f"arith.{op}", "f32") for op in ("maximumf", "addf"))
        load = (
            f"{{dims = array<i32: %s>, padding = 0.0 : {e}, options = {{}}}} : "
            "(!heads, index, index, index)"
        )
        scale = f"{1.0 / d**0.5:e}"
        mask = ""
        if self.causal:
            mask = """
    %query = tensor.splat %m32 : !places
    %down = "tile.iota"() {axis = 0 : i32} : () -> !places
    %queries = arith.addi %query, %down : !places
    %visible = arith.cmpi sle, %keys, %queries : !places
    %seen = arith.andi %known, %visible : !flags"""
        seen = "%seen" if self.causal else "%known"
        return f"""
!heads = memref<?x?x?x{e}, strided<[?, ?, 1]>>
!queries = tensor<{m}x{d}x{e}>
!keys = tensor<{d}x{n}x{e}>
!values = tensor<{n}x{d}x{e}>
!weights = tensor<{m}x{n}x{e}>
!acc = tensor<{m}x{d}xf32>
!s = tensor<{m}x{n}xf32>
!row = tensor<{m}xf32>
!places = tensor<{m}x{n}xi32>
!flags = tensor<{m}x{n}xi1>
{HEAD}(%q: !heads, %k: !heads, %v: !heads, %o: !heads) attributes {{tile.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bm = arith.constant {m} : index
  %bn = arith.constant {n} : index
  %scale = arith.constant dense<{scale}> : !s
  %low = arith.constant dense<-1.0e30> : !s
  %none = arith.constant dense<0.0> : !s
  %zero = arith.constant dense<0.0> : !acc
  %l0 = arith.constant dense<0.0> : !row
  %m0 = arith.constant dense<-1.0e30> : !row
  %pm = "tile.program_id"() {{axis = 0 : i32}} : () -> index
  %head = "tile.program_id"() {{axis = 1 : i32}} : () -> index
  %first = arith.muli %pm, %bm : index
  %m32 = arith.index_cast %first : index to i32
  %count = memref.dim %k, %c1 : !heads
  %count32 = arith.index_cast %count : index to i32
  %tq = "tile.load"(%q, %head, %first, %c0) {load % "1, 2"} -> !queries
  %r:3 = scf.for %at = %c0 to %count step %bn iter_args(%acc = %zero, %l = %l0, %mx = %m0)
      -> (!acc, !row, !row) {{
    %tk = "tile.load"(%k, %head, %at, %c0) {load % "2, 1"} -> !keys
    %s0 = "tile.dot"(%tq, %tk, %none) {{options = {{}}}} : (!queries, !keys, !s) -> !s
    %s1 = arith.mulf %s0, %scale : !s
    %at32 = arith.index_cast %at : index to i32
    %key = tensor.splat %at32 : !places
    %along = "tile.iota"() {{axis = 1 : i32}} : () -> !places
    %keys = arith.addi %key, %along : !places
    %end = tensor.splat %count32 : !places
    %known = arith.cmpi slt, %keys, %end : !places{mask}
    %s = arith.select {seen}, %s1, %low : !flags, !s
    %smax = "tile.reduce"(%s) {highest} {{axis = 1 : i32}} : (!s) -> !row
    %mnew = arith.maximumf %mx, %smax : !row
    %change = arith.subf %mx, %mnew : !row
    %alpha = math.exp %change : !row
    %mb = "tile.broadcast"(%mnew) {{dims = array<i32: 0>}} : (!row) -> !s
    %centred = arith.subf %s, %mb : !s
    %p = math.exp %centred : !s
    %psum = "tile.reduce"(%p) {total} {{axis = 1 : i32}} : (!s) -> !row
    %lscaled = arith.mulf %l, %alpha : !row
    %lnew = arith.addf %lscaled, %psum : !row
    %ab = "tile.broadcast"(%alpha) {{dims = array<i32: 0>}} : (!row) -> !acc
    %scaled = arith.mulf %acc, %ab : !acc
    %ph = arith.truncf %p : !s to !weights
    %tv = "tile.load"(%v, %head, %at, %c0) {load % "1, 2"} -> !values
    %next = "tile.dot"(%ph, %tv, %scaled) {{options = {{}}}} : (!weights, !values, !acc) -> !acc
    scf.yield %next, %lnew, %mnew : !acc, !row, !row
  }}
  %lb = "tile.broadcast"(%r#1) {{dims = array<i32: 0>}} : (!row) -> !acc
  %out = arith.divf %r#0, %lb : !acc
  %oh = arith.truncf %out : !acc to !queries
  "tile.store"(%oh, %o, %head, %first, %c0) {{dims = array<i32: 1, 2>, options = {{}}}}
    : (!queries, !heads, index, index, index) -> ()
  return
}}"""

    def reference(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        """In float64."""
        wide = [x.astype(np.float64) for x in (q, k, v)]
        s = wide[0] @ wide[1].transpose(0, 2, 1) / np.sqrt(self.depth)
        if self.causal:
            s = np.where(np.tril(np.ones(s.shape[1:], np.bool_)), s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        return (p / p.sum(-1, keepdims=True)) @ wide[2]
