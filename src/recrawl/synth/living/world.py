"""The content of a living web at every step, without any network: pages, articles, their links and their words.

Pages exist from step 0 on and gain and lose links by synth's rhythms. New links lead to articles, which exist from the step at
which a page first shows them, and never change. Everything has a link number, as in `numbering`.
"""

from __future__ import annotations

from datetime import datetime

import numpy as np

from recrawl.core.arrays import Flags, Ints
from recrawl.synth.addresses import Addresses
from recrawl.synth.behaviour import last_change
from recrawl.synth.feeds import ENDLESS
from recrawl.synth.links import make_links
from recrawl.synth.living.roles import Habit, live, make_living_web, make_roles
from recrawl.synth.living.settings import Living
from recrawl.synth.living.traps import TRAPS
from recrawl.synth.text import Texts
from recrawl.web.urls import origin

Place = tuple[int, str]  # number of a site, and path with query
_ARTICLE_WORDS = 80


class LivingWorld:
    """What a page or an article is at a step.

    >>> world = LivingWorld(Living(sites=2, pages=20, steps=4))
    >>> world.find(1, "/"), world.links(0, 0)[0]
    (10, (0, '/'))
    """

    def __init__(self, living: Living) -> None:
        self.living = living
        self.web = make_living_web(living)
        self.roles = make_roles(self.web, living)
        behaviour = live(self.web, self.roles, living)
        self._links = make_links(self.web, behaviour)
        self._texts = Texts(self.web)
        self._vocabulary = np.array(self._texts.vocabulary.to_pylist(), object)
        self._version = np.cumsum(behaviour.text_changed, axis=1)
        self._state = last_change(behaviour.links_changed | behaviour.text_changed)
        self.places = self._places()
        self.since = self._first_shown(behaviour.links_changed)
        self._articles = self._articles_of_sites()
        self._numbers = {place: number for number, place in enumerate(self.places[: self._links.numbers.twin])}
        self.old_places = self._old_places()

    @property
    def trap_site(self) -> int:
        """The site that has the traps."""
        return self.living.sites - 1

    def time(self, step: int) -> datetime:
        """When a step begins."""
        return self.living.start + step * self.living.every

    def find(self, site: int, path: str) -> int | None:
        """The number of the page or article that is, was or will be there."""
        return self._numbers.get((site, path))

    def is_page(self, number: int) -> bool:
        """Whether it is a page; otherwise it is an article."""
        return number < self.web.n_pages

    def exists(self, number: int, step: int) -> bool:
        """Whether it is there at a step."""
        return bool(self.since[number] <= step < self._end(number))

    def state(self, number: int, step: int) -> int:
        """The step since which it has been as it is."""
        return int(self._state[number, step] if self.is_page(number) else self.since[number])

    def habit(self, number: int) -> Habit:
        """How it uses validators; articles are honest."""
        return Habit(self.roles.habit[number]) if self.is_page(number) else Habit.HONEST

    def numbers_of_site(self, site: int, step: int) -> tuple[Ints, Ints]:
        """Public pages of a site at a step, and its articles, newest first."""
        pages = np.arange(self.web.site_start[site], self.web.site_start[site + 1])
        pages = pages[(self.roles.gone_at[pages] > step) & ~self.roles.private[pages]]
        articles = self._articles[site]
        articles = articles[self.since[articles] <= step]
        return pages, articles[np.argsort(-self.since[articles], kind="stable")]

    def states(self, pages: Ints, step: int) -> Ints:
        """`state` of many pages."""
        return np.asarray(self._state[pages, step])

    def links(self, number: int, step: int) -> list[Place]:
        """What it links to at a step, each place once; nothing if it does not exist."""
        if not self.exists(number, step):
            return []
        if not self.is_page(number):
            host = self._host_page(number)
            return list(dict.fromkeys([*self._way_up(host), self._linked(host)]))
        shown = self._links.lists(np.array([number]), np.array([self._state[number, step]]))[0]
        places = [*self._way_up(number), *self._index(number), *(self._linked(each) for each in shown.tolist())]
        return list(dict.fromkeys(places))

    def title(self, number: int) -> str:
        """Three words; an article has those of the page it belongs to, and its number."""
        host = self._host_page(number)
        title = str(self._texts.titles(np.array([host]))[0].as_py())
        return title if number == host else f"{title} {number}"

    def words(self, number: int, step: int) -> list[str]:
        """The text at a step."""
        host = self._host_page(number)
        version = self._version[number, step] if number == host else number
        words = self._texts.tokens(np.array([host]), np.array([version]))[0]
        return list(self._vocabulary[words if number == host else words[:_ARTICLE_WORDS]])

    def _end(self, number: int) -> int:
        return int(self.roles.gone_at[number] if self.is_page(number) else ENDLESS)

    def _host_page(self, number: int) -> int:
        """The page itself, or for an article some page of its site."""
        if self.is_page(number):
            return number
        first, end = self.web.site_start[self.places[number][0] :][:2].tolist()
        return int(first + number % (end - first))

    def _way_up(self, page: int) -> list[Place]:
        site = int(self.web.site[page])
        return [(site, "/"), self.places[self.web.section_start[self.web.section[page]]]]

    def _index(self, page: int) -> list[Place]:
        """What a home page or the first page of a section always links to: so every page is two clicks from home."""
        web, site, section = self.web, int(self.web.site[page]), self.web.section[page]
        listed: list[int] = []
        if page == web.site_start[site]:
            listed += web.section_start[web.section_site == site].tolist()
        if page == web.section_start[section]:
            listed += np.flatnonzero(web.section == section).tolist()
        traps = [(site, path) for path in TRAPS] if self._shows_traps(page) else []
        return [self._linked(each) for each in listed] + traps

    def _shows_traps(self, page: int) -> bool:
        return self.living.traps and page == self.web.site_start[self.trap_site]

    def _linked(self, number: int) -> Place:
        """The address under which others link to it."""
        site, path = self.places[number]
        return (site, f"/old{path}") if self.is_page(number) and self.roles.moved[number] else (site, path)

    def _places(self) -> list[Place]:
        """Synth's addresses, with every host that is not visited replaced by one of our sites."""
        numbers, n_sites = self._links.numbers, self.living.sites
        urls = Addresses(self.web, self._links).urls(np.arange(numbers.end)).to_pylist()
        site_of = {origin(urls[first]): site for site, first in enumerate(self.web.site_start[:-1].tolist())}
        places = []
        for number, url in enumerate(urls):
            host = origin(url)
            site, path = site_of.get(host, number % n_sites), url[len(host) :]
            if self.is_page(number) and self.roles.private[number]:
                path = f"/private{path}"
            places.append((site, path))
        for site in range(n_sites):  # the home page under the other scheme: here under its other name
            places[numbers.twin + site] = (site, "/index.html")
        return places

    def _old_places(self) -> dict[Place, str]:
        """Addresses that redirect → where to."""
        moved = np.flatnonzero(self.roles.moved).tolist()
        old = {self._linked(number): self.places[number][1] for number in moved}
        return old | {(site, "/index.html"): "/" for site in range(self.living.sites)}

    def _first_shown(self, changed: Flags) -> Ints:
        """[number]: the step at which some page first shows an article; 0 for everything that is not an article of a feed."""
        step = np.arange(self.living.steps + 1)
        new = (changed | (step == 0)) & (step < self.roles.gone_at[:, None])
        page, number = np.nonzero(new)
        shown, starts, _ = self._links.lists(page, number)
        numbers = self._links.numbers
        since = np.full(numbers.end, ENDLESS)
        np.minimum.at(since, shown, np.repeat(number, np.diff(starts)))
        since[: numbers.internal_feed] = 0
        since[numbers.twin :] = 0
        return since

    def _articles_of_sites(self) -> list[Ints]:
        first, end = self.web.n_pages, self._links.numbers.twin
        site = np.array([site for site, _ in self.places[first:end]], np.int64)
        return [first + np.flatnonzero(site == each) for each in range(self.living.sites)]
