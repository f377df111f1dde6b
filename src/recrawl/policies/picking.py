"""The loops behind `select.take`: pick in order, within the caps of hosts and sites, and pass over pages that overlap.

They are compiled, which takes a second to import; so they are imported by what picks, not by what only names a policy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Ints, Ints8
from recrawl.policies.budget import Budget, Cause
from recrawl.policies.pairs import PairTable, find
from recrawl.world.pages import Pages

_PICKED, _HOST, _SITE, _OVERLAP = (
    int(cause) for cause in (Cause.PICKED, Cause.HOST_CAP, Cause.SITE_CAP, Cause.OVERLAP)
)


class Caps(NamedTuple):
    """The caps of a budget, as kernels take them; counts go up as pages are picked."""

    host: Ints  # of each page
    per_host: int
    of_host: Ints  # pages picked so far
    site: Ints
    per_site: int
    of_site: Ints


def caps_of(pages: Pages, budget: Budget) -> Caps:
    """The caps of a budget; pages that were picked before count.

    >>> pages = Pages.unseen(site=np.array([0, 0, 1]), host=np.array([0, 0, 1]))
    >>> caps = caps_of(pages, Budget(3, per_host=1, taken=np.array([2])))
    >>> caps.per_host, caps.of_host
    (1, array([0, 1, 0]))
    """
    n = len(pages)
    taken = np.empty(0, np.int64) if budget.taken is None else budget.taken
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


class _Overlaps(NamedTuple):
    """The table of a `PairTable`, as the kernel takes it."""

    keys: Ints
    value: Floats
    valid: Flags
    above: float


_NO_OVERLAPS = _Overlaps(np.empty(0, np.int64), np.empty(0, np.float64), np.empty(0, np.bool_), 0.0)


def pick_in_order(
    order: Ints,
    k: int,
    caps: Caps,
    cause: Ints8,
    *,
    overlap: PairTable | None = None,
    above: float = 0.7,
    fill: bool = False,
) -> tuple[Ints, Ints]:
    """The first `k` pages of an order that the caps allow and that do not overlap, and for each page the one it overlaps with.

    `cause` is updated for every page that was looked at. The rest as in `select.take`.
    """
    overlaps = np.full(len(cause), -1, np.int64)
    table = _NO_OVERLAPS if overlap is None else _Overlaps(overlap.keys, overlap.value, overlap.valid(), above)
    twin = _twins(overlap, above, len(cause))
    chosen: Ints = _pick(order, k, caps, overlap is not None, table, twin, fill, cause, overlaps)
    return chosen, overlaps


def _twins(overlap: PairTable | None, above: float, n_pages: int) -> Ints:
    """Small numbers that pages share which overlap without being compared two by two; 0: none."""
    if overlap is None or not overlap.twin.any() or overlap.twins_are <= above:
        return np.zeros(n_pages, np.int64)
    number = np.unique(overlap.twin, return_inverse=True)[1]
    numbers: Ints = np.where(overlap.twin == 0, 0, number + 1)
    return numbers


@njit(cache=True)
def _pick(order, k, caps, with_overlap, table, twin, fill, cause, overlaps):  # type: ignore[no-untyped-def]
    n = len(caps.host)
    chosen = np.empty(k, np.int64)
    n_chosen = 0
    # The pages picked of a site, from the last one back to the first.
    last_of_site = np.full(n, -1, np.int64)
    before = np.full(n, -1, np.int64)
    picked_twin = np.full(twin.max() + 1 if len(twin) else 1, -1, np.int64)
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
                    at = find(table.keys, p, other)
                    if at >= 0 and table.valid[at] and table.value[at] > table.above:
                        break
                    other = before[other]
                if other < 0 and twin[p] > 0:
                    other = picked_twin[twin[p]]
                if other >= 0:
                    cause[p], overlaps[p] = _OVERLAP, other
                    continue
            chosen[n_chosen] = p
            n_chosen += 1
            cause[p] = _PICKED
            count_picked(p, caps)
            before[p], last_of_site[site] = last_of_site[site], p
            picked_twin[twin[p]] = p
    return chosen[:n_chosen]
