"""A history and its panel → all that features are made of, as known before a round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl import graph, related, vectors
from recrawl.features.hinted import hinted_by_round
from recrawl.features.matrix import Known
from recrawl.features.operators import Feature
from recrawl.history import History
from recrawl.panel import Panel

NETWORK = ("n_inlinks_internal", "n_inlinks_external", "pagerank", "trustrank")


def known_before(
    history: History,
    panel: Panel,
    of_round: int,
    features: Iterable[Feature] | None = None,
    *,
    k: int = 30,
    method: str = "auto",
    transformer: Any = None,
    trusted: Sequence[str] | None = None,
    on_step: Callable[[str], None] = lambda what: None,
) -> Known:
    """What `features` (those of all sets, if None) need: related pages, graph, vectors and hints, known before the round.

    The related pages are found once, from the text that each page last showed before the round, as in the papers.
    """
    wanted = None if features is None else set(features)
    needs_vectors = wanted is None or any(feature.quantity == "vector" for feature in wanted)
    needs_related = wanted is None or any(feature.around == "related" for feature in wanted)
    needs_hints = wanted is not None and any(feature.quantity == "hinted" for feature in wanted)
    needs_graph = wanted is None or any(feature.quantity in NETWORK for feature in wanted)
    neighbours = merged = links = None
    if needs_vectors or needs_related:
        on_step("vectors of the pages' text")
        found = vectors.page_vectors(history, panel, of_round - 1, transformer=transformer)
        if needs_related:
            on_step(f"the {k} most related pages of each")
            neighbours = related.related_pages(found.values, k, method)
        if needs_vectors:
            merged = vectors.reduced(found.values)
            merged[~found.known] = np.nan
    if needs_graph:
        on_step("inlinks, PageRank and TrustRank")
        links = _graph_before(panel, of_round, trusted)
    hinted = hinted_by_round(history, panel) if needs_hints else None
    return Known(panel, neighbours, links, merged, hinted=hinted)


def _graph_before(panel: Panel, of_round: int, trusted: Sequence[str] | None) -> graph.Graph:
    """The graph of the pages that were seen before the round; NaN for all others, and from the round on.

    Pages that are first seen later would change every rank: they take part in the restarts.
    """
    then = panel.window(0, of_round)
    found = graph.build(then, trusted)
    rows = np.searchsorted(panel.page, then.page)

    def placed(values: NDArray[np.float32]) -> NDArray[np.float32]:
        matrix = np.full(panel.shape, np.nan, np.float32)
        matrix[rows, :of_round] = values
        return matrix

    return replace(
        found,
        n_inlinks_internal=placed(found.n_inlinks_internal),
        n_inlinks_external=placed(found.n_inlinks_external),
        pagerank=placed(found.pagerank),
        trustrank=placed(found.trustrank),
        trusted=rows[found.trusted],
    )
