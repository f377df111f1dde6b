"""The model of one kind of links: how it is trained, and what it says of every page before a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats32
from recrawl.errors import NotEnoughData
from recrawl.insight.choices import LINKS, MAX_HISTORY, OUTLINKS, LinkKind
from recrawl.insight.features import FeatureInputs, Features
from recrawl.insight.features.sets import n_anchors
from recrawl.insight.targets import NewLinkCount
from recrawl.models.around import Surroundings, around
from recrawl.models.estimates import Estimates, estimate
from recrawl.models.gone import GonePages
from recrawl.models.learners import named
from recrawl.models.rows import pooled


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
    target: str = OUTLINKS  # whose new links are learnt, one of `choices.TARGETS`

    @property
    def noun(self) -> str:
        """What the new links are called."""
        return "links" if self.target == OUTLINKS else self.target


@dataclass(frozen=True)
class LinkModel:
    """The model of one kind of links, and what it was trained on."""

    model: Any
    columns: Features
    usual: Floats32  # the median of each column, for the reasons
    overall: tuple[float, float]  # mean number of new links, and share of rows with any


def fit_model(
    known: FeatureInputs, links: LinkKind, features: Features, recipe: Recipe, rounds: Sequence[int]
) -> LinkModel:
    """The recipe's model of one kind of links, learnt from some rounds."""
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


def estimate_pages(
    trained: LinkModel, known: FeatureInputs, links: LinkKind, of_round: int, *, recipe: Recipe, gone: GonePages
) -> tuple[Estimates, Surroundings, Floats32]:
    """The estimates for every page before a round, what is around it, and the input of the model."""
    x = known.matrix(trained.columns, of_round)
    near = around(known, links, of_round, trained.overall)
    own_past = trained.usual[: n_anchors(trained.columns)]
    saw_past = not len(own_past) or not bool(np.isnan(own_past).all())
    used = None if named(recipe.learner).is_blind else near
    return estimate(trained.model, x, used, gone.chance, saw_past), near, x
