"""What to say of a page without a past of its own: what is seen around it, drawn to what is seen further away.

Related pages come first, then the site, then all pages. Each step counts as the pages it is known of, and the next one as
`STRENGTH` pages more. A learner cannot be left to it: the rows it learns from have a past, and trees that are asked about pages
unlike all of them answer with whatever leaf is at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Floats, Ints8
from recrawl.insight.features import FeatureInputs, Features, now, of_site, past, related
from recrawl.insight.features.matrix import mean_of_others
from recrawl.insight.targets import LinkKind, new_links
from recrawl.models.counts import SUREST
from recrawl.models.distributions import Hurdle, Truncated

#: What a prediction rests on, the first that is known.
BASES = ("its own past", "related pages", "its site", "all pages")
#: Pages' worth of what is further away. On real collections the likelihood hardly depends on it (tenths to some), so it is small:
#: a single page is known of many a site, and then that page is by far the best to go by.
STRENGTH = 1 / 3
DISPERSION = 1.0  #: of the counts above zero, over-dispersed as new links are


@dataclass(frozen=True)
class GroupAverages:
    """What is seen around every page: of its related pages, its site, or all pages."""

    mean: Floats  # new links a round; NaN where nothing is known
    rate: Floats  # share of rounds with any
    n_pages: Floats  # how many pages these are the average of


@dataclass(frozen=True)
class Surroundings:
    """What is expected of every page by what is around it."""

    basis: Ints8  # index into BASES
    seen: tuple[GroupAverages, GroupAverages, GroupAverages]  # of all pages, of the site, of related pages: the nearest last
    expected: tuple[Floats, Floats, Floats]  # new links by all pages; also by the site; also by related pages
    rate: Floats
    own: tuple[Floats, Floats]  # mean and rate by the page's own past, drawn to what is around it

    def distribution(self, pages: NDArray[Any]) -> Hurdle:
        """What some pages without a past will show: with the rate whether anything, with the mean how much."""
        return _hurdle(self.expected[-1][pages], self.rate[pages])

    def by_own_past(self, pages: NDArray[Any]) -> Hurdle:
        """What some pages with a past will show if they go on as they did."""
        return _hurdle(self.own[0][pages], self.own[1][pages])


def needed(links: LinkKind) -> Features:
    """The features that this is made of."""
    whole = past(now(f"mean_{links}", f"rate_{links}"), [1])
    return whole + related(whole) + of_site(whole)


def around(known: FeatureInputs, links: LinkKind, of_round: int, overall: tuple[float, float]) -> Surroundings:
    """What is known around every page before a round; `overall`, a mean and a rate, is taken where nothing is known of any page."""
    seen = _seen(known, links, of_round - 2)
    mean, rate = (np.full(known.panel.shape[0], float(value)) for value in overall)
    expected = []
    for i, one in enumerate(seen):
        n = np.where(np.isnan(one.mean), 0.0, one.n_pages)
        # Of all pages there is nothing further away, unless none is known.
        mean, rate = _drawn(one, mean, rate, STRENGTH if i else np.where(n > 0, 0.0, 1.0))
        expected.append(mean)
    own = _drawn(_of_itself(known, links, of_round), mean, rate, STRENGTH)
    return Surroundings(_basis(known, links, of_round, seen), seen, (expected[0], expected[1], expected[2]), rate, own)


def _hurdle(mean: Floats, rate: Floats) -> Hurdle:
    p = np.clip(rate, SUREST, 1 - SUREST)
    return Hurdle(p, Truncated(mean / p, DISPERSION))


def _drawn(one: GroupAverages, mean: Floats, rate: Floats, strength: Floats | float) -> tuple[Floats, Floats]:
    """What is seen, drawn to what is seen further away."""
    n = np.where(np.isnan(one.mean), 0.0, one.n_pages)
    # Means on a logarithmic scale, or the liveliest pages of all would drown a quiet site.
    drawn = (n * np.log1p(np.nan_to_num(one.mean)) + strength * np.log1p(mean)) / (n + strength)
    rate = (n * np.nan_to_num(one.rate) + strength * rate) / (n + strength)
    return np.maximum(np.expm1(drawn), rate), rate  # whoever has any has one at least


def _of_itself(known: FeatureInputs, links: LinkKind, of_round: int) -> GroupAverages:
    """A page's own rounds, each of which counts as a page does around it."""
    if of_round < 2:
        nothing = np.full(known.panel.shape[0], np.nan)
        return GroupAverages(nothing, nothing, np.zeros(len(nothing)))
    mean, rate = (known.values(f"{name}_{links}")[:, of_round - 2].astype(np.float64) for name in ("mean", "rate"))
    n_rounds = (~np.isnan(new_links(known.panel, links)[:, :of_round])).sum(axis=1)
    return GroupAverages(mean, rate, n_rounds.astype(np.float64))


def _seen(known: FeatureInputs, links: LinkKind, column: int) -> tuple[GroupAverages, GroupAverages, GroupAverages]:
    n_pages = known.panel.shape[0]
    if column < 0:
        nothing = GroupAverages(np.full(n_pages, np.nan), np.full(n_pages, np.nan), np.zeros(n_pages))
        return nothing, nothing, nothing
    names = (f"mean_{links}", f"rate_{links}")
    one_group = np.zeros(n_pages, np.int64)
    of_all = [mean_of_others(known.values(name)[:, [column]], one_group)[:, 0] for name in names]
    n_known = (~np.isnan(known.values(names[0])[:, column])).astype(np.float64)
    found = [GroupAverages(of_all[0].astype(np.float64), of_all[1].astype(np.float64), n_known.sum() - n_known)]
    for where in ("site", "related"):
        mean, rate = (known.values(name, where)[:, column].astype(np.float64) for name in names)
        found.append(GroupAverages(mean, rate, known.n_around(names[0], where, column).astype(np.float64)))
    return found[0], found[1], found[2]


def _basis(known: FeatureInputs, links: LinkKind, of_round: int, seen: tuple[GroupAverages, GroupAverages, GroupAverages]) -> Ints8:
    """The first of `BASES` that is known of each page."""
    if of_round < 2:
        return np.full(known.panel.shape[0], len(BASES) - 1, np.int8)
    own = ~np.isnan(known.values(f"mean_{links}")[:, of_round - 2])
    _, site, near = seen
    return np.select([own, ~np.isnan(near.mean), ~np.isnan(site.mean)], [0, 1, 2], len(BASES) - 1).astype(np.int8)
