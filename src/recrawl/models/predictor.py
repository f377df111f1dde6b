"""A history → a trained predictor → for every known page the new links that the next round will show.

A model predicts the pages that have a past of their own. It has learnt nothing about the others (seen once, or never): they are
predicted from what is around them (`recrawl.models.around`), and pages that are gone from how often such pages came back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats32, Ints, Ints8
from recrawl.core.words import count
from recrawl.errors import NotEnoughData, RecrawlError
from recrawl.history import History
from recrawl.insight.choices import LINKS, LinkKind
from recrawl.insight.features import MAX_HISTORY, Feature, FeatureInputs, Features, known_before, preset
from recrawl.insight.features.from_hints import proven_hints
from recrawl.insight.features.sets import n_anchors
from recrawl.insight.targets import NewLinkCount, new_links
from recrawl.models import metrics
from recrawl.models.around import Surroundings, around, needed
from recrawl.models.baselines import Itself
from recrawl.models.estimates import Estimates, estimate, reconciled
from recrawl.models.gone import GonePages, gone_pages
from recrawl.models.learners import baseline_features, named
from recrawl.models.pages import ended_rounds, ever_fetched, first_visit, last_visit, with_pages
from recrawl.models.rows import pooled
from recrawl.world.panel import Panel

Step = Callable[[str], None]


def ignore(what: str) -> None:
    """Default callback: do nothing."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a predictor is trained: the options of ``recrawl train``."""

    every: str = "crawl"  # rounds, as in `recrawl.world.rounds.rounds_of`
    features: str = "default"
    learner: str = "forecast"
    links: tuple[LinkKind, ...] = LINKS
    history: int = MAX_HISTORY  # single past rounds that are features
    rounds: int = 60  # only the last ones are used, at most this many
    k: int = 30  # related pages of each page
    seed: int = 0
    n_jobs: int = 2
    neighbours: str = "auto"  # how related pages are found: auto, exact or approximate
    related_by: str = "content"  # what makes pages related, one of `choices.RELATED_BY`
    trusted: tuple[str, ...] = ()  # where TrustRank starts; by default at the home pages
    with_content: bool = False  # leave out pages without content


@dataclass(frozen=True)
class LinkModel:
    """The model of one kind of links, and what it was trained on."""

    model: Any
    columns: Features
    usual: Floats32  # the median of each column, for the reasons
    overall: tuple[float, float]  # mean number of new links, and share of rows with any


@dataclass(kw_only=True)
class Predictor:
    """LinkModel models, one for each kind of links, and what they were trained on."""

    recipe: Recipe
    trained: dict[LinkKind, LinkModel]
    pages: Ints  # ids of some pages it was trained on: those with the smallest ids
    window: tuple[str, str]  # first and last visit
    n_pages: int = 0
    n_rounds: int = 0
    scores: dict[LinkKind, dict[str, float]] = field(default_factory=dict)  # of the same recipe one round earlier
    neighbours: tuple[str, float] = ("none", 1.0)  # how related pages were found, and the recall


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What the next round will show, one entry per page, and what that rests on."""

    panel: Panel
    links: LinkKind
    estimates: Estimates
    near: Surroundings
    gone: GonePages
    unseen_for: Ints  # rounds since the page was last checked for new links; all rounds if never
    columns: Features
    x: Floats32  # the model's input

    @property
    def expected(self) -> Floats32:
        """Number of new links."""
        return self.estimates.expected

    @property
    def probability(self) -> Floats32:
        """Probability of at least one."""
        return self.estimates.probability

    @property
    def low(self) -> Ints:
        """Lower end of the 80% interval."""
        return self.estimates.low

    @property
    def high(self) -> Ints:
        """Upper end of the 80% interval."""
        return self.estimates.high

    @property
    def basis(self) -> Ints8:
        """Index into `recrawl.models.around.BASES`."""
        return self.near.basis


def train(
    history: History,
    recipe: Recipe = Recipe(),  # noqa: B008
    on_step: Step = ignore,
    on_note: Step = ignore,
) -> Predictor:
    """Learn from all past rounds; how good the same recipe was one round earlier goes into `scores`.

    `on_step` is called with what is being done, `on_note` with what the user should know.
    """
    panel = ended_rounds(history, recipe.every, recipe.rounds, on_note, recipe.with_content)
    hints = () if named(recipe.learner).baseline else proven_hints(history, panel)
    columns = {links: _columns(recipe, links) + hints for links in recipe.links}
    last = panel.shape[1]
    if last < 2:
        raise NotEnoughData(
            f"the history has {count(last, 'round')}: two are needed to see a new link. Import more visits, "
            "or ask for shorter rounds with --every"
        )
    known = _known(history, panel, last, columns, recipe=recipe, on_step=on_step)
    _note(known, recipe, columns, on_note)
    scores = {}
    if last > 2:
        earlier = _known(history, panel, last - 1, columns, recipe=recipe, on_step=on_step)
        on_step("scores one round earlier")
        gone = gone_pages(history.timeline, panel.page, panel.rounds, last - 2)
        scores = backtest(earlier, columns, recipe, gone)
    trained = {}
    for links, features in columns.items():
        on_step(f"learning the number of new {links} links")
        trained[links] = _fit(known, links, features, recipe, range(1, last))
    return Predictor(
        recipe=recipe,
        trained=trained,
        pages=np.sort(panel.page)[:1000],
        window=(first_visit(panel), last_visit(panel)),
        n_pages=panel.shape[0],
        n_rounds=last,
        scores=scores,
        neighbours=("none", 1.0) if known.related is None else (known.related.method, known.related.recall),
    )


def _columns(recipe: Recipe, links: LinkKind) -> Features:
    """The features of the recipe; a baseline has its own column."""
    learner = named(recipe.learner)
    if learner.column == "content-change-rate":
        raise RecrawlError(
            f"{learner.name} ranks pages, but does not predict how many new links they will have. Train another learner, such as "
            "average-count, and compare rankings with: recrawl evaluate"
        )
    if learner.baseline:
        return baseline_features(learner, links)
    return preset(recipe.features, NewLinkCount(links), recipe.history)


def _known(
    history: History, panel: Panel, of_round: int, columns: dict[LinkKind, Features], *, recipe: Recipe, on_step: Step
) -> FeatureInputs:
    wanted = {feature for links, features in columns.items() for feature in features + needed(links)}
    return known_before(
        history,
        panel,
        of_round,
        wanted,
        k=recipe.k,
        method=recipe.neighbours,
        related_by=recipe.related_by,
        trusted=recipe.trusted or None,
        on_step=on_step,
    )


def _note(known: FeatureInputs, recipe: Recipe, columns: dict[LinkKind, Features], on_note: Step) -> None:
    """What the user should know of the related and of the trusted pages."""
    if known.related is not None and known.related.method == "approximate":
        on_note(f"related pages were found approximately: {known.related.recall:.1%} of the true {recipe.k} nearest")
    uses_trust = any(feature.quantity == "trustrank" for features in columns.values() for feature in features)
    if recipe.trusted and not uses_trust:
        on_note(f"--trusted has no effect: the features {recipe.features!r} do not use TrustRank, 'everything' does")
    elif recipe.trusted and known.panel.given is not None and known.panel.given.has("trustrank"):
        on_note("--trusted has no effect where TrustRank came with the data")
    elif known.graph is not None and known.graph.unknown_trusted:
        on_note(f"not in the history, so not trusted: {', '.join(known.graph.unknown_trusted)}")


def _fit(known: FeatureInputs, links: LinkKind, features: Features, recipe: Recipe, rounds: Sequence[int]) -> LinkModel:
    x, y = pooled(known, NewLinkCount(links), features, rounds, recipe.seed)
    if not len(y):
        raise NotEnoughData(
            "no page was seen twice with its links known, so nothing can be learnt about new links. Import more visits, "
            "or ask for longer rounds with --every"
        )
    learner = named(recipe.learner)
    model = learner.for_columns(
        n_anchors(features), "number", links, recipe.history, seed=recipe.seed, n_jobs=recipe.n_jobs
    )
    usual = np.array([np.nanmedian(column) if (~np.isnan(column)).any() else np.nan for column in x.T], np.float32)
    return LinkModel(model.fit(x, y), features, usual, (float(y.mean()), float((y > 0).mean())))


def backtest(
    known: FeatureInputs, columns: dict[LinkKind, Features], recipe: Recipe, gone: GonePages
) -> dict[LinkKind, dict[str, float]]:
    """How well the last round is predicted by models of the rounds before it, beside the two simple baselines."""
    last = known.panel.shape[1] - 1
    try:
        trained = {links: _fit(known, links, columns[links], recipe, range(1, last)) for links in columns}
    except NotEnoughData:
        return {}
    of_models = {
        links: _estimate(model, known, links, last, recipe=recipe, gone=gone) for links, model in trained.items()
    }
    estimates = reconciled({links: result[0] for links, result in of_models.items()})
    return {links: _scores(known, links, of_kind, last, recipe.seed) for links, of_kind in estimates.items()}


def _estimate(
    trained: LinkModel, known: FeatureInputs, links: LinkKind, of_round: int, *, recipe: Recipe, gone: GonePages
) -> tuple[Estimates, Surroundings, Floats32]:
    """The estimates for every page before a round, what is around it, and the input of the model."""
    x = known.matrix(trained.columns, of_round)
    near = around(known, links, of_round, trained.overall)
    own_past = trained.usual[: n_anchors(trained.columns)]
    saw_past = not len(own_past) or not bool(np.isnan(own_past).all())
    used = None if named(recipe.learner).is_blind else near
    return estimate(trained.model, x, used, gone.chance, saw_past), near, x


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
        x, past = pooled(known, target, (feature,), range(1, last), seed)
        itself = Itself().fit(x, past).predict(known.matrix((feature,), last)[pages])
        scores[f"spearman_{name}"] = metrics.spearman(y, itself)
    return scores


def predict(
    predictor: Predictor,
    history: History,
    more_urls: Sequence[str] = (),
    on_step: Step = ignore,
    on_note: Step = ignore,
) -> dict[LinkKind, Prediction]:
    """What the next round will show, for every page that was ever fetched, and for `more_urls` never fetched."""
    recipe = predictor.recipe
    seen = ended_rounds(history, recipe.every, recipe.rounds, on_note, recipe.with_content)
    panel = with_pages(seen, *ever_fetched(history, more_urls))
    columns = {links: model.columns for links, model in predictor.trained.items()}
    now = panel.shape[1]
    known = _known(history, panel, now, columns, recipe=recipe, on_step=on_step)
    gone = gone_pages(history.timeline, panel.page, panel.rounds)
    of_models: dict[LinkKind, tuple[Estimates, Surroundings, Floats32]] = {}
    for links, trained in predictor.trained.items():
        on_step(f"predicting new {links} links")
        of_models[links] = _estimate(trained, known, links, now, recipe=recipe, gone=gone)
    estimates = reconciled({links: result[0] for links, result in of_models.items()})
    return {
        links: Prediction(
            panel=panel,
            links=links,
            estimates=estimates[links],
            near=near,
            gone=gone,
            unseen_for=_unseen_for(panel, links),
            columns=columns[links],
            x=x,
        )
        for links, (_, near, x) in of_models.items()
    }


def _unseen_for(panel: Panel, links: LinkKind) -> Ints:
    is_known = ~np.isnan(new_links(panel, links))
    return np.where(is_known.any(axis=1), np.argmax(is_known[:, ::-1], axis=1), panel.shape[1])
