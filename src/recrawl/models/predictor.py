"""A history → a trained predictor → for every known page the new links that the next round will show.

One model serves pages of every standing. A part of the training rows is shown again without the page's own past, without that
of its related pages, or without that of its site, so that the model learns what to say of a page that was seen once or never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recrawl import metrics
from recrawl.errors import NotEnoughData
from recrawl.features import MAX_HISTORY, Feature, Features, Known, known_before, preset
from recrawl.features.sets import n_anchors
from recrawl.history import History
from recrawl.models.baselines import Itself
from recrawl.models.learners import named
from recrawl.models.rows import pooled
from recrawl.panel import Panel
from recrawl.panel import build as build_panel
from recrawl.targets import LINKS, Links, NewLinkCount
from recrawl.urls import page_id

Floats = NDArray[np.float32]
Step = Callable[[str], None]
HIDDEN = 0.15  #: share of the rows shown again without the own past; half as many for each further step
INTERVAL = (0.1, 0.9)
#: What a prediction rests on, the first that is known.
BASES = ("its own past", "related pages", "its site", "all pages")


@dataclass(frozen=True)
class Recipe:
    """How a predictor is trained."""

    every: str = "crawl"  # rounds, as `recrawl.panel.build` takes them
    features: str = "default"
    learner: str = "forecast"
    links: tuple[Links, ...] = LINKS
    history: int = MAX_HISTORY
    rounds: int = 60  # the last so many are used
    k: int = 30
    seed: int = 0
    n_jobs: int = 2


@dataclass
class Predictor:
    """Trained models, one for each kind of links, and what they were trained on."""

    recipe: Recipe
    models: dict[Links, Any]
    columns: dict[Links, Features]
    usual: dict[Links, Floats]  # the median of each column, for the reasons
    pages: NDArray[np.int64]  # ids of some pages it was trained on: those with the smallest ids
    window: tuple[str, str]  # first and last round
    n_pages: int = 0
    n_rounds: int = 0
    scores: dict[Links, dict[str, float]] = field(default_factory=dict)  # one round earlier, by kind of links


@dataclass(frozen=True)
class Prediction:
    """What the next round will show, one entry a page."""

    panel: Panel
    links: Links
    expected: Floats  # number of new links
    probability: Floats  # of at least one
    low: NDArray[np.int64]  # the 80% interval
    high: NDArray[np.int64]
    basis: NDArray[np.int8]  # index into BASES
    columns: Features
    x: Floats  # the model's input


def train(history: History, recipe: Recipe = Recipe(), on_step: Step = lambda what: None) -> Predictor:  # noqa: B008
    """Learn from all past rounds; how right the same recipe was one round earlier goes into `scores`."""
    panel = rounds_of(history, recipe)
    last = panel.shape[1]
    if last < 2:
        raise NotEnoughData(
            f"the history has {last} round{'s' * (last != 1)}: two are needed to see a new link. Import more visits, "
            "or ask for shorter rounds with --every"
        )
    columns = {links: preset(recipe.features, NewLinkCount(links), recipe.history) for links in recipe.links}
    known = known_before(history, panel, last, _all(columns), k=recipe.k, on_step=on_step)
    earlier = None
    if last > 2:
        earlier = known_before(history, panel, last - 1, _all(columns), k=recipe.k, on_step=on_step)
    models, usual, scores = {}, {}, {}
    for links, features in columns.items():
        target = NewLinkCount(links)
        if earlier is not None:
            on_step(f"how right it was one round earlier: {links} links")
            scores[links] = _backtest(earlier, target, features, recipe)
        on_step(f"learning the number of new {links} links")
        models[links], usual[links] = _fit(known, target, features, recipe, range(1, last))
    return Predictor(
        recipe,
        models,
        columns,
        usual,
        np.sort(panel.page)[:1000],
        (str(panel.rounds[0])[:19], str(panel.rounds[-1])[:19]),
        panel.shape[0],
        last,
        scores,
    )


def rounds_of(history: History, recipe: Recipe) -> Panel:
    """The last rounds of a history, all pages that were seen in any of them."""
    panel = build_panel(history, recipe.every, 0.0)
    return panel.window(max(0, panel.shape[1] - recipe.rounds), panel.shape[1])


def _all(columns: dict[Links, Features]) -> Features:
    return tuple({feature for features in columns.values() for feature in features})


def _fit(
    known: Known, target: NewLinkCount, features: Features, recipe: Recipe, rounds: Sequence[int]
) -> tuple[Any, Floats]:
    x, y = pooled(known, target, features, rounds, recipe.seed)
    if not len(y):
        raise NotEnoughData(
            "no page was seen twice with its links known, so nothing can be learnt about new links. Import more visits, "
            "or ask for longer rounds with --every"
        )
    x, y = _also_hidden(x, y, features, recipe.seed)
    learner, anchors = named(recipe.learner), n_anchors(features)
    model = learner.for_columns(anchors, "number", target.links, recipe.history, seed=recipe.seed, n_jobs=recipe.n_jobs)
    with np.errstate(all="ignore"):
        usual = np.array([np.nanmedian(column) if (~np.isnan(column)).any() else np.nan for column in x.T], np.float32)
    return model.fit(x, y), usual


def _also_hidden(x: Floats, y: Floats, features: Features, seed: int) -> tuple[Floats, Floats]:
    """Some rows again as if less were known of the page; in their old order, so that the oldest still come first."""
    chance = np.random.default_rng(seed)
    order: list[NDArray[Any]] = [np.arange(len(y), dtype=np.float64)]
    blocks = [x]
    hidden = np.zeros(len(features), np.bool_)
    share = HIDDEN
    for around in ("", "related", "site"):
        hidden = hidden | np.array(
            [f.around == around and f.quantity not in ("path_depth", "domain_depth") for f in features]
        )
        again = np.flatnonzero(chance.random(len(y)) < share)
        block = x[again].copy()
        block[:, hidden] = np.nan
        blocks.append(block)
        order.append(again + 0.5)
        share = HIDDEN / 2
    row = np.concatenate(order)
    by_age = np.argsort(row, kind="stable")
    return np.vstack(blocks)[by_age], y[np.floor(row[by_age]).astype(np.int64)]


def _backtest(known: Known, target: NewLinkCount, features: Features, recipe: Recipe) -> dict[str, float]:
    """Taught up to the round before the last, how well the last one was predicted, beside the two simple baselines."""
    last = known.panel.shape[1] - 1
    truth = target.values(known.panel, last)
    pages = np.flatnonzero(~np.isnan(truth))
    try:
        model, _ = _fit(known, target, features, recipe, range(1, last))
    except NotEnoughData:
        return {}
    if not len(pages):
        return {}
    y = truth[pages]
    expected, probability, _ = _told(model, known.matrix(features, last)[pages])
    found = {
        "n_pages": float(len(y)),
        "spearman": metrics.spearman(y, expected),
        "found": float(y.sum()),
        "expected": float(expected.sum()),
    }
    found["area"] = metrics.precision_at(y, expected, seed=recipe.seed).area
    found["log_loss"] = metrics.log_loss(y > 0, probability)
    simple = {"average": Feature(f"mean_{target.links}", 1), "previous": Feature(f"new_{target.links}", 1)}
    for name, feature in simple.items():
        x, past = pooled(known, target, (feature,), range(1, last), recipe.seed)
        found[f"spearman_{name}"] = metrics.spearman(
            y, Itself().fit(x, past).predict(known.matrix((feature,), last)[pages])
        )
    return found


def _told(model: Any, x: Floats) -> tuple[Floats, Floats, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Expected number, probability of at least one and the 80% interval; a Poisson one where the model gives no distribution."""
    if hasattr(model, "predict_distribution"):
        told = model.predict_distribution(x)
    else:
        from recrawl.models.distributions import Poisson

        told = Poisson(np.maximum(np.asarray(model.predict(x), np.float64), 1e-6))
    interval = (told.quantile(INTERVAL[0]), told.quantile(INTERVAL[1]))
    return np.asarray(told.mean, np.float32), np.asarray(told.p_positive, np.float32), interval


def predict(
    predictor: Predictor, history: History, more_urls: Sequence[str] = (), on_step: Step = lambda what: None
) -> dict[Links, Prediction]:
    """What the round after the last will show, for every page that was ever asked for, and for `more_urls` never fetched."""
    recipe = predictor.recipe
    panel = with_pages(rounds_of(history, recipe), *_never_seen(history, more_urls))
    columns = {links: predictor.columns[links] for links in recipe.links}
    now = panel.shape[1]
    known = known_before(history, panel, now, _all(columns), k=recipe.k, on_step=on_step)
    found = {}
    for links, features in columns.items():
        on_step(f"predicting new {links} links")
        x = known.matrix(features, now)
        expected, probability, (low, high) = _told(predictor.models[links], x)
        found[links] = Prediction(panel, links, expected, probability, low, high, _basis(known, links), features, x)
    return found


def _never_seen(history: History, more_urls: Sequence[str]) -> tuple[NDArray[np.int64], pa.Array]:
    """Pages that were asked for but never answered, and further URLs."""
    timeline = history.timeline
    ids = np.concatenate([timeline.pages, np.array([page_id(url) for url in more_urls], np.int64)])
    texts = pa.concat_arrays(
        [history.urls_of(timeline.pages).cast(pa.string()), pa.array(list(more_urls), pa.string())]
    )
    first = np.unique(ids, return_index=True)[1]
    return ids[first], texts.take(pa.array(first))


def with_pages(panel: Panel, ids: NDArray[np.int64], urls: pa.Array) -> Panel:
    """The panel with a row for each of these pages; those that it did not have are known by their URL alone."""
    from recrawl.urls import domain_depth, path_depth

    new = np.flatnonzero(~np.isin(ids, panel.page) & np.asarray(urls.is_valid()))
    if not len(new):
        return panel
    extra = urls.take(pa.array(new))
    page = np.concatenate([panel.page, ids[new]])
    order = np.argsort(page)

    def longer(matrix: NDArray[Any], fill: Any) -> NDArray[Any]:
        return np.vstack([matrix, np.full((len(new), matrix.shape[1]), fill, matrix.dtype)])[order]

    base = {name: longer(matrix, np.nan) for name, matrix in panel.base.items()}
    added = order >= len(panel.page)
    for name, depth in (("path_depth", path_depth), ("domain_depth", domain_depth)):
        depths = np.array([depth(url) for url in extra.to_pylist()], np.float32)
        base[name][added] = depths[order[added] - len(panel.page)][:, None]
    return Panel(
        page=page[order],
        url=pa.concat_arrays([panel.url.cast(pa.string()), extra.cast(pa.string())]).take(pa.array(order)),
        rounds=panel.rounds,
        at=longer(panel.at, np.datetime64("NaT", "us")),
        n_new_internal=longer(panel.n_new_internal, np.nan),
        n_new_external=longer(panel.n_new_external, np.nan),
        content_changed=longer(panel.content_changed, np.nan),
        base=base,
        terms=None if panel.terms is None else longer(panel.terms, 0),
        links=None if panel.links is None else longer(panel.links, -1),
        sets=panel.sets,
    )


def _basis(known: Known, links: Links) -> NDArray[np.int8]:
    """The index into `BASES` of what is known of each page."""
    now = known.panel.shape[1] - 2
    if now < 0:
        return np.full(known.panel.shape[0], len(BASES) - 1, np.int8)
    have = [~np.isnan(known.values(f"mean_{links}", around)[:, now]) for around in ("", "related", "site")]
    return np.select(have, [0, 1, 2], len(BASES) - 1).astype(np.int8)
