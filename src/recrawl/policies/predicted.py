"""Visit the pages for which a model of new outlinks promises most: its predictions, retrained as the crawl goes."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl.panel import BASE, Panel
from recrawl.policies.base import Budget, Choice, Floats, Ints, Pages, Policy, Visits, microseconds
from recrawl.policies.select import take
from recrawl.targets import HasNewLinks, LinkChangeRate, NewLinkCount, Target

# Features and learners are imported where they are used: they are heavy, and only those who predict need them.
if TYPE_CHECKING:
    from recrawl.features import Features, Known

Column = NDArray[np.float32]


class PredictedCount(Policy):
    """Visit the pages with the highest predicted number of new links since their last visit.

    The model sees what was visited as a panel of pages by cycles, with gaps; so does it in training. It is trained on the last
    `rounds` cycles, after `bootstrap` cycles of round-robin, and anew every `retrain` cycles. `learner` and `features` are those of
    `recrawl train`. Pages not yet re-visited come first, and of equal predictions the one that waited longest.

    References: NNL-ET and the like, LBLA section 7.
    """

    name: ClassVar[str] = "predicted-count"
    paper: ClassVar[str | None] = "NNL"
    needs_related: ClassVar[bool] = True
    target: ClassVar[Target] = NewLinkCount("all")
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
        from recrawl.features import preset

        self.columns_: Features = preset(self.features, self.target)
        self.past_: deque[tuple[int, Column, Column, Column]] = deque(maxlen=self.rounds)
        self.related_, self.site_, self.n_pages_ = pages.related, pages.site, len(pages)
        self.model_: Any = None
        self.cycle_ = 0

    def choose(self, pages: Pages, budget: Budget, now: datetime) -> Choice:
        """The highest prediction first."""
        known = self.known() if len(self.past_) > 1 and len(pages) else None
        due = self.cycle_ > self.bootstrap and (self.cycle_ - self.bootstrap - 1) % self.retrain == 0
        if known is not None and self.cycle_ > self.bootstrap and (self.model_ is None or due):
            self.fit(known)
        waited = pages.age_hours(now)
        if known is None or self.model_ is None:
            return take(waited, pages, budget, reason="waited {hours:.0f} h", detail={"hours": waited})
        score = self.score(known.matrix(self.columns_, known.panel.shape[1]))
        expected = np.maximum(score, 0.0) if self.target.kind == "number" else None
        return take(
            score,
            pages,
            budget,
            first=pages.is_new,
            ties=waited,
            reason=self.words,
            detail={"score": score},
            expected=expected,
        )

    def known(self) -> Known:
        """What was seen in the last cycles, as a panel."""
        from recrawl.features import Known

        n = self.n_pages_
        new, links, changed = (np.column_stack([entry[i] for entry in self.past_]) for i in (1, 2, 3))
        times = np.array([entry[0] for entry in self.past_], np.int64).view("datetime64[us]")
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
        return Known(panel, self.related_, site=self.site_)

    def fit(self, known: Known) -> None:
        """Learn from all cycles of the panel; the last model stays where there is nothing to learn from."""
        from recrawl.features.sets import n_anchors
        from recrawl.models.learners import named
        from recrawl.models.rows import pooled

        x, y = pooled(known, self.target, self.columns_, range(1, known.panel.shape[1]), self.seed)
        if len(y):
            learner, anchors = named(self.learner), n_anchors(self.columns_)
            self.model_ = learner.for_columns(anchors, self.target.kind, "all", seed=self.seed, n_jobs=1).fit(x, y)

    def score(self, x: NDArray[np.float32]) -> Floats:
        """What the model says, one number a page."""
        return np.asarray(self.model_.predict(x), np.float64)

    def observe(self, visits: Visits) -> None:
        """Add a cycle to the panel."""

        def column(values: Ints | NDArray[Any], of: NDArray[np.bool_]) -> Column:
            filled = np.full(self.n_pages_, np.nan, np.float32)
            filled[visits.page[of]] = values[of]
            return filled

        self.past_.append(
            (
                microseconds(visits.at),
                column(visits.n_new_since, visits.n_new_since >= 0),
                column(visits.shown.sizes, visits.answered),
                column(visits.changed, visits.changed >= 0),
            )
        )
        self.cycle_ += 1


class PredictedProbability(PredictedCount):
    """Visit the pages that are most likely to have new links.

    References: PNL-ET, LBLA section 7.
    """

    name: ClassVar[str] = "predicted-probability"
    paper: ClassVar[str | None] = "PNL"
    target: ClassVar[Target] = HasNewLinks("all")
    words: ClassVar[str] = "{score:.0%} likely to have new links"

    def score(self, x: NDArray[np.float32]) -> Floats:
        """The probability of any."""
        return np.asarray(self.model_.predict_proba(x)[:, 1], np.float64)


class PredictedPresence(PredictedProbability):
    """Visit the pages that are predicted to have new links, those that are not after them.

    References: NL-ET, LBLA section 7.
    """

    name: ClassVar[str] = "predicted-presence"
    paper: ClassVar[str | None] = "NL"
    words: ClassVar[str] = "new links predicted: {score:.0f} (1 yes, 0 no)"

    def score(self, x: NDArray[np.float32]) -> Floats:
        """1 or 0."""
        return np.asarray(self.model_.predict(x), np.float64)


class PredictedRate(PredictedCount):
    """Visit the pages that are predicted to gain links in most cycles.

    References: LCR-ET, LBLA section 7.
    """

    name: ClassVar[str] = "predicted-rate"
    paper: ClassVar[str | None] = "LCR"
    target: ClassVar[Target] = LinkChangeRate("all")
    words: ClassVar[str] = "gains links in {score:.0%} of the cycles, as predicted"

    def __init__(
        self,
        learner: str = "extra-trees",
        features: str = "look-back-look-around",
        rounds: int = 60,
        bootstrap: int = 10,
        retrain: int = 24,
        seed: int = 0,
    ) -> None:
        super().__init__(learner, features, rounds, bootstrap, retrain, seed)
