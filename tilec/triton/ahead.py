"""A kernel compiled before any launch: what its text alone says of the arguments.

    tilec compile add.ttir --target sm_90a

`tt.divisibility` says what pointers and numbers are multiples of; a stride of 1 that Triton has
specialised away is known. Arguments are taken to be into memory of their own, and numbers not to be
negative: a launch from Python looks (`kernel.py`), whoever launches the PTX must.
"""

from __future__ import annotations

from mlir import ir

from tilec.executable.kernel import Facts, Parameter
from tilec.hardware.sizes import VECTOR_BYTES
from tilec.terms.dtypes import ELEMENT_BYTES
from tilec.triton.array_rule import ArrayRule, divisor
from tilec.triton.importer import build_module
from tilec.triton.plan import Plan, divisors, plan_kernel
from tilec.triton.reader import read_kernel
from tilec.triton.shared_memory import alone


def plan_ahead(text: str, name: str, kernel: str | None = None) -> Plan:
    """What becomes of the pointers of a text's kernel. CompileError for what is not imported."""
    plan = plan_kernel(read_kernel(text, name, kernel))
    flat = alone(plan).flat
    return plan_kernel(read_kernel(text, name, kernel), flat=flat) if flat else plan


def module_ahead(
    text: str, name: str, kernel: str | None = None, context: ir.Context | None = None
) -> ir.Module:
    """The tile-level module of a text's kernel; see `plan_ahead`."""
    plan = plan_ahead(text, name, kernel)
    return build_module(plan, parameters_ahead(plan), context=context)


def parameters_ahead(plan: Plan) -> list[Parameter]:
    """The parameters as far as the text knows them: an array a rule, then the numbers."""
    known = divisors(plan)
    arrays = [_array(name, rule, known) for name, rule in zip(plan.names, plan.arrays, strict=True)]
    return [*arrays, *(Parameter(s.name, "scalar", s.type.element) for s in plan.scalars)]


def _array(name: str, rule: ArrayRule, known: dict[str, int]) -> Parameter:
    bytes_ = ELEMENT_BYTES[rule.dtype]
    unit = VECTOR_BYTES // bytes_
    starts = known.get(rule.root, 1) % VECTOR_BYTES == 0 and divisor(rule.base, known) % unit == 0
    return Parameter(
        name,
        "array",
        rule.dtype,
        (None,) * len(rule.sizes),
        tuple(1 if stride.constant == 1 else None for stride in rule.strides),
        Facts(
            VECTOR_BYTES if starts else bytes_,
            tuple(
                unit if size is None or divisor(size, known) % unit == 0 else 1
                for size in rule.sizes
            ),
            tuple(unit if divisor(s, known) % unit == 0 else 1 for s in rule.strides),
        ),
    )
