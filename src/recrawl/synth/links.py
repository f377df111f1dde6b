"""Which links every page shows in every round, as link numbers; `addresses` turns the numbers into URLs.

A page's internal links are its site's navigation, a stretch of the site's other pages, and its section's feed; its
external links are a fixed few and its topic's feed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from recrawl.core.arrays import Floats, Ints, Ints32
from recrawl.synth.behaviour import Behaviour
from recrawl.synth.chance import stream
from recrawl.synth.feeds import ItemFeed, list_lengths, make_feed
from recrawl.synth.numbering import Numbers
from recrawl.synth.web import Web

_NAVIGATION = 8  # links that all pages of a site have, at most
_LINKS_TO_RELATED, _LINKS_TO_ANY, _LINKS_TO_TWIN = 0.6, 0.15, 0.02  # of fixed external links; the rest leads outside


@dataclass(frozen=True)
class LinkSchedule:
    """Which links every page shows in every round, in a form from which any list is quickly written."""

    numbers: Numbers
    internal: ItemFeed
    external: ItemFeed
    growth: Ints  # [page] 1: the lists never drop an item, else 0
    navigation: Ints  # [page] links from the front of the site's pool
    stretch: Ints  # [page] further links of the pool
    stretch_at: Ints  # [page] where they begin, counted from the end of the navigation
    n_pruned: Ints32  # [page, round] links lost from the stretch so far
    fixed: Ints  # fixed external link numbers, page after page
    fixed_start: Ints  # [page + 1]

    def lists(self, page: Ints, number: Ints) -> tuple[Ints, Ints, Ints]:
        """The link numbers of each (page, round), list after list; where each starts; and how many are internal."""
        cumulated = (_taken_so_far(self.internal, page, number), _taken_so_far(self.external, page, number))
        grown = [self.growth[page] * taken for taken in cumulated]
        stretch = self.stretch[page] - np.minimum(self.n_pruned[page, number], self.stretch[page])
        n_internal = self.navigation[page] + stretch + self.internal.length[page] + grown[0]
        n_fixed = self.fixed_start[page + 1] - self.fixed_start[page]
        starts = np.r_[0, np.cumsum(n_internal + n_fixed + self.external.length[page] + grown[1])]
        out = np.empty(starts[-1], np.int64)
        _write_pool(out, starts, page, stretch, self, self.numbers)
        feed_at = starts[:-1] + self.navigation[page] + stretch
        _write_feed(out, feed_at, page, number, grown[0], self.internal, self.numbers.internal_feed)
        fixed_at = starts[:-1] + n_internal
        _copy_slices(out, fixed_at, self.fixed, self.fixed_start, page)
        _write_feed(out, fixed_at + n_fixed, page, number, grown[1], self.external, self.numbers.external_feed)
        return out, starts, n_internal


def make_links(web: Web, behaviour: Behaviour) -> LinkSchedule:
    """Lists that gain exactly the links of the behaviour, with the settings' mean length and external share."""
    settings, rng = web.settings, stream(web.settings.seed, "links")
    rotating = np.flatnonzero(rng.random(web.n_pages) < settings.rotating_rate)
    growing = rng.random(web.n_pages) < settings.growing_rate
    growing[rotating] = False
    feeds = [
        make_feed(taken, group, list_lengths(taken, rng), rotating=mine, sharing=settings.sharing, rng=rng)
        for taken, group, mine in (
            (behaviour.n_internal, web.section, rotating),
            (behaviour.n_external, web.topic, np.empty(0, np.int64)),
        )
    ]
    mean_external = settings.links_per_page * settings.external_rate
    wanted = _fixed_lengths(settings.links_per_page - mean_external, feeds[0], rng)
    site_most = np.maximum.reduceat(wanted, web.site_start[:-1])
    numbers = Numbers.layout(web, site_most, int(feeds[0].group_start[-1]), int(feeds[1].group_start[-1]))
    navigation = np.minimum(np.minimum(wanted, _NAVIGATION), np.maximum(site_most // 2, 1)[web.site])
    fixed, fixed_start = _fixed_external(web, numbers, _fixed_lengths(mean_external, feeds[1], rng), rng)
    return LinkSchedule(
        numbers=numbers,
        internal=feeds[0],
        external=feeds[1],
        growth=growing.astype(np.int64),
        navigation=navigation,
        stretch=wanted - navigation,
        stretch_at=(rng.random(web.n_pages) * (numbers.pool_size[web.site] - navigation)).astype(np.int64),
        n_pruned=np.cumsum(behaviour.pruned, axis=1, dtype=np.int32),
        fixed=fixed,
        fixed_start=fixed_start,
    )


def _fixed_lengths(mean: float, feed: ItemFeed, rng: np.random.Generator) -> Ints:
    """Log-normal numbers of fixed links that lift the mean of all links to `mean`."""
    missing = max(mean - feed.length.mean(), 0.1 * mean)
    drawn: Floats = rng.lognormal(0, 0.9, len(feed.length))
    return np.asarray(drawn * (missing / drawn.mean()) + rng.random(len(drawn))).astype(np.int64)


def _fixed_external(web: Web, numbers: Numbers, wanted: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """LinkSchedule to sites of the same topic, to any page, to the site under the other scheme, and out of the collection."""
    page = np.repeat(np.arange(web.n_pages), wanted)
    kind = rng.random(len(page))
    by_topic = np.argsort(web.topic, kind="stable")
    topic_start = np.searchsorted(web.topic[by_topic], np.arange(len(web.field) + 1))
    width = np.diff(topic_start)[web.topic[page]]
    related = by_topic[topic_start[web.topic[page]] + (rng.random(len(page)) * width).astype(np.int64)]
    outside = numbers.outside + ((web.n_hosts - web.n_sites) * rng.random(len(page)) ** 3).astype(np.int64)
    target = np.select(
        [kind < bound for bound in np.cumsum([_LINKS_TO_RELATED, _LINKS_TO_ANY, _LINKS_TO_TWIN])],
        [web.site_start[web.site[related]], rng.integers(0, web.n_pages, len(page)), numbers.twin + web.site[page]],
        outside,
    )
    inside = np.flatnonzero(target < web.n_pages)
    own = inside[web.site[target[inside]] == web.site[page[inside]]]
    target[own] = outside[own]
    pairs = np.unique(page * numbers.end + target)  # each link once per page
    return pairs % numbers.end, np.searchsorted(pairs // numbers.end, np.arange(web.n_pages + 1))


def _taken_so_far(feed: ItemFeed, page: Ints, number: Ints) -> Ints:
    return np.asarray(_sum_until(feed.taken, page, number))


def _write_pool(out: Ints, starts: Ints, page: Ints, stretch: Ints, links: LinkSchedule, numbers: Numbers) -> None:
    site = numbers.site[page]
    n_pages = numbers.site_start[site + 1] - numbers.site_start[site]
    pool = (numbers.site_start[site], n_pages, numbers.extra_start[site], numbers.pool_size[site])
    _pool(out, starts, links.navigation[page], stretch, links.stretch_at[page], *pool)


def _write_feed(out: Ints, at: Ints, page: Ints, number: Ints, grown: Ints, feed: ItemFeed, base: int) -> None:
    begin = base + feed.group_start[feed.group[page]]
    _feed(out, at, page, number, begin, feed.length[page], grown, feed.stock, feed.period, feed.taken, feed.first)


# -- kernels ----------------------------------------------------------------------------------------------------------

_jit = numba.njit(cache=True, nogil=True)


def _pool_py(
    out: Any,
    starts: Any,
    navigation: Any,
    stretch: Any,
    stretch_at: Any,
    first: Any,
    n_pages: Any,
    extra: Any,
    size: Any,
) -> None:
    for i in range(len(navigation)):
        for k in range(navigation[i] + stretch[i]):
            place = k
            if k >= navigation[i]:
                rest = size[i] - navigation[i]
                place = navigation[i] + (stretch_at[i] + k - navigation[i]) % rest
            out[starts[i] + k] = first[i] + place if place < n_pages[i] else extra[i] + place - n_pages[i]


_pool = _jit(_pool_py)


def _feed_py(
    out: Any,
    at: Any,
    page: Any,
    number: Any,
    begin: Any,
    length: Any,
    grown: Any,
    stock: Any,
    period: Any,
    taken: Any,
    first: Any,
) -> None:
    for i in range(len(page)):
        p, missing = page[i], length[i] + grown[i]
        place, r = at[i], number[i]
        while missing > 0 and r > 0:
            n = min(missing, taken[p, r])
            for k in range(n):
                out[place + k] = begin[i] + (first[p, r] + taken[p, r] - 1 - k) % period[p]
            place, missing, r = place + n, missing - n, r - 1
        for k in range(missing):
            out[place + k] = begin[i] + (stock[p] - 1 - k) % period[p]


_feed = _jit(_feed_py)


def _copy_slices_py(out: Any, at: Any, source: Any, source_start: Any, page: Any) -> None:
    for i in range(len(page)):
        begin = source_start[page[i]]
        for k in range(source_start[page[i] + 1] - begin):
            out[at[i] + k] = source[begin + k]


_copy_slices = _jit(_copy_slices_py)


def _sum_until_py(taken: Any, page: Any, number: Any) -> Any:
    total = np.zeros(len(page), np.int64)
    for i in range(len(page)):
        for r in range(number[i] + 1):
            total[i] += taken[page[i], r]
    return total


_sum_until = _jit(_sum_until_py)
