"""Options that several subcommands share, and how a wrong one becomes a usage error."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from tilec.call.signature import NAME, parse_constant
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


def add_constants(parser: argparse.ArgumentParser) -> None:
    """`--const NAME=VALUE`, repeated: pairs of a name and a value."""
    parser.add_argument(
        "--const",
        action="append",
        default=[],
        type=usage(_constant),
        metavar="NAME=VALUE",
        help="a constant of a Python kernel; repeated",
    )


def _constant(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not NAME.fullmatch(name):
        raise ValueError(f"expected NAME=VALUE, found {text!r}")
    return name, parse_constant(value)


def add_dimensions(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """The option `name` for one to three sizes, as of a grid."""
    parser.add_argument(f"--{name}", type=usage(_dimensions), metavar="X[,Y[,Z]]", help=what)


def _dimensions(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) > 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"expected one to three positive numbers, found {text!r}")
    return tuple(map(int, parts))


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
