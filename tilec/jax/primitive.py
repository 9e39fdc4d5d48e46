"""The launch as a primitive of JAX: types of results, `vmap`, what it is on each platform.

On a GPU it becomes a custom call, whose handler is machine code; on the CPU a callback to the
emulator, which is Python.
"""

# JAX is `Any` where types are checked.
# pyright: basic
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from tilec.jax.description import ArrayArgument, Description
from tilec.jax.emulated import run_emulated
from tilec.jax.gpu_target import gpu_target
from tilec.jax.shards import alike, axes_of, varied
from tilec.terms.dtypes import BY_MLIR

launch_p = Primitive("tilec")
launch_p.multiple_results = True


def launch(operands: Sequence[Any], described: Description) -> list[Any]:
    """The results of a launch on arrays, or on what JAX traces for them."""
    axes = axes_of(operands)
    results = launch_p.bind(*alike(*operands), described=described)
    return [varied(result, axes) for result in results]


def _type_of(array: ArrayArgument, batch: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    dtype = jax.numpy.dtype(BY_MLIR[array.dtype].array)
    return jax.ShapeDtypeStruct(array.full_shape(batch), dtype)


def _result_types(*_: Any, described: Description) -> list[Any]:
    found = (_type_of(array, described.batch) for array in described.outputs)
    return [jax.core.ShapedArray(t.shape, t.dtype) for t in found]


def _batch(
    operands: Sequence[Any], axes: Sequence[int | None], *, described: Description
) -> tuple[list[Any], list[int]]:
    """`vmap`: one launch for each element, all of one call. An array that a launch changes is
    another one for each element, and so is copied where it is the same for all."""
    ((size, *_),) = ({o.shape[a] for o, a in zip(operands, axes, strict=True) if a is not None},)
    moved, has = [], []
    for array, operand, axis in zip(described.operands, operands, axes, strict=True):
        if axis is not None:
            operand = jax.numpy.moveaxis(operand, axis, 0)
        elif array.name in described.results:
            operand = jax.numpy.broadcast_to(operand, (size, *operand.shape))
        moved.append(operand)
        has.append(axis is not None or array.name in described.results)
    results = launch(moved, described.batched(size, tuple(has)))
    return results, [0] * len(results)


def _differentiate(*_: Any, described: Description) -> NoReturn:
    raise NotImplementedError(
        f"{described.launcher.name} has no derivative: give it one with jax.custom_vjp "
        "(tilec/jax/README.md has a recipe)"
    )


def _lower_to_emulator(context: Any, *operands: Any, described: Description) -> Any:
    types = [_type_of(array, described.batch) for array in described.outputs]

    def callback(*arrays: Any) -> Any:
        return jax.pure_callback(partial(run_emulated, described), types, *arrays)

    return mlir.lower_fun(callback, multiple_results=True)(context, *operands)


def _lower_to_gpu(context: Any, *operands: Any, described: Description) -> Any:
    rule = jax.ffi.ffi_lowering(
        gpu_target(described), operand_output_aliases=described.aliases, has_side_effect=False
    )
    return rule(context, *operands)


_program = jax.jit(launch, static_argnames="described")
"""The program of a launch alone: what runs outside `jax.jit`."""


def _evaluate(*operands: Any, described: Description) -> Any:
    return _program(operands, described=described)


launch_p.def_impl(_evaluate)
launch_p.def_abstract_eval(_result_types)
batching.primitive_batchers[launch_p] = _batch
ad.primitive_jvps[launch_p] = _differentiate
mlir.register_lowering(launch_p, _lower_to_emulator, platform="cpu")
mlir.register_lowering(launch_p, _lower_to_gpu, platform="cuda")
