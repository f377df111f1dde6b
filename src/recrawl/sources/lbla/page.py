"""One row of the authors' table → the visits of the page, crawl by crawl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from recrawl.sources.lbla.numbers import NumberReader
from recrawl.sources.lbla.stand_ins import StandIns, sizes
from recrawl.web.urls import canonical, origin, page_id
from recrawl.web.visit import Given, Visit

#: When the ten crawls were made (the authors' code), oldest first.
CRAWLS = tuple(
    datetime(2020, month, day, tzinfo=UTC)
    for month, day in ((7, 13), (7, 21), (7, 28), (8, 7), (8, 11), (8, 18), (8, 27), (9, 1), (9, 7), (9, 14))
)
PRESENT = (
    len(CRAWLS) - 2
)  #: the crawl that columns without a lag describe; of the last one only the new links are known
SIDES = ("Internal", "External")


def lagged(name: str, lag: int) -> str:
    """The column of a quantity some crawls before 2020-09-07.

    >>> lagged("textSize", 0), lagged("textSize", 2)
    ('textSize', 'textSize-2')
    """
    return f"{name}-{lag}" if lag else name


@dataclass(frozen=True)
class PageRow:
    """The cells of a page, by column."""

    cells: Mapping[str, Any]
    numbers: NumberReader
    no_columns: frozenset[str] = frozenset()  # the sides without any column of new links: none were new
    n_vector: int = 0  # columns SV0, SV1, …

    def visits(self) -> Iterator[Visit]:
        """The visits, oldest first: the crawls of which anything is known. Raises `BadUrl`."""
        url = canonical(self.cells["url"], keep_tracking=True)
        outlinks = {side: self._outlinks(side) for side in SIDES}
        links, depths, vector = self._links(url, outlinks), self._depths(), self._vector()
        for crawl, at in enumerate(CRAWLS):
            shown = links.get(crawl)
            if crawl > PRESENT:
                if shown is not None:
                    yield Visit(url=url, at=at, links=shown, given=Given(stand_ins=True, **depths))
                continue
            given, size = self._network(crawl), self._sizes(crawl)
            given |= {"n_internal": outlinks["Internal"][crawl], "n_external": outlinks["External"][crawl]}
            if shown is None and not any(value is not None for value in (*given.values(), *size.values())):
                continue
            stated = Given(stand_ins=True, **given, **depths)
            yield Visit(url=url, at=at, links=shown, vector=vector, given=stated, **size)

    def _links(self, url: str, outlinks: Mapping[str, list[int | None]]) -> dict[int, list[str]]:
        """Stand-ins for the links of each crawl whose new links are known, and of the first one that they are new since."""
        new = {side: self._new(side) for side in SIDES}
        known = [all(new[side][crawl] is not None for side in SIDES) for crawl in range(len(CRAWLS))]
        if not any(known):
            return {}
        shown = [known.index(True) - 1, *(crawl for crawl, is_known in enumerate(known) if is_known)]
        parts: list[list[list[str]]] = []
        for side, prefix in zip(SIDES, (f"{origin(url)}/recrawl-stand-in/", "https://stand-in.invalid/"), strict=True):
            n_new = [0, *(new[side][crawl] or 0 for crawl in shown[1:])]
            links = StandIns(f"{prefix}{page_id(url):x}-")
            stated = [outlinks[side][crawl] for crawl in shown]
            parts.append([links.next(n, n_fresh) for n, n_fresh in zip(sizes(n_new, stated), n_new, strict=True)])
        return {crawl: inside + outside for crawl, inside, outside in zip(shown, *parts, strict=True)}

    def _new(self, side: str) -> list[int | None]:
        """The new links of each crawl; "diff" of a crawl is what was new at the next one."""
        if side in self.no_columns:
            return [None, *(0 for _ in CRAWLS[1:])]
        name = f"diff{side}OutLinks"
        return [None, *(self._count(name, crawl - 1) for crawl in range(1, len(CRAWLS)))]

    def _outlinks(self, side: str) -> list[int | None]:
        return [*(self._count(f"num{side}OutLinks", crawl) for crawl in range(PRESENT + 1)), None]

    def _count(self, name: str, crawl: int) -> int | None:
        return self.numbers.count(name, self._cell(name, crawl))

    def _cell(self, name: str, crawl: int) -> Any:
        return self.cells.get(lagged(name, PRESENT - crawl))

    def _sizes(self, crawl: int) -> dict[str, Any]:
        numbers = self.numbers
        return {
            "content_bytes": numbers.whole("contentLength", self._cell("contentLength", crawl)),
            "text_bytes": numbers.whole("textSize", self._cell("textSize", crawl)),
            "text_quality": numbers.number("textQuality", self._cell("textQuality", crawl)),
        }

    def _network(self, crawl: int) -> dict[str, Any]:
        return {
            "n_inlinks_internal": self.numbers.whole("numInternalInLinks", self._cell("numInternalInLinks", crawl)),
            "n_inlinks_external": self.numbers.whole("numExternalInLinks", self._cell("numExternalInLinks", crawl)),
            "trustrank": self.numbers.number("trustRank", self._cell("trustRank", crawl)),
        }

    def _depths(self) -> dict[str, int | None]:
        return {
            "path_depth": self.numbers.count("pathDepth", self.cells.get("pathDepth")),
            "domain_depth": self.numbers.count("domainDepth", self.cells.get("domainDepth")),
        }

    def _vector(self) -> list[float] | None:
        """The semantic vector of 2020-09-07. The table has no other, so it stands for all crawls."""
        if not self.n_vector:
            return self.numbers.vector("semanticVector", self.cells.get("semanticVector"))
        cells = [self.cells.get(f"SV{i}") for i in range(self.n_vector)]
        return self.numbers.vector("SV", cells) if any(cell not in (None, "") for cell in cells) else None
