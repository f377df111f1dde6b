"""Visit the pages that come first in a linear ranking, learnt from the cycles so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.least_squares import N_CLOCK, TINY, CycleExamples, Linear
from recrawl.policies.regression import Regression
from recrawl.world.pages import Pages, Visits


@dataclass(frozen=True)
class Ranking:
    """Learns the weights that rank the pages of each past cycle best.

    Every cycle is a list, and log(1 + new links) is the gain of a page in it; coordinate ascent maximises the mean NDCG at
    `depth`. Hour and weekday are the same for all pages of a list, so they cannot change its order and have no weight.
    `examples`: maximum number of visits to learn from; where there are more, cycles are left out evenly.

    References: Metzler and Croft (2007), "Linear feature-based models for information retrieval".
    """

    depth: int = 10
    examples: int = 20_000
    seed: int = 0

    def is_enough(self, cycles: Sequence[CycleExamples]) -> bool:
        """Whether there is a cycle in which one page gained more than another."""
        return any(_has_order(cycle.n_new) for cycle in cycles)

    def fit(self, cycles: Sequence[CycleExamples]) -> Linear:
        """The weights for the cycles in which one page gained more than another."""
        lists = [(cycle.features, cycle.n_new) for cycle in cycles if _has_order(cycle.n_new)]
        return ranking(_thinned(lists, self.examples), self.depth, self.seed)


class LearningToRank(Policy):
    """As regression, but with the weights that rank the pages of each past cycle best, not those that predict numbers best.

    Good where only the order of the best pages matters, and a few pages with very many links would pull a regression away. `inner`
    holds the settings that it shares with `Regression`, `learner` those of `Ranking`; both can also be given by name.

    >>> LearningToRank(Regression(window=28), Ranking(depth=5))
    LearningToRank(depth=5, window=28)
    >>> from recrawl.testing import Case, choices, tiny_world
    >>> gains = [[{100 * page + page * cycle + i for i in range(page)} for page in range(4)] for cycle in range(10)]
    >>> *_, last = choices(LearningToRank(bootstrap=3), Case(tiny_world(gains), (Budget(2),)))
    >>> last.page  # page p gains p links per cycle
    array([3, 2])

    References: LTR of Pham, Santos and Freire (2018), section 5.3; Metzler and Croft (2007).
    """

    name: ClassVar[str] = "learning-to-rank"
    paper: ClassVar[str | None] = "LTR"
    components: ClassVar[dict[str, type]] = {"inner": Regression, "learner": Ranking}

    def __init__(self, inner: Regression | None = None, learner: Ranking | None = None, **settings: Any) -> None:
        self.inner: Regression = self._component("inner", inner, settings)
        self.learner: Ranking = self._component("learner", learner, settings)
        self._no_more(settings)
        self.needs = self.inner.needs

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        self.regression_ = self.inner.taught_by(self.learner)
        self.regression_.start(pages)

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known."""
        self.regression_.extend(pages, n_before)

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """As regression does; a rank is not a number of links, so the average so far is what is expected.

        Nor can it be multiplied by the importance of a page.
        """
        choice = self.regression_.choose(pages.unweighed(), budget, now)
        return replace(choice, expected=self.regression_.past_.mean[choice.page])

    def observe(self, visits: Visits) -> None:
        """Keep the visits to learn from."""
        self.regression_.observe(visits)

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        return self.regression_._overlaps(page)


def _has_order(n_new: Ints) -> bool:
    return bool(len(n_new) and n_new.min() < n_new.max())


def _thinned(lists: list[tuple[Floats, Ints]], most: int) -> list[tuple[Floats, Ints]]:
    """Some of the lists, evenly spread and the newest among them: about `most` rows in all, and at least one list."""
    every = max(1.0, sum(len(n_new) for _, n_new in lists) / most)
    kept = max(1, int(len(lists) / every))
    return [lists[i] for i in np.linspace(len(lists) - 1, 0, kept).round().astype(int)[::-1]]


def ranking(lists: list[tuple[Floats, Ints]], depth: int = 10, seed: int = 0) -> Linear:
    """The linear combination of standardised page features that ranks these lists best."""
    from recrawl.policies.coordinate_ascent import best_weights

    x = np.vstack([rows for rows, _ in lists])
    gain = np.log1p(np.concatenate([n_new for _, n_new in lists]))
    start = np.cumsum([0, *(len(n_new) for _, n_new in lists)])
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale <= TINY * np.maximum(np.abs(mean), 1.0)] = np.inf  # a constant column has no weight
    weight, _ = best_weights((x - mean) / scale, gain, start, depth=depth, seed=seed)
    weight = weight / scale
    return Linear(np.append(weight, np.zeros(N_CLOCK)), -float(mean @ weight))
