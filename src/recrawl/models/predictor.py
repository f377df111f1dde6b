"""A history → a trained predictor → for every known page the new links that the next round will show.

A model answers for the pages that have a past of their own. Of the others (seen once, or never) it has not learnt anything: they
are answered by what is around them (`recrawl.models.around`), and pages that are gone by how often such pages came back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats32, Ints, Ints8
from recrawl.errors import NotEnoughData, RecrawlError
from recrawl.history import History
from recrawl.insight.features import MAX_HISTORY, Feature, FeatureInputs, Features, known_before, preset
from recrawl.insight.features.from_hints import proven_hints
from recrawl.insight.features.sets import n_anchors
from recrawl.insight.targets import LINKS, LinkKind, NewLinkCount, new_links
from recrawl.models import metrics
from recrawl.models.answers import Estimates, agreed, answer
from recrawl.models.around import Surroundings, around, needed
from recrawl.models.baselines import Itself
from recrawl.models.gone import GonePages, gone_pages
from recrawl.models.learners import baseline_features, named
from recrawl.models.pages import ended_rounds, ever_asked_for, first_visit, last_visit, with_pages
from recrawl.models.rows import pooled
from recrawl.world.panel import Panel

Step = Callable[[str], None]


def unheard(what: str) -> None:
    """For whoever does not listen."""


@dataclass(frozen=True)
class Recipe:
    """How a predictor is trained."""

    every: str = "crawl"  # rounds, as `recrawl.world.panel.build` takes them
    features: str = "default"
    learner: str = "forecast"
    links: tuple[LinkKind, ...] = LINKS
    history: int = MAX_HISTORY
    rounds: int = 60  # the last so many are used
    k: int = 30
    seed: int = 0
    n_jobs: int = 2
    neighbours: str = "auto"  # how related pages are found: auto, exact or approximate
    trusted: tuple[str, ...] = ()  # where TrustRank starts; the home pages if none is named


@dataclass(frozen=True)
class LinkModel:
    """The model of one kind of links, and what it was trained on."""

    model: Any
    columns: Features
    usual: Floats32  # the median of each column, for the reasons
    overall: tuple[float, float]  # mean of new links, and share of rows with any


@dataclass
class Predictor:
    """LinkModel models, one for each kind of links, and what they were trained on."""

    recipe: Recipe
    trained: dict[LinkKind, LinkModel]
    pages: Ints  # ids of some pages it was trained on: those with the smallest ids
    window: tuple[str, str]  # first and last visit
    n_pages: int = 0
    n_rounds: int = 0
    scores: dict[LinkKind, dict[str, float]] = field(default_factory=dict)  # one round earlier, by kind of links
    neighbours: tuple[str, float] = ("none", 1.0)  # how related pages were found, and the recall


@dataclass(frozen=True)
class Prediction:
    """What the next round will show, one entry a page, and what it rests on."""

    panel: Panel
    links: LinkKind
    answer: Estimates
    near: Surroundings
    gone: GonePages
    unseen_for: Ints  # rounds since new links were last looked for; as many as there are if never
    columns: Features
    x: Floats32  # the model's input

    @property
    def expected(self) -> Floats32:
        """Number of new links."""
        return self.answer.expected

    @property
    def probability(self) -> Floats32:
        """Of at least one."""
        return self.answer.probability

    @property
    def low(self) -> Ints:
        """Lower end of the 80% interval."""
        return self.answer.low

    @property
    def high(self) -> Ints:
        """Upper end of the 80% interval."""
        return self.answer.high

    @property
    def basis(self) -> Ints8:
        """Index into `recrawl.models.around.BASES`."""
        return self.near.basis


def train(
    history: History,
    recipe: Recipe = Recipe(),  # noqa: B008
    on_step: Step = unheard,
    on_note: Step = unheard,
) -> Predictor:
    """Learn from all past rounds; how right the same recipe was one round earlier goes into `scores`.

    `on_step` hears what is being done, `on_note` what the user ought to know.
    """
    panel = ended_rounds(history, recipe.every, recipe.rounds, on_note)
    hints = () if named(recipe.learner).baseline else proven_hints(history, panel)
    columns = {links: _columns(recipe, links) + hints for links in recipe.links}
    last = panel.shape[1]
    if last < 2:
        raise NotEnoughData(
            f"the history has {last} round{'s' * (last != 1)}: two are needed to see a new link. Import more visits, "
            "or ask for shorter rounds with --every"
        )
    known = _known(history, panel, last, columns, recipe, on_step)
    _note(known, recipe, columns, on_note)
    scores = {}
    if last > 2:
        earlier = _known(history, panel, last - 1, columns, recipe, on_step)
        on_step("how right it was one round earlier")
        gone = gone_pages(history.timeline, panel.page, panel.rounds, last - 2)
        scores = backtest(earlier, columns, recipe, gone)
    trained = {}
    for links, features in columns.items():
        on_step(f"learning the number of new {links} links")
        trained[links] = _fit(known, links, features, recipe, range(1, last))
    return Predictor(
        recipe,
        trained,
        np.sort(panel.page)[:1000],
        (first_visit(panel), last_visit(panel)),
        panel.shape[0],
        last,
        scores,
        ("none", 1.0) if known.related is None else (known.related.method, known.related.recall),
    )


def _columns(recipe: Recipe, links: LinkKind) -> Features:
    """The features of the recipe; a baseline has its own column."""
    learner = named(recipe.learner)
    if learner.column == "content-change-rate":
        raise RecrawlError(
            f"{learner.name} ranks pages, but does not tell how many new links they will have. Train another learner, such as "
            "average-count, and compare rankings with: recrawl evaluate"
        )
    if learner.baseline:
        return baseline_features(learner, links)
    return preset(recipe.features, NewLinkCount(links), recipe.history)


def _known(
    history: History, panel: Panel, of_round: int, columns: dict[LinkKind, Features], recipe: Recipe, on_step: Step
) -> FeatureInputs:
    wanted = {feature for links, features in columns.items() for feature in features + needed(links)}
    return known_before(
        history,
        panel,
        of_round,
        wanted,
        k=recipe.k,
        method=recipe.neighbours,
        trusted=recipe.trusted or None,
        on_step=on_step,
    )


def _note(known: FeatureInputs, recipe: Recipe, columns: dict[LinkKind, Features], on_note: Step) -> None:
    """What the user ought to know of the neighbours and of the trusted pages."""
    if known.related is not None and known.related.method == "approximate":
        on_note(f"related pages were found approximately: {known.related.recall:.1%} of the true {recipe.k} nearest")
    uses_trust = any(feature.quantity == "trustrank" for features in columns.values() for feature in features)
    if recipe.trusted and not uses_trust:
        on_note(f"--trusted has no effect: the features {recipe.features!r} do not hold TrustRank, 'everything' does")
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


def backtest(known: FeatureInputs, columns: dict[LinkKind, Features], recipe: Recipe, gone: GonePages) -> dict[LinkKind, dict[str, float]]:
    """Taught up to the round before the last, how well the last one was predicted, beside the two simple baselines."""
    last = known.panel.shape[1] - 1
    try:
        trained = {links: _fit(known, links, columns[links], recipe, range(1, last)) for links in columns}
    except NotEnoughData:
        return {}
    answers = agreed({links: _answer(one, known, links, last, recipe, gone)[0] for links, one in trained.items()})
    return {links: _scores(known, links, told, last, recipe.seed) for links, told in answers.items()}


def _answer(
    trained: LinkModel, known: FeatureInputs, links: LinkKind, of_round: int, recipe: Recipe, gone: GonePages
) -> tuple[Estimates, Surroundings, Floats32]:
    """What is told of every page before a round, what is around it, and what the model was given."""
    x = known.matrix(trained.columns, of_round)
    near = around(known, links, of_round, trained.overall)
    own_past = trained.usual[: n_anchors(trained.columns)]
    saw_past = not len(own_past) or not bool(np.isnan(own_past).all())
    asked = None if named(recipe.learner).is_blind else near
    return answer(trained.model, x, asked, gone.chance, saw_past), near, x


def _scores(known: FeatureInputs, links: LinkKind, told: Estimates, last: int, seed: int) -> dict[str, float]:
    target = NewLinkCount(links)
    truth = target.values(known.panel, last)
    pages = np.flatnonzero(~np.isnan(truth))
    if not len(pages):
        return {}
    y, expected = truth[pages], told.expected[pages]
    found = {
        "n_pages": float(len(y)),
        "spearman": metrics.spearman(y, expected),
        "found": float(y.sum()),
        "expected": float(expected.sum()),
        "area": metrics.precision_at(y, expected, seed=seed).area,
        "log_loss": metrics.log_loss(y > 0, told.probability[pages]),
    }
    simple = {"average": Feature(f"mean_{links}", 1), "previous": Feature(f"new_{links}", 1)}
    for name, feature in simple.items():
        x, past = pooled(known, target, (feature,), range(1, last), seed)
        itself = Itself().fit(x, past).predict(known.matrix((feature,), last)[pages])
        found[f"spearman_{name}"] = metrics.spearman(y, itself)
    return found


def predict(
    predictor: Predictor,
    history: History,
    more_urls: Sequence[str] = (),
    on_step: Step = unheard,
    on_note: Step = unheard,
) -> dict[LinkKind, Prediction]:
    """What the next round will show, for every page that was ever asked for, and for `more_urls` never fetched."""
    recipe = predictor.recipe
    seen = ended_rounds(history, recipe.every, recipe.rounds, on_note)
    panel = with_pages(seen, *ever_asked_for(history, more_urls))
    columns = {links: one.columns for links, one in predictor.trained.items()}
    now = panel.shape[1]
    known = _known(history, panel, now, columns, recipe, on_step)
    gone = gone_pages(history.timeline, panel.page, panel.rounds)
    told: dict[LinkKind, tuple[Estimates, Surroundings, Floats32]] = {}
    for links, trained in predictor.trained.items():
        on_step(f"predicting new {links} links")
        told[links] = _answer(trained, known, links, now, recipe, gone)
    answers = agreed({links: one[0] for links, one in told.items()})
    return {
        links: Prediction(panel, links, answers[links], near, gone, _unseen_for(panel, links), columns[links], x)
        for links, (_, near, x) in told.items()
    }


def _unseen_for(panel: Panel, links: LinkKind) -> Ints:
    looked = ~np.isnan(new_links(panel, links))
    return np.where(looked.any(axis=1), np.argmax(looked[:, ::-1], axis=1), panel.shape[1])
