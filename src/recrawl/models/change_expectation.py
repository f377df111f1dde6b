"""How likely the copy kept of each page is out of date, from the page's own past and that of all pages."""

from __future__ import annotations

import math
from datetime import datetime

import numpy as np
from numba import njit

from recrawl.core.arrays import Flags, Floats, Floats32, Ints
from recrawl.core.exact_sums import ExactSums
from recrawl.core.growing import grown
from recrawl.core.times import NEVER, US_PER_DAY, microseconds
from recrawl.core.whole import ONE_PIECE, Columns, Whole, sampled
from recrawl.core.workers import over_ranges
from recrawl.world.pages import Pages, Visits

#: Changes per day: never, and from once in a year and a half to once in a minute and a half, each a quarter more than the last.
RATES = np.append(0.0, 2.0 ** (np.arange(-27, 31) / 3.0))
SHORTEST_DAYS = 1.0 / 24 / 60
MAX_SAMPLE = 5_000  #: pages from which the shares of the rates are learnt
PER_OCTAVE = 32  #: lengths of intervals that are distinguished for each doubling
N_STEPS = 50  #: more would overfit the shares


class ChangeExpectation:
    """The probability that a page changed since its copy was made, as a mixture of a few rates of change.

    Every page has one of `RATES`. How well each rate fits a page is known exactly, however irregular its visits: exp(-Δd) for d
    days without a change, 1 - exp(-Δd) for d days with one or more. How common each rate is among the pages is learnt from all of
    them (empirical Bayes, by expectation maximisation), and is all that is known of a page that was never compared with an
    earlier copy. An interval runs from one answer to the next, as for `ChangeRates`.

    Rates at which all but one in a hundred intervals show a change cannot be distinguished. Only the smallest of them counts: pages
    that changed at each of their weekly visits are not assumed to change every hour.

    References: Laird (1978), "Nonparametric maximum likelihood estimation of a mixing distribution", for the shares.
    """

    def __init__(self, n_pages: int) -> None:
        self.n_compared, self.n_changed = np.zeros(n_pages, np.int64), np.zeros(n_pages, np.int64)
        self._seen: Ints = np.full(n_pages, NEVER)
        self._lengths = ExactSums(2)  # of all intervals, and their inverses: intervals per day
        # The log-likelihood of each rate: once for all pages with the same past, since most pages are alike.
        self._fits, self._fit_of = np.zeros((16, len(RATES)), np.float32), np.zeros(n_pages, np.int64)
        self._n_fits = 1  # rows in use; the others are room to grow
        self._shares: Floats | None = None

    def extend_to(self, n_pages: int) -> None:
        """More pages are known."""
        self.n_compared, self.n_changed = grown(self.n_compared, n_pages), grown(self.n_changed, n_pages)
        self._seen, self._fit_of = grown(self._seen, n_pages, NEVER), grown(self._fit_of, n_pages)

    def observe(self, visits: Visits) -> None:
        """Learn from the visits of a cycle."""
        known = visits.came & (visits.changed >= 0) & (self._seen[visits.page] != NEVER)
        page, changed = visits.page[known], visits.changed[known] == 1
        days = np.maximum((visits.at[known] - self._seen[page]) / US_PER_DAY, SHORTEST_DAYS)
        self._seen[visits.page[visits.came]] = visits.at[visits.came]
        self._add(page, *_fits(days, changed))
        self._lengths.add_to(0, days)
        self._lengths.add_to(1, 1.0 / days)
        self.n_compared[page] += 1
        self.n_changed[page] += changed
        self._shares = None

    def _add(self, page: Ints, rows: Floats32, which: Ints) -> None:
        """Add one of some rows to the log-likelihoods of each page."""
        pairs, place = np.unique(self._fit_of[page] * len(rows) + which, return_inverse=True)
        begin, self._n_fits = self._n_fits, self._n_fits + len(pairs)
        if self._n_fits > len(self._fits):
            longer = np.empty((max(self._n_fits, len(self._fits) * 5 // 4), len(RATES)), np.float32)
            longer[:begin] = self._fits[:begin]
            self._fits = longer
        self._fits[begin : self._n_fits] = self._fits[pairs // len(rows)] + rows[pairs % len(rows)]
        self._fit_of[page] = begin + place
        if self._n_fits > 1.25 * len(self._fit_of) + 1_000:
            used, place = np.unique(
                np.append(0, self._fit_of), return_inverse=True
            )  # pages to come begin with the first row
            self._fits, self._fit_of, self._n_fits = self._fits[used], place[1:], len(used)

    def shares(self, pages: Pages | None = None) -> Floats:
        """The share of pages that change at each of `RATES`; one imagined page more has each of them equally."""
        if self._shares is None:
            whole, keys = (ONE_PIECE, np.arange(len(self._seen))) if pages is None else (pages.whole, pages.keys)
            self._shares = self._learnt_shares(whole, keys)
        return self._shares

    def _learnt_shares(self, whole: Whole, keys: Ints) -> Floats:
        n_pages, n_intervals = self._counts(whole)
        compared = np.flatnonzero(self.n_compared)
        some = compared[sampled(keys[compared], n_pages, MAX_SAMPLE)]

        def sample() -> Columns:
            rows = self._fits[self._fit_of[some]]
            return {"key": keys[some], **{str(i): rows[:, i] for i in range(len(RATES))}}

        rows = whole.rows("rates of change", sample)
        fit = np.stack([rows[str(i)] for i in range(len(RATES))], axis=1).astype(np.float64)
        frequency = whole.totals("lengths of intervals", lambda: self._lengths)[1] / max(n_intervals, 1)
        n_distinct = np.searchsorted(RATES, math.log(100) * frequency) + 1 if n_pages else len(RATES)
        shares = np.zeros(len(RATES))
        shares[:n_distinct] = _shares(fit[:, :n_distinct])
        return shares

    def _counts(self, whole: Whole) -> tuple[int, int]:
        """Pages that were compared with an earlier copy, and how often."""
        counts = whole.counts(
            "intervals", lambda: np.array([np.count_nonzero(self.n_compared), self.n_compared.sum()], np.int64)
        )
        return int(counts[0]), int(counts[1])

    def expect(self, now: datetime, of: Ints | None = None, pages: Pages | None = None) -> Floats:
        """The probability that each page, or each of some, is no longer as it was when last seen.

        A page that never answered counts as having waited as long as is usual between two answers. `pages`: all of them; without
        these they are taken to be a whole collection.
        """
        whole = ONE_PIECE if pages is None else pages.whole
        seen, fit_of = (self._seen, self._fit_of) if of is None else (self._seen[of], self._fit_of[of])
        usual = whole.totals("lengths of intervals", lambda: self._lengths)[0] / max(self._counts(whole)[1], 1)
        waited = np.maximum(microseconds(now) - np.where(seen == NEVER, 0, seen), 0) / US_PER_DAY
        waited = np.where(seen == NEVER, usual, waited)
        probability, shares = np.empty(len(fit_of)), self.shares(pages)
        over_ranges(len(fit_of), lambda low, high: _mixed(low, high, self._fits, fit_of, shares, waited, probability))
        return probability


def _fits(days: Floats, changed: Flags) -> tuple[Floats32, Ints]:
    """The log-likelihood of each rate by one interval per page: a few rows, and which of them belongs to each page.

    Lengths that differ by less than two percent are taken as one, so that there are few of them, and pages with the same past.
    """
    lengths, which = np.unique(np.exp2(np.round(PER_OCTAVE * np.log2(days)) / PER_OCTAVE), return_inverse=True)
    expected = np.outer(lengths, RATES)
    with np.errstate(divide="ignore"):  # a page that changed cannot have the rate 0
        any_change = np.log(-np.expm1(-expected))
    return np.concatenate([-expected, any_change]).astype(np.float32), which + changed * len(lengths)


@njit(cache=True, nogil=True)
def _mixed(low, high, fits, fit_of, shares, days, mixed):  # type: ignore[no-untyped-def]
    """The probabilities of a change at each rate, weighted for each page by how well the rate fits and how common it is."""
    for page in range(low, high):
        fit = fits[fit_of[page]]
        best, total, changed = fit[shares > 0].max(), 0.0, 0.0
        for rate in range(len(shares)):
            if shares[rate] <= 0:
                continue  # it may fit better than all others, and then its weight would be 0 times infinity
            weight = shares[rate] * np.exp(fit[rate] - best)
            total += weight
            changed -= weight * np.expm1(-RATES[rate] * days[page])
        mixed[page] = changed / total


def _shares(fit: Floats) -> Floats:
    """The shares under which the past of these pages is most likely, with one imagined page more of each rate equally."""
    n_pages, n_rates = fit.shape
    likelihood = np.exp(fit - fit.max(axis=1, keepdims=True, initial=-np.inf))
    shares = np.full(n_rates, 1.0 / n_rates)
    for _ in range(N_STEPS):
        counts = shares * (likelihood.T @ (1.0 / (likelihood @ shares)))
        shares = (counts + 1.0 / n_rates) / (n_pages + 1.0)
    return shares
