"""Who the experts of one page of a history are, by name.

References: Radinsky and Bennett (2013), "Predicting content change on the web", sections 6 and 9.1 (examples of experts).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from recrawl.core.times import moment
from recrawl.history import History
from recrawl.models.experts.selection import choose, links_between
from recrawl.web.urls import page_id
from recrawl.world.contents import contents_of
from recrawl.world.every import Every

N_ROUNDS = 50  #: that experts are chosen by, as in the paper


@dataclass(frozen=True)
class NamedExpert:
    """One of the pages that say something about when a page changes."""

    url: str
    weight: float  # of its vote
    last_seen_at: datetime  # the end of the last round in which its words were seen


def experts_of_page(
    history: History, url: str, k: int = 5, method: str = "cross-correlation", every: Every = "1d"
) -> list[NamedExpert]:
    """The experts of a page, the nearest first, by the last rounds of a history; none where its words are not known.

    Raises `NotEnoughData` if the words of no page are known.
    """
    contents = contents_of(history, every)
    place = np.flatnonzero(contents.page == page_id(url))
    if not len(place):
        return []
    contents = contents.window(max(0, contents.shape[1] - N_ROUNDS), contents.shape[1])
    links = links_between(history, contents) if method == "graph" else None
    page = int(place[0])
    chosen = choose(contents, k, method, links=links, page=page)
    return [
        NamedExpert(contents.url[expert].as_py(), float(weight), _last_seen(contents.seen[expert], contents.rounds))
        for expert, weight in zip(*chosen.of(page, k), strict=True)
    ]


def _last_seen(seen: np.ndarray, rounds: np.ndarray) -> datetime:
    """When a page was last seen; the first round where it was not seen in any."""
    at = int(np.flatnonzero(seen)[-1]) if seen.any() else 0
    return moment(int(rounds[at].astype("datetime64[us]").astype(np.int64)))
