"""What to expect of a page without a past of its own: the averages of the pages around it, shrunk towards those further away.

Related pages come first, then the site, then all pages. Each average weighs as many pages as it is taken over, and the next one
`STRENGTH` pages more. This cannot be left to a learner: the rows it learns from have a past, and for a page unlike all of them
trees predict from an arbitrary leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Floats, Ints8
from recrawl.insight.choices import LinkKind
from recrawl.insight.features import FeatureInputs, Features, now, of_site, past, related
from recrawl.insight.features.matrix import mean_of_others
from recrawl.insight.targets import new_links
from recrawl.models.counts import SUREST
from recrawl.models.distributions import Hurdle, Truncated

#: What a prediction rests on, the first that is known.
BASES = ("its own past", "related pages", "its site", "all pages")
#: Weight, in pages, of what is further away. On real collections the likelihood hardly depends on it (from 0.1 to a few), so it is
#: small: many sites have a single known page, and then that page is by far the best guide.
STRENGTH = 1 / 3
DISPERSION = 1.0  #: of the counts above zero, over-dispersed as new links are


@dataclass(frozen=True)
class GroupAverages:
    """Averages around every page: over its related pages, its site, or all pages."""

    mean: Floats  # new links per round; NaN where nothing is known
    rate: Floats  # share of rounds with any
    n_pages: Floats  # over how many pages the averages are taken


@dataclass(frozen=True)
class Surroundings:
    """What is expected of every page by what is around it: one entry per page."""

    basis: Ints8  # index into BASES
    averages: tuple[
        GroupAverages, GroupAverages, GroupAverages
    ]  # of all pages, the site, related pages: the nearest last
    expected: tuple[Floats, Floats, Floats]  # new links by all pages; also by the site; also by related pages
    rate: Floats
    own: tuple[Floats, Floats]  # mean and rate of the page's own past, shrunk towards what is around it

    def distribution(self, pages: NDArray[Any]) -> Hurdle:
        """What some pages without a past will show: the rate decides whether anything, the mean how much."""
        return _hurdle(self.expected[-1][pages], self.rate[pages])

    def by_own_past(self, pages: NDArray[Any]) -> Hurdle:
        """What some pages with a past will show if they go on as they did."""
        return _hurdle(self.own[0][pages], self.own[1][pages])


def needed(links: LinkKind) -> Features:
    """The features that `around` needs."""
    whole = past(now(f"mean_{links}", f"rate_{links}"), [1])
    return whole + related(whole) + of_site(whole)


def around(known: FeatureInputs, links: LinkKind, of_round: int, overall: tuple[float, float]) -> Surroundings:
    """What is known around every page before a round; `overall`, a mean and a rate, is used where nothing is known of any page."""
    averages = _averages(known, links, of_round - 2)
    mean, rate = (np.full(known.panel.shape[0], float(value)) for value in overall)
    expected = []
    for i, group in enumerate(averages):
        n = np.where(np.isnan(group.mean), 0.0, group.n_pages)
        # Nothing is further away than all pages; `overall` counts only where none of them is known.
        mean, rate = _shrunk(group, mean, rate, STRENGTH if i else np.where(n > 0, 0.0, 1.0))
        expected.append(mean)
    return Surroundings(
        basis=_basis(known, links, of_round, averages),
        averages=averages,
        expected=(expected[0], expected[1], expected[2]),
        rate=rate,
        own=_shrunk(_own_averages(known, links, of_round), mean, rate, STRENGTH),
    )


def _hurdle(mean: Floats, rate: Floats) -> Hurdle:
    p = np.clip(rate, SUREST, 1 - SUREST)
    return Hurdle(p, Truncated(mean / p, DISPERSION))


def _shrunk(group: GroupAverages, mean: Floats, rate: Floats, strength: Floats | float) -> tuple[Floats, Floats]:
    """The averages of a group, shrunk towards a mean and a rate of what is further away."""
    n = np.where(np.isnan(group.mean), 0.0, group.n_pages)
    # Means on a logarithmic scale, or the busiest pages of all would drown a quiet site.
    log_mean = (n * np.log1p(np.nan_to_num(group.mean)) + strength * np.log1p(mean)) / (n + strength)
    rate = (n * np.nan_to_num(group.rate) + strength * rate) / (n + strength)
    return np.maximum(np.expm1(log_mean), rate), rate  # a round with any new links has at least one


def _own_averages(known: FeatureInputs, links: LinkKind, of_round: int) -> GroupAverages:
    """The averages of a page's own rounds, each of which weighs as a page around it does."""
    if of_round < 2:
        nothing = np.full(known.panel.shape[0], np.nan)
        return GroupAverages(nothing, nothing, np.zeros(len(nothing)))
    mean, rate = (known.values(f"{name}_{links}")[:, of_round - 2].astype(np.float64) for name in ("mean", "rate"))
    n_rounds = (~np.isnan(new_links(known.panel, links)[:, :of_round])).sum(axis=1)
    return GroupAverages(mean, rate, n_rounds.astype(np.float64))


def _averages(known: FeatureInputs, links: LinkKind, column: int) -> tuple[GroupAverages, GroupAverages, GroupAverages]:
    """Those of all pages, of the site, and of related pages."""
    n_pages = known.panel.shape[0]
    if column < 0:
        nothing = GroupAverages(np.full(n_pages, np.nan), np.full(n_pages, np.nan), np.zeros(n_pages))
        return nothing, nothing, nothing
    names = (f"mean_{links}", f"rate_{links}")
    one_group = np.zeros(n_pages, np.int64)
    of_all = [mean_of_others(known.values(name)[:, [column]], one_group)[:, 0] for name in names]
    n_known = (~np.isnan(known.values(names[0])[:, column])).astype(np.float64)
    averages = [GroupAverages(of_all[0].astype(np.float64), of_all[1].astype(np.float64), n_known.sum() - n_known)]
    for where in ("site", "related"):
        mean, rate = (known.values(name, where)[:, column].astype(np.float64) for name in names)
        averages.append(GroupAverages(mean, rate, known.n_around(names[0], where, column).astype(np.float64)))
    return averages[0], averages[1], averages[2]


def _basis(
    known: FeatureInputs, links: LinkKind, of_round: int, averages: tuple[GroupAverages, GroupAverages, GroupAverages]
) -> Ints8:
    """The first of `BASES` that is known of each page."""
    if of_round < 2:
        return np.full(known.panel.shape[0], len(BASES) - 1, np.int8)
    own = ~np.isnan(known.values(f"mean_{links}")[:, of_round - 2])
    _, site, near = averages
    return np.select([own, ~np.isnan(near.mean), ~np.isnan(site.mean)], [0, 1, 2], len(BASES) - 1).astype(np.int8)
