"""Visit the pages for which a linear regression on their own past predicts most new links."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Protocol

import numpy as np

from recrawl.core.arrays import Floats, Ints
from recrawl.core.times import US_PER_HOUR
from recrawl.policies.base import TOP_OVERLAPS, Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.policies.window import SWEEP, Window, checked_begin, come_first
from recrawl.world.pages import Pages, Visits

N_PAGE_FEATURES = 4  #: avg, std, age, avg · age
N_FEATURES = N_PAGE_FEATURES + 24 + 7
THURSDAY = 3 * 24  # 1970 began on a Thursday, and weeks begin on Monday
# Where every page was visited in every cycle, age hardly varies, and mean and mean · age are nearly the same. Chance
# differences between them must not be extrapolated to a page that waited for another time.
#: A column that varies by less than this share of its mean has no weight.
NEARLY_CONSTANT = 1e-2
#: Nor has a direction whose eigenvalue is below this share of the greatest.
NEARLY_DEPENDENT = 1e-6


@dataclass
class CycleExamples:
    """The visits of a cycle to learn from."""

    not_kept: ClassVar[tuple[str, ...]] = ("_sums",)

    features: Floats  # [visit, page feature], as the pages were known before
    n_new: Ints
    at: Ints  # microseconds, UTC
    _sums: tuple[Sums, ...] | None = None

    def sums(self) -> tuple[Sums, ...]:
        """All that least squares needs, worked out once: a cycle is part of many fits."""
        if self._sums is None:
            self._sums = tuple(Sums.of(self))
        return self._sums


class LinearLearner(Protocol):
    """Learns a linear combination of the features from the cycles of the past."""

    def is_enough(self, cycles: Sequence[CycleExamples]) -> bool:
        """Whether there is anything to learn from."""

    def fit(self, cycles: Sequence[CycleExamples]) -> Linear:
        """What was learnt."""


@dataclass(frozen=True)
class LeastSquares:
    """Ordinary least squares from sums by cycle: a fit takes no longer for five hundred visits per cycle than for one."""

    def is_enough(self, cycles: Sequence[CycleExamples]) -> bool:
        """Whether there was any visit."""
        return any(len(cycle.n_new) for cycle in cycles)

    def fit(self, cycles: Sequence[CycleExamples]) -> Linear:
        """The weights for all visits of these cycles."""
        return Linear.fit([sums for cycle in cycles for sums in cycle.sums()])


class Regression(Policy):
    """Predict the new links of every page from its own past, retrained as the crawl goes on, and pick the best that do not overlap.

    Good where pages follow the hour and the day, or differ in how long they need to grow. Features: mean and deviation of the new
    links over the last `window` cycles, hours since the last visit, mean times hours, hour of the day and day of the week (UTC,
    one column each). For the first `bootstrap` cycles the pages with the highest average are
    visited; from then on the regression is fitted again every `retrain` cycles to all visits within the window, and at once after
    visits that it did not choose itself. `above`: pages whose overlap exceeds it are not visited together; `memory`: cycles after
    which an overlap is forgotten (None: never). Pages visited only once come first. `fill`: use up a budget that is greater than
    the number of pages that do not overlap. `learner`: how weights are learnt, by default `LeastSquares`.
    `begin` as in `WindowedOutdegree`.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> gains = [[{100 * page + page * cycle + i for i in range(page)} for page in range(4)] for cycle in range(10)]
    >>> *_, last = choices(Regression(bootstrap=3), Case(tiny_world(gains), (Budget(2),)))
    >>> last.page  # page p gains p links per cycle
    array([3, 2])

    References: REG of Pham, Santos and Freire (2018), Algorithms 1 and 2, section 4.2.
    """

    name: ClassVar[str] = "regression"
    paper: ClassVar[str | None] = "REG"
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
    ) -> None:
        self.window, self.bootstrap, self.retrain = window, bootstrap, retrain
        self.above, self.memory, self.fill, self.begin = above, memory, fill, checked_begin(begin)
        self.learner: LinearLearner = self._component("learner", learner, {})

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        from recrawl.policies.overlap import Overlap

        self.past_ = Window(len(pages), self.window, self.begin)
        self.overlap_ = Overlap(pages.site, self.memory)
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
        age, mean, model = pages.age_hours(now), self.past_.mean, self.model()
        if model is None:
            score, reason = mean, "{mean:.1f} new links per visit so far"
        else:
            score = model.predict(features(mean, self.past_.std, age), now)
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
        x = features(self.past_.mean[page], self.past_.std[page], visits.age_hours[counts])
        self.examples_.append(CycleExamples(x, visits.n_new[counts], visits.at[counts]))
        self.past_.observe(visits)
        self.overlap_.observe(visits)
        self.cycle_ += 1
        is_turn = (self.cycle_ - self.bootstrap - 1) % self.retrain == 0
        is_due = is_turn or visits.memo is None or not self.has_model_
        if self.is_settled and is_due and self.learner.is_enough(self.examples_):
            self.to_fit_, self.has_model_ = tuple(self.examples_), True

    def _overlaps(self, page: int) -> tuple[tuple[int, float], ...]:
        return tuple(self.overlap_.of(page)[:TOP_OVERLAPS])


def features(mean: Floats, std: Floats, age: Floats) -> Floats:
    """The columns that differ from page to page (section 4.2)."""
    age = np.where(np.isfinite(age), age, 0.0)
    return np.column_stack([mean, std, age, mean * age])


def clock(at: datetime) -> tuple[int, int]:
    """Hour of the day, and day of the week from Monday on, in UTC."""
    utc = at.astimezone(UTC)
    return utc.hour, utc.weekday()


@dataclass(frozen=True, kw_only=True)
class Sums:
    """All that least squares needs of the visits of a cycle in one hour of the week: they share it, so their sums are enough."""

    hour: int
    day: int
    n: int
    x: Floats
    xx: Floats
    y: float
    xy: Floats

    @classmethod
    def of(cls, examples: CycleExamples) -> Iterator[Sums]:
        """The sums over visits with these page features and numbers of new links, for each hour of the week."""
        hours = (examples.at // US_PER_HOUR + THURSDAY) % (7 * 24)
        if not len(hours):
            return
        is_one = hours.min() == hours.max()  # mostly so: then nothing has to be taken apart
        for hour in hours[:1].tolist() if is_one else np.unique(hours).tolist():
            here = slice(None) if is_one else hours == hour
            x, y = examples.features[here], examples.n_new[here]
            yield cls(
                hour=hour % 24,
                day=hour // 24,
                n=len(y),
                x=x.sum(axis=0),
                xx=x.T @ x,
                y=float(y.sum()),
                xy=x.T @ y.astype(np.float64),
            )


class Linear:
    """Least squares, of smallest norm where columns depend on each other, as hours and weekdays always do."""

    def __init__(self, weight: Floats, intercept: float) -> None:
        self.weight, self.intercept = weight, intercept

    @classmethod
    def fit(cls, cycles: Sequence[Sums]) -> Linear:
        """The weights for the visits of these cycles."""
        gram, target, total = np.zeros((N_FEATURES, N_FEATURES)), np.zeros(N_FEATURES), np.zeros(N_FEATURES)
        own = slice(0, N_PAGE_FEATURES)
        for cycle in cycles:
            hour, day = N_PAGE_FEATURES + cycle.hour, N_PAGE_FEATURES + 24 + cycle.day
            gram[own, own] += cycle.xx
            for column, other in ((hour, day), (day, hour)):
                gram[own, column] += cycle.x
                gram[column, own] += cycle.x
                gram[column, column] += cycle.n
                gram[column, other] += cycle.n
                target[column] += cycle.y
                total[column] += cycle.n
            target[own] += cycle.xy
            total[own] += cycle.x
        n, y = sum(cycle.n for cycle in cycles), sum(cycle.y for cycle in cycles)
        mean = total / n
        centred = gram - n * np.outer(mean, mean)
        scale = np.sqrt(np.maximum(np.diag(centred), 0.0) / n)
        scale[scale <= NEARLY_CONSTANT * np.abs(mean)] = np.inf
        scaled = centred / np.outer(scale, scale)
        weight = np.linalg.lstsq(scaled, (target - y * mean) / scale, rcond=NEARLY_DEPENDENT)[0] / scale
        return cls(weight, float(y / n - mean @ weight))

    def predict(self, x: Floats, now: datetime) -> Floats:
        """New links expected of pages with these features at this time."""
        hour, day = clock(now)
        constant = self.intercept + self.weight[N_PAGE_FEATURES + hour] + self.weight[N_PAGE_FEATURES + 24 + day]
        predicted: Floats = x @ self.weight[:N_PAGE_FEATURES] + constant
        return predicted
