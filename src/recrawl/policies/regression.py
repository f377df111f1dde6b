"""Visit the pages for which a linear regression on their own past predicts most new links."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import ClassVar

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.policies.base import TOP_OVERLAPS, Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.least_squares import CycleExamples, LeastSquares, Linear, LinearLearner, features
from recrawl.policies.page_content import PageContent
from recrawl.policies.select import take
from recrawl.policies.window import SWEEP, Window, checked_begin, come_first
from recrawl.policies.windowed_outdegree import highest_average
from recrawl.world.pages import Need, Pages, Visits


class Regression(Policy):
    """Predict the new links of every page from its own past, retrained as the crawl goes on, and pick the best that do not overlap.

    Good where pages follow the hour and the day, or differ in how long they need to grow. Features: mean and deviation of the new
    links over the last `window` cycles, hours since the last visit, mean times hours, hour of the day and day of the week (UTC,
    one column each). For the first `bootstrap` cycles the pages with the highest average are
    visited; from then on the regression is fitted again every `retrain` cycles to all visits within the window, and at once after
    visits that it did not choose itself. `above`: pages whose overlap exceeds it are not visited together; `memory`: cycles after
    which an overlap is forgotten (None: never). Pages visited only once come first. `fill`: use up a budget that is greater than
    the number of pages that do not overlap. `learner`: how weights are learnt, by default `LeastSquares`.
    `begin` as in `WindowedOutdegree`. `plain_bootstrap`: in the first cycles choose exactly as `WindowedOutdegree` does,
    overlaps or not, as in the paper. `content`: number of columns for the words of a page, such as 32, beside its size and how it
    changes (see `PageContent`); 0: content is not looked at.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> gains = [[{100 * page + page * cycle + i for i in range(page)} for page in range(4)] for cycle in range(10)]
    >>> *_, last = choices(Regression(bootstrap=3), Case(tiny_world(gains), (Budget(2),)))
    >>> last.page  # page p gains p links per cycle
    array([3, 2])

    References: REG of Pham, Santos and Freire (2018), Algorithms 1 and 2, section 4.2; content as their section 6 proposes.
    """

    name: ClassVar[str] = "regression"
    paper: ClassVar[str | None] = "REG"
    weighs: ClassVar[bool] = True
    components: ClassVar[dict[str, type]] = {"learner": LeastSquares}

    def __init__(
        self,
        window: int = 168,
        bootstrap: int = 10,
        retrain: int = 3,
        above: float = 0.7,
        memory: int | None = None,
        fill: bool = True,
        learner: LinearLearner | None = None,
        begin: str = SWEEP,
        plain_bootstrap: bool = False,
        content: int = 0,
    ) -> None:
        self.window, self.bootstrap, self.retrain = window, bootstrap, retrain
        self.above, self.memory, self.fill, self.begin = above, memory, fill, checked_begin(begin)
        self.learner: LinearLearner = self._component("learner", learner, {})
        self.plain_bootstrap, self.content = plain_bootstrap, content
        if content < 0:
            raise ValueError(f"content is {content}; it must be 0, or the number of columns for words")
        self.needs = frozenset({Need.WORDS}) if content else frozenset()

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        from recrawl.policies.overlap import Overlap

        self.past_ = Window(len(pages), self.window, self.begin)
        self.overlap_ = Overlap(pages.site, self.memory)
        self.content_ = PageContent(len(pages), self.content, self.window) if self.content else None
        self.examples_: deque[CycleExamples] = deque(maxlen=self.window)
        self.to_fit_: tuple[CycleExamples, ...] | None = (
            None  # what the present model is to be fitted to, once it is needed
        )
        self.has_model_ = False
        self.model_: Linear | None = None
        self.cycle_ = 0

    @property
    def is_settled(self) -> bool:
        """Whether the regression chooses, no longer the averages alone."""
        return self.cycle_ > self.bootstrap

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """Algorithm 2: the highest prediction first, none that overlaps with one already picked."""
        if self.plain_bootstrap and not self.is_settled:
            return highest_average(self.past_, pages, budget)
        age, mean, model = pages.age_hours(now), self.past_.mean, self.model()
        if model is None:
            score, reason = mean, "{mean:.1f} new links per visit so far"
        else:
            score = model.predict(self._features(slice(None), age), now)
            reason = "{mean:.1f} new links per visit so far, last visit {age:.0f} h ago"
        return take(
            score,
            pages,
            budget,
            first=come_first(pages, self.begin),
            overlap=self.overlap_,
            above=self.above,
            fill=self.fill,
            reason=reason,
            detail={"mean": mean, "age": age},
            expected=np.maximum(score, 0.0),
            weighs=True,
        )

    def taught_by(self, learner: LinearLearner) -> Regression:
        """The same settings with another learner."""
        return Regression(**{**self.settings(), "learner": learner})

    def model(self) -> Linear | None:
        """The present model. Fitted when it is first asked for: most cycles of a long past never need one."""
        if self.to_fit_ is not None:
            self.model_, self.to_fit_ = self.learner.fit(self.to_fit_), None
        return self.model_

    def observe(self, visits: Visits) -> None:
        """Keep the visits to learn from, as their pages were known before."""
        counts = visits.answered & ~visits.is_first & (self.past_.n[visits.page] > 0)
        page = visits.page[counts]
        x = self._features(page, visits.age_hours[counts])
        self.examples_.append(CycleExamples(x, visits.n_new[counts], visits.at[counts]))
        self.past_.observe(visits)
        if self.content_ is not None:
            self.content_.observe(visits)
        self.overlap_.observe(visits)
        self.cycle_ += 1
        is_turn = (self.cycle_ - self.bootstrap - 1) % self.retrain == 0
        is_due = is_turn or visits.memo is None or not self.has_model_
        if self.is_settled and is_due and self.learner.is_enough(self.examples_):
            self.to_fit_, self.has_model_ = tuple(self.examples_), True

    def _features(self, page: Ints | slice, age: Floats) -> Floats:
        """The columns of some pages, as they are known now."""
        own = features(self.past_.mean[page], self.past_.std[page], age)
        return own if self.content_ is None else np.hstack([own, self.content_.columns(page)])

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        return tuple(self.overlap_.of(page)[:TOP_OVERLAPS])
