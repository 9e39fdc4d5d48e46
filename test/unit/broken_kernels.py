"""Python kernels broken at random as syntax trees, and what the compiler must make of them: a
kernel, or one CompileError with a position."""

from __future__ import annotations

import ast
import functools
import os
import random
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from frontend_cases import load_text

import tilec.examples
from tilec.call.jit import Kernel
from tilec.messages.diagnostics import CompileError

EXAMPLES = Path(tilec.examples.__file__).parent
SPECS = {
    "matmul": ["a:bf16[?,?]", "b:bf16[?,?]", "c:bf16[?,?]"],
    "softmax": ["x:f32[?,?]", "y:f32[?,?]"],
    "online_softmax": ["x:f32[?,?]", "y:f32[?,?]"],
    "layer_norm": ["x:f32[?,?]", "weight:f32[?]", "bias:f32[?]", "y:f32[?,?]", "eps:f32"],
    "gather_rows": ["table:f32[?,?]", "rows:i32[?]", "out:f32[?,?]"],
    "histogram": ["values:f32[?]", "low:f32", "width:f32", "counts:i32[?]"],
    "control": ["x:f32[?]", "q:i32[?]", "n:i32"],
    "gemm": ["a:bf16[?,?:8;?:8,1]", "bt:bf16[?,?:8;?:8,1]", "d:f32[?,?]"],
    "hopper_gemm": [f"{name}:bf16[?,?:8;?:8,1]" for name in "abc"],
}
CONSTANTS = {
    "matmul": {"BM": 16, "BN": 16, "BK": 16},
    "online_softmax": {"N": 64},
    "gather_rows": {"ROWS": 8, "WIDTH": 128},
}

CONTROL = '''
def helper(a, b=2):
    if a > b:
        return a
    return b


def combine(a, i, b, j):
    return tl.where(a > b, a, b), tl.where(a > b, i, j)


@tilec.kernel(grid=lambda x, n: (tl.cdiv(x.shape[0], 16), max(n, 1)))
def control(x: tl.array, q: tl.array, n: tl.i32, B: tl.const = 16):
    """Every statement of the language."""
    total, best = 0.0, -1
    for i in tl.range(0, n, 2, stages=2):
        t = tl.load(x, i * B, B)
        if n > 5 and i != 3:
            total += tl.sum(t)
        else:
            total -= tl.max(t)
        for j in tl.static_range(3):
            if j == 1:
                continue
            total = total + j
    while best < n:
        best = helper(best, 3) + 1
        if total > 100.0:
            break
    value, where = tl.reduce((tl.load(x, 0, (B,)), tl.arange(B)), 0, combine)
    if best < 0:
        tl.store(q, 0, best)
        return
    assert n >= 0, f"n is {B}"
    print("best", best)
    pairs = [(k, 2 * k) for k in range(4) if k > 1]
    tl.store(q, 1, where + pairs[0][1] if n % 2 == 0 else best)
    tl.store(x, (0,), tl.cumsum(tl.load(x, 0, B)[:, None].reshape(B)).to(x.dtype))
'''

VALUES = [0, 1, -1, 2, 3, 1 << 40, 1.5, float("inf"), "text", None, True, (), (1, 2), 10**30]
NAMES = [
    "tl",
    "gpu",
    "a_ring",
    "b_ring",
    "full",
    "acc",
    "slot",
    "x",
    "n",
    "B",
    "i",
    "total",
    "missing",
    "len",
    "max",
    "range",
    "helper",
    "print",
]
ATTRIBUTES = [
    "load",
    "sum",
    "shape",
    "dtype",
    "T",
    "f16",
    "i1",
    "to",
    "zeros",
    "where",
    "dot",
    "foo",
    "slot",
    "view",
    "store",
    "wait",
    "alloc",
    "mma",
    "zeros",
    "cp_async",
    "role",
]
OPERATORS = [ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult]
BITWISE = [ast.BitAnd, ast.BitOr, ast.LShift, ast.RShift]
WRAPPERS: list[Callable[[str], str]] = [
    lambda e: f"({e}, {e})",
    lambda e: f"[{e}]",
    lambda e: f"-({e})",
    lambda e: f"(not ({e}))",
    lambda e: f"({e})[0]",
    lambda e: f"({e})[:, None]",
    lambda e: f"(({e}) if n else ({e}))",
    lambda e: f"(lambda: {e})",
    lambda e: f"({e}).to(tl.f16)",
    lambda e: f"helper({e})",
    lambda e: f"(({e}) < ({e}))",
    lambda e: f"tl.sum({e})",
    lambda e: f"{{{e}}}",
]
STATEMENTS = [
    "if n:\n    {}",
    "for i in range(n):\n    {}",
    "while n:\n    {}",
    "for i in tl.static_range(2):\n    {}",
    "try:\n    {}\nfinally:\n    pass",
    "if n > 2:\n    return\nelse:\n    {}",
    "for i in range(3):\n    {}\n    break",
]


class Mutator(ast.NodeTransformer):
    """Changes the `position`-th place that can be changed, in a way drawn from `rng`."""

    def __init__(self, position: int, rng: random.Random) -> None:
        self.left = position
        self.rng = rng

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.JoinedStr):  # whose parts stand nowhere else
            super().generic_visit(node)
        whole = isinstance(node, (ast.expr, ast.stmt)) and not isinstance(node, ast.Slice)
        if not whole or not hasattr(node, "lineno"):
            return node
        self.left -= 1
        if self.left != -1:
            return node
        changed = self.change_statement(node) if isinstance(node, ast.stmt) else self.change(node)
        return ast.copy_location(changed, node)

    def change_statement(self, node: ast.stmt) -> ast.stmt:
        if self.rng.random() < 0.3:
            return ast.Pass()
        text = self.rng.choice(STATEMENTS).format(ast.unparse(node).replace("\n", "\n    "))
        return ast.parse(text).body[0]

    def change(self, node: ast.expr) -> ast.expr:
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return ast.Name("x", ast.Store())
        kind = self.rng.random()
        if kind < 0.35:
            wrapped = self.rng.choice(WRAPPERS)(ast.unparse(node))
            with suppress(SyntaxError):  # the index of `x[:, None]` is an expression to ast alone
                return ast.parse(wrapped, mode="eval").body
        if isinstance(node, ast.Call) and kind < 0.7:
            return self.change_call(node)
        if isinstance(node, ast.BinOp):
            node.op = self.rng.choice(OPERATORS + BITWISE)()
            return node
        if isinstance(node, ast.Attribute):
            node.attr = self.rng.choice(ATTRIBUTES)
            return node
        if isinstance(node, ast.Name) and kind < 0.7:
            return ast.Name(self.rng.choice(NAMES), ast.Load())
        return ast.parse(repr(self.rng.choice(VALUES)).replace("inf", "1e400"), mode="eval").body

    def change_call(self, node: ast.Call) -> ast.Call:
        choice = self.rng.randrange(4)
        if choice == 0 and node.args:
            node.args.pop(self.rng.randrange(len(node.args)))
        elif choice == 1 and node.args:
            node.args.append(node.args[0])
        elif choice == 2 and len(node.args) > 1:
            self.rng.shuffle(node.args)
        else:
            node.keywords.append(ast.keyword("axis", ast.Constant(self.rng.choice(VALUES[:8]))))
        return node


@functools.cache
def source_of(name: str) -> str:
    """The text of the module that holds a kernel, without the code that runs it."""
    if name == "control":
        return CONTROL
    for path in EXAMPLES.glob("*.py"):
        tree = ast.parse(path.read_text())
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        if name in {function.name for function in functions}:
            kept = [
                f for f in functions if f.decorator_list or f.name in ("merge", "accumulator_of")
            ]
            constants = [
                node
                for node in tree.body
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            ]
            return "\n\n".join(map(ast.unparse, [*constants, *kept]))
    raise LookupError(name)


def mutant(name: str, seed: int) -> str:
    """The kernel's module with one or two places of the kernel or a helper changed."""
    rng = random.Random(f"{name} {seed}")
    tree = ast.parse(source_of(name))
    for _ in range(rng.choice((1, 1, 2))):
        places = sum(isinstance(n, (ast.expr, ast.stmt)) for n in ast.walk(tree))
        bodies = ast.Module([n for n in tree.body], [])
        Mutator(rng.randrange(places), rng).visit(bodies)
        tree = bodies
    return ast.unparse(ast.fix_missing_locations(tree))


def attempt(text: str, name: str, directory: Path, use: Callable[[Kernel], object]) -> None:
    """Uses a mutant; ends the process with a transcript unless it is one, or is diagnosed."""
    try:
        kernel = getattr(load_text(text, directory), name)
    except Exception:
        return  # the mutant is no module, or no kernel: not the compiler's business
    if not isinstance(kernel, Kernel):
        return
    try:
        use(kernel)
        return
    except ValueError:
        return  # a parameter is missing
    except CompileError as error:
        if error.location is not None and "Traceback" not in str(error):
            return
        os.write(2, traceback.format_exc().encode())
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    os._exit(1)
