"""A history aligned to rounds: arrays [page, round], NaN where a page was not visited."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats32, Ints, Times
from recrawl.errors import NotEnoughData
from recrawl.history import History, LinkSets, Timeline, count_new
from recrawl.history.given import GivenOfVisits, given_of, n_links
from recrawl.web.urls import domain_depth, path_depth
from recrawl.world import sizes
from recrawl.world.every import Every
from recrawl.world.given import NETWORK, GivenNetwork
from recrawl.world.rounds import Rounds, last_in_round, rounds_of

_COLUMNS = ("content_bytes", "text_bytes", "text_quality")
#: The static page features of Dang et al. (2022), section 5.2, except the semantic vector, which `Panel.terms` leads to.
BASE = (*_COLUMNS, "n_internal", "n_external", "path_depth", "domain_depth")


@dataclass(frozen=True)
class Panel:
    """What is known of every page in every round. All matrices are [page, round]; NaN (NaT) where it was not visited.

    A page's value in a round is that of its last successful visit in the round. "New" compares it with the last round before
    in which the page was seen; it is NaN in the first round and on a baseline.
    """

    page: Ints  # ids
    url: pa.Array  # canonical URLs, in the order of `page`
    rounds: Times  # the end of each round, UTC
    at: Times  # when the page was visited in that round
    n_new_internal: Floats32  # links new since the page's previous round
    n_new_external: Floats32
    # 1 where the text digest differs from the previous round's, else 0; the size, where no digest is known.
    content_changed: Floats32
    base: dict[str, Floats32] = field(default_factory=dict)  # every static page feature, by its name in `BASE`
    terms: Ints | None = None  # digest of the words seen, as in the tables texts and vectors; 0 where not known
    links: Ints | None = None  # which of `sets` was seen; -1 where not known
    sets: LinkSets | None = field(default=None, repr=False)
    given: GivenNetwork | None = None  # inlinks and ranks that came with the data

    @property
    def shape(self) -> tuple[int, int]:
        """Pages and rounds."""
        return (len(self.page), len(self.rounds))

    def window(self, start: int, stop: int, min_share: float = 0.0) -> Panel:
        """The rounds from `start` up to `stop`, as if no others had been crawled: in the first of them nothing is new.

        `min_share` keeps the pages that were seen in at least this share of them, and in at least one.
        """
        seen = ~np.isnat(self.at[:, start:stop])
        pages = np.flatnonzero(seen.sum(axis=1) >= max(1.0, min_share * (stop - start) - 1e-9))

        def cut(matrix: NDArray[Any]) -> NDArray[Any]:
            return np.ascontiguousarray(matrix[pages, start:stop])

        def compared(matrix: Floats32, known: Flags) -> Floats32:
            # The earlier round that it is compared with must also be in the window.
            first_known = np.cumsum(known[pages, start:stop], axis=1) <= 1
            return np.where(first_known, np.nan, cut(matrix)).astype(np.float32)

        is_seen = ~np.isnat(self.at)
        has_links = is_seen if self.links is None else is_seen & (self.links >= 0)

        return Panel(
            page=self.page[pages],
            url=self.url.take(pa.array(pages)),
            rounds=self.rounds[start:stop],
            at=cut(self.at),
            n_new_internal=compared(self.n_new_internal, has_links),
            n_new_external=compared(self.n_new_external, has_links),
            content_changed=compared(self.content_changed, is_seen),
            base={name: cut(matrix) for name, matrix in self.base.items()},
            terms=None if self.terms is None else cut(self.terms),
            links=None if self.links is None else cut(self.links),
            sets=self.sets,
            given=None if self.given is None else self.given.each(lambda matrix, fill: cut(matrix)),
        )


def build(history: History, every: Every = "crawl", min_share: float = 1.0, *, with_content: bool = False) -> Panel:
    """The panel of a history.

    `min_share` keeps the pages that were seen in at least this share of the rounds; 1, as in the papers, keeps those seen in all.
    `with_content` leaves out pages without content: a visit that found nothing on the page does not count as seen. Dang et al.
    (2022), section 5.2: "we keep only non-empty pages".
    """
    timeline = history.timeline
    if not timeline.n_visits:
        raise NotEnoughData("the history holds no visits" + (" up to that time" if history.until else ""))
    rounds = rounds_of(timeline, every)
    chosen = last_in_round(timeline, rounds, sizes.has_content(timeline) if with_content else None)
    chosen = chosen[_often_seen(timeline.page[chosen], len(rounds.ends), min_share)]
    if not len(chosen):
        raise NotEnoughData(
            f"no page was seen in {min_share:.0%} of the {len(rounds.ends)} rounds; ask for fewer with --min-share, "
            "or for longer rounds with --every"
        )
    return _fill(history, timeline.select(chosen), rounds, rounds.of_visit[chosen])


def _often_seen(page: Ints, n_rounds: int, min_share: float) -> Flags:
    _, index, count = np.unique(page, return_inverse=True, return_counts=True)
    return count[index] >= max(1.0, min_share * n_rounds - 1e-9)


def _fill(history: History, seen: Timeline, rounds: Rounds, of_round: Ints) -> Panel:
    pages, row = np.unique(seen.page, return_inverse=True)
    shape = (len(pages), len(rounds.ends))

    def matrix(values: NDArray[np.generic], undefined: Flags) -> Floats32:
        filled = np.full(shape, np.nan, np.float32)
        filled[row, of_round] = np.where(undefined, np.nan, values.astype(np.float32))
        return filled

    new = count_new(seen)
    url = history.page_urls(pages)
    given = given_of(history.store, seen.page, seen.at)
    internal, external = n_links(seen, given)
    base = {"n_internal": matrix(internal, internal < 0), "n_external": matrix(external, external < 0)}
    for name in _COLUMNS:
        column = seen.rows[name]
        base[name] = matrix(column.fill_null(0).to_numpy(), ~np.asarray(column.is_valid()))
    for name, depth in (("path_depth", path_depth), ("domain_depth", domain_depth)):
        depths = np.array([depth(u) for u in url.to_pylist()], np.float32)[row]
        if given is not None:
            depths = np.where(np.isnan(given.values[name]), depths, given.values[name])
        base[name] = matrix(depths, np.zeros(len(row), np.bool_))
    at = np.full(shape, np.datetime64("NaT", "us"))
    at[row, of_round] = seen.at.view("datetime64[us]")
    terms = np.zeros(shape, np.int64)
    terms[row, of_round] = seen.rows["terms"].fill_null(0).to_numpy()
    links = np.full(shape, -1, np.int64)
    links[row, of_round] = seen.links
    content_changed = np.where(seen.text_changed < 0, sizes.changed(seen), seen.text_changed)
    return Panel(
        page=pages,
        url=url,
        rounds=rounds.ends.view("datetime64[us]"),
        at=at,
        n_new_internal=matrix(new.previous_internal, new.previous_internal < 0),
        n_new_external=matrix(new.previous_external, new.previous_external < 0),
        content_changed=matrix(content_changed, content_changed < 0),
        base={name: base[name] for name in BASE},
        terms=terms,
        links=links,
        sets=seen.sets,
        given=None if given is None else _given_network(given, shape, row, of_round),
    )


def _given_network(given: GivenOfVisits, shape: tuple[int, int], row: Ints, of_round: Ints) -> GivenNetwork:
    def placed(values: NDArray[Any], fill: Any, kind: Any) -> NDArray[Any]:
        matrix = np.full(shape, fill, kind)
        matrix[row, of_round] = values
        return matrix

    network = {name: placed(given.values[name], np.nan, np.float32) for name in NETWORK}
    return GivenNetwork(network, placed(given.is_given, False, np.bool_), placed(given.stand_ins, False, np.bool_))
