"""A history and its panel → everything that features are made of, as known before a round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats32
from recrawl.history import History
from recrawl.insight.features.from_hints import hinted_by_round
from recrawl.insight.features.matrix import FeatureInputs, RelatedBefore
from recrawl.insight.features.operators import Feature
from recrawl.insight.graph import Graph
from recrawl.insight.graph import build as build_graph
from recrawl.world.panel import Panel

N_TIMES = 8  #: how often pages that move alike are determined over the rounds of a panel
NETWORK = ("n_inlinks_internal", "n_inlinks_external", "pagerank", "trustrank")


def known_before(
    history: History,
    panel: Panel,
    of_round: int,
    features: Iterable[Feature] | None = None,
    *,
    k: int = 30,
    method: str = "auto",
    related_by: str = "content",
    transformer: Any = None,
    idf: str = "log",
    trusted: Sequence[str] | None = None,
    on_step: Callable[[str], None] = lambda what: None,
) -> FeatureInputs:
    """What `features` (if None, those of all sets) need: related pages, graph, vectors and hints, known before the round.

    Related pages are determined once, from the text that each page last showed before the round, as in the papers; with
    `related_by` another of `choices.RELATED_BY` from the rounds before it, and for earlier rounds from those before these.
    """
    wanted = None if features is None else set(features)
    needs_vectors = wanted is None or any(feature.quantity == "vector" for feature in wanted)
    needs_related = wanted is None or any(feature.around == "related" for feature in wanted)
    needs_hints = wanted is not None and any(feature.quantity == "hinted" for feature in wanted)
    needs_graph = wanted is None or any(feature.quantity in NETWORK for feature in wanted)
    needs_graph = needs_graph and not _all_stand_ins(panel)
    neighbours = merged = graph = earlier = None
    if needs_related and related_by != "content":
        on_step(f"the {k} pages of each whose new links move alike")
        earlier = related_over_time(panel, of_round, k, related_by, method)
        neighbours, needs_related = earlier[-1].related if earlier else None, False
    if needs_vectors or needs_related:
        on_step("vectors of the pages' text")
        from recrawl.insight.related import related_pages  # takes a second to load, with faiss and scikit-learn
        from recrawl.insight.vectors import page_vectors, reduced

        vectors = page_vectors(history, panel, of_round - 1, transformer=transformer, idf=idf)
        if needs_related:
            on_step(f"the {k} most related pages of each")
            neighbours = related_pages(vectors.values, k, method)
        if needs_vectors:
            merged = reduced(vectors.values)
            merged[~vectors.known] = np.nan
    if needs_graph:
        on_step("inlinks, PageRank and TrustRank")
        graph = _graph_before(panel, of_round, trusted)
    hinted = hinted_by_round(history, panel) if needs_hints else None
    return FeatureInputs(panel, neighbours, graph, merged, hinted=hinted, earlier=earlier)


def related_over_time(panel: Panel, of_round: int, k: int, by: str, method: str = "auto") -> tuple[RelatedBefore, ...]:
    """The pages that move alike before a round, and before up to `N_TIMES` - 1 rounds before it; none where all are too early."""
    from recrawl.insight.series.alike import MIN_KNOWN, alike_pages  # compiles its loops

    new = panel.n_new_internal + panel.n_new_external
    rounds = np.unique(np.linspace(min(MIN_KNOWN + 1, of_round), of_round, N_TIMES).astype(int))
    return tuple(RelatedBefore(int(r), alike_pages(new[:, :r], k, by, method)) for r in rounds if r > MIN_KNOWN)


def _all_stand_ins(panel: Panel) -> bool:
    """Whether all links are made up, so that no graph can be made of them."""
    return panel.given is not None and bool(panel.given.stand_ins[~np.isnat(panel.at)].all())


def _graph_before(panel: Panel, of_round: int, trusted: Sequence[str] | None) -> Graph:
    """The graph of the pages that were seen before the round; NaN for all others, and from the round on.

    Pages that are first seen later would change every rank: they take part in the restarts.
    """
    then = panel.window(0, of_round)
    ranks = build_graph(then, trusted)
    rows = np.searchsorted(panel.page, then.page)

    def placed(values: Floats32) -> Floats32:
        matrix = np.full(panel.shape, np.nan, np.float32)
        matrix[rows, :of_round] = values
        return matrix

    return replace(
        ranks,
        n_inlinks_internal=placed(ranks.n_inlinks_internal),
        n_inlinks_external=placed(ranks.n_inlinks_external),
        pagerank=placed(ranks.pagerank),
        trustrank=placed(ranks.trustrank),
        trusted=rows[ranks.trusted],
    )
