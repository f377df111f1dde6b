"""The quantities that features are made of: one array [page, round] each.

A *level* is what a page shows in a round. A quantity *of an interval* needs two rounds: column j is what happened between round j
and round j + 1, as the papers number their weeks. So "one step back from now" means the same for both, and column "now" of an
interval is what is to be predicted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

from recrawl.core.arrays import Floats32
from recrawl.insight.graph import Graph
from recrawl.world.panel import Panel

HALF_LIFE = 3.0  #: intervals after which a past count weighs half in `recent`


@dataclass(frozen=True)
class Quantity:
    """A named array [page, round]."""

    name: str
    label: str  # in words
    of_interval: bool
    compute: Callable[[Panel, Graph | None], Floats32]


def _base(name: str) -> Callable[[Panel, Graph | None], Floats32]:
    return lambda panel, graph: panel.base[name]


def _graph(name: str) -> Callable[[Panel, Graph | None], Floats32]:
    def compute(panel: Panel, graph: Graph | None) -> Floats32:
        computed: Floats32 = np.full(panel.shape, np.nan, np.float32) if graph is None else getattr(graph, name)
        return computed if panel.given is None else panel.given.instead_of(computed, name)

    return compute


def _new(panel: Panel, links: str) -> Floats32:
    if links == "all":
        return panel.n_new_internal + panel.n_new_external
    return panel.n_new_external if links == "external" else panel.n_new_internal


def _by_interval(of_round: Floats32) -> Floats32:
    """Column j + 1 becomes column j; the interval after the last round is not known."""
    return np.hstack([of_round[:, 1:], np.full((len(of_round), 1), np.nan, np.float32)])


def _interval(summary: Callable[[Floats32], Floats32], links: str) -> Callable[[Panel, Graph | None], Floats32]:
    return lambda panel, graph: summary(_by_interval(_new(panel, links)))


def _so_far(values: Floats32) -> Floats32:
    """The mean of what is known up to and including each interval."""
    known = ~np.isnan(values)
    n = np.cumsum(known, axis=1)
    total = np.cumsum(np.where(known, values, 0), axis=1, dtype=np.float64)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan).astype(np.float32)


def _shrunk(values: Floats32) -> Floats32:
    """The mean so far, shrunk towards that of all pages as if each page had one more interval with the mean of all.

    A page that was watched for long keeps its own mean; one that was hardly watched takes that of the others.
    """
    known = ~np.isnan(values)
    n, total = np.cumsum(known, axis=1), np.cumsum(np.where(known, values, 0), axis=1, dtype=np.float64)
    of_all = np.maximum(total.sum(axis=0), 0.5) / np.maximum(n.sum(axis=0), 1)
    return np.asarray((total + of_all) / (n + 1), np.float32)


def _hits(values: Floats32) -> Floats32:
    return np.where(np.isnan(values), np.nan, values > 0).astype(np.float32)


@njit(cache=True)
def _decayed(values, decay):  # type: ignore[no-untyped-def]
    mean = np.full(values.shape, np.nan, np.float32)
    for page in range(values.shape[0]):
        total = weight = 0.0
        for j in range(values.shape[1]):
            total, weight = total * decay, weight * decay
            if not np.isnan(values[page, j]):
                total += values[page, j]
                weight += 1.0
            if weight > 0:
                mean[page, j] = total / weight
    return mean


@njit(cache=True)
def _quiet(values):  # type: ignore[no-untyped-def]
    quiet = np.full(values.shape, np.nan, np.float32)
    for page in range(values.shape[0]):
        since = np.nan
        for j in range(values.shape[1]):
            if values[page, j] > 0:
                since = 0.0
            elif not np.isnan(values[page, j]):
                since += 1.0
                if np.isnan(since):  # never seen with new links: quiet for as long as it was watched
                    since = 1.0
            quiet[page, j] = since
    return quiet


def _n_known(values: Floats32) -> Floats32:
    n = np.cumsum(~np.isnan(values), axis=1)
    # Zero intervals are NaN, as in the other quantities: pages that appear later must not count among those of a site.
    return np.where(n > 0, n, np.nan).astype(np.float32)


def recent(values: Floats32) -> Floats32:
    """The mean so far in which an interval's weight halves every `HALF_LIFE` intervals."""
    return np.asarray(_decayed(np.ascontiguousarray(values), 0.5 ** (1 / HALF_LIFE)))


_LEVELS = (
    ("content_bytes", "page content size"),
    ("text_bytes", "page text size"),
    ("text_quality", "page text quality"),
    ("path_depth", "URL path depth"),
    ("domain_depth", "URL domain depth"),
    ("n_internal", "number of internal outlinks"),
    ("n_external", "number of external outlinks"),
)
_NETWORK = (
    ("n_inlinks_internal", "number of internal inlinks"),
    ("n_inlinks_external", "number of external inlinks"),
    ("pagerank", "PageRank"),
    ("trustrank", "TrustRank"),
)
_SUMMARIES: tuple[tuple[str, str, Callable[[Floats32], Floats32]], ...] = (
    ("new", "new {} links", lambda values: values),
    ("rate", "share of rounds with new {} links", lambda values: _so_far(_hits(values))),
    ("mean", "mean new {} links so far", _so_far),
    ("shrunk_rate", "likely share of rounds with new {} links", lambda values: _shrunk(_hits(values))),
    ("shrunk_mean", "likely mean of new {} links", _shrunk),
    ("recent", "new {} links lately", recent),
    ("recent_rate", "share of recent rounds with new {} links", lambda values: recent(_hits(values))),
    ("quiet", "rounds since new {} links", lambda values: np.asarray(_quiet(np.ascontiguousarray(values)))),
    ("watched", "rounds in which new {} links were looked for", _n_known),
)


def _all() -> dict[str, Quantity]:
    quantities = [Quantity(name, label, False, _base(name)) for name, label in _LEVELS]
    quantities += [Quantity(name, label, False, _graph(name)) for name, label in _NETWORK]
    for links in ("internal", "external", "all"):
        for name, label, summary in _SUMMARIES:
            words = label.replace("{} ", "" if links == "all" else f"{links} ")
            quantities.append(Quantity(f"{name}_{links}", words, True, _interval(summary, links)))
    quantities.append(
        Quantity(
            "content_change_rate",
            "share of rounds with changed content",
            True,
            lambda panel, graph: _so_far(_by_interval(panel.content_changed)),
        )
    )
    return {quantity.name: quantity for quantity in quantities}


QUANTITIES = _all()
