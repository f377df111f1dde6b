"""A score a page → the best pages within a budget, none that overlaps with one already picked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.policies.base import Budget, Cause, Choice, Flags, Floats, Ints, Pages
from recrawl.policies.pairs import PairTable, find

_PICKED, _CUT, _HOST, _SITE, _OVERLAP = (
    int(cause) for cause in (Cause.PICKED, Cause.BELOW_CUT, Cause.HOST_CAP, Cause.SITE_CAP, Cause.OVERLAP)
)
_NONE = np.empty(0, np.int64)
#: The host of each page, most pages of one host, how many each has already; the same for sites.
Caps = tuple[Ints, int, Ints, Ints, int, Ints]


def caps_of(pages: Pages, budget: Budget) -> Caps:
    """The caps of a budget, as kernels take them."""
    n = len(pages)
    taken = _NONE if budget.taken is None else budget.taken
    return (
        pages.host,
        n + 1 if budget.per_host is None else budget.per_host,
        np.bincount(pages.host[taken], minlength=n),
        pages.site,
        n + 1 if budget.per_site is None else budget.per_site,
        np.bincount(pages.site[taken], minlength=n),
    )


def take(
    score: Floats,
    pages: Pages,
    budget: Budget,
    *,
    reason: str = "",
    detail: dict[str, NDArray[Any]] | None = None,
    expected: Floats | None = None,
    first: Flags | None = None,
    may: Flags | None = None,
    ties: Floats | None = None,
    overlap: PairTable | None = None,
    above: float = 0.7,
    fill: bool = False,
) -> Choice:
    """Pick by descending score, ties by `ties` (the greatest first) and then in the order of the pages.

    `first` marks pages that come before all others; `may` the only ones that are worth a visit at all. A page that overlaps by more
    than `above` with one already picked is passed over (Pham et al., Algorithm 2); with `fill` such pages still use up what would
    be left of the budget. `detail` and `expected` hold one entry for every page.
    """
    n = len(pages)
    cause = np.full(n, _CUT, np.int8)
    is_free = np.ones(n, np.bool_)
    if may is not None:
        cause[~may], is_free = Cause.UNPROMISING, may.copy()
    if budget.barred is not None:
        barred = budget.barred > 0
        cause[barred] = budget.barred[barred]
        is_free &= ~barred
    free = np.flatnonzero(is_free)
    order = free[_descending(score, first, ties, free)]
    overlaps = np.full(n, -1, np.int64)
    chosen = _pick(
        order,
        min(budget.pages, n),
        *caps_of(pages, budget),
        overlap is not None,
        overlap.keys if overlap is not None else _NONE,
        overlap.value if overlap is not None else np.empty(0, np.float64),
        overlap.valid() if overlap is not None else np.empty(0, np.bool_),
        above,
        fill,
        cause,
        overlaps,
    )
    return Choice(
        chosen,
        score[chosen],
        reason,
        {name: values[chosen] for name, values in (detail or {}).items()},
        None if expected is None else expected[chosen],
        cause,
        overlaps,
    )


def _descending(score: Floats, first: Flags | None, ties: Floats | None, free: Ints) -> Ints:
    keys = [-np.where(np.isnan(score[free]), -np.inf, score[free])]
    if ties is not None:
        keys.insert(0, -ties[free])
    if first is not None:
        keys.append(~first[free])
    return np.lexsort(keys) if len(keys) > 1 else np.argsort(keys[0], kind="stable")


@njit(cache=True)
def _pick(  # type: ignore[no-untyped-def]
    order,
    k,
    host,
    per_host,
    of_host,
    site,
    per_site,
    of_site,
    with_overlap,
    keys,
    value,
    valid,
    above,
    fill,
    cause,
    overlaps,
):
    n = len(host)
    chosen = np.empty(k, np.int64)
    n_chosen = 0
    last_of_site = np.full(n, -1, np.int64)  # the page of a site that was picked last, and before it …
    before = np.full(n, -1, np.int64)
    for turn in range(2 if fill else 1):
        for p in order:
            if n_chosen == k:
                break
            if cause[p] == _PICKED:
                continue
            if of_host[host[p]] >= per_host:
                cause[p] = _HOST
                continue
            if of_site[site[p]] >= per_site:
                cause[p] = _SITE
                continue
            if with_overlap and turn == 0:
                other = last_of_site[site[p]]
                while other >= 0:
                    at = find(keys, p, other, n)
                    if at >= 0 and valid[at] and value[at] > above:
                        break
                    other = before[other]
                if other >= 0:
                    cause[p], overlaps[p] = _OVERLAP, other
                    continue
            chosen[n_chosen] = p
            n_chosen += 1
            cause[p] = _PICKED
            of_host[host[p]] += 1
            of_site[site[p]] += 1
            before[p], last_of_site[site[p]] = last_of_site[site[p]], p
    return chosen[:n_chosen]
