"""What is left of an address, by its strides: terms with the same known factors go along one
dimension.

    head * stride_head + chunk * size * stride_row + batch * stride_batch     ->  three groups
"""

from __future__ import annotations

from tilec.triton.polynomial import Monomial, Polynomial, common_factor

Parts = list[tuple[Monomial, int]]
"""Terms without the factors that a launch knows, each with its coefficient."""
Groups = dict[Monomial, Parts]
"""By those factors."""


def groups_of(rest: Polynomial) -> Groups:
    """The terms of an address that a launch does not know."""
    groups: Groups = {}
    for monomial, n in rest.terms.items():
        known = tuple(symbol for symbol in monomial if symbol.is_known)
        unknown = tuple(symbol for symbol in monomial if not symbol.is_known)
        if unknown:
            groups.setdefault(known, []).append((unknown, n))
    return groups


def along(parts: Parts) -> tuple[int, Polynomial]:
    """What divides a sum, and the sum divided by it."""
    step = common_factor(n for _, n in parts)
    return step, Polynomial({monomial: n // step for monomial, n in parts})


def join_groups(groups: Groups, most: int) -> None:
    """Makes one of two groups as long as there are more than `most`: along `head * stride + part *
    heads * stride` the index is `head + part * heads`."""
    while len(groups) > most and _join(groups):
        pass


def _join(groups: Groups) -> bool:
    """Joins two, and says whether there were two such."""
    for less in filter(None, groups):
        for more in groups:
            factors = list(more)
            if less is more or not all(s in factors and not factors.remove(s) for s in less):
                continue
            for unknown, n in groups.pop(more):
                factor = tuple(sorted((*factors, *unknown), key=lambda s: s.number))
                groups[less].append((factor, n))
            return True
    return False
