"""Will a page answer? Pages fail for a while, go, or are not there yet; each state has its own rate of coming back."""

from __future__ import annotations

import numpy as np

from recrawl.policies.base import Floats, Ints, Visits

UP, NOT_YET, GONE, FAILING = range(
    4
)  #: answered when last asked; never did; answered 404 or 410; did before, but failed


class Answering:
    """The probability that each page answers now.

    A page that did not answer comes back at a constant rate, so that the chance grows with the time since it was last asked. The
    rate is that of all pages in the same state, lowered by the time in which this page did not come back: it is gamma
    distributed with shape `shape`. A page that answered last time answers as often as it, and all others, did after that.
    """

    def __init__(self, site: Ints, shape: float = 2.0, pseudo_pages: float = 5.0) -> None:
        n_pages = len(site)
        self.site, self.shape, self.pseudo_pages = site, shape, pseudo_pages
        self.state = np.full(n_pages, NOT_YET, np.int8)
        self.asked_at = np.full(n_pages, np.nan)
        self.waited = np.zeros(n_pages)  # hours for a page to come back, since it was last up
        self.n_asked, self.n_answered = np.zeros(n_pages), np.zeros(n_pages)  # of the visits after an answer
        self.all_waited, self.all_back = np.zeros(4), np.zeros(4)  # by state
        # New links of pages that answered for the first time, and such pages, by site.
        self.n_links, self.n_first = np.zeros(n_pages), np.zeros(n_pages)
        self._is_begun = False

    def observe(self, visits: Visits, hours: float, links: Ints) -> None:
        """Add the visits of a cycle; `links` of each are new, every link counted once."""
        page, state = visits.page, self.state[visits.page]
        was_asked = ~np.isnan(self.asked_at[page])
        waited = np.where(was_asked, np.maximum(hours - np.nan_to_num(self.asked_at[page]), 0.0), 0.0)
        is_back = visits.answered & was_asked
        for one in (NOT_YET, GONE, FAILING):
            here = state == one
            self.all_waited[one] += waited[here].sum()
            self.all_back[one] += is_back[here].sum()
        was_up = state == UP
        self.n_asked[page] += was_up
        self.n_answered[page] += was_up & visits.answered
        began = visits.answered & (state == NOT_YET) & self._is_begun  # in the first crawl everything is new
        np.add.at(self.n_links, self.site[page[began]], links[began])
        np.add.at(self.n_first, self.site[page[began]], 1.0)
        self.waited[page] = np.where(visits.answered, 0.0, self.waited[page] + np.where(was_up, 0.0, waited))
        down = np.where(state == NOT_YET, NOT_YET, np.where(visits.gone, GONE, FAILING))
        self.state[page] = np.where(visits.answered, UP, down)
        self.asked_at[page] = hours
        self._is_begun = True

    def first_links(self, page: Ints) -> Floats:
        """New links on each page if it answers for the first time: as on its site so far, drawn to the mean of all."""
        mean = (self.n_links.sum() + 2.0) / (self.n_first.sum() + 1.0)
        site = self.site[page]
        links: Floats = (self.n_links[site] + self.pseudo_pages * mean) / (self.n_first[site] + self.pseudo_pages)
        return links

    def probability(self, page: Ints, hours: float, sweep_hours: float) -> Floats:
        """That each of these pages answers now; `sweep_hours`: the time in which all pages could be visited once."""
        state, asked_at = self.state[page], self.asked_at[page]
        whole = (self.n_answered.sum() + 5.0) / (self.n_asked.sum() + 5.5)
        up = (self.n_answered[page] + whole) / (self.n_asked[page] + 1.0)
        rate = (self.all_back + 0.5) / (self.all_waited + 0.5 * sweep_hours)
        own = self.shape / (self.waited[page] + self.shape / rate[state])
        since = np.maximum(np.nan_to_num(hours - asked_at), 0.0)
        back = np.where(np.isnan(asked_at), up, -np.expm1(-own * since))
        return np.where(state == UP, up, back)
