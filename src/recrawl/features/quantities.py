"""The quantities that features are made of: one array [page, round] each.

A *level* is what a page shows in a round. A quantity *of an interval* needs two rounds: column j is what happened between round j
and round j + 1, as the papers number their weeks, so that "one step back from now" means the same for both, and column
"now" of an interval is the very thing to be predicted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.graph import Graph
from recrawl.panel import Panel

Floats = NDArray[np.float32]
HALF_LIFE = 3.0  #: intervals after which a past count weighs half in `recent`


@dataclass(frozen=True)
class Quantity:
    """A named array [page, round]."""

    name: str
    label: str  # in words
    of_interval: bool
    compute: Callable[[Panel, Graph | None], Floats]


def _base(name: str) -> Callable[[Panel, Graph | None], Floats]:
    return lambda panel, graph: panel.base[name]


def _graph(name: str) -> Callable[[Panel, Graph | None], Floats]:
    def compute(panel: Panel, graph: Graph | None) -> Floats:
        return np.full(panel.shape, np.nan, np.float32) if graph is None else getattr(graph, name)

    return compute


def _new(panel: Panel, links: str) -> Floats:
    parts = [panel.n_new_internal, panel.n_new_external]
    return parts[0] + parts[1] if links == "all" else parts[links == "external"]


def _by_interval(of_round: Floats) -> Floats:
    """Column j + 1 becomes column j; what comes after the last round is not known."""
    return np.hstack([of_round[:, 1:], np.full((len(of_round), 1), np.nan, np.float32)])


def _interval(summary: Callable[[Floats], Floats], links: str) -> Callable[[Panel, Graph | None], Floats]:
    return lambda panel, graph: summary(_by_interval(_new(panel, links)))


def _so_far(values: Floats) -> Floats:
    """The mean of what is known up to and including each interval."""
    known = ~np.isnan(values)
    n = np.cumsum(known, axis=1)
    total = np.cumsum(np.where(known, values, 0), axis=1, dtype=np.float64)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan).astype(np.float32)


def _shrunk(values: Floats) -> Floats:
    """The mean so far, drawn to that of all pages as if each had one more interval, like all pages together.

    A page that was watched for long keeps its own mean; a page that was hardly watched takes that of the others.
    """
    known = ~np.isnan(values)
    n, total = np.cumsum(known, axis=1), np.cumsum(np.where(known, values, 0), axis=1, dtype=np.float64)
    of_all = np.maximum(total.sum(axis=0), 0.5) / np.maximum(n.sum(axis=0), 1)
    return np.asarray((total + of_all) / (n + 1), np.float32)


def _hits(values: Floats) -> Floats:
    return np.where(np.isnan(values), np.nan, values > 0).astype(np.float32)


@njit(cache=True)
def _decayed(  # type: ignore[no-untyped-def]
    values, decay
):
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
def _quiet(  # type: ignore[no-untyped-def]
    values,
):
    quiet = np.full(values.shape, np.nan, np.float32)
    for page in range(values.shape[0]):
        since = np.nan
        for j in range(values.shape[1]):
            if values[page, j] > 0:
                since = 0.0
            elif not np.isnan(values[page, j]):
                since += 1.0
                if np.isnan(since):  # never seen with new links: at least as long as it was watched
                    since = 1.0
            quiet[page, j] = since
    return quiet


def _n_known(values: Floats) -> Floats:
    n = np.cumsum(~np.isnan(values), axis=1)
    # None is NaN, as for all that is counted from then on: pages to come must not count among those of a site.
    return np.where(n > 0, n, np.nan).astype(np.float32)


def recent(values: Floats) -> Floats:
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
_SUMMARIES: tuple[tuple[str, str, Callable[[Floats], Floats]], ...] = (
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
    found = [Quantity(name, label, False, _base(name)) for name, label in _LEVELS]
    found += [Quantity(name, label, False, _graph(name)) for name, label in _NETWORK]
    for links in ("internal", "external", "all"):
        for name, label, summary in _SUMMARIES:
            words = label.replace("{} ", "" if links == "all" else f"{links} ")
            found.append(Quantity(f"{name}_{links}", words, True, _interval(summary, links)))
    found.append(
        Quantity(
            "content_change_rate",
            "share of rounds with changed content",
            True,
            lambda panel, graph: _so_far(_by_interval(panel.content_changed)),
        )
    )
    return {quantity.name: quantity for quantity in found}


QUANTITIES = _all()
