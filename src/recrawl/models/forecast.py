"""recrawl's own model of new links: a smooth look back, corrected by trees as far as that would have helped.

The plain average of the past is hard to beat. Trees grown to small leaves memorise pages, and coarse ones give many pages the same
answer. So two models are taught, for whether there is anything new and for how much: a curve over the page's own rate and mean so
far (the anchors), and trees over everything known. How much of each to take, and how large the trees may be, is what the newest
rows would have been forecast best with, beyond chance: rows come oldest first, so the last fifth is the most recent past.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from recrawl.core.arrays import Flags, Ints
from recrawl.models.boosting import BoostedClassifier, BoostedRegressor
from recrawl.models.counts import FEW_ROWS, SUREST, CountRegressor, likeliest_dispersion, smoothed_share
from recrawl.models.distributions import SMALLEST_POSITIVE_MEAN, CountDistribution, Hurdle, Truncated

Floats = NDArray[Any]
Size = tuple[int, int]
SIZES: tuple[Size, ...] = ((4, 60), (12, 40), (31, 20))  #: leaves of a tree, and rows of a leaf
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  #: of the trees, the rest is the curve's
JUDGES = 0.2  #: share of the rows that choose, the newest
MAX_JUDGED = 60_000  #: rows that the choice is made with, at most: it needs fewer than the model itself
MAX_LOG = 15.0  #: no page is expected to gain more than e^15 links


class ForecastCounts(CountRegressor):
    """A hurdle model blended from a smooth curve and trees, chosen by the likelihood of the newest rows.

    Whether there is anything new and how much it is are chosen apart: where links are rare, how much is mostly chance, and a model
    that believes to know it ranks worse than one that does not try. Rows must come oldest first. The first `n_anchors` columns are
    the anchors: a rate, and then a mean. The curve is drawn through the rows in which they are known; where they are not, it is the
    same answer for every page. `chosen_` says for either part the leaves of a tree, the rows of a leaf, and the trees' weight.

    >>> rng = np.random.default_rng(0)
    >>> past = rng.gamma(0.5, 2.0, size=(2000, 1))
    >>> model = ForecastCounts(max_iter=50).fit(past, rng.poisson(past[:, 0]))
    >>> bool(model.predict([[8.0]])[0] > model.predict([[0.1]])[0])
    True
    """

    def __init__(
        self,
        n_anchors: int = 0,
        learning_rate: float = 0.05,
        max_iter: int = 120,
        l2_regularization: float = 5.0,
        sizes: tuple[Size, ...] = SIZES,
        random_state: int | None = 0,
    ) -> None:
        self.n_anchors = n_anchors
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.l2_regularization = l2_regularization
        self.sizes = sizes
        self.random_state = random_state

    def _learn(self, X: Floats, y: Floats, weight: Floats) -> None:  # noqa: N803
        early, late = self._parted(len(y))
        some = y > 0
        has_past = bool(self.n_anchors) and int(anchored(X).sum()) >= FEW_ROWS
        self.presence_, _, _ = self._best(_Presence(self, has_past), X, some, weight, early, late, np.arange(len(y)))
        beyond_one, positive = y - 1, np.flatnonzero(some)
        early, late = early[some[early]], late[some[late]]
        self.number_, told, judges = self._best(_Number(self, has_past), X, beyond_one, weight, early, late, positive)
        self.chosen_ = (self.presence_.chosen, self.number_.chosen)
        means = 1 + np.exp(np.minimum(told, MAX_LOG))
        self.dispersion_ = likeliest_dispersion(Truncated, means, y[judges], weight[judges]) if len(judges) else 0.0

    def _distribution(self, X: Floats) -> CountDistribution:  # noqa: N803
        probability = np.clip(expit(self.presence_.told(X)), SUREST, 1 - SUREST)
        positive = np.maximum(1 + np.exp(np.minimum(self.number_.told(X), MAX_LOG)), SMALLEST_POSITIVE_MEAN)
        return Hurdle(probability, Truncated(positive, self.dispersion_))

    def _parted(self, n: int) -> tuple[Ints, Ints]:
        """The rows that compete for, and those that make, the choice; none make it where they would be too few."""
        rows = np.arange(n)
        n_judges = int(JUDGES * n)
        if n_judges < FEW_ROWS:
            return rows, rows[:0]
        if n > MAX_JUDGED:
            rows = np.sort(np.random.default_rng(self.random_state).choice(n, MAX_JUDGED, replace=False))
        return rows[rows < n - n_judges], rows[rows >= n - n_judges]

    def _best(
        self,
        part: _Part,
        X: Floats,  # noqa: N803
        y: Floats,
        weight: Floats,
        early: Ints,
        late: Ints,
        every: Ints,
    ) -> tuple[Blend, Floats, Ints]:
        """The blend that forecasts the late rows best, taught with all; and what it said of some rows, the late ones unseen."""
        curve = part.curve(X[every], y[every], weight[every])
        if len(late) < FEW_ROWS:
            return Blend(curve, curve, 0.0, (*self.sizes[0], 0.0)), curve.told(X[every]), every
        smooth = part.curve(X[early], y[early], weight[early]).told(X[late])
        plain = part.likelihood(smooth, y[late])
        best = (0.0, 0.0, self.sizes[0], smooth)
        for size in self.sizes:
            fine = part.trees(size, X[early], y[early], weight[early]).told(X[late])
            for share in WEIGHTS[1:]:
                mixed = share * fine + (1 - share) * smooth
                gain = _sure_gain(part.likelihood(mixed, y[late]) - plain, weight[late])
                if gain > best[0]:
                    best = (gain, share, size, mixed)
        _, share, size, told = best
        trees = part.trees(size, X[every], y[every], weight[every]) if share else curve
        return Blend(curve, trees, share, (*size, share)), told, late


class ScaledModel:
    """A taught model, or one answer for all, and how to read from it, on the scale on which models are blended."""

    def __init__(self, model: Any, scale: str) -> None:
        self.model, self.scale = model, scale

    def told(self, X: Floats) -> Floats:  # noqa: N803
        """The logit of the probability, or the logarithm of the number."""
        if isinstance(self.model, float):
            return np.full(len(X), self.model)
        if not len(X):
            return np.empty(0)
        if self.scale == "logit":
            return np.asarray(logit(np.clip(self.model.predict_proba(X)[:, 1], SUREST, 1 - SUREST)))
        return np.asarray(np.log(np.maximum(self.model.predict(X), SUREST)))


class Curve:
    """A smooth answer to the anchors where they are known, and one answer for all where they are not.

    Without `through`, a model of the anchors, there was no past to draw a curve through: then the anchors are the answer, but no
    rate is nearer to 0 or 1 than `margin`.
    """

    def __init__(self, through: ScaledModel | None, elsewhere: ScaledModel, margin: float = 0.0) -> None:
        self.through, self.elsewhere, self.margin = through, elsewhere, margin

    def told(self, X: Floats) -> Floats:  # noqa: N803
        """The logit of the probability, or the logarithm of the number beyond one."""
        found, known = self.elsewhere.told(X), anchored(X)
        logs = _logs(X[known, :2])
        if self.through is not None:
            found[known] = self.through.told(logs)
        elif self.elsewhere.scale == "logit":
            found[known] = logit(np.clip(expit(logs[:, 0]), self.margin, 1 - self.margin))
        else:
            found[known] = np.log(np.maximum(np.exp(logs[:, 1]) / expit(logs[:, 0]) - 1, SUREST))
        return found


class Blend:
    """A curve and trees, mixed on their common scale."""

    def __init__(self, curve: ScaledModel | Curve, trees: ScaledModel | Curve, share: float, chosen: tuple[int, int, float]) -> None:
        self.curve, self.trees, self.share, self.chosen = curve, trees, share, chosen

    def told(self, X: Floats) -> Floats:  # noqa: N803
        """The mixture for some rows."""
        smooth = self.curve.told(X)
        return self.share * self.trees.told(X) + (1 - self.share) * smooth if self.share else smooth


def anchored(X: Floats) -> Flags:  # noqa: N803
    """The rows in which both anchors are known: those of rounds that have a past."""
    return np.asarray(~np.isnan(X[:, :2]).any(axis=1))


def _logs(anchors: Floats) -> Floats:
    """A rate as its logit, a mean as its logarithm."""
    rate, mean = np.clip(anchors[:, 0], 1e-4, 1 - 1e-4), np.clip(anchors[:, 1], 1e-4, None)
    return np.column_stack([logit(rate), np.log(mean)])


class _Part:
    """One of the two questions: how each kind of model is taught for it, and how well an answer fits."""

    def __init__(self, settings: ForecastCounts, has_past: bool) -> None:
        self.settings, self.has_past = settings, has_past

    def curve(self, X: Floats, y: Floats, weight: Floats) -> ScaledModel | Curve:  # noqa: N803
        """Drawn through the rows whose anchors are known; rows without them would only bend it."""
        if not self.settings.n_anchors:
            return self.constant(y, weight)
        if not self.has_past:
            return Curve(None, self.constant(y, weight), 1 / (len(y) + 2))  # by Laplace's rule nothing is surer
        known = anchored(X)
        without = ~known if (~known).sum() >= FEW_ROWS else np.ones(len(y), np.bool_)
        elsewhere = self.constant(y[without], weight[without])
        if _too_few(y[known]):
            return Curve(self.constant(y[known], weight[known]) if known.any() else elsewhere, elsewhere)
        return Curve(self.smooth(_logs(X[known, :2]), y[known], weight[known]), elsewhere)

    def constant(self, y: Floats, weight: Floats) -> ScaledModel:
        raise NotImplementedError

    def smooth(self, logs: Floats, y: Floats, weight: Floats) -> ScaledModel:
        raise NotImplementedError

    def trees(self, size: Size, X: Floats, y: Floats, weight: Floats) -> ScaledModel:  # noqa: N803
        raise NotImplementedError

    def likelihood(self, told: Floats, y: Floats) -> Floats:
        raise NotImplementedError

    def _boosted(self, kind: Callable[..., Any], size: Size, **more: Any) -> Any:
        chosen = self.settings
        return kind(
            learning_rate=chosen.learning_rate,
            max_iter=chosen.max_iter,
            max_leaf_nodes=size[0],
            min_samples_leaf=size[1],
            l2_regularization=chosen.l2_regularization,
            early_stopping=False,
            random_state=chosen.random_state,
            **more,
        )


class _Presence(_Part):
    """Whether there is anything new."""

    def constant(self, y: Floats, weight: Floats) -> ScaledModel:
        return ScaledModel(float(logit(smoothed_share(y, weight))) if len(y) else 0.0, "logit")

    def smooth(self, logs: Floats, y: Floats, weight: Floats) -> ScaledModel:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        return ScaledModel(model.fit(logs, y, logisticregression__sample_weight=weight), "logit")

    def trees(self, size: Size, X: Floats, y: Floats, weight: Floats) -> ScaledModel:  # noqa: N803
        if _too_few(y):
            return self.constant(y, weight)
        return ScaledModel(self._boosted(BoostedClassifier, size).fit(X, y, weight), "logit")

    def likelihood(self, told: Floats, y: Floats) -> Floats:
        probability = np.clip(expit(told), SUREST, 1 - SUREST)
        return np.asarray(np.where(y, np.log(probability), np.log1p(-probability)))


class _Number(_Part):
    """How many more than one there are, where there is any."""

    def constant(self, y: Floats, weight: Floats) -> ScaledModel:
        return ScaledModel(float(np.log(max(float(np.average(y, weights=weight)) if len(y) else 0.0, SUREST))), "log")

    def smooth(self, logs: Floats, y: Floats, weight: Floats) -> ScaledModel:
        model = make_pipeline(StandardScaler(), PoissonRegressor(alpha=1e-3, max_iter=1000))
        return ScaledModel(model.fit(logs, y, poissonregressor__sample_weight=weight), "log")

    def trees(self, size: Size, X: Floats, y: Floats, weight: Floats) -> ScaledModel:  # noqa: N803
        if _too_few(y):
            return self.constant(y, weight)
        return ScaledModel(self._boosted(BoostedRegressor, size, loss="poisson").fit(X, y, weight), "log")

    def likelihood(self, told: Floats, y: Floats) -> Floats:
        # Over-dispersed as new links are; the dispersion itself is fitted once the choice is made.
        means = 1 + np.exp(np.minimum(told, MAX_LOG))
        return np.asarray(Truncated(means, 1.0).log_likelihood(y + 1)) if len(y) else np.empty(0)


def _sure_gain(gains: Floats, weight: Floats) -> float:
    """By how much rows are likelier on average, less one standard error: trees must help beyond chance to be used at all."""
    if len(gains) < FEW_ROWS:
        return 0.0
    mean = np.average(gains, weights=weight)
    return float(mean - np.sqrt(np.average((gains - mean) ** 2, weights=weight) / len(gains)))


def _too_few(y: Floats) -> bool:
    return len(y) < FEW_ROWS or not y.any() or bool(y.all() and y.dtype == np.bool_)
