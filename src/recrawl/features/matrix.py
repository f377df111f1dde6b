"""Feature sets → the columns of a model's input, for any round: slices for `past`, one product for `related`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recrawl import urls
from recrawl.features.operators import Around, Feature
from recrawl.features.quantities import QUANTITIES, Floats
from recrawl.graph import Graph
from recrawl.panel import Panel
from recrawl.related import Related


@dataclass(frozen=True)
class Known:
    """All that features can be made of: a panel, and optionally its related pages, its graph and its reduced vectors.

    Whatever is missing gives columns of NaN. Related pages and vectors must stem from rounds before the predicted one; those are
    the caller's to choose (`features.known_before`).
    """

    panel: Panel
    related: Related | None = None
    graph: Graph | None = None
    vectors: Floats | None = None  # [page, column]
    site: NDArray[np.int64] | None = None  # the site of each page, as a number; else its host
    hinted: Floats | None = None  # [page, round]: `features.hinted`
    _cache: dict[tuple[str, str], Floats] = field(default_factory=dict, repr=False)

    def matrix(self, features: Sequence[Feature], of_round: int) -> Floats:
        """The features [page, column] as known before a round; the round after the last one is the future."""
        if not 1 <= of_round <= self.panel.shape[1]:
            raise ValueError(
                f"round {of_round} cannot be predicted: the panel has rounds 0 to {self.panel.shape[1] - 1}"
            )
        columns = np.empty((len(features), self.panel.shape[0]), np.float32)
        for i, feature in enumerate(features):
            columns[i] = self._column(feature, of_round - 1)
        return np.ascontiguousarray(columns.T)

    def _column(self, feature: Feature, now: int) -> Floats:
        if feature.quantity == "vector":
            have = self.vectors is not None and feature.lag < self.vectors.shape[1]
            return self.vectors[:, feature.lag] if have else self._nothing  # type: ignore[index]
        values = self.values(feature.quantity, feature.around)
        if feature.mean_of:
            return _mean(values[:, max(now - feature.mean_of, 0) : now])
        return values[:, now - feature.lag] if feature.lag <= now else self._nothing

    def values(self, quantity: str, around: Around = "") -> Floats:
        """A quantity [page, round]: of the pages themselves, or averaged over what is around them.

        A level (what a page shows) is that of when the page was last seen: a round in which nobody looked takes no knowledge away.
        """
        key = (quantity, around)
        if key not in self._cache:
            own = self._cache.get((quantity, ""))
            if own is None:
                own = self._cache[quantity, ""] = self._own(quantity)
            if around == "related":
                self._cache[key] = np.full_like(own, np.nan) if self.related is None else self.related.average(own)
            elif around == "site":
                self._cache[key] = mean_of_others(own, self._site)
        return self._cache[key]

    def _own(self, quantity: str) -> Floats:
        if quantity == "hinted":  # not carried: a hint is void once the page was visited
            return np.full(self.panel.shape, np.nan, np.float32) if self.hinted is None else self.hinted
        own = QUANTITIES[quantity].compute(self.panel, self.graph)
        return own if QUANTITIES[quantity].of_interval else carried(own)

    def n_around(self, quantity: str, around: Around, of_round: int) -> Floats:
        """How many pages the average in a column of `values` is over."""
        known = (~np.isnan(self.values(quantity)[:, of_round])).astype(np.float32)
        if around == "site":
            return np.asarray(np.bincount(self._site, known)[self._site] - known, np.float32)
        if self.related is None:
            return np.zeros_like(known)
        n_related = (self.related.neighbour >= 0).sum(axis=1)
        return np.asarray(n_related * np.nan_to_num(self.related.average(known)), np.float32)

    @property
    def _nothing(self) -> Floats:
        return np.full(self.panel.shape[0], np.nan, np.float32)

    @cached_property
    def _site(self) -> NDArray[np.int64]:
        """The site of each page, as a number."""
        if self.site is not None:
            return self.site
        return np.unique([urls.host(url) for url in self.panel.url.to_pylist()], return_inverse=True)[1]


def _mean(values: Floats) -> Floats:
    known = ~np.isnan(values)
    n = known.sum(axis=1)
    total = np.where(known, values, 0).sum(axis=1, dtype=np.float64)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan).astype(np.float32)


def carried(values: Floats) -> Floats:
    """Every row with its gaps filled by what was known last; what comes before the first is not known.

    >>> carried(np.array([[np.nan, 2, np.nan, np.nan, 5]], np.float32)).tolist()
    [[nan, 2.0, 2.0, 2.0, 5.0]]
    """
    at = np.where(np.isnan(values), 0, np.arange(values.shape[1]))
    return np.take_along_axis(values, np.maximum.accumulate(at, axis=1), axis=1)


def mean_of_others(values: Floats, group: NDArray[np.int64]) -> Floats:
    """For every page and column the mean over the other pages of its group; NaN where none is known.

    >>> mean_of_others(np.array([[1.0], [3.0], [np.nan], [7.0]], np.float32), np.array([0, 0, 0, 1])).ravel().tolist()
    [3.0, 1.0, 2.0, nan]
    """
    known = ~np.isnan(values)
    n_groups = int(group.max(initial=-1)) + 1
    own = np.where(known, values, 0)
    total = np.column_stack([np.bincount(group, column, n_groups) for column in own.T])
    n = np.column_stack([np.bincount(group, column, n_groups) for column in known.T])
    others = n[group] - known
    return np.where(others > 0, (total[group] - own) / np.maximum(others, 1), np.nan).astype(np.float32)
