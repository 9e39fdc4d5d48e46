"""What an author offers to try: configurations one by one, or a space of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
from math import prod
from typing import Any

from tilec.records import dataclass

MOST_CANDIDATES = 512
"""Each is built once to be ranked, which takes about 20 ms: 10 s in all."""

Values = Mapping[str, Any]
Space = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Candidate:
    """A choice to try: `constants` of the kernel and `demands` of its decorator; what is not named
    stays as it is.

    The one without either is the default.
    """

    constants: Values = field(default_factory=dict)
    demands: Values = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The candidate as people read it: `BM=128 BN=256 num_warps=8`."""
        pairs = {**self.constants, **self.demands}
        return " ".join(f"{name}={_show(value)}" for name, value in pairs.items()) or "default"

    @property
    def fingerprint(self) -> dict[str, str]:
        """Names and typed texts of the values: what a file keeps, and is compared with."""
        pairs = {**self.constants, **self.demands}
        return {name: f"{type(value).__name__} {_show(value)}" for name, value in pairs.items()}


DEFAULT = Candidate()


def candidates_of(
    kernel_name: str,
    constants: Iterable[str],
    demands: Iterable[str],
    configs: Sequence[Values] | None = None,
    search: Space | Sequence[Space] | None = None,
    where: Callable[..., bool] | None = None,
) -> tuple[Candidate, ...]:
    """The default, then `configs` in their order, then `search`'s points that `where` accepts.

    ValueError or TypeError names what is wrong: an unknown name, an empty space, too many points.
    """
    if configs is None and search is None:
        raise ValueError("autotune: give configs=[{...}, ...] or search={name: [values], ...}")
    if where is not None and search is None:
        raise ValueError("where: only a search space is filtered; configs are taken as they are")
    known = (tuple(constants), tuple(demands))
    found = [DEFAULT]
    for config in configs or ():
        found.append(_candidate(kernel_name, config, *known))
    spaces = [search] if isinstance(search, Mapping) else list(search or ())
    for space in spaces:
        found += [_candidate(kernel_name, point, *known) for point in _points(space, where)]
    unique = list({_identity(candidate): candidate for candidate in reversed(found)}.values())
    unique.reverse()
    if len(unique) == 1:
        raise ValueError(f"autotune of {kernel_name}: no candidate beside the default")
    if len(unique) > MOST_CANDIDATES:
        raise ValueError(
            f"autotune of {kernel_name}: {len(unique)} candidates; at most {MOST_CANDIDATES}: "
            "narrow the space, or filter it with where="
        )
    return tuple(unique)


def _candidate(
    kernel_name: str, values: Values, constants: Sequence[str], demands: Sequence[str]
) -> Candidate:
    if not isinstance(values, Mapping):
        raise TypeError(f"configs: expected a dictionary, found {type(values).__name__}")
    for name, value in values.items():
        if name not in constants and name not in demands:
            raise ValueError(
                f"autotune: {kernel_name} has no constant and no demand {name!r}; "
                f"constants: {', '.join(constants) or 'none'}; demands: {', '.join(demands)}"
            )
        try:
            hash(value)
        except TypeError:
            raise TypeError(f"autotune: the value of {name!r} must be hashable") from None
    return Candidate(
        {name: value for name, value in values.items() if name in constants},
        {name: value for name, value in values.items() if name not in constants},
    )


def _points(space: Space, where: Callable[..., bool] | None) -> Iterator[Values]:
    for name, values in space.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence) or not values:
            raise TypeError(
                f"search: {name!r} needs a list or tuple of values, found {values!r}; "
                "write a single value as [value]"
            )
    size = prod(len(values) for values in space.values())
    if size > 100 * MOST_CANDIDATES:
        raise ValueError(f"search: the space has {size} points, too many to look through")
    names = list(space)
    wanted = None if where is None else list(inspect.signature(where).parameters)
    for name in wanted or ():
        if name not in names:
            raise ValueError(f"where: its parameter {name!r} is not in the space")
    for chosen in product(*space.values()):
        point = dict(zip(names, chosen, strict=True))
        if where is None or where(**{name: point[name] for name in wanted or ()}):
            yield point


def _identity(candidate: Candidate) -> Any:
    return tuple(sorted(candidate.fingerprint.items()))


def _show(value: Any) -> str:
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_show, value))})"
    return repr(value)
