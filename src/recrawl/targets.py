"""What is predicted of a page: how often, whether, and how many new links (LBLA section 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.panel import Panel

Floats = NDArray[np.float32]
Links = Literal["internal", "external", "all"]
LINKS: tuple[Links, ...] = ("internal", "external", "all")


def new_links(panel: Panel, links: Links) -> Floats:
    """New links of a kind [page, round]; NaN where not known."""
    if links == "internal":
        return panel.n_new_internal
    if links == "external":
        return panel.n_new_external
    return panel.n_new_internal + panel.n_new_external


@dataclass(frozen=True)
class Target:
    """A quantity of every page in a round of a panel, for one kind of links."""

    links: Links = "all"

    name: ClassVar[str]
    paper: ClassVar[str]
    kind: ClassVar[str]

    def values(self, panel: Panel, of_round: int) -> Floats:
        """The truth in a round; NaN where nobody looked."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{self.name} ({self.links} links)"


@dataclass(frozen=True)
class LinkChangeRate(Target):
    """The share of intervals up to and including a round in which the page gained links.

    In the papers the round is the last one, so that the rate covers all n − 1 intervals.
    """

    name, paper, kind = "link-change-rate", "LCR", "rate"

    def values(self, panel: Panel, of_round: int) -> Floats:
        """The rate up to the round."""
        new = new_links(panel, self.links)[:, : of_round + 1]
        return rate(new > 0, ~np.isnan(new))


@dataclass(frozen=True)
class HasNewLinks(Target):
    """Whether the page gained links in the round: 1 or 0."""

    name, paper, kind = "has-new-links", "NL", "presence"

    def values(self, panel: Panel, of_round: int) -> Floats:
        """1 where there are some."""
        new = new_links(panel, self.links)[:, of_round]
        return np.where(np.isnan(new), np.nan, new > 0).astype(np.float32)


@dataclass(frozen=True)
class NewLinkCount(Target):
    """How many links the page gained in the round."""

    name, paper, kind = "new-link-count", "NNL", "number"

    def values(self, panel: Panel, of_round: int) -> Floats:
        """The number."""
        return new_links(panel, self.links)[:, of_round]


ALL: tuple[type[Target], ...] = (LinkChangeRate, HasNewLinks, NewLinkCount)


def every_target() -> Iterator[Target]:
    """Each target for each kind of links."""
    return (target(links) for target in ALL for links in LINKS)


def rate(hits: NDArray[np.bool_], known: NDArray[np.bool_]) -> Floats:
    """The share of known columns that are hits, by row; NaN for a row of which nothing is known."""
    n = known.sum(axis=1)
    return np.where(n > 0, (hits & known).sum(axis=1) / np.maximum(n, 1), np.nan).astype(np.float32)
