"""Calls: of `tl` functions, of methods, and of the author's functions, which are inlined."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import tilec.language as tl
from tilec.frontend.attributes import OF_CONSTANTS
from tilec.frontend.branches import as_condition
from tilec.frontend.frame import DEEPEST_CALL, Frame
from tilec.frontend.habits import function_help, keyword_help
from tilec.frontend.names import constant_from_python
from tilec.frontend.source import read_source
from tilec.frontend.tl_gpu import METHODS_OF
from tilec.frontend.values import (
    LambdaFunction,
    Method,
    Mistake,
    Resource,
    Undefined,
    describe,
    is_number,
    is_runtime,
)
from tilec.language.builtin import Function
from tilec.language.parameters import const
from tilec.messages.binding import bound
from tilec.messages.diagnostics import CompileError

_SIGNATURES: dict[Any, inspect.Signature] = {}


def evaluate_call(frame: Frame, node: ast.Call) -> Any:
    """The expression rule of a call."""
    function = frame.evaluate(node.func)
    arguments, keywords = _arguments(frame, node)
    if isinstance(function, Method):
        return _call_method(frame, node, function, arguments, keywords)
    if _is_builtin(frame, function):
        return _call_builtin(frame, node, function, arguments, keywords)
    if isinstance(function, Function):
        function = function.fn
    if isinstance(function, LambdaFunction):
        return call_function(frame, node, function, arguments, keywords)
    if isinstance(function, FunctionType):
        return call_function(frame, node, function, arguments, keywords)
    if getattr(math, getattr(function, "__name__", ""), frame) is function:
        return _call_math(function, arguments, keywords)
    if isinstance(getattr(function, "__self__", None), tuple(OF_CONSTANTS)):
        return _call_of_constant(function, arguments, keywords)
    if hasattr(function, "__tilec_kernel__"):
        raise Mistake(
            f"a kernel cannot call the kernel {describe(function)}",
            "help: share code through a plain function",
        )
    raise Mistake(f"{describe(function)} cannot be called in a kernel", *function_help(function))


def _is_builtin(frame: Frame, function: Any) -> bool:
    try:
        return function in frame.rules.builtins
    except TypeError:  # unhashable
        return False


def _arguments(frame: Frame, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    for keyword in node.keywords:
        if keyword.arg is None:
            raise frame.error(keyword.value, "unsupported syntax: '**' in a call")
    return frame.evaluate_all(node.args), {
        str(k.arg): frame.evaluate(k.value) for k in node.keywords
    }


def signature_of(function: Any) -> inspect.Signature:
    """The signature of a function, of a stub's original for `tl` functions; cached."""
    key = getattr(function, "__tilec_builtin__", function)
    found = _SIGNATURES.get(key)
    if found is None:
        found = _SIGNATURES[key] = inspect.signature(key)
    return found


def _bind(
    name: str, signature: inspect.Signature, arguments: Sequence[Any], keywords: dict[str, Any]
) -> inspect.BoundArguments:
    try:
        return bound(signature, arguments, keywords)
    except TypeError as error:
        shown = ", ".join(
            str(p.replace(annotation=inspect.Parameter.empty))
            for p in signature.parameters.values()
        )
        text, *guesses = str(error).splitlines()
        notes = keyword_help(text) or guesses
        raise Mistake(f"{name}(): {text}", f"expected {name}({shown})", *notes) from None


def _call_builtin(
    frame: Frame, node: ast.Call, function: Any, arguments: list[Any], keywords: dict[str, Any]
) -> Any:
    try:
        return apply_builtin(frame, function, arguments, keywords)
    except Mistake as mistake:
        place = _argument_node(node, function, mistake.argument)
        raise frame.error(place, mistake.message, *mistake.notes) from None


def apply_builtin(
    frame: Frame, function: Any, arguments: Sequence[Any], keywords: dict[str, Any]
) -> Any:
    """Calls the implementation of a `tl` function, or of a Python builtin. Mistake if it cannot."""
    implementation = frame.rules.builtins[function]
    if not hasattr(function, "__tilec_builtin__") and not isinstance(function, FunctionType):
        if keywords:
            raise Mistake(f"{function.__name__}() takes no keywords in a kernel")
        return implementation(frame, *arguments)
    bound = _bind(function.__name__, signature_of(function), arguments, keywords)
    bound.apply_defaults()
    return implementation(frame, *bound.args, **bound.kwargs)


def _argument_node(node: ast.Call, function: Any, name: str | None) -> ast.AST:
    """The expression given for parameter `name`, the call itself where there is none."""
    if name is None or not isinstance(function, FunctionType):  # Python's own have no signature
        return node
    given = signature_of(function).bind(*node.args, **{str(k.arg): k.value for k in node.keywords})
    found = given.arguments.get(name)
    return found if isinstance(found, ast.AST) else node


def _call_method(
    frame: Frame, node: ast.Call, method: Method, arguments: list[Any], keywords: dict[str, Any]
) -> Any:
    """Calls `x.f(...)`, which is `tl.f(x, ...)`; of buffers and barriers the `gpu` function.

    Sizes may be given one by one to reshape and permute.
    """
    if isinstance(method.receiver, Resource):
        function = METHODS_OF[method.receiver.kind][method.name]
    else:
        function = getattr(tl, "cast" if method.name == "to" else method.name)
    given = node.args
    if method.name in ("reshape", "permute") and len(arguments) > 1:
        arguments = [tuple(arguments)]
        given = [ast.copy_location(ast.Tuple(elts=node.args), node.args[0])]
    signature = signature_of(function)
    _bind(method.name, signature, [method.receiver, *arguments], keywords)
    wrapped = ast.Call(func=node.func, args=[node.func, *given], keywords=node.keywords)
    ast.copy_location(wrapped, node)
    if isinstance(function, FunctionType) and function in frame.rules.builtins:
        return _call_builtin(frame, wrapped, function, [method.receiver, *arguments], keywords)
    return call_function(frame, node, function, [method.receiver, *arguments], keywords)


def _call_math(function: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]) -> Any:
    name = function.__name__
    if keywords or not all(map(is_number, arguments)):
        hint = f"help: use tl.{name}" if hasattr(tl, name) else "help: compute it before the launch"
        raise Mistake(f"math.{name} works on compile-time constants only", hint)
    if any(isinstance(argument, int) and abs(argument) > 1 << 64 for argument in arguments):
        raise Mistake(f"math.{name}: the constant is too large")
    if name in ("factorial", "comb", "perm") and any(abs(a) > 170 for a in arguments):
        raise Mistake(f"math.{name}: the constant is too large")
    try:
        return constant_from_python(function(*arguments), f"math.{name}(...)")
    except (ArithmeticError, ValueError, TypeError) as error:
        raise Mistake(f"math.{name}: {error}") from None


def _call_of_constant(
    method: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]
) -> Any:
    """Calls a method of Python's of a constant, as in "N.bit_length()"."""
    owner, name = method.__self__, method.__name__  # pyright: ignore[reportFunctionMemberAccess]
    parts = owner if isinstance(owner, tuple) else ()
    found = next((x for x in (*parts, *arguments, *keywords.values()) if is_runtime(x)), None)
    if found is not None:
        raise Mistake(f"'{name}' works on compile-time constants only, found {describe(found)}")
    try:
        return constant_from_python(method(*arguments, **keywords), f"{name}(...)")
    except (ArithmeticError, ValueError, TypeError) as error:
        raise Mistake(f"{name}: {error}") from None


def call_function(
    frame: Frame,
    node: ast.AST,
    function: FunctionType | LambdaFunction,
    arguments: Sequence[Any],
    keywords: dict[str, Any] | None = None,
) -> Any:
    """Inlines a call of a plain function or lambda; gives its result."""
    if isinstance(function, LambdaFunction):
        return _call_lambda(frame, function, arguments, keywords or {})
    source = read_source(function)
    name = function.__name__
    if any(caller.source.fn.__code__ is function.__code__ for caller in frame.chain()):
        raise Mistake(f"'{name}' calls itself; recursion is not possible in a kernel")
    if frame.depth >= DEEPEST_CALL:
        raise Mistake(f"more than {DEEPEST_CALL} nested calls")
    inner = Frame(
        source,
        frame.builder,
        frame.rules,
        caller=frame,
        call_location=frame.location(node),
        mlir_caller=frame.mlir_location(node),
    )
    _check_parameters(inner)
    bound = _bind(name, signature_of(function), arguments, keywords or {})
    _bind_parameters(inner, bound)
    try:
        completion = inner.execute(source.node.body, frozenset())
    except RecursionError:
        raise CompileError("the kernel is nested too deeply", frame.location(node)) from None
    result = completion.value
    if isinstance(result, Undefined):
        raise Mistake(result.message, *result.notes)
    return result


def _check_parameters(frame: Frame) -> None:
    arguments = frame.source.node.args
    for extra, word in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if extra is not None:
            raise frame.error(extra, f"unsupported syntax: '{word}{extra.arg}' parameters")


def _bind_parameters(frame: Frame, bound: inspect.BoundArguments) -> None:
    given = set(bound.arguments)
    bound.apply_defaults()
    annotations = getattr(frame.source.fn, "__annotations__", {})
    for name, value in bound.arguments.items():
        if name not in given:
            value = constant_from_python(value, name)
        if annotations.get(name) in (const, "tl.const") and is_runtime(value):
            raise Mistake(
                f"parameter '{name}' of '{frame.source.fn.__name__}' is a tl.const, found "
                f"{describe(value)}"
            )
        frame.names[name] = value


def _call_lambda(
    frame: Frame,
    function: LambdaFunction,
    arguments: Sequence[Any],
    keywords: dict[str, Any],
) -> Any:
    parameters = function.node.args
    plain = [*parameters.posonlyargs, *parameters.args]
    if parameters.vararg or parameters.kwarg or parameters.kwonlyargs or parameters.defaults:
        raise Mistake("a lambda in a kernel has plain parameters only")
    if keywords or len(arguments) != len(plain):
        raise Mistake(f"the lambda takes {len(plain)} values, found {len(arguments)}")
    outside, outside_places = frame.names, frame.defined_at
    frame.names = {**function.names, **{p.arg: v for p, v in zip(plain, arguments, strict=True)}}
    frame.defined_at = {}
    try:
        return frame.evaluate(function.node.body)
    finally:
        frame.names, frame.defined_at = outside, outside_places


__all__ = ["as_condition", "call_function", "evaluate_call", "signature_of"]
