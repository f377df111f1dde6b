"""What is predicted of a page: how often it gains links, whether it does next, and how many.

References: Dang et al. (2022), "Look back, look around", section 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Flags, Floats32
from recrawl.insight.choices import LinkKind
from recrawl.world.panel import Panel


def new_links(panel: Panel, links: LinkKind) -> Floats32:
    """New links of a kind [page, round]; NaN where not known."""
    if links == "internal":
        return panel.n_new_internal
    if links == "external":
        return panel.n_new_external
    return panel.n_new_internal + panel.n_new_external


@dataclass(frozen=True)
class Target:
    """A quantity of every page in a round of a panel, for one kind of links."""

    links: LinkKind = "all"

    name: ClassVar[str]
    paper: ClassVar[str]
    kind: ClassVar[str]

    def values(self, panel: Panel, of_round: int) -> Floats32:
        """The truth in a round; NaN where the page was not visited."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{self.name} ({self.links} links)"


@dataclass(frozen=True)
class LinkChangeRate(Target):
    """The share of intervals up to and including a round in which the page gained links.

    In the papers the round is the last one, so the rate covers all n − 1 intervals.
    """

    name, paper, kind = "link-change-rate", "LCR", "rate"

    def values(self, panel: Panel, of_round: int) -> Floats32:
        """The rate up to the round."""
        new = new_links(panel, self.links)[:, : of_round + 1]
        return rate(new > 0, ~np.isnan(new))


@dataclass(frozen=True)
class HasNewLinks(Target):
    """Whether the page gained links in the round: 1 or 0."""

    name, paper, kind = "has-new-links", "NL", "presence"

    def values(self, panel: Panel, of_round: int) -> Floats32:
        """1 where the page gained links, 0 where it did not."""
        new = new_links(panel, self.links)[:, of_round]
        return np.where(np.isnan(new), np.nan, new > 0).astype(np.float32)


@dataclass(frozen=True)
class NewLinkCount(Target):
    """How many links the page gained in the round."""

    name, paper, kind = "new-link-count", "NNL", "number"

    def values(self, panel: Panel, of_round: int) -> Floats32:
        """The number of links gained."""
        return new_links(panel, self.links)[:, of_round]


ALL: tuple[type[Target], ...] = (LinkChangeRate, HasNewLinks, NewLinkCount)


def rate(hits: Flags, known: Flags) -> Floats32:
    """The share of known columns that are hits, by row; NaN for a row without known columns."""
    n = known.sum(axis=1)
    return np.where(n > 0, (hits & known).sum(axis=1) / np.maximum(n, 1), np.nan).astype(np.float32)
