"""What a call of attention asks for beside arrays: the one list of it.

`Options` has what counts where nothing is said. `Asked` is the same as type checkers see it in
calls, a line each; `tilec.ops.torch` adds torch's types, and tests compare the names of all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypedDict

from tilec.records import dataclass
from tilec.runtime.errors import ArgumentError


class Asked(TypedDict, total=False):
    """Those of the options that a caller names."""

    causal: bool
    window: int | None
    scale: float | None
    cap: float | None
    dropout: float
    seed: int | None
    longest: int | None
    longest_key: int | None
    scratch: int | None


@dataclass(frozen=True)
class Options:
    """All of them, as the caller says it; `plan_attention` checks the values."""

    causal: Any = False
    window: Any = None
    scale: Any = None
    cap: Any = None
    dropout: Any = 0.0
    seed: Any = None
    longest: Any = None
    longest_key: Any = None
    scratch: Any = None

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Options:
        """The options of a call. ArgumentError names one that there is not."""
        check_names(asked)
        return cls(**asked)

    @property
    def without_seed(self) -> tuple[Any, ...]:
        """All of it but the seed."""
        sizes = self.longest, self.longest_key
        plain = self.causal, self.window, self.scale, self.cap, self.dropout
        return (*plain, *sizes, self.scratch, self.scratch.__class__)


NAMES = tuple(field.name for field in fields(Options))


ELSEWHERE = {
    "is_causal": "it is called 'causal'",
    **dict.fromkeys(("softmax_scale", "sm_scale"), "it is called 'scale'"),
    "softcap": "it is called 'cap'",
    **dict.fromkeys(("dropout_p", "dropout_rate"), "it is called 'dropout', with a 'seed'"),
    "window_size": "it is called 'window': how many keys a query sees, its own among them",
    "enable_gqa": "heads of k and v may be fewer than those of q by themselves",
    **dict.fromkeys(
        ("attn_mask", "mask", "bias", "attn_bias"),
        "masks are 'causal', 'window' and 'lengths'; for others write a kernel, as in "
        "tilec/examples/attention.py",
    ),
    **dict.fromkeys(("cu_seqlens", "cu_seqlens_q"), "it is called 'starts'"),
    "cu_seqlens_k": "it is called 'key_starts'",
    "max_seqlen_q": "it is called 'longest'",
    "max_seqlen_k": "it is called 'longest_key'",
    **dict.fromkeys(("block_table", "page_table"), "it is called 'table', beside 'lengths'"),
    "cache_seqlens": "it is called 'lengths'",
}
"""What torch's and other libraries' functions take, and what there is here."""


def check_names(asked: Mapping[str, Any]) -> None:
    """Refuses names that no option has."""
    for name in asked:
        if name not in NAMES:
            options = f"attention takes arrays, and {', '.join(NAMES)}"
            raise ArgumentError(f"argument {name!r}: {ELSEWHERE.get(name, options)}")
