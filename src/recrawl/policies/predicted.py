"""Visit the pages for which a model predicts most new links, retrained as the crawl goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.core.arrays import Flags, Floats, Floats32, Ints
from recrawl.core.times import microseconds
from recrawl.policies.base import Policy
from recrawl.policies.budget import Budget
from recrawl.policies.choice import Choice
from recrawl.policies.select import take
from recrawl.world.pages import Need, Pages, Visits

# Features, targets and learners are imported where they are used: they are heavy, and only what predicts needs them.
if TYPE_CHECKING:
    from recrawl.insight.features import FeatureInputs, Features
    from recrawl.insight.targets import Target
    from recrawl.world.related import Related


class Cycle(NamedTuple):
    """What the visits of a cycle showed: one entry per visit, NaN where that is not known."""

    at: int  # microseconds
    page: Ints
    n_new: Floats32
    n_links: Floats32
    changed: Floats32

    def column(self, name: str, n_pages: int) -> Floats32:
        """One entry per page, NaN where it was not visited."""
        filled = np.full(n_pages, np.nan, np.float32)
        filled[self.page] = getattr(self, name)
        return filled


class PredictedCount(Policy):
    """Visit the pages with the highest predicted number of new links since their last visit.

    Good where pages have neighbours with similar text and long histories: the same models as those of `recrawl train`. The model
    sees the visits as a panel of pages by cycles, with gaps, when it predicts as when it is trained. It is trained on the last
    `rounds` cycles, after `bootstrap` cycles of round-robin, and again every `retrain` cycles. `learner` and `features` are those
    of `recrawl train`. Pages visited only once come first, and of equal predictions the one that waited longest.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> shows = [[{100 * page + cycle} if page % 2 else {page} for page in range(30)] for cycle in range(14)]
    >>> *_, last = choices(PredictedCount(learner="poisson", bootstrap=5), Case(tiny_world(shows), (Budget(15),)))
    >>> last.page[:5]  # odd pages gain a link per cycle
    array([1, 3, 5, 7, 9])

    References: NNL-ET and others of Dang et al. (2022), section 7.
    """

    name: ClassVar[str] = "predicted-count"
    paper: ClassVar[str | None] = "NNL"
    weighs: ClassVar[bool] = True
    not_kept: ClassVar[tuple[str, ...]] = ("_cached",)
    needs = frozenset({Need.RELATED})
    words: ClassVar[str] = "{score:.1f} new links predicted"

    def __init__(
        self,
        learner: str = "forecast",
        features: str = "default",
        rounds: int = 60,
        bootstrap: int = 10,
        retrain: int = 24,
        seed: int = 0,
    ) -> None:
        self.learner, self.features = learner, features
        self.rounds, self.bootstrap, self.retrain, self.seed = rounds, bootstrap, retrain, seed

    def start(self, pages: Pages) -> None:
        """Forget everything."""
        from recrawl.insight.features import preset

        self.target_ = self.target()
        self.columns_: Features = preset(self.features, self.target_)
        self.past_: deque[Cycle] = deque(maxlen=self.rounds)
        self.site_, self.n_pages_ = pages.site, len(pages)
        self._cached: Any = None  # the present model
        self.to_fit_: tuple[Cycle, ...] | None = None  # what the present model is to be fitted to, once it is needed
        self.cycle_ = 0

    def extend(self, pages: Pages, n_before: int) -> None:
        """More pages are known; nothing was seen of them so far."""
        self.site_, self.n_pages_ = pages.site, len(pages)

    def target(self) -> Target:
        """What is predicted."""
        from recrawl.insight.targets import NewLinkCount

        return NewLinkCount("all")

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest prediction first."""
        waited, model = pages.age_hours(now), self.model(pages.related)
        if model is None or not len(pages):
            return take(waited, pages, budget, reason="waited {hours:.0f} h", detail={"hours": waited})
        known = self.known(self.past_, pages.related)
        score = self.score(model, known.matrix(self.columns_, known.panel.shape[1]))
        expected = np.maximum(score, 0.0) if self.target_.kind == "number" else None
        return take(
            score,
            pages,
            budget,
            first=pages.is_new,
            ties=waited,
            reason=self.words,
            detail={"score": score},
            expected=expected,
            weighs=True,
        )

    def model(self, related: Related | None = None) -> Any:
        """The present model. Fitted when it is first needed: most cycles of a long past never need one."""
        if self._cached is None and self.to_fit_ is not None:
            self._cached = self.fit(self.known(self.to_fit_, related))
        return self._cached

    def known(self, past: Sequence[Cycle], related: Related | None = None) -> FeatureInputs:
        """What was seen in some cycles, as a panel."""
        import pyarrow as pa

        from recrawl.insight.features import FeatureInputs
        from recrawl.world.panel import BASE, Panel

        n = self.n_pages_
        new, links, changed = (
            np.column_stack([cycle.column(name, n) for cycle in past]) for name in ("n_new", "n_links", "changed")
        )
        times = np.array([cycle.at for cycle in past], np.int64).view("datetime64[us]")
        nothing = np.full(new.shape, np.nan, np.float32)
        panel = Panel(
            page=np.arange(n),
            url=pa.array([""] * n, pa.string()),
            rounds=times,
            at=np.where(np.isnan(links), np.datetime64("NaT", "us"), times[None, :]),
            n_new_internal=new,
            n_new_external=np.where(np.isnan(new), np.nan, 0.0).astype(np.float32),
            content_changed=changed,
            base={name: links if name == "n_internal" else nothing for name in BASE},
        )
        return FeatureInputs(panel, related, site=self.site_)

    def fit(self, known: FeatureInputs) -> Any:
        """A model of all cycles of the panel; None where there is nothing to learn from."""
        from recrawl.insight.features.sets import n_anchors
        from recrawl.models.learners import named
        from recrawl.models.rows import pooled

        x, y = pooled(known, self.target_, self.columns_, range(1, known.panel.shape[1]), self.seed)
        if not len(y):
            return None
        learner, anchors = named(self.learner), n_anchors(self.columns_)
        return learner.for_columns(anchors, self.target_.kind, "all", seed=self.seed, n_jobs=1).fit(x, y)

    def score(self, model: Any, x: Floats32) -> Floats:
        """What the model predicts, one number per page."""
        return np.asarray(model.predict(x), np.float64)

    def observe(self, visits: Visits) -> None:
        """Remember the visits of a cycle; a panel is made of them only when a model needs one."""

        def known(values: NDArray[Any], of: Flags) -> Floats32:
            return np.where(of, values, np.nan).astype(np.float32)

        self.past_.append(
            Cycle(
                microseconds(visits.ended_at),
                visits.page,
                known(visits.n_new_since, visits.n_new_since >= 0),
                known(visits.shown.sizes, visits.answered),
                known(visits.changed, visits.changed >= 0),
            )
        )
        self.cycle_ += 1
        is_turn = (self.cycle_ - self.bootstrap - 1) % self.retrain == 0
        is_due = self.cycle_ > self.bootstrap and (is_turn or visits.memo is None or self.to_fit_ is None)
        if is_due and len(self.past_) > 1 and self.n_pages_ and self._is_enough():
            self.to_fit_, self._cached = tuple(self.past_), None

    def _is_enough(self) -> bool:
        """Whether any page was compared with an earlier copy after the first of the cycles."""
        return any(bool((~np.isnan(cycle.n_new)).any()) for cycle in islice(self.past_, 1, None))


class PredictedProbability(PredictedCount):
    """Visit the pages that are most likely to have new links.

    Good where it counts how many pages bring something, not how much. All else is as in `PredictedCount`.

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> shows = [[{100 * page + cycle} if page % 2 else {page} for page in range(30)] for cycle in range(14)]
    >>> *_, last = choices(PredictedProbability(learner="poisson", bootstrap=5), Case(tiny_world(shows), (Budget(15),)))
    >>> last.page[:5]  # odd pages gain a link per cycle
    array([1, 3, 5, 7, 9])

    References: PNL-ET of Dang et al. (2022), section 7.
    """

    name: ClassVar[str] = "predicted-probability"
    paper: ClassVar[str | None] = "PNL"
    words: ClassVar[str] = "{score:.0%} likely to have new links"

    def target(self) -> Target:
        """What is predicted."""
        from recrawl.insight.targets import HasNewLinks

        return HasNewLinks("all")

    def score(self, model: Any, x: Floats32) -> Floats:
        """The probability of any."""
        return np.asarray(model.predict_proba(x)[:, 1], np.float64)


class PredictedPresence(PredictedProbability):
    """Visit the pages that are predicted to have new links, then the others.

    For comparison with the paper: a yes or no ranks worse than the probability behind it (`PredictedProbability`).

    >>> from recrawl.testing import Case, choices, tiny_world
    >>> shows = [[{100 * page + cycle} if page % 2 else {page} for page in range(30)] for cycle in range(14)]
    >>> *_, last = choices(PredictedPresence(learner="poisson", bootstrap=5), Case(tiny_world(shows), (Budget(15),)))
    >>> last.page[:5]  # odd pages gain a link per cycle
    array([1, 3, 5, 7, 9])

    References: NL-ET of Dang et al. (2022), section 7.
    """

    name: ClassVar[str] = "predicted-presence"
    paper: ClassVar[str | None] = "NL"
    words: ClassVar[str] = "new links predicted: {score:.0f} (1 yes, 0 no)"

    def score(self, model: Any, x: Floats32) -> Floats:
        """1 or 0."""
        return np.asarray(model.predict(x), np.float64)


class PredictedRate(PredictedCount):
    """Visit the pages that are predicted to gain links in most cycles.

    Good where pages are to be ranked once for a long time, since it predicts a lasting property of the page. All else is as in
    `PredictedCount`.

    >>> PredictedRate(rounds=30)
    PredictedRate(rounds=30)

    References: LCR-ET of Dang et al. (2022), section 7.
    """

    name: ClassVar[str] = "predicted-rate"
    paper: ClassVar[str | None] = "LCR"
    words: ClassVar[str] = "predicted to gain links in {score:.0%} of the cycles"

    def __init__(
        self,
        learner: str = "extra-trees",
        features: str = "look-back-look-around",
        rounds: int = 60,
        bootstrap: int = 10,
        retrain: int = 24,
        seed: int = 0,
    ) -> None:
        super().__init__(learner, features, rounds=rounds, bootstrap=bootstrap, retrain=retrain, seed=seed)

    def target(self) -> Target:
        """What is predicted."""
        from recrawl.insight.targets import LinkChangeRate

        return LinkChangeRate("all")
