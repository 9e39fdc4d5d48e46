"""Options that several subcommands share, and how a wrong one becomes a usage error."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from tilec.target import TARGETS, find_target

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


def add_num_warps(parser: argparse.ArgumentParser, default: int | None) -> None:
    """`--num-warps`, the size of a program in warps."""
    shown = "the compiler's choice" if default is None else str(default)
    parser.add_argument(
        "--num-warps",
        type=int,
        choices=(1, 2, 4, 8, 12, 16, 32),
        default=default,
        help=f"warps of one program; default: {shown}",
    )


def split_name(text: str) -> tuple[str, str | None]:
    """`dir/kernel.py:name` as path and name; the name is None where there is none."""
    path, colon, name = text.rpartition(":")
    if colon and name.isidentifier() and path.endswith(".py"):
        return path, name
    return text, None
