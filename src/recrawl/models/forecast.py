"""recrawl's own model of new links: a smooth curve over a page's past, corrected by trees as far as that would have helped.

The plain average of the past is hard to beat. Trees with small leaves memorise pages, and coarse ones give many pages the same
prediction. So two models are fitted, for whether there is anything new and for how much: a curve over the page's own rate and mean
so far (the anchors), and trees over all features. Their weights, and the size of the trees, are those that would have forecast the
newest rows best, beyond chance: rows are sorted oldest first, so the last fifth is the most recent past.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  #: of the trees; the rest is the weight of the curve
JUDGES = 0.2  #: share of the rows, the newest, by which models are chosen
MAX_JUDGED = 60_000  #: at most this many rows are used to choose: that needs fewer than the model itself
MAX_LOG = 15.0  #: no page is expected to gain more than e^15 links


class ForecastCounts(CountRegressor):
    """A hurdle model blended from a smooth curve and trees, chosen by the likelihood of the newest rows.

    Whether there is anything new and how much it is are chosen separately: where links are rare, how much is mostly chance, and a
    model that fits it ranks worse than one that does not try. Rows must be sorted oldest first. The first `n_anchors` columns are
    the anchors: a rate, and then a mean. The curve is fitted to the rows in which they are known; where they are not, it is
    constant. `chosen_` has for either part the leaves of a tree, the rows of a leaf, and the trees' weight.

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
        early, late = self._split(len(y))
        some = y > 0
        has_past = bool(self.n_anchors) and int(anchored(X).sum()) >= FEW_ROWS
        presence, number = _Presence(self, has_past), _Number(self, has_past)
        self.presence_, _, _ = self._best(presence, _Rows(X, some, weight), early, late, np.arange(len(y)))
        positive = np.flatnonzero(some)
        early, late = early[some[early]], late[some[late]]
        self.number_, log_numbers, judges = self._best(number, _Rows(X, y - 1, weight), early, late, positive)
        self.chosen_ = (self.presence_.chosen, self.number_.chosen)
        means = 1 + np.exp(np.minimum(log_numbers, MAX_LOG))
        self.dispersion_ = likeliest_dispersion(Truncated, means, y[judges], weight[judges]) if len(judges) else 0.0

    def _distribution(self, X: Floats) -> CountDistribution:  # noqa: N803
        probability = np.clip(expit(self.presence_.predict(X)), SUREST, 1 - SUREST)
        positive = np.maximum(1 + np.exp(np.minimum(self.number_.predict(X), MAX_LOG)), SMALLEST_POSITIVE_MEAN)
        return Hurdle(probability, Truncated(positive, self.dispersion_))

    def _split(self, n: int) -> tuple[Ints, Ints]:
        """The rows that competing models are fitted to, and those that choose among them; none where they would be too few."""
        rows = np.arange(n)
        n_judges = int(JUDGES * n)
        if n_judges < FEW_ROWS:
            return rows, rows[:0]
        if n > MAX_JUDGED:
            rows = np.sort(np.random.default_rng(self.random_state).choice(n, MAX_JUDGED, replace=False))
        return rows[rows < n - n_judges], rows[rows >= n - n_judges]

    def _best(self, part: _Part, rows: _Rows, early: Ints, late: Ints, every: Ints) -> tuple[Blend, Floats, Ints]:
        """The blend that forecasts the late rows best, fitted to all rows; and some of its forecasts, with their rows."""
        curve = part.curve(rows.of(every))
        if len(late) < FEW_ROWS:
            return Blend(curve, curve, 0.0, (*self.sizes[0], 0.0)), curve.predict(rows.X[every]), every
        first, last = rows.of(early), rows.of(late)
        smooth = part.curve(first).predict(last.X)
        plain = part.likelihood(smooth, last.y)
        best = (0.0, 0.0, self.sizes[0], smooth)
        for size in self.sizes:
            fine = part.trees(size, first).predict(last.X)
            for share in WEIGHTS[1:]:
                mixed = share * fine + (1 - share) * smooth
                gain = _sure_gain(part.likelihood(mixed, last.y) - plain, last.weight)
                if gain > best[0]:
                    best = (gain, share, size, mixed)
        _, share, size, forecasts = best
        trees = part.trees(size, rows.of(every)) if share else curve
        return Blend(curve, trees, share, (*size, share)), forecasts, late


@dataclass(frozen=True)
class _Rows:
    """Features, what is to be learnt, and the weight of some rows."""

    X: Floats
    y: Floats
    weight: Floats

    def of(self, which: Ints | Flags) -> _Rows:
        return _Rows(self.X[which], self.y[which], self.weight[which])


class ScaledModel:
    """A fitted model, or a constant, with its predictions on the scale on which models are blended."""

    def __init__(self, model: Any, scale: str) -> None:
        self.model, self.scale = model, scale

    def predict(self, X: Floats) -> Floats:  # noqa: N803
        """The logit of the probability, or the logarithm of the number."""
        if isinstance(self.model, float):
            return np.full(len(X), self.model)
        if not len(X):
            return np.empty(0)
        if self.scale == "logit":
            return np.asarray(logit(np.clip(self.model.predict_proba(X)[:, 1], SUREST, 1 - SUREST)))
        return np.asarray(np.log(np.maximum(self.model.predict(X), SUREST)))


Told = ScaledModel  #: the name of this class in model files of format 2


class Curve:
    """A smooth function of the anchors where they are known, and a constant where they are not.

    Without `through`, a model of the anchors, there was no past to fit a curve to: then the anchors are the prediction, but no rate
    is nearer to 0 or 1 than `margin`.
    """

    def __init__(self, through: ScaledModel | None, elsewhere: ScaledModel, margin: float = 0.0) -> None:
        self.through, self.elsewhere, self.margin = through, elsewhere, margin

    def predict(self, X: Floats) -> Floats:  # noqa: N803
        """The logit of the probability, or the logarithm of the number beyond one."""
        scaled, known = self.elsewhere.predict(X), anchored(X)
        logs = _logs(X[known, :2])
        if self.through is not None:
            scaled[known] = self.through.predict(logs)
        elif self.elsewhere.scale == "logit":
            scaled[known] = logit(np.clip(expit(logs[:, 0]), self.margin, 1 - self.margin))
        else:
            scaled[known] = np.log(np.maximum(np.exp(logs[:, 1]) / expit(logs[:, 0]) - 1, SUREST))
        return scaled


class Blend:
    """A curve and trees, mixed on their common scale."""

    def __init__(
        self, curve: ScaledModel | Curve, trees: ScaledModel | Curve, share: float, chosen: tuple[int, int, float]
    ) -> None:
        self.curve, self.trees, self.share, self.chosen = curve, trees, share, chosen

    def predict(self, X: Floats) -> Floats:  # noqa: N803
        """The mixture for some rows."""
        smooth = self.curve.predict(X)
        return self.share * self.trees.predict(X) + (1 - self.share) * smooth if self.share else smooth


def anchored(X: Floats) -> Flags:  # noqa: N803
    """The rows in which both anchors are known: those of rounds with a past."""
    return np.asarray(~np.isnan(X[:, :2]).any(axis=1))


def _logs(anchors: Floats) -> Floats:
    """A rate as its logit, a mean as its logarithm."""
    rate, mean = np.clip(anchors[:, 0], 1e-4, 1 - 1e-4), np.clip(anchors[:, 1], 1e-4, None)
    return np.column_stack([logit(rate), np.log(mean)])


class _Part:
    """One of the two questions: how each kind of model is fitted to it, and how well a prediction fits."""

    def __init__(self, settings: ForecastCounts, has_past: bool) -> None:
        self.settings, self.has_past = settings, has_past

    def curve(self, rows: _Rows) -> ScaledModel | Curve:
        """Fitted to the rows whose anchors are known; rows without them would only distort it."""
        if not self.settings.n_anchors:
            return self.constant(rows)
        if not self.has_past:
            return Curve(None, self.constant(rows), 1 / (len(rows.y) + 2))  # the most certain by Laplace's rule
        known = anchored(rows.X)
        without = ~known if (~known).sum() >= FEW_ROWS else np.ones(len(rows.y), np.bool_)
        elsewhere, past = self.constant(rows.of(without)), rows.of(known)
        if _too_few(past.y):
            return Curve(self.constant(past) if known.any() else elsewhere, elsewhere)
        return Curve(self.smooth(_logs(past.X[:, :2]), past), elsewhere)

    def constant(self, rows: _Rows) -> ScaledModel:
        raise NotImplementedError

    def smooth(self, logs: Floats, rows: _Rows) -> ScaledModel:
        raise NotImplementedError

    def trees(self, size: Size, rows: _Rows) -> ScaledModel:
        raise NotImplementedError

    def likelihood(self, scaled: Floats, y: Floats) -> Floats:
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

    def constant(self, rows: _Rows) -> ScaledModel:
        return ScaledModel(float(logit(smoothed_share(rows.y, rows.weight))) if len(rows.y) else 0.0, "logit")

    def smooth(self, logs: Floats, rows: _Rows) -> ScaledModel:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        return ScaledModel(model.fit(logs, rows.y, logisticregression__sample_weight=rows.weight), "logit")

    def trees(self, size: Size, rows: _Rows) -> ScaledModel:
        if _too_few(rows.y):
            return self.constant(rows)
        return ScaledModel(self._boosted(BoostedClassifier, size).fit(rows.X, rows.y, rows.weight), "logit")

    def likelihood(self, scaled: Floats, y: Floats) -> Floats:
        probability = np.clip(expit(scaled), SUREST, 1 - SUREST)
        return np.asarray(np.where(y, np.log(probability), np.log1p(-probability)))


class _Number(_Part):
    """How many more than one there are, where there is any."""

    def constant(self, rows: _Rows) -> ScaledModel:
        mean = float(np.average(rows.y, weights=rows.weight)) if len(rows.y) else 0.0
        return ScaledModel(float(np.log(max(mean, SUREST))), "log")

    def smooth(self, logs: Floats, rows: _Rows) -> ScaledModel:
        model = make_pipeline(StandardScaler(), PoissonRegressor(alpha=1e-3, max_iter=1000))
        return ScaledModel(model.fit(logs, rows.y, poissonregressor__sample_weight=rows.weight), "log")

    def trees(self, size: Size, rows: _Rows) -> ScaledModel:
        if _too_few(rows.y):
            return self.constant(rows)
        boosted = self._boosted(BoostedRegressor, size, loss="poisson")
        return ScaledModel(boosted.fit(rows.X, rows.y, rows.weight), "log")

    def likelihood(self, scaled: Floats, y: Floats) -> Floats:
        # Over-dispersed as new links are; the dispersion itself is fitted after the choice.
        means = 1 + np.exp(np.minimum(scaled, MAX_LOG))
        return np.asarray(Truncated(means, 1.0).log_likelihood(y + 1)) if len(y) else np.empty(0)


def _sure_gain(gains: Floats, weight: Floats) -> float:
    """The mean gain in log-likelihood, less one standard error: trees must help beyond chance to be used at all."""
    if len(gains) < FEW_ROWS:
        return 0.0
    mean = np.average(gains, weights=weight)
    return float(mean - np.sqrt(np.average((gains - mean) ** 2, weights=weight) / len(gains)))


def _too_few(y: Floats) -> bool:
    return len(y) < FEW_ROWS or not y.any() or bool(y.all() and y.dtype == np.bool_)
