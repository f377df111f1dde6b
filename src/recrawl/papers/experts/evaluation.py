"""The evaluation of Radinsky and Bennett (2013) on any history: can a page's next significant change be predicted?

At every round after the first n, each method predicts for each page whether the next round will differ, from what was known
by then; the accuracy is the mean over rounds, then over pages. Experts are chosen before the first prediction (or again after a
number of rounds), by what was seen before. All results are plain rows; tables and plots are made from them elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import sparse

from recrawl.core.arrays import Floats, Ints, Ints8, Ints32
from recrawl.core.words import count
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.history.importance import importance_of
from recrawl.models.experts.selection import links_between
from recrawl.papers.experts.freshness import freshness_rows
from recrawl.papers.experts.predictions import ExpertsFrom, OnPage, choices, is_present, page_predictions
from recrawl.papers.experts.rows import named_experts, rows
from recrawl.papers.experts.settings import EXPERTS, FRESHNESS, ExpertEvaluation, ExpertSettings
from recrawl.papers.experts.targets import outcomes
from recrawl.world.contents import Contents, contents_of

OnStep = Callable[[str], None]


def evaluate_experts(
    history: History,
    settings: ExpertSettings = ExpertSettings(),  # noqa: B008
    on_step: OnStep = lambda what: None,
    on_page: OnPage = lambda done, of: None,
) -> ExpertEvaluation:
    """The paper's Tables 1 to 3 and Figs. 6 to 8: what is known, ways to combine and to choose experts, n, k, and freshness."""
    on_step("what the pages said")
    contents = contents_of(history, settings.every, settings.min_share)
    on_step("what changed")
    changed = outcomes(history, contents, settings.every, settings.target, settings.notion)
    importance = importance_of(history, contents.page)
    links = partial(links_between, history)
    evaluation = evaluate_contents(contents, changed, settings, links, on_step, on_page, importance)
    if FRESHNESS in settings.parts:
        on_step("crawling")
        evaluation.rows[FRESHNESS] = list(freshness_rows(history, settings))
    return evaluation


def evaluate_contents(
    contents: Contents,
    changed: Ints8,
    settings: ExpertSettings,
    links: Callable[[Contents], sparse.csr_array] | None = None,
    on_step: OnStep = lambda what: None,
    on_page: OnPage = lambda done, of: None,
    importance: Floats | None = None,
) -> ExpertEvaluation:
    """The same for given contents and changes; `links` gives the links between the pages, up to the last round of the contents.

    `importance`: how much each page matters, which decides who is in a sample of pages; None: all alike.
    """
    pages = predictable(changed, settings.alpha)
    contents, changed = _last_rounds(contents, changed, settings)
    lengths = _lengths(contents, settings)
    is_sample = settings.most_pages is not None and len(pages) > settings.most_pages
    if settings.most_pages is not None and is_sample:
        pages = sampled(pages, settings.most_pages, importance, settings.seed)
    evaluation = _described(contents, changed, pages, settings)
    if is_sample and importance is not None:
        evaluation.notes.append("the pages to predict were drawn in proportion to their importance")
    if lengths != settings.n_trains and "history" in settings.parts:
        evaluation.notes.append(
            f"the history has {contents.shape[1]} rounds: too few to learn from more than {max(lengths)}"
        )
    if "combining" in settings.parts and (len(settings.cs) > 1 or settings.reselect):
        evaluation.notes.append("union, bagging and boosting use the first C and the experts chosen first")
    predicted_parts = [part for part in settings.parts if part != FRESHNESS]
    if not predicted_parts:
        return evaluation
    on_step("choosing experts")
    chosen = choices(contents, settings, links)
    for name, times in chosen.items():
        usual = np.median([(times[0][1].neighbour[page] >= 0).sum() for page in pages])
        if usual < min(settings.k, contents.shape[0] - 1):
            evaluation.notes.append(
                f"{name}: half of the pages have {f'at most {usual:.0f}' if usual else 'no'} experts"
            )
    evaluation.notes += _disappearing(contents, chosen[settings.method], pages, settings)
    on_step("predicting")
    predictions = list(page_predictions(contents, changed, pages, chosen, lengths, settings, on_page))
    for part in predicted_parts:
        found = named_experts(contents, predictions) if part == EXPERTS else rows(part, predictions, settings, lengths)
        evaluation.rows[part] = list(found)
    return evaluation


def predictable(changed: Ints8, alpha: float) -> Ints:
    """The pages that switch between change and no change in at least a share `alpha` of the rounds (section 7.1).

    >>> predictable(np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, -1, 0]], np.int8), 0.3).tolist()
    [1]
    """
    known = (changed[:, 1:] >= 0) & (changed[:, :-1] >= 0)
    differs = known & (changed[:, 1:] != changed[:, :-1])
    share = differs.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.flatnonzero((share >= alpha) & known.any(axis=1))


def sampled(pages: Ints, n: int, importance: Floats | None, seed: int) -> Ints:
    """`n` of these pages at random, in their order; where they differ in importance, one after the other in proportion to it.

    The paper's pages were not random, but driven by what people visit: its authors cared for pages whose change matters to many
    (section 7.1). Pages of no importance are drawn only if there are too few others. All results stay plain means over pages.

    >>> sampled(np.arange(6), 2, np.array([0.0, 9.0, 0.0, 0.0, 9.0, 0.0]), seed=0).tolist()
    [1, 4]
    """
    chance = np.random.default_rng(seed)
    if importance is None:
        return np.sort(chance.choice(pages, n, replace=False))
    # The greatest of log(weight) + Gumbel noise are drawn as if one after the other, however far weights lie apart.
    noise = chance.gumbel(size=len(pages))
    with np.errstate(divide="ignore"):
        order = np.lexsort((noise, np.log(importance[pages]) + noise))
    return np.sort(pages[order[len(pages) - n :]])


def _last_rounds(contents: Contents, changed: Ints8, settings: ExpertSettings) -> tuple[Contents, Ints8]:
    """The rounds that it takes to predict the last ones, and the texts of these alone."""
    if settings.last is None:
        return contents, changed
    start = max(0, contents.shape[1] - (settings.n_train + settings.sigma + settings.last - 1))
    cut = contents.window(start, contents.shape[1])
    texts, place = np.unique(cut.text, return_inverse=True)
    kept = texts[texts >= 0]
    number: Ints32 = (place.reshape(cut.text.shape) - (len(texts) - len(kept))).astype(np.int32)
    return replace(cut, text=number, counts=contents.counts[kept], terms=None), changed[:, start:]


def _disappearing(contents: Contents, times: list[ExpertsFrom], pages: Ints, settings: ExpertSettings) -> Iterator[str]:
    """A sentence on experts that are not seen any more at some time; they do not vote then."""
    everyone = np.unique([expert for _, chosen in times for page in pages for expert in chosen.of(int(page))[0]])
    if not len(everyone):
        return
    start = settings.n_train - 1
    gone = ~is_present(contents.seen[everyone], settings.n_train)[:, start:].all(axis=1)
    if gone.any():
        yield (
            f"{count(int(gone.sum()), 'expert')} of {len(everyone):,} disappeared for {settings.n_train} rounds or more: "
            "they had no vote then"
        )


def _lengths(contents: Contents, settings: ExpertSettings) -> tuple[int, ...]:
    """The training sizes that leave something to predict."""
    n_rounds, n_more = contents.shape[1], 10 if settings.last is None else settings.last - 1
    most = n_rounds - settings.sigma - n_more
    if most < settings.n_train:
        raise NotEnoughData(
            f"the history has {n_rounds} rounds of {settings.every}; to learn from {settings.n_train} of them and predict "
            f"{settings.last or 'ten or more'}, {settings.n_train + settings.sigma + n_more} are needed. Use a smaller --train or "
            "a shorter --every"
        )
    return tuple(n for n in settings.n_trains if n <= most) or (settings.n_train,)


def _described(contents: Contents, changed: Ints8, pages: Ints, settings: ExpertSettings) -> ExpertEvaluation:
    if not len(pages):
        raise NotEnoughData(
            f"none of the {contents.shape[0]:,} pages alternates between change and no change in {settings.alpha:.0%} of the "
            "rounds: they (nearly) always or never change. Use a smaller --alpha, another --change, or other rounds with --every"
        )
    rate, predicted = (float((part == 1).sum() / max((part >= 0).sum(), 1)) for part in (changed, changed[pages]))
    first, last = (str(contents.rounds[i])[:16].replace("T", " ") for i in (0, -1))
    return ExpertEvaluation(
        settings=settings,
        n_pages=contents.shape[0],
        n_rounds=contents.shape[1],
        first=first,
        last=last,
        n_predicted=len(pages),
        change_rate=rate,
        predicted_change_rate=predicted,
    )
