"""Options that several subcommands share, and how a wrong one becomes a usage error."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from tilec.call.signature import parse_constant
from tilec.hardware.target import TARGETS, find_target
from tilec.terms.demands import KERNEL_DEMANDS, Demand, Demands

Value = TypeVar("Value")


def usage(read: Callable[[str], Value]) -> Callable[[str], Value]:
    """`read` for argparse's `type`: its ValueError becomes a usage error with its words."""

    def convert(text: str) -> Value:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def add_target(parser: argparse.ArgumentParser, *, several: bool) -> None:
    """`--target`; the default is the oldest one, whose PTX also runs on later GPUs."""
    default = next(iter(TARGETS.values()))
    parser.add_argument(
        "--target",
        action="append" if several else "store",
        type=usage(find_target),
        default=None if several else default,
        metavar="NAME",
        help=f"one of {', '.join(TARGETS)}{'; may be repeated' if several else ''}; "
        f"default: {default.name}",
    )


def add_demand(parser: argparse.ArgumentParser, row: Demand, default: Any = None) -> None:
    """The option of a demand of a kernel: `--num-warps` of `num_warps`."""
    shown = "" if default is None else f"; default: {default}"
    parser.add_argument(
        option_of(row.name),
        type=usage(partial(_demanded, row)),
        default=default,
        metavar="VALUE",
        help=row.text + shown,
    )


def given_demands(arguments: argparse.Namespace) -> Demands:
    """The demands whose options were given, by name."""
    given = {name: getattr(arguments, name) for name in KERNEL_DEMANDS}
    return cast(Demands, {name: value for name, value in given.items() if value is not None})


def option_of(name: str) -> str:
    """The option that is called after a keyword."""
    return f"--{name.replace('_', '-')}"


def _demanded(row: Demand, text: str) -> Any:
    value = parse_constant(text)
    if not row.allows(row.in_ir(value)):
        raise ValueError(f"must be {row.takes}, found {text!r}")
    return value


def split_name(text: str) -> tuple[str, str | None]:
    """`dir/kernel.py:name` as path and name; the name is None where there is none."""
    path, colon, name = text.rpartition(":")
    if colon and name.isidentifier() and path.endswith(".py"):
        return path, name
    return text, None
