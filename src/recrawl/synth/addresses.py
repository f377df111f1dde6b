"""Link numbers → URLs and ids, many at a time and each only once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recrawl.core.array_hashing import hash64_strings
from recrawl.core.arrays import Flags, Ints
from recrawl.synth.chance import scatter
from recrawl.synth.feeds import ItemFeed
from recrawl.synth.links import LinkSchedule
from recrawl.synth.web import TOP_LEVEL_DOMAINS, Web
from recrawl.synth.words import N_SYLLABLES, vocabulary, words

_SLUGS = 20_000
_PREFIXES = pa.array(["www.", "www.", "www.", "", "news.", "blog."])
_PURPOSE_SLUG, _PURPOSE_STYLE, _PURPOSE_HOST, _PURPOSE_PREFIX = range(1, 5)


class Addresses:
    """The URL of every link number, and the ids of those that were needed so far."""

    def __init__(self, web: Web, links: LinkSchedule) -> None:
        self.web, self.numbers = web, links.numbers
        self._origins = _origins(web, web.is_https)
        self._twins = _origins(web, ~web.is_https)
        self._slugs = vocabulary(_SLUGS)
        self._section_of_group = _first_page_of_group(links.internal, web)
        self._group_start = links.internal.group_start
        self._ids = np.zeros(self.numbers.end, np.int64)
        self._known = np.zeros(self.numbers.end, np.bool_)

    def ids(self, wanted: Ints) -> tuple[Ints, pa.Table]:
        """The id of each number, and the rows of the history's `urls` table that were not handed out before."""
        is_wanted = np.zeros(self.numbers.end, np.bool_)
        is_wanted[wanted] = True
        new = np.flatnonzero(is_wanted & ~self._known)
        urls = self.urls(new)
        self._ids[new] = hash64_strings(urls)
        self._known[new] = True
        rows = pa.table({"id": self._ids[new], "url": urls, "trap": pa.repeat(pa.scalar(False), len(new))})
        return self._ids[wanted], rows

    def urls(self, wanted: Ints) -> pa.Array:
        """The URL of each number, already in canonical form."""
        numbers = self.numbers
        bounds = (self.web.n_pages, numbers.internal_feed, numbers.external_feed, numbers.twin, numbers.outside)
        kind = np.searchsorted(bounds, wanted, side="right")
        makers = (self._page, self._further_page, self._item, self._outside_item, self._twin, self._outside)
        parts, order = [], []
        for number, maker in enumerate(makers):
            rows = np.flatnonzero(kind == number)
            if len(rows):
                parts.append(maker(wanted[rows]))
                order.append(rows)
        if not parts:
            return pa.array([], pa.string())
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(order), kind="stable")))

    def _page(self, page: Ints) -> pa.Array:
        web = self.web
        local = page - web.site_start[web.site[page]]
        section = web.section[page]
        is_front, is_index = local == 0, web.section_start[section] == page
        path = self._styled(self._section_word(section), page, local)
        index = _join(self._section_word(section), "/")
        path = pc.if_else(pa.array(is_front), "", pc.if_else(pa.array(is_index), index, path))
        return _join(self._origin(web.site[page]), path)

    def _styled(self, section: pa.Array, number: Ints, label: Ints) -> pa.Array:
        """One of several ways in which sites name their pages; `label` makes them unique."""
        style = scatter(number, _PURPOSE_STYLE) % 10
        slug = _join(self._slug(number), "-", pa.array(label).cast(pa.string()))
        deep = _join(section, "/", self._slug(number + 1), "/", slug, ".html")
        query = _join(section, "/view?id=", pa.array(label).cast(pa.string()))
        folder, plain = _join(section, "/", slug, "/"), _join(section, "/", slug)
        return pc.choose(pa.array(np.digitize(style, [5, 7, 9])), plain, folder, deep, query)

    def _further_page(self, number: Ints) -> pa.Array:
        site = np.searchsorted(self.numbers.extra_start, number, side="right") - 1
        return _join(self._origin(site), self._slug(number), "/", pa.array(number).cast(pa.string()))

    def _item(self, number: Ints) -> pa.Array:
        group = np.searchsorted(self._group_start, number - self.numbers.internal_feed, side="right") - 1
        section = self._section_of_group[group]
        path = self._styled(self._section_word(section), number, number)
        return _join(self._origin(self.web.section_site[section]), path)

    def _outside_item(self, number: Ints) -> pa.Array:
        n_outside = self.web.n_hosts - self.web.n_sites
        share = (scatter(number, _PURPOSE_HOST) % 100_003) / 100_003
        host = self.web.n_sites + (n_outside * share**3).astype(np.int64)  # few hosts get most links
        return _join(self._origin(host), self._styled(self._slug(host), number, number))

    def _twin(self, number: Ints) -> pa.Array:
        return self._twins.take(pa.array(number - self.numbers.twin))

    def _outside(self, number: Ints) -> pa.Array:
        return self._origin(number - self.numbers.outside + self.web.n_sites)

    def _origin(self, host: Ints) -> pa.Array:
        return self._origins.take(pa.array(host))

    def _slug(self, number: Ints) -> pa.Array:
        return self._slugs.take(pa.array(scatter(number, _PURPOSE_SLUG) % _SLUGS))

    def _section_word(self, section: Ints) -> pa.Array:
        # Neighbouring sections take neighbouring words, so those of one site differ.
        return self._slugs.take(pa.array((section * 7) % _SLUGS))


def _origins(web: Web, is_https: Flags) -> pa.Array:
    """The front page of every host."""
    host = np.arange(web.n_hosts)
    names = words((host + scatter(np.array([web.settings.seed]), 0) % 10**6) % N_SYLLABLES**4, 4)
    domains = pa.array(list(TOP_LEVEL_DOMAINS)).take(pa.array(web.domain))
    prefixes = _PREFIXES.take(pa.array(scatter(host, _PURPOSE_PREFIX) % len(_PREFIXES)))
    schemes = pc.if_else(pa.array(is_https), "https://", "http://")
    return _join(schemes, prefixes, names, ".", domains, "/")


def _first_page_of_group(feed: ItemFeed, web: Web) -> Ints:
    section = np.zeros(len(feed.group_start) - 1, np.int64)
    section[feed.group] = web.section
    return section


def _join(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
