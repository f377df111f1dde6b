"""Feature sets → the columns of a model's input, for any round: slices for `past`, one product for `related`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from recrawl.core.arrays import Floats32, Ints
from recrawl.insight.features.operators import Around, Feature
from recrawl.insight.features.quantities import QUANTITIES
from recrawl.insight.graph import Graph
from recrawl.web import urls
from recrawl.world.panel import Panel
from recrawl.world.related import Related


@dataclass(frozen=True)
class RelatedBefore:
    """The related pages as they were known before a round, for it and those after it."""

    of_round: int
    related: Related


@dataclass(frozen=True)
class FeatureInputs:
    """What features are made of: a panel, and optionally its related pages, its graph, its reduced vectors and its hints.

    Anything missing gives columns of NaN. The caller must take related pages and vectors from rounds before the predicted one;
    `known_before` does. Related pages by time are chosen by the very numbers that a model learns: if those of the predicted round
    were used for earlier rounds, too, each would have been chosen by what it is to predict. So these have their own (`earlier`).

    >>> import pyarrow as pa
    >>> counts = np.array([[np.nan, 2, 0, 4]], np.float32)
    >>> days = np.array(["2025-03-01", "2025-03-02", "2025-03-03", "2025-03-04"], "datetime64[us]")
    >>> new = {"n_new_internal": counts, "n_new_external": 0 * counts, "content_changed": 0 * counts}
    >>> panel = Panel(page=np.array([7]), url=pa.array(["https://e.org/"]), rounds=days, at=days[None], **new)
    >>> FeatureInputs(panel).matrix((Feature("new_internal", lag=1), Feature("mean_internal", lag=1)), of_round=4)
    array([[4., 2.]], dtype=float32)
    """

    panel: Panel
    related: Related | None = None
    graph: Graph | None = None
    vectors: Floats32 | None = None  # [page, column]
    site: Ints | None = None  # the site of each page, as a number; else its host
    hinted: Floats32 | None = None  # [page, round]: the probability of a change, from `from_hints`
    earlier: tuple[RelatedBefore, ...] | None = None  # by round, the last is `related`; None: that serves all rounds
    _cache: dict[tuple[str, str], Floats32] = field(default_factory=dict, repr=False)

    def matrix(self, features: Sequence[Feature], of_round: int) -> Floats32:
        """The features [page, column] as known before a round; the round after the last one is the future."""
        if not 1 <= of_round <= self.panel.shape[1]:
            raise ValueError(
                f"round {of_round} cannot be predicted: the panel has rounds 0 to {self.panel.shape[1] - 1}"
            )
        columns = np.empty((len(features), self.panel.shape[0]), np.float32)
        for i, feature in enumerate(features):
            columns[i] = self._column(feature, of_round - 1)
        return np.ascontiguousarray(columns.T)

    def _column(self, feature: Feature, now: int) -> Floats32:
        if feature.quantity == "vector":
            if self.vectors is None or feature.lag >= self.vectors.shape[1]:
                return self._nothing
            return self.vectors[:, feature.lag]
        if feature.lag > now and not feature.mean_of:
            return self._nothing
        rounds = (
            slice(max(now - feature.mean_of, 0), now)
            if feature.mean_of
            else slice(now - feature.lag, now - feature.lag + 1)
        )
        values = self._of_rounds(feature.quantity, feature.around, rounds, now + 1)
        return _mean(values) if feature.mean_of else values[:, 0]

    def _of_rounds(self, quantity: str, around: Around, rounds: slice, of_round: int) -> Floats32:
        """Some columns of a quantity, averaged over what was known to be around the pages before a round."""
        if around != "related" or self.earlier is None:
            return self.values(quantity, around)[:, rounds]
        then = [each.related for each in self.earlier if each.of_round <= of_round]
        own = self.values(quantity)[:, rounds]
        return then[-1].average(own) if then else np.full_like(own, np.nan)

    def values(self, quantity: str, around: Around = "") -> Floats32:
        """A quantity [page, round]: of the pages themselves, or averaged over what is around them.

        A level (what a page shows) is that of the last visit: a round without a visit takes no knowledge away.
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

    def _own(self, quantity: str) -> Floats32:
        if quantity == "hinted":  # not carried forward: a hint is void once the page was visited
            return np.full(self.panel.shape, np.nan, np.float32) if self.hinted is None else self.hinted
        own = QUANTITIES[quantity].compute(self.panel, self.graph)
        return own if QUANTITIES[quantity].of_interval else carried(own)

    def n_around(self, quantity: str, around: Around, of_round: int) -> Floats32:
        """Over how many pages the average in a column of `values` is taken."""
        known = (~np.isnan(self.values(quantity)[:, of_round])).astype(np.float32)
        if around == "site":
            return np.asarray(np.bincount(self._site, known)[self._site] - known, np.float32)
        if self.related is None:
            return np.zeros_like(known)
        n_related = (self.related.neighbour >= 0).sum(axis=1)
        return np.asarray(n_related * np.nan_to_num(self.related.average(known)), np.float32)

    @property
    def _nothing(self) -> Floats32:
        return np.full(self.panel.shape[0], np.nan, np.float32)

    @cached_property
    def _site(self) -> Ints:
        """The site of each page, as a number."""
        if self.site is not None:
            return self.site
        return np.unique([urls.host(url) for url in self.panel.url.to_pylist()], return_inverse=True)[1]


def _mean(values: Floats32) -> Floats32:
    known = ~np.isnan(values)
    n = known.sum(axis=1)
    total = np.where(known, values, 0).sum(axis=1, dtype=np.float64)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan).astype(np.float32)


def carried(values: Floats32) -> Floats32:
    """Every row with its gaps filled by the last known value; cells before the first one stay unknown.

    >>> carried(np.array([[np.nan, 2, np.nan, np.nan, 5]], np.float32)).tolist()
    [[nan, 2.0, 2.0, 2.0, 5.0]]
    """
    at = np.where(np.isnan(values), 0, np.arange(values.shape[1]))
    return np.take_along_axis(values, np.maximum.accumulate(at, axis=1), axis=1)


def mean_of_others(values: Floats32, group: Ints) -> Floats32:
    """For every page and column the mean over the other pages of its group; NaN where none of them is known.

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
