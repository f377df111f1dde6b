"""A score a page → the best pages within a budget, none that overlaps with one already picked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.choice import Choice, PageName, Sentence
from recrawl.policies.pairs import PairTable, find
from recrawl.world.pages import Pages

_PICKED, _CUT, _HOST, _SITE, _OVERLAP = (
    int(cause) for cause in (Cause.PICKED, Cause.BELOW_CUT, Cause.HOST_CAP, Cause.SITE_CAP, Cause.OVERLAP)
)
_NONE = np.empty(0, np.int64)
#: Sentences for pages that were never visited, and for those visited once.
UNVISITED, VISITED_ONCE = "never visited yet", "visited once: a second visit shows how it changes"


class Caps(NamedTuple):
    """The caps of a budget, as kernels take them; counts go up as pages are picked."""

    host: Ints  # of each page
    per_host: int
    of_host: Ints  # pages picked so far
    site: Ints
    per_site: int
    of_site: Ints


def caps_of(pages: Pages, budget: Budget) -> Caps:
    """The caps of a budget; pages that were picked before count."""
    n = len(pages)
    taken = _NONE if budget.taken is None else budget.taken
    return Caps(
        host=pages.host,
        per_host=n + 1 if budget.per_host is None else budget.per_host,
        of_host=np.bincount(pages.host[taken], minlength=n),
        site=pages.site,
        per_site=n + 1 if budget.per_site is None else budget.per_site,
        of_site=np.bincount(pages.site[taken], minlength=n),
    )


@njit(cache=True)
def capped(page, caps):  # type: ignore[no-untyped-def]
    """The cause why a page is beyond the caps; 0 where it is not."""
    if caps.of_host[caps.host[page]] >= caps.per_host:
        return _HOST
    if caps.of_site[caps.site[page]] >= caps.per_site:
        return _SITE
    return _PICKED


@njit(cache=True)
def count_picked(page, caps):  # type: ignore[no-untyped-def]
    """One page more of its host and site."""
    caps.of_host[caps.host[page]] += 1
    caps.of_site[caps.site[page]] += 1


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
    judges_new: bool = False,
) -> Choice:
    """Pick by descending score, ties by `ties` (the greatest first) and then in the order of the pages.

    `first` marks pages that come before all others; `may` the only ones that are worth a visit at all. A page that overlaps by more
    than `above` with one already picked is passed over (Pham et al., Algorithm 2); with `fill` such pages still use up what would
    be left of the budget. `reason` is a sentence with {fields} from `detail`; pages visited at most once have sentences of their
    own, unless the policy `judges_new`. `detail` and `expected` hold one entry for every page.
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
    table = _NO_OVERLAP if overlap is None else _Overlap(overlap.keys, overlap.value, overlap.valid(), above)
    chosen = _pick(
        order, min(budget.pages, n), caps_of(pages, budget), overlap is not None, table, fill, cause, overlaps
    )
    sentence = Sentence(reason, {name: values[chosen] for name, values in (detail or {}).items()})
    return Choice(
        page=chosen,
        score=score[chosen],
        reason=sentence if judges_new else UnlessNew(sentence, pages.n_visits[chosen]),
        expected=None if expected is None else expected[chosen],
        cause=cause,
        overlaps=overlaps,
    )


@dataclass(frozen=True)
class UnlessNew:
    """A sentence, but for pages that were visited at most once: no policy can judge those by their past."""

    sentence: Sentence
    n_visits: Ints  # of each page picked

    def __call__(self, i: int, name: PageName) -> str:
        """The sentence for the i-th page."""
        if self.n_visits[i] >= 2:
            return self.sentence(i, name)
        return VISITED_ONCE if self.n_visits[i] else UNVISITED


def _descending(score: Floats, first: Flags | None, ties: Floats | None, free: Ints) -> Ints:
    keys = [-np.where(np.isnan(score[free]), -np.inf, score[free])]
    if ties is not None:
        keys.insert(0, -ties[free])
    if first is not None:
        keys.append(~first[free])
    return np.lexsort(keys) if len(keys) > 1 else np.argsort(keys[0], kind="stable")


class _Overlap(NamedTuple):
    """The table of a `PairTable`, as the kernel takes it."""

    keys: Ints
    value: Floats
    valid: Flags
    above: float


_NO_OVERLAP = _Overlap(_NONE, np.empty(0, np.float64), np.empty(0, np.bool_), 0.0)


@njit(cache=True)
def _pick(order, k, caps, with_overlap, table, fill, cause, overlaps):  # type: ignore[no-untyped-def]
    n = len(caps.host)
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
            beyond = capped(p, caps)
            if beyond:
                cause[p] = beyond
                continue
            site = caps.site[p]
            if with_overlap and turn == 0:
                other = last_of_site[site]
                while other >= 0:
                    at = find(table.keys, p, other, n)
                    if at >= 0 and table.valid[at] and table.value[at] > table.above:
                        break
                    other = before[other]
                if other >= 0:
                    cause[p], overlaps[p] = _OVERLAP, other
                    continue
            chosen[n_chosen] = p
            n_chosen += 1
            cause[p] = _PICKED
            count_picked(p, caps)
            before[p], last_of_site[site] = last_of_site[site], p
    return chosen[:n_chosen]
