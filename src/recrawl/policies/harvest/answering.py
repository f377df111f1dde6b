"""Will a page answer? Pages fail for a while, are gone, or do not exist yet; each state has its own rate of coming back."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.exact_sums import ExactSums
from recrawl.core.growing import grown
from recrawl.core.times import US_PER_HOUR, microseconds
from recrawl.world.pages import Visits

#: States of a page: it answered at its last visit; it never did; it is gone (404 or 410); it answered before, but failed.
UP, NOT_YET, GONE, FAILING = range(4)
AGES = np.append(0.0, 2.0 ** np.arange(1, 18))  #: hours away at which each class of pages begins: up to 15 years
N_RETURNS = 4 * len(AGES)  #: kinds of pages that are away, by state and age
SWEEPS = 5.0  #: sweeps over all pages after which what was seen of pages that are away counts half


class Answering:
    """The probability that each page answers now.

    A page that did not answer comes back at a rate, so the probability grows with the time since its last visit. The rate is
    that of all pages in the same state that have been away as long: some collections are full of dead addresses, in others
    pages are known long before they appear. A page that was never visited has been away since it became known. A page that answered
    last time answers as often as it, and all others, did after an answer.

    pseudo_pages: pages like all others, beside those of the site, for the links of pages that answer for the first time.
    pseudo_back: pages that came back at the rate of all ages, beside those of one age.
    """

    def __init__(self, site: Ints, pseudo_pages: float = 5.0, pseudo_back: float = 2.0) -> None:
        n_pages = len(site)
        self.site, self.pseudo_pages, self.pseudo_back = site, pseudo_pages, pseudo_back
        self.state = np.full(n_pages, NOT_YET, np.int8)
        self.visited_at = np.full(n_pages, np.nan)  # hours since 1970
        self.waited = np.zeros(n_pages)  # hours that a page has been away, until its last visit
        # Visits after an answer, and those of them that were answered.
        self.n_visits, self.n_answered = np.zeros(n_pages), np.zeros(n_pages)
        self.all_waited, self.all_back = np.zeros((4, len(AGES))), np.zeros((4, len(AGES)))  # by state and age
        # New links of pages that answered for the first time, and such pages, by site.
        self.n_links, self.n_first = np.zeros(n_pages), np.zeros(n_pages)
        # The same for all pages together.
        self.sum_visits = self.sum_answered = self.sum_links = self.sum_first = 0.0
        self.known_at = np.full(n_pages, np.nan)  # since when each page is known; NaN: since the crawl began
        self.begun_at = self.latest_at = np.nan  # the first visits and the last ones

    def extend(self, site: Ints) -> None:
        """More pages are known; `site` is that of all pages."""
        self.site, n = site, len(site)
        self.state = grown(self.state, n, NOT_YET)
        self.visited_at = grown(self.visited_at, n, np.nan)
        self.known_at = grown(self.known_at, n, self.latest_at)
        for name in ("waited", "n_visits", "n_answered", "n_links", "n_first"):
            setattr(self, name, grown(getattr(self, name), n))

    def observe(self, visits: Visits, hours: Floats, links: Ints) -> tuple[ExactSums, Ints]:
        """Add visits, made at these hours; `links` of each are new, every link counted once.

        Returns what they add to what all pages share, for `settle`: hours away and pages that came back, by state and age; and
        visits after an answer, those of them that were answered, new links of pages that answered for the first time, such pages.
        """
        is_begun = not np.isnan(self.begun_at)
        ended = microseconds(visits.ended_at) / US_PER_HOUR
        self.begun_at, self.latest_at = self.begun_at if is_begun else ended, ended
        page, state = visits.page, self.state[visits.page].astype(np.int64)
        since = self._since(page, hours)
        returns = self._returns(page, state, since, visits.answered)
        was_up = state == UP
        self.n_visits[page] += was_up
        self.n_answered[page] += was_up & visits.answered
        began = visits.answered & (state == NOT_YET) & is_begun  # in the first crawl everything is new
        np.add.at(self.n_links, self.site[page[began]], links[began])
        np.add.at(self.n_first, self.site[page[began]], 1.0)
        counts = np.array([was_up.sum(), (was_up & visits.answered).sum(), links[began].sum(), began.sum()], np.int64)
        self.waited[page] = np.where(visits.answered, 0.0, self.waited[page] + np.where(was_up, 0.0, since))
        down = np.where(state == NOT_YET, NOT_YET, np.where(visits.gone, GONE, FAILING))
        self.state[page] = np.where(visits.answered, UP, down)
        self.visited_at[page] = hours
        return returns, counts

    def settle(self, returns: Floats, counts: Ints, swept: float) -> None:
        """Learn what all visits of a batch add up to; `swept`: how many of all pages they visited, as a share."""
        kept = 0.5 ** (swept / SWEEPS)
        waited, back = returns.reshape(2, *self.all_waited.shape)
        self.all_waited, self.all_back = self.all_waited * kept + waited, self.all_back * kept + back
        self.sum_visits += float(counts[0])
        self.sum_answered += float(counts[1])
        self.sum_links += float(counts[2])
        self.sum_first += float(counts[3])

    def _returns(self, page: Ints, state: Ints, since: Floats, is_back: Flags) -> ExactSums:
        """Of pages that were away and could have come back since: how long they waited, and which did; by state and age."""
        away = np.flatnonzero((state != UP) & (since > 0))
        kind = state[away] * len(AGES) + _age(self.waited[page[away]] + since[away] / 2)
        returns = ExactSums(2 * N_RETURNS)
        # One that is back came back halfway, as a best guess.
        returns.add(since[away] * np.where(is_back[away], 0.5, 1.0), kind)
        returns.add(is_back[away].astype(np.float64), N_RETURNS + kind)
        return returns

    def first_links(self, page: Ints) -> Floats:
        """New links on each page if it answers for the first time: as on its site so far, shrunk towards the mean of all."""
        mean = (self.sum_links + 2.0) / (self.sum_first + 1.0)
        site = self.site[page]
        links: Floats = (self.n_links[site] + self.pseudo_pages * mean) / (self.n_first[site] + self.pseudo_pages)
        return links

    def probability(self, page: Ints, hours: Floats | float, sweep_hours: float) -> Floats:
        """The probability that each page answers now; `sweep_hours`: the time in which all pages could be visited once."""
        state, since = self.state[page].astype(np.int64), self._since(page, hours)
        whole = (self.sum_answered + 5.0) / (self.sum_visits + 5.5)
        up = (self.n_answered[page] + whole) / (self.n_visits[page] + 1.0)
        of_state = (self.all_back.sum(axis=1) + 0.5) / (self.all_waited.sum(axis=1) + 0.5 * sweep_hours)
        rate = (self.all_back + self.pseudo_back) / (self.all_waited + (self.pseudo_back / of_state)[:, None])
        due: Floats = _due(rate, state, self.waited[page] + since) - _due(rate, state, self.waited[page])
        return np.where(state == UP, up, -np.expm1(-due))

    def _since(self, page: Ints, hours: Floats | float) -> Floats:
        """Hours since the last visit to each page, or since it became known."""
        known_at = np.where(np.isnan(self.known_at[page]), self.begun_at, self.known_at[page])
        visited_at = np.where(np.isnan(self.visited_at[page]), known_at, self.visited_at[page])
        return np.maximum(np.nan_to_num(hours - visited_at), 0.0)


def _due(rate: Floats, state: Ints, hours: Floats) -> Floats:
    """How often pages of each state would have come back by then, at the rates [state, age]."""
    begun = np.hstack([np.zeros((len(rate), 1)), np.cumsum(rate[:, :-1] * np.diff(AGES), axis=1)])
    age = _age(hours)
    due: Floats = begun[state, age] + rate[state, age] * (hours - AGES[age])
    return due


def _age(hours: Floats) -> Ints:
    """The class of a time away.

    >>> _age(np.array([0.5, 2.0, 3.9, 24.0, 1e9])).tolist()
    [0, 1, 1, 4, 17]
    """
    return np.searchsorted(AGES, hours, side="right") - 1
