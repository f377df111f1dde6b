"""How reliable sitemaps and feeds are: how often a page had changed when its host said so.

Some hosts write the time of a change, some the time of the request. So a source is trusted on a host only once its record there
proves it: `judge` compares what it said before each visit with what the visit showed, and `learn` counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints, Ints8

MIN_HINTED = 10  #: visits after a hint that a source needs to be proven
MIN_PRECISION = 0.5
MIN_RECALL = 0.8
_Z = 1.959963984540054  # of a 95% interval


@dataclass(frozen=True)
class Reads:
    """When the sources of one kind were read: one entry per reading, in any order."""

    host: Ints
    at: Ints  # microseconds, UTC


@dataclass(frozen=True)
class Claims:
    """What the sources of one kind said: one entry per page and reading that gave a time, in any order."""

    page: Ints
    read_at: Ints  # microseconds, UTC
    changed_at: Ints  # microseconds, UTC: when the page changed, according to the source


@dataclass(frozen=True)
class HintOutcomes:
    """What a source had said before some visits, and what they showed: one entry per visit."""

    visit: Ints  # its place among the visits given
    hinted: Flags  # the source had said that the page changed after its previous visit
    changed: Flags  # the page had changed


def judge(
    page: Ints, host: Ints, at: Ints, changed: Ints8, *, reads: Reads, claims: Claims, as_of: int | None = None
) -> HintOutcomes:
    """Compare what was said before each visit with what the visit showed.

    One entry per visit that fetched the page, in any order; `changed` is 1, 0, or -1 for not known. A visit counts if the page was
    visited before and a source of its host was read between the two visits. Nothing after `as_of` (microseconds) is used.
    """
    order = np.lexsort((at, page))
    page_sorted, at_sorted = page[order], at[order]
    follows = np.zeros(len(page), np.bool_)  # the visit before it is to the same page
    follows[1:] = page_sorted[1:] == page_sorted[:-1]
    hinted = _hinted(page_sorted, at_sorted, follows, claims)

    is_past = at_sorted <= (np.iinfo(np.int64).max if as_of is None else as_of)
    here = np.flatnonzero(follows & is_past & (changed[order] >= 0))
    n_reads = _rank(reads.host, reads.at, host[order[here]], at_sorted[here])
    n_reads_before = _rank(reads.host, reads.at, host[order[here]], at_sorted[here - 1])
    here = here[n_reads > n_reads_before]
    return HintOutcomes(order[here], hinted[here], changed[order[here]] == 1)


def _hinted(page: Ints, at: Ints, follows: Flags, claims: Claims) -> Flags:
    """Whether a claim read between a visit and the one before says that the page changed after that; sorted by page and time."""
    hinted = np.zeros(len(page), np.bool_)
    next_visit = _rank(page, at, claims.page, claims.read_at, equal_counts=False)
    in_log = next_visit < len(page)
    visit, of_page, changed_at = next_visit[in_log], claims.page[in_log], claims.changed_at[in_log]
    hinted[visit[(page[visit] == of_page) & follows[visit] & (changed_at > at[visit - 1])]] = True
    return hinted


def _rank(group: Ints, time: Ints, of_group: Ints, of_time: Ints, equal_counts: bool = True) -> Ints:
    """How many of the (group, time) pairs are smaller than each of the others, or smaller or equal."""
    is_other = np.repeat((0, 1), (len(group), len(of_group)))
    groups, times = np.concatenate((group, of_group)), np.concatenate((time, of_time))
    order = np.lexsort((is_other if equal_counts else -is_other, times, groups))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.cumsum(is_other[order] == 0)
    return rank[len(group) :]


@dataclass(frozen=True)
class TrackRecord:
    """The record of one kind of source on every host: counts of judged visits, one entry per host."""

    kind: str  # "sitemap" or "feed", as reasons name it
    n_visits: Ints
    n_hinted: Ints
    n_changed: Ints
    n_right: Ints  # hinted and changed

    @property
    def precision(self) -> Floats:
        """The share of visits after a hint that found a change; NaN if there are none."""
        return _share(self.n_right, self.n_hinted)

    @property
    def recall(self) -> Floats:
        """The share of detected changes that had been hinted at; NaN if there are none."""
        return _share(self.n_right, self.n_changed)

    @property
    def base_rate(self) -> Floats:
        """The share of all visits that found a change; NaN if there are none."""
        return _share(self.n_changed, self.n_visits)

    @property
    def is_proven(self) -> Flags:
        """Whether hints are clearly right more often than not, and than pages change without them.

        Where every visit was hinted there is nothing to compare with: a host that calls all pages changed is never proven.
        """
        unhinted = _share(self.n_changed - self.n_right, self.n_visits - self.n_hinted)
        without = np.where(np.isnan(unhinted), self.base_rate, unhinted)
        lower = wilson_lower(self.n_right, self.n_hinted)
        return (self.n_hinted >= MIN_HINTED) & (lower > MIN_PRECISION) & (lower > without)

    @property
    def is_complete(self) -> Flags:
        """Whether the source is proven and also names nearly all changes, so that other pages have most likely not changed.

        This holds for the visits that were made: a crawler that no longer visits pages without a hint stops testing it.
        """
        return self.is_proven & (wilson_lower(self.n_right, self.n_changed) >= MIN_RECALL)

    def probability(self, host: Ints, hinted: Flags) -> Floats:
        """The probability that a page of a host has changed, given whether it is hinted; NaN where the record proves nothing.

        Laplace's rule of succession, (k + 1) / (n + 2): a short record never makes it certain.

        >>> record = learn("feed", np.zeros(40, int), np.arange(40) < 20, np.arange(40) < 19, n_hosts=2)
        >>> record.probability(np.array([0, 0, 1]), np.array([True, False, True])).round(2)
        array([0.91, 0.05,  nan])
        """
        missed, unhinted = self.n_changed - self.n_right, self.n_visits - self.n_hinted
        if_hinted = np.where(self.is_proven, (self.n_right + 1) / (self.n_hinted + 2), np.nan)
        if_not = np.where(self.is_complete, (missed + 1) / (unhinted + 2), np.nan)
        return np.where(hinted, if_hinted[host], if_not[host])

    def reason(self, host: int, changed_at: datetime | None = None) -> str:
        """What the source says of a page, and why that counts or does not; `changed_at` is None if it is not hinted.

        >>> record = learn("sitemap", np.zeros(40, int), np.arange(40) < 20, np.arange(40) < 19, n_hosts=1)
        >>> record.reason(0, datetime(2026, 3, 1, 10))
        'its sitemap says it changed 2026-03-01 10:00; right 19 of 20 times on this host'
        """
        right, hinted, changed = (int(count[host]) for count in (self.n_right, self.n_hinted, self.n_changed))
        if changed_at is None:
            record, is_used = f"it named {right} of {changed} changes on this host", self.is_complete[host]
            says = "does not say that it changed"
        else:
            record, is_used = f"right {right} of {hinted} times on this host", self.is_proven[host]
            says = f"says it changed {changed_at:%Y-%m-%d %H:%M}"
        return f"its {self.kind} {says}; {record}" + ("" if is_used else ", which is not enough to go by")


def learn(kind: str, host: Ints, hinted: Flags, changed: Flags, n_hosts: int) -> TrackRecord:
    """Count the record of each host from judged visits: one entry per visit, hosts numbered from 0."""
    n_visits, n_hinted, n_changed, n_right = (
        np.bincount(host[which], minlength=n_hosts).astype(np.int64)
        for which in (np.ones(len(host), np.bool_), hinted, changed, hinted & changed)
    )
    return TrackRecord(kind, n_visits, n_hinted, n_changed, n_right)


def wilson_lower(successes: Ints, trials: Ints) -> Floats:
    """The lower end of the 95% interval of a share; 0 without trials.

    >>> wilson_lower(np.array([19, 10, 0]), np.array([20, 10, 0])).round(3)
    array([0.764, 0.722, 0.   ])

    References: Wilson (1927), Probable inference, the law of succession, and statistical inference.
    """
    n = np.maximum(trials, 1)
    share = successes / n
    middle = share + _Z**2 / (2 * n)
    spread = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    lower: Floats = np.where(trials > 0, np.maximum(middle - spread, 0.0) / (1 + _Z**2 / n), 0.0)
    return lower


def _share(part: Ints, whole: Ints) -> Floats:
    share: Floats = np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
    return share
