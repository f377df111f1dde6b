"""How right models would have been in rounds that they have not learnt from, beside the simple baselines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from recrawl.core.arrays import Floats32, Ints
from recrawl.errors import NotEnoughData
from recrawl.insight.choices import LinkKind
from recrawl.insight.features import Feature, FeatureInputs, Features
from recrawl.insight.targets import NewLinkCount
from recrawl.models import metrics
from recrawl.models.baselines import Itself
from recrawl.models.estimates import Estimates, reconciled
from recrawl.models.gone import GonePages
from recrawl.models.link_models import LinkModel, Recipe, estimate_pages, fit_model
from recrawl.models.rows import pooled


def backtest(
    known: FeatureInputs, columns: dict[LinkKind, Features], recipe: Recipe, gone: GonePages
) -> dict[LinkKind, dict[str, float]]:
    """How well the last round is predicted by models of the rounds before it, beside the two simple baselines."""
    last = known.panel.shape[1] - 1
    try:
        trained = {links: fit_model(known, links, columns[links], recipe, range(1, last)) for links in columns}
    except NotEnoughData:
        return {}
    of_models = {
        links: estimate_pages(model, known, links, last, recipe=recipe, gone=gone) for links, model in trained.items()
    }
    estimates = reconciled({links: result[0] for links, result in of_models.items()})
    return {links: _scores(known, links, of_kind, last, recipe.seed) for links, of_kind in estimates.items()}


def advantages(
    trained: LinkModel,
    known: FeatureInputs,
    links: LinkKind,
    rounds: Sequence[int],
    *,
    recipe: Recipe,
    gone_before: Callable[[int], GonePages],
) -> tuple[float, ...]:
    """By how much Spearman's ρ of a model is above that of average-count, round by round; rounds without a ρ are left out.

    Some rounds are easier than others, for both alike: the difference hardly depends on the round.
    """
    gained = []
    for of_round in rounds:
        truth = NewLinkCount(links).values(known.panel, of_round)
        pages = np.flatnonzero(~np.isnan(truth))
        estimates, _, _ = estimate_pages(trained, known, links, of_round, recipe=recipe, gone=gone_before(of_round))
        ours = metrics.spearman(truth[pages], estimates.expected[pages])
        simple = metrics.spearman(truth[pages], _repeated(known, Feature(f"mean_{links}", 1), links, of_round, pages))
        if math.isfinite(ours) and math.isfinite(simple):
            gained.append(ours - simple)
    return tuple(gained)


def _repeated(
    known: FeatureInputs, feature: Feature, links: LinkKind, of_round: int, pages: Ints, seed: int = 0
) -> Floats32:
    """What a baseline predicts: a column as it is, or the mean of all where it is not known."""
    x, past = pooled(known, NewLinkCount(links), (feature,), range(1, of_round), seed)
    return np.asarray(Itself().fit(x, past).predict(known.matrix((feature,), of_round)[pages]), np.float32)


def _scores(known: FeatureInputs, links: LinkKind, estimates: Estimates, last: int, seed: int) -> dict[str, float]:
    target = NewLinkCount(links)
    truth = target.values(known.panel, last)
    pages = np.flatnonzero(~np.isnan(truth))
    if not len(pages):
        return {}
    y, expected = truth[pages], estimates.expected[pages]
    scores = {
        "n_pages": float(len(y)),
        "spearman": metrics.spearman(y, expected),
        "found": float(y.sum()),
        "expected": float(expected.sum()),
        "area": metrics.precision_at(y, expected, seed=seed).area,
        "log_loss": metrics.log_loss(y > 0, estimates.probability[pages]),
    }
    simple = {"average": Feature(f"mean_{links}", 1), "previous": Feature(f"new_{links}", 1)}
    for name, feature in simple.items():
        scores[f"spearman_{name}"] = metrics.spearman(y, _repeated(known, feature, links, last, pages, seed))
    return scores
