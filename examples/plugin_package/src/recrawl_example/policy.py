"""A policy that learns how many new links per day each section of a site gains."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.policies import Budget, Choice, Policy
from recrawl.policies.select import take
from recrawl.world.pages import Pages, Visits


class SectionRate(Policy):
    """Visit the pages with the most expected new links: the rate of their section × the time since their last visit.

    A section is a folder of URLs, such as ``https://example.org/news/``. Its rate is the number of new links that visits to its
    pages showed, per day between visits. `prior_days` pulls the rate of a section with few visits towards that of all
    sections: it counts as that many more days at the overall rate. Pages visited at most once come first.

    >>> from recrawl.testing import check_policy
    >>> check_policy(SectionRate)
    """

    name: ClassVar[str] = "section-rate"

    def __init__(self, prior_days: float = 2.0) -> None:
        self.prior_days = prior_days

    def start(self, pages: Pages) -> None:
        """Forget everything, and get ready for these pages."""
        n_sections = int(_sections(pages).max(initial=-1)) + 1
        self.section_ = _sections(pages)
        self.links_ = np.zeros(n_sections)  # new links of each section
        self.days_ = np.zeros(n_sections)  # days between visits to its pages, summed

    def observe(self, visits: Visits) -> None:
        """Add the new links of each visit, and the time since the visit before it."""
        is_known = visits.answered & np.isfinite(visits.age_hours)  # else there is nothing to compare with
        section = self.section_[visits.page[is_known]]
        np.add.at(self.links_, section, visits.n_new[is_known])
        np.add.at(self.days_, section, visits.age_hours[is_known] / 24)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The most expected new links first."""
        rate = self._links_per_day()[self.section_]
        age = pages.age_hours(now) / 24
        days = np.where(np.isfinite(age), age, 0.0)
        return take(
            rate * days,
            pages,
            budget,
            first=pages.is_new,
            expected=rate * days,
            reason="its section gains {rate:.1f} new links per day, and it was visited {days:.1f} days ago",
            detail={"rate": rate, "days": days},
        )

    def _links_per_day(self) -> Floats:
        """The rate of each section."""
        overall = self.links_.sum() / max(self.days_.sum(), 1e-9)
        rate: Floats = (self.links_ + self.prior_days * overall) / np.maximum(self.days_ + self.prior_days, 1e-9)
        return rate


def _sections(pages: Pages) -> Ints:
    """The number of each page's section; of its host, where the URLs are not grouped by folder."""
    return pages.url_groups[0] if pages.url_groups else pages.host
