"""A history → a trained predictor → for every known page the new links that the next round will show.

A model predicts the pages that have a past of their own. It has learnt nothing about the others (seen once, or never): they are
predicted from what is around them (`recrawl.models.around`), and pages that are gone from how often such pages came back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from recrawl.core.arrays import Floats32, Ints, Ints8
from recrawl.core.words import count
from recrawl.errors import NotEnoughData, RecrawlError
from recrawl.history import History
from recrawl.insight.choices import INLINKS, LinkKind
from recrawl.insight.features import FeatureInputs, Features, known_before, preset
from recrawl.insight.features.from_hints import proven_hints
from recrawl.insight.inlinks import with_new_inlinks
from recrawl.insight.targets import NewLinkCount, new_links
from recrawl.models.around import Surroundings, needed
from recrawl.models.backtest import advantages, backtest
from recrawl.models.estimates import Estimates, reconciled
from recrawl.models.gone import GonePages, gone_pages
from recrawl.models.learners import baseline_features, named
from recrawl.models.link_models import LinkModel as LinkModel
from recrawl.models.link_models import Recipe as Recipe
from recrawl.models.link_models import estimate_pages, fit_model
from recrawl.models.pages import ended_rounds, ever_fetched, first_visit, last_visit, with_pages
from recrawl.world.panel import Panel

Step = Callable[[str], None]
HELD_OUT = (
    5  #: rounds on which a model that has not seen them shows how good the recipe is, to compare later rounds with
)


def ignore(what: str) -> None:
    """Default callback: do nothing."""


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
    #: By how much the same recipe ranked better than average-count in the last rounds, trained before them; see `ageing`.
    advantage: tuple[float, ...] = ()

    @property
    def main_kind(self) -> LinkKind:
        """The kind of links that the model is judged by: all, or the first that it predicts."""
        return main_kind(self.recipe)


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
    seen = ended_rounds(history, recipe.every, recipe.rounds, on_note, recipe.with_content)
    panel = for_target(seen, recipe)
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
        gone = _gone(history, panel, recipe, last - 2)
        scores = backtest(earlier, columns, recipe, gone)
    advantage = _held_out(history, panel, columns, recipe, on_step)
    trained = {}
    for links, features in columns.items():
        on_step(f"learning the number of new {links} {recipe.noun}")
        trained[links] = fit_model(known, links, features, recipe, range(1, last))
    return Predictor(
        recipe=recipe,
        trained=trained,
        pages=np.sort(panel.page)[:1000],
        window=(first_visit(panel), last_visit(panel)),
        n_pages=panel.shape[0],
        n_rounds=last,
        scores=scores,
        neighbours=("none", 1.0) if known.related is None else (known.related.method, known.related.recall),
        advantage=advantage,
    )


def for_target(panel: Panel, recipe: Recipe) -> Panel:
    """The panel with the new links that the recipe is about: those on the pages, or those that lead to them."""
    return with_new_inlinks(panel) if recipe.target == INLINKS else panel


def _gone(history: History, panel: Panel, recipe: Recipe, until: int | None = None) -> GonePages:
    """Which pages are gone; links may lead to a page whether it is gone or not."""
    if recipe.target == INLINKS:
        return GonePages(np.full(panel.shape[0], np.datetime64("NaT", "us")), 1.0)
    return gone_pages(history.timeline, panel.page, panel.rounds, until)


def main_kind(recipe: Recipe) -> LinkKind:
    """The kind of links that a recipe is judged by."""
    return "all" if "all" in recipe.links else recipe.links[0]


def _held_out(
    history: History, panel: Panel, columns: dict[LinkKind, Features], recipe: Recipe, on_step: Step
) -> tuple[float, ...]:
    """The advantage over average-count in the last rounds of a model that was trained before them; none if these are too few."""
    last, links = panel.shape[1], main_kind(recipe)
    first = last - min(HELD_OUT, last // 2)
    if named(recipe.learner).baseline or first < 3:
        return ()
    on_step(f"scores of the last {last - first} rounds by a model trained before them")
    try:
        return since_round(history, panel, first, links, columns[links], recipe)
    except NotEnoughData:
        return ()


def since_round(
    history: History,
    panel: Panel,
    first: int,
    links: LinkKind,
    columns: Features,
    recipe: Recipe,
    trained: LinkModel | None = None,
) -> tuple[float, ...]:
    """The advantage over average-count in each round from `first` on, of a model or of one trained on the rounds before.

    Related pages and graph are those known before `first`: no round sees what came later.
    """
    known = _known(history, panel, first, {links: columns}, recipe=recipe, on_step=ignore)
    model = trained or fit_model(known, links, columns, recipe, range(1, first))

    def gone_before(of_round: int) -> GonePages:
        return _gone(history, panel, recipe, of_round - 1)

    rounds = range(first, panel.shape[1])
    return advantages(model, known, links, rounds, recipe=recipe, gone_before=gone_before)


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
    panel = for_target(with_pages(seen, *ever_fetched(history, more_urls)), recipe)
    columns = {links: model.columns for links, model in predictor.trained.items()}
    now = panel.shape[1]
    known = _known(history, panel, now, columns, recipe=recipe, on_step=on_step)
    gone = _gone(history, panel, recipe)
    of_models: dict[LinkKind, tuple[Estimates, Surroundings, Floats32]] = {}
    for links, trained in predictor.trained.items():
        on_step(f"predicting new {links} {recipe.noun}")
        of_models[links] = estimate_pages(trained, known, links, now, recipe=recipe, gone=gone)
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
