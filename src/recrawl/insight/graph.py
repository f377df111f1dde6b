"""The link graph within the crawl, round by round: inlinks, PageRank and TrustRank.

The nodes are the pages of the panel. A page links to the pages that it showed at its last visit: a page that was not visited in a
round is taken to be unchanged, so the graph of a sparse panel does not fall apart. A round knows nothing of later ones.

References: Dang et al. (2022), "Look back, look around", section 5.2 (static network features).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from recrawl.core.arrays import Floats, Floats32, Ints
from recrawl.errors import BadUrl, NotEnoughData
from recrawl.history import LinkSets
from recrawl.web.urls import canonical, host, page_id
from recrawl.world.panel import Panel

INTERNAL, EXTERNAL = 1, 2  #: kinds of links in a matrix of links
_SETS_AT_ONCE = 100_000  # link sets looked up at once: a few hundred megabytes
_HOME_PAGE = r"^https?://[^/]+/$"
_HOST = re.compile(r"[^\s/\\?#@:]+|\[[0-9A-Fa-f:.]+\]")  # a name, or an address in brackets
_TRUSTED_SHARE = 0.01


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A page's place in the graph of every round. All matrices are [page, round]; NaN where the page was not seen.

    Inlinks are also NaN in a round in which no page's links are known yet. Both ranks have mean 1 over all pages of the panel, so
    that their size does not depend on the number of pages.
    """

    n_inlinks_internal: Floats32  # from pages of the same scheme and host
    n_inlinks_external: Floats32
    pagerank: Floats32
    trustrank: Floats32
    trusted: Ints  # rows of the pages that TrustRank restarts from
    unknown_trusted: tuple[str, ...]  # trusted URLs and hosts that are not in the panel
    residual: float  # the largest move of the ranks in a last iteration; above `tolerance` they did not converge


@dataclass
class Walk:
    """A random walk that follows a random link with probability `damping`, and otherwise restarts at one of some pages."""

    restart: Floats  # probabilities
    damping: float
    tolerance: float  # stop once all probabilities together move by less in an iteration
    max_iterations: int
    visits: Floats = field(init=False)  # how often each page is visited in the long run: probabilities
    residual: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.damping < 1:
            raise ValueError(f"damping {self.damping} is not a probability below 1; 0.85 is usual")
        self.visits = self.restart

    def follow(self, links: sparse.csr_array) -> Floats:
        """The ranks of pages with these links, on average 1. Where a page has no links, the walk restarts.

        Power iteration starts from the last ranks: those of the round before are near.
        """
        n_links = np.diff(links.indptr)
        per_link = self.damping / np.maximum(n_links, 1)
        ends = np.flatnonzero(n_links == 0)
        backwards, moved = links.T, np.inf
        for _ in range(self.max_iterations):
            restarted = 1 - self.damping + self.damping * self.visits[ends].sum()
            after = backwards @ (self.visits * per_link) + restarted * self.restart
            after /= after.sum()  # rounding errors would add up
            self.visits, moved = after, float(np.abs(after - self.visits).sum())
            if moved < self.tolerance:
                break
        self.residual = max(self.residual, moved)
        return self.visits * len(self.visits)


@dataclass(frozen=True)
class PanelLinks:
    """The links between the pages of a panel."""

    shown: Ints  # [page, round] → row of `pages`; -1, the last one, where no links are known
    pages: sparse.csr_array  # [link set, page], 1 for an internal and 2 for an external link; the last row is empty

    @classmethod
    def of(cls, panel: Panel) -> PanelLinks:
        """Carry links forward; all link sets are looked up among the pages at once, not round by round."""
        if panel.links is None or panel.sets is None:
            return cls(np.full(panel.shape, -1), sparse.csr_array((1, len(panel.page)), dtype=np.int8))
        is_shown = np.zeros(len(panel.sets.digest) + 1, np.bool_)
        is_shown[panel.links] = True
        is_shown[-1] = False
        number = np.where(is_shown, np.cumsum(is_shown) - 1, -1)
        return cls(number[_carried_forward(panel.links)], _linked_pages(panel, panel.sets, np.flatnonzero(is_shown)))

    def of_round(self, r: int) -> sparse.csr_array:
        """The links [from, to] of a round, 1 for internal and 2 for external ones; links of a page to itself are left out."""
        links = self.pages[self.shown[:, r]]
        kept = links.indices != np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
        starts = np.append(0, np.cumsum(kept))[links.indptr].astype(links.indptr.dtype)
        return sparse.csr_array((links.data[kept], links.indices[kept], starts), links.shape)

    def are_known(self, r: int) -> bool:
        """Whether the links of any page are known in a round."""
        return bool((self.shown[:, r] >= 0).any())


def build(
    panel: Panel,
    trusted: Sequence[str] | None = None,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-7,
    max_iterations: int = 200,
) -> Graph:
    """The graph of every round of a panel.

    TrustRank is PageRank that restarts from the `trusted` pages only: URLs, or host names for all pages of a host. By default
    these are the home pages (a host and nothing after it), and if the panel has none, the 1% of pages with the highest
    PageRank in the first round.

    References: Brin and Page (1998), section 2.1; Gyöngyi, Garcia-Molina and Pedersen (2004), Combating web spam
    with TrustRank, which chooses seeds by (inverse) PageRank.
    """
    n_pages, n_rounds = panel.shape
    links = PanelLinks.of(panel)
    settings = (damping, tolerance, max_iterations)
    pagerank = Walk(_evenly(np.arange(n_pages), n_pages), *settings)
    rows, unknown = trusted_rows(panel, trusted) if trusted else (_home_pages(panel), ())
    if not len(rows) and n_rounds:
        rows = _highest(pagerank.follow(_ones(links.of_round(0))))
    trustrank = Walk(_evenly(rows, n_pages), *settings)
    ranks = np.full((4, *panel.shape), np.nan, np.float32)
    for r in range(n_rounds):
        round_links = links.of_round(r)
        if links.are_known(r):
            ranks[:2, :, r] = _inlinks(round_links)
        unweighted = _ones(round_links)
        ranks[2:, :, r] = pagerank.follow(unweighted), trustrank.follow(unweighted)
    ranks[:, np.isnat(panel.at)] = np.nan
    internal, external, page_ranks, trust_ranks = ranks
    return Graph(
        n_inlinks_internal=internal,
        n_inlinks_external=external,
        pagerank=page_ranks,
        trustrank=trust_ranks,
        trusted=rows,
        unknown_trusted=unknown,
        residual=max(pagerank.residual, trustrank.residual),
    )


def _carried_forward(links: Ints) -> Ints:
    links = links.copy()
    for r in range(1, links.shape[1]):
        links[:, r] = np.where(links[:, r] < 0, links[:, r - 1], links[:, r])
    return links


def _linked_pages(panel: Panel, sets: LinkSets, chosen: Ints) -> sparse.csr_array:
    """The pages that the chosen link sets point at, as in `PanelLinks.pages`."""
    parts = [
        _look_up(panel.page, sets, chosen[first : first + _SETS_AT_ONCE])
        for first in range(0, len(chosen), _SETS_AT_ONCE)
    ]
    empty = sparse.csr_array((1, len(panel.page)), dtype=np.int8)
    return sparse.vstack([*parts, empty], format="csr")


def _look_up(pages: Ints, sets: LinkSets, chosen: Ints) -> sparse.csr_array:
    start, lengths = sets.start[chosen], sets.start[chosen + 1] - sets.start[chosen]
    ends = np.cumsum(lengths)
    in_set = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)  # 0, 1, … within each set
    ids = sets.links[np.repeat(start, lengths) + in_set]
    row = np.minimum(np.searchsorted(pages, ids), len(pages) - 1).astype(np.int32)
    known = pages[row] == ids
    kind = np.where(in_set < np.repeat(sets.n_internal[chosen], lengths), INTERNAL, EXTERNAL).astype(np.int8)
    starts = np.append(0, np.cumsum(known))[np.append(0, ends)]
    return sparse.csr_array((kind[known], row[known], starts), (len(chosen), len(pages)))


def _inlinks(links: sparse.csr_array) -> tuple[Ints, Ints]:
    """Internal and external inlinks of each page."""
    internal, external = (
        np.bincount(links.indices[links.data == kind], minlength=links.shape[1]) for kind in (INTERNAL, EXTERNAL)
    )
    return internal, external


def _ones(links: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array((np.ones(links.nnz), links.indices, links.indptr), links.shape)


def _evenly(rows: Ints, n_pages: int) -> Floats:
    probability = np.zeros(n_pages)
    probability[rows] = 1 / max(len(rows), 1)
    return probability


def _highest(rank: Floats) -> Ints:
    n_trusted = max(1, round(_TRUSTED_SHARE * len(rank)))
    return np.sort(np.argsort(-rank, kind="stable")[:n_trusted])


def _home_pages(panel: Panel) -> Ints:
    return np.flatnonzero(pc.match_substring_regex(panel.url, _HOME_PAGE).to_numpy(zero_copy_only=False))


def trusted_rows(panel: Panel, trusted: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """The rows of trusted pages and of the pages of trusted hosts; and the entries that are not in the panel."""
    hosts = np.array([host(url) for url in panel.url.to_pylist()])
    rows = [_rows_of(entry, panel.page, hosts) for entry in trusted]
    unknown = tuple(entry for entry, of_entry in zip(trusted, rows, strict=True) if not len(of_entry))
    if len(unknown) == len(trusted):
        raise NotEnoughData(
            f"none of the trusted pages and hosts is in the panel, e.g. {unknown[0]!r}; "
            "name URLs or hosts that were seen, or none to trust the home pages"
        )
    return np.unique(np.concatenate(rows)), unknown


def _rows_of(entry: str, pages: Ints, hosts: NDArray[np.str_]) -> Ints:
    try:
        if "://" in entry:
            return np.flatnonzero(pages == page_id(canonical(entry)))
        if _HOST.fullmatch(entry):
            return np.flatnonzero(hosts == host(canonical(f"https://{entry}/")))
    except BadUrl:
        pass  # neither a URL nor a host: not in the panel
    return np.empty(0, np.int64)
