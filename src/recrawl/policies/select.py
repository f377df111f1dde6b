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
    overlap: PairTable | None = None,
    above: float = 0.7,
    fill: bool = False,
) -> Choice:
    """Pick by descending score, ties in the order of the pages.

    `first` marks pages that come before all others; `may` the only ones that are worth a visit at all. A page that overlaps by more
    than `above` with one already picked is passed over (Pham et al., Algorithm 2); with `fill` such pages still use up what would
    be left of the budget. `detail` and `expected` hold one entry for every page.
    """
    n = len(pages)
    cause = np.full(n, _CUT, np.int8)
    if may is not None:
        cause[~may] = Cause.UNPROMISING
    if budget.barred is not None:
        cause[budget.barred > 0] = budget.barred[budget.barred > 0]
    free = np.flatnonzero(cause == _CUT)
    order = free[_descending(score[free], None if first is None else first[free])]
    overlaps = np.full(n, -1, np.int64)
    unlimited = n + 1
    chosen = _pick(
        order,
        min(budget.pages, n),
        pages.host,
        unlimited if budget.per_host is None else budget.per_host,
        pages.site,
        unlimited if budget.per_site is None else budget.per_site,
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


def _descending(score: Floats, first: Flags | None) -> Ints:
    score = np.where(np.isnan(score), -np.inf, score)
    if first is None:
        return np.argsort(-score, kind="stable")
    return np.lexsort((-score, ~first))


@njit(cache=True)
def _pick(  # type: ignore[no-untyped-def]
    order, k, host, per_host, site, per_site, with_overlap, keys, value, valid, above, fill, cause, overlaps
):
    n = len(host)
    chosen = np.empty(k, np.int64)
    n_chosen = 0
    of_host = np.zeros(n, np.int64)  # hosts and sites are numbered below the number of pages
    of_site = np.zeros(n, np.int64)
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
