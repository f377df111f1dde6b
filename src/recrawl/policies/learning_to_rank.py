"""Visit the pages that a ranking learnt from the visits of the past puts first."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.policies.base import Budget, Choice, Floats, Ints, Pages
from recrawl.policies.coordinate_ascent import best_weights
from recrawl.policies.regression import N_FEATURES, N_PAGE_FEATURES, Linear, Regression


class LearningToRank(Regression):
    """As regression, but the weights are those that rank the pages of each past cycle best, not those that predict numbers best.

    Every cycle is a list, and log(1 + new links) is what a page in it is worth; coordinate ascent maximises the mean NDCG at
    `depth`. Hour and weekday are the same for all pages of a list, so they cannot change its order and have no weight. `examples`:
    visits to learn from at most; where the window holds more, cycles are left out evenly.

    References: LTR of Pham, Santos and Freire (2018), section 5.3; Metzler and Croft (2007).
    """

    name: ClassVar[str] = "learning-to-rank"
    paper: ClassVar[str | None] = "LTR"

    def __init__(
        self,
        depth: int = 10,
        examples: int = 20_000,
        window: int = 168,
        bootstrap: int = 10,
        retrain: int = 3,
        above: float = 0.7,
        memory: int | None = None,
        fill: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(window, bootstrap, retrain, above, memory, fill)
        self.depth, self.examples, self.seed = depth, examples, seed

    def pick(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """As regression does; a rank is no number of links, so the average so far is what is expected."""
        choice = super().pick(pages, budget, now)
        mean = choice.detail["mean"]
        if self.model_ is None:
            return replace(choice, expected=mean)
        reason = "ranked by {mean:.1f} new links a visit so far and the last visit {age:.0f} h ago"
        return replace(choice, reason=reason, expected=mean)

    def fit(self) -> None:
        """Learn from the cycles within the window in which one page was worth more than another."""
        lists = [(x, n_new) for x, n_new, _ in self.examples_ if len(n_new) and n_new.min() < n_new.max()]
        if lists:
            self.model_ = ranking(_thinned(lists, self.examples), self.depth, self.seed)


def _thinned(lists: list[tuple[Floats, Ints]], most: int) -> list[tuple[Floats, Ints]]:
    """Lists with about so many rows in all, at least one, evenly spread and the newest among them."""
    every = max(1.0, sum(len(n_new) for _, n_new in lists) / most)
    kept = max(1, int(len(lists) / every))
    return [lists[i] for i in np.linspace(len(lists) - 1, 0, kept).round().astype(int)[::-1]]


def ranking(lists: list[tuple[Floats, Ints]], depth: int = 10, seed: int = 0) -> Linear:
    """The linear combination of standardised page features that ranks these lists best."""
    x = np.vstack([rows for rows, _ in lists])
    gain = np.log1p(np.concatenate([n_new for _, n_new in lists]))
    start = np.cumsum([0, *(len(n_new) for _, n_new in lists)])
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale <= 1e-12 * np.maximum(np.abs(mean), 1.0)] = np.inf  # a constant column has no weight
    weight, _ = best_weights((x - mean) / scale, gain, start, depth=depth, seed=seed)
    weight = weight / scale
    return Linear(np.append(weight, np.zeros(N_FEATURES - N_PAGE_FEATURES)), -float(mean @ weight))
