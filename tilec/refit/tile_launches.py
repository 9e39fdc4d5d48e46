"""Launches of a product in given tiles, on matrices anywhere on a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilec.ops.launch_steps import Step
from tilec.ops.multiply_plan import Options, make_plan
from tilec.ops.product_launch import Launch
from tilec.ops.tile_choice import TileChoice
from tilec.refit.drawn_products import DrawnProduct
from tilec.runtime.arrays import CUDA, ArrayView


def views_at(product: DrawnProduct, addresses: Mapping[str, int], index: int) -> dict[str, Any]:
    """The product's a, b and out at addresses of GPU `index`."""
    return {
        name: ArrayView(
            address,
            product.shapes[name],
            product.strides[name],
            product.dtype_of(name).mlir,
            (CUDA, index),
            "tilec",
        )
        for name, address in addresses.items()
    }


def steps_of(
    product: DrawnProduct, tile: TileChoice, views: Mapping[str, Any], device: Any, stream: int
) -> list[Step]:
    """The launches of a product in these tiles; makes the arrays that are their own."""
    precision = "tf32" if product.kind == "tf32" else "ieee"
    plan = make_plan(views, Options(None, False, None, None, precision))
    return Launch(plan, views, views, 1.0, device, stream, given=tile).steps


def moved(steps: Sequence[Step], by: Mapping[str, int]) -> list[Step]:
    """The same launches with a, b and out elsewhere, by so many bytes: what is checked and planned
    stays. Arrays of their own stay, too."""
    return [
        replace(
            step,
            arguments=[
                (name, replace(value, pointer=value.pointer + by[name]) if name in by else value)
                for name, value in step.arguments
            ],
        )
        for step in steps
    ]
