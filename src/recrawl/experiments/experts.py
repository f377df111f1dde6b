"""The evaluation of Radinsky and Bennett (paper 001) on any history: can a page's next significant change be told?

At every round after the first n, each method predicts for each page whether the next round will differ, from what was known
by then; the accuracy is the mean over rounds, then over pages. Experts are chosen before the first prediction (or anew every so
many rounds), by what was seen before. All results are plain rows; tables and plots are made of them elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from recrawl import change
from recrawl.contents import Contents, contents_of
from recrawl.errors import NotEnoughData
from recrawl.experts import learn
from recrawl.experts.examples import Changes, Examples
from recrawl.experts.selection import METHODS, Experts, choose, links_between
from recrawl.history import History

Row: TypeAlias = dict[str, Any]
Floats = NDArray[np.float64]
OnStep = Callable[[str], None]
OnPage = Callable[[int, int], None]  #: pages done, and all
PARTS = ("settings", "combining", "selection", "history", "number")
COIN, THRESHOLD, MAJORITY = "change-frequency, coin", "change-frequency, threshold", "majority class"
SINGLE, RELATED = "single-expert", "related-experts"
UNION, BAGGING, BOOSTING = "relational union", "bagging", "boosting"


@dataclass(frozen=True)
class ExpertSettings:
    """What `recrawl evaluate --method experts` is asked to do; the paper's choices as defaults."""

    every: str = "1d"
    notion: str = "significant"
    parts: tuple[str, ...] = PARTS
    n_train: int = 50  # n: rounds that a learner is taught with
    n_trains: tuple[int, ...] = (30, 50, 70, 90, 120)  # of Fig. 6
    k: int = 20  # experts
    ks: tuple[int, ...] = (1, 2, 5, 10, 15, 20, 30)  # of Fig. 7
    method: str = "cross-correlation"  # how experts are chosen
    methods: tuple[str, ...] = METHODS  # of Table 3
    reselect: int | None = None  # experts are chosen anew after so many rounds; None: once
    l: int = 1  # window of the features  # noqa: E741
    sigma: int = 1  # rounds ahead
    alpha: float = 0.3  # least share of rounds in which a page must change its behaviour
    word_scale: float = 1.0
    cs: tuple[float, ...] = (1.0,)  # C of the machines; of several, always the one that was right most often so far
    classifier: Any = None  # any of scikit-learn's in place of the machines; None: machines
    n_models: int = 10  # of bagging and boosting
    min_share: float = 0.5  # pages known in fewer rounds are left out
    most_pages: int | None = None  # predict a random sample of so many pages
    n_jobs: int = 2
    seed: int = 0


@dataclass
class ExpertEvaluation:
    """All rows, by part, and what they were measured on."""

    settings: ExpertSettings
    n_pages: int
    n_rounds: int
    first: str  # the ends of the first and the last round
    last: str
    n_predicted: int  # pages that pass the filter
    change_rate: float  # over all known rounds of all pages
    predicted_change_rate: float  # of the predicted ones
    notes: list[str] = field(default_factory=list)
    rows: dict[str, list[Row]] = field(default_factory=dict)


def evaluate_experts(
    history: History,
    settings: ExpertSettings = ExpertSettings(),  # noqa: B008
    on_step: OnStep = lambda what: None,
    on_page: OnPage = lambda done, of: None,
) -> ExpertEvaluation:
    """Tables 1 to 3 and Figs. 6 and 7: the settings of information, ways to combine experts and to choose them, n and k."""
    on_step("what the pages said")
    contents = contents_of(history, settings.every, settings.min_share)
    on_step("what changed")
    notion = change.notion_from(settings.notion)
    sketches = change.sketches_of(history, contents) if isinstance(notion, change.Shingles) else None
    changed = change.changes(contents, notion, sketches)
    return evaluate_contents(contents, changed, settings, partial(links_between, history), on_step, on_page)


def evaluate_contents(
    contents: Contents,
    changed: Changes,
    settings: ExpertSettings,
    links: Callable[[Contents], sparse.csr_array] | None = None,
    on_step: OnStep = lambda what: None,
    on_page: OnPage = lambda done, of: None,
) -> ExpertEvaluation:
    """The same for what some pages said and how they changed; `links` tells those between the pages up to the last round given."""
    lengths = _lengths(contents, settings)
    pages = predictable(changed, settings.alpha)
    if settings.most_pages is not None and len(pages) > settings.most_pages:
        pages = np.sort(np.random.default_rng(settings.seed).choice(pages, settings.most_pages, replace=False))
    found = _described(contents, changed, pages, settings)
    if lengths != settings.n_trains and "history" in settings.parts:
        found.notes.append(
            f"the history has {contents.shape[1]} rounds: too few to learn from more than {max(lengths)}"
        )
    if "combining" in settings.parts and (len(settings.cs) > 1 or settings.reselect):
        found.notes.append("union, bagging and boosting use the first C and the experts chosen first")
    on_step("choosing experts")
    chosen = choices(contents, settings, links)
    for name, one in chosen.items():
        usual = np.median([(one[0][1].neighbour[page] >= 0).sum() for page in pages])
        if usual < min(settings.k, contents.shape[0] - 1):
            found.notes.append(f"{name}: half of the pages have {f'at most {usual:.0f}' if usual else 'no'} experts")
    on_step("predicting")
    judged = list(judgements(contents, changed, pages, chosen, lengths, settings, on_page))
    found.rows = {part: list(_rows(part, judged, settings, lengths)) for part in settings.parts}
    return found


def predictable(changed: Changes, alpha: float) -> NDArray[np.int64]:
    """The pages that differ in behaviour from round to round in a share `alpha` of the rounds (section 7.1).

    >>> predictable(np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, -1, 0]], np.int8), 0.3).tolist()
    [1]
    """
    known = (changed[:, 1:] >= 0) & (changed[:, :-1] >= 0)
    differs = known & (changed[:, 1:] != changed[:, :-1])
    share = differs.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.flatnonzero((share >= alpha) & known.any(axis=1))


def _lengths(contents: Contents, settings: ExpertSettings) -> tuple[int, ...]:
    """The training sizes that leave something to predict."""
    n_rounds, most = contents.shape[1], contents.shape[1] - settings.sigma - 10
    if most < settings.n_train:
        raise NotEnoughData(
            f"the history has {n_rounds} rounds of {settings.every}; to learn from {settings.n_train} of them and predict ten or "
            f"more, {settings.n_train + settings.sigma + 10} are needed. Ask for fewer with --train, or for shorter --every"
        )
    return tuple(n for n in settings.n_trains if n <= most) or (settings.n_train,)


def _described(
    contents: Contents, changed: Changes, pages: NDArray[np.int64], settings: ExpertSettings
) -> ExpertEvaluation:
    if not len(pages):
        raise NotEnoughData(
            f"none of the {contents.shape[0]:,} pages alternates between change and rest in {settings.alpha:.0%} of the rounds: "
            "they (nearly) always or never change. Ask for less with --alpha, another --change, or other rounds with --every"
        )
    rate, predicted = (float((part == 1).sum() / max((part >= 0).sum(), 1)) for part in (changed, changed[pages]))
    first, last = (str(contents.rounds[i])[:16].replace("T", " ") for i in (0, -1))
    return ExpertEvaluation(settings, *contents.shape, first, last, len(pages), rate, predicted)


def _methods_needed(settings: ExpertSettings) -> list[str]:
    others = settings.methods if "selection" in settings.parts else ("random",)
    return list(dict.fromkeys((settings.method, *others)))


def choices(
    contents: Contents, settings: ExpertSettings, links: Callable[[Contents], sparse.csr_array] | None = None
) -> dict[str, list[tuple[int, Experts]]]:
    """For every way to choose: the experts from a round on, by what was seen up to it."""
    n_rounds, k = contents.shape[1], max(settings.k, *settings.ks)
    first = settings.n_train - 1
    times = [first] if settings.reselect is None else range(first, n_rounds, settings.reselect)
    found: dict[str, list[tuple[int, Experts]]] = {}
    for name in _methods_needed(settings):
        if name == "graph" and links is None:
            continue
        found[name] = []
        for time in times:
            past = contents.window(0, time + 1)
            linked = links(past) if links is not None and name == "graph" else None
            found[name].append((time, choose(past, k, name, links=linked, seed=settings.seed)))
    return found


@dataclass
class Judged:
    """What every method said of one page, and what came."""

    page: int
    label: Changes  # -1: not known, or not yet to be predicted
    told: dict[tuple[str, str, int, int], Floats]  # method, choice of experts, k, n → above 0 a change
    share: dict[int, Floats]  # n → the frequency of changes


def judgements(
    contents: Contents,
    changed: Changes,
    pages: NDArray[np.int64],
    chosen: dict[str, list[tuple[int, Experts]]],
    lengths: Sequence[int],
    settings: ExpertSettings,
    on_page: OnPage = lambda done, of: None,
) -> Iterator[Judged]:
    """What is said of the pages, one after another; several are worked on at a time: the machines need no interpreter."""
    examples = Examples(contents, changed, l=settings.l, sigma=settings.sigma, word_scale=settings.word_scale)
    with ThreadPoolExecutor(settings.n_jobs) as pool:
        work = [pool.submit(_judged, examples, int(page), chosen, lengths, settings) for page in pages]
        try:
            for done, one in enumerate(work):
                yield one.result()
                on_page(done + 1, len(work))
        finally:
            pool.shutdown(cancel_futures=True)  # whoever stops does not wait for the rest


def _judged(
    examples: Examples,
    page: int,
    chosen: dict[str, list[tuple[int, Experts]]],
    lengths: Sequence[int],
    settings: ExpertSettings,
) -> Judged:
    label, parts = examples.label(page), settings.parts
    told: dict[tuple[str, str, int, int], Floats] = {}
    n, k, main = settings.n_train, settings.k, settings.method
    every = {name: _over_time(one, page, max((*settings.ks, k)), len(label)) for name, one in chosen.items()}
    everyone = sorted({expert for experts, _, _ in every.values() for expert in experts})
    opinion = dict(zip([page, *everyone], _opinions(examples, page, [page, *everyone], n, settings), strict=True))
    told[SINGLE, "", 0, n] = opinion[page]
    for name, (experts, rank, weights) in every.items():
        said = np.array([opinion[expert] for expert in [page, *experts]])
        for number in {k, *(settings.ks if name == main and "number" in parts else ())}:
            cut = np.where(rank < number, weights, 0.0)
            told[RELATED, name, number, n] = learn.vote(said, cut)
    first = chosen[main][0][1].of(page, k)[0]
    if "combining" in parts:
        for name, combined in _combined(examples, page, first, settings).items():
            told[name, main, k, n] = combined
    if "history" in parts:
        experts, rank, weights = every[main]
        for length in lengths:
            if (RELATED, main, k, length) not in told:
                said = np.array(_opinions(examples, page, [page, *experts], length, settings))
                told[SINGLE, "", 0, length] = said[0]
                told[RELATED, main, k, length] = learn.vote(said, np.where(rank < k, weights, 0.0))
    shares = {m: learn.change_frequency(label, m, settings.sigma) for m in {n, *lengths}}
    return Judged(page, label, told, shares)


def _combined(examples: Examples, page: int, experts: Sequence[int], settings: ExpertSettings) -> dict[str, Floats]:
    """All experts' features in one learner, or in several."""
    if settings.classifier is None:
        machine, n_models = _machine(settings, settings.n_train), settings.n_models
        return {
            UNION: learn.relational_union(examples, page, experts, machine),
            BAGGING: learn.bagging(examples, page, experts, machine, n_models, settings.seed),
            BOOSTING: learn.boosting(examples, page, experts, machine, n_models),
        }
    from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier

    common = {"n_estimators": settings.n_models, "random_state": settings.seed}
    learners = {
        UNION: settings.classifier,
        BAGGING: BaggingClassifier(settings.classifier, **common),
        BOOSTING: AdaBoostClassifier(settings.classifier, **common),
    }
    return {
        name: learn.relational_union(examples, page, experts, learn.Classifier(learner, settings.n_train))
        for name, learner in learners.items()
    }


def _over_time(
    choices: list[tuple[int, Experts]], page: int, k: int, n_rounds: int
) -> tuple[list[int], Floats, Floats]:
    """All experts that a page ever has, and for it and each of them [1 + expert, time] the rank (0: itself) and the weight."""
    everyone = sorted({expert for _, one in choices for expert in one.of(page, k)[0]})
    rank = np.full((1 + len(everyone), n_rounds), np.inf)
    weight = np.zeros((1 + len(everyone), n_rounds))
    rank[0] = -1
    for start, one in choices:
        experts, weights = one.of(page, k)
        rank[1:, start:], weight[1:, start:] = np.inf, 0.0
        at = 1 + np.searchsorted(everyone, experts)
        rank[at, start:] = np.arange(len(experts))[:, None]
        weight[at, start:] = weights[:, None]
        weight[0, start:] = one.own_weight[page]
    return everyone, rank, weight


def _machine(settings: ExpertSettings, n_train: int) -> learn.Machine:
    return learn.Machine(n_train, c=settings.cs[0])


def _opinions(
    examples: Examples, page: int, experts: Sequence[int], n_train: int, settings: ExpertSettings
) -> list[Floats]:
    if settings.classifier is not None:
        return list(learn.opinions(examples, page, experts, learn.Classifier(settings.classifier, n_train)))
    machines = [replace(_machine(settings, n_train), c=c) for c in settings.cs]
    label, sigma, found = examples.label(page), examples.sigma, []
    for expert in experts:
        inner = examples.inner(page, expert)
        told = [machine.decisions(inner, label, sigma) for machine in machines]
        found.append(learn.calibrated(told, label, n_train, sigma) if len(told) > 1 else told[0])
    return found


def _rows(part: str, judged: list[Judged], settings: ExpertSettings, lengths: Sequence[int]) -> Iterator[Row]:
    n, k, main = settings.n_train, settings.k, settings.method
    best = (RELATED, main, k, n)
    single = (SINGLE, "", 0, n)
    if part == "settings":
        yield from _compared(judged, n, [single, best, (RELATED, "random", k, n)], best, n - 1)
    elif part == "combining":
        yield from _compared(
            judged, n, [single, *((name, main, k, n) for name in (UNION, BOOSTING, BAGGING)), best], best, n - 1
        )
    elif part == "selection":
        yield from _compared(
            judged,
            n,
            [
                (RELATED, name, k, n)
                for name in dict.fromkeys((main, *settings.methods))
                if (RELATED, name, k, n) in judged[0].told
            ],
            best,
            n - 1,
        )
    elif part == "history":
        start = max(*lengths, n) - 1  # the same rounds for all
        for length in lengths:
            three = (RELATED, main, k, length)
            yield from _compared(judged, length, [(SINGLE, "", 0, length), three], three, start)
    elif part == "number":
        yield from _compared(
            judged, n, [single, *((RELATED, main, number, n) for number in settings.ks)], single, n - 1
        )


def _compared(
    judged: list[Judged],
    n: int,
    methods: list[tuple[str, str, int, int]],
    against: tuple[str, str, int, int],
    start: int,
) -> Iterator[Row]:
    """Scores on the same rounds from `start` on, also of those who know the past alone; and what parts them from one method."""
    masks = [(one.label >= 0) & (np.arange(len(one.label)) >= start) for one in judged]
    kept = [(one, mask) for one, mask in zip(judged, masks, strict=True) if mask.any()]
    if not kept:
        raise NotEnoughData(
            f"after the first {start + 1} rounds no page that passes the filter was seen twice in a row, so nothing can be judged. "
            "Ask for fewer rounds to learn from with --train, or for longer ones with --every"
        )
    scored = {method: [_scores(one.label[m] == 1, one.told[method][m] > 0) for one, m in kept] for method in methods}
    yield from _simple(kept, n, [row[0] for row in scored.get(against, [])])
    baseline = np.array([row[0] for row in scored[against]]) if against in scored else None
    for method, rows in scored.items():
        name, chosen, k, length = method
        yield _row(name, chosen, k, length, np.array(rows), baseline if method != against else None, kept)


def _simple(kept: list[tuple[Judged, NDArray[np.bool_]]], n: int, against: list[float]) -> Iterator[Row]:
    baseline = np.array(against) if against else None
    shares = [np.nan_to_num(one.share[n][mask]) for one, mask in kept]
    truths = [one.label[mask] == 1 for one, mask in kept]
    coin = [_coin(truth, share) for truth, share in zip(truths, shares, strict=True)]
    threshold = [_scores(truth, share > 0.5) for truth, share in zip(truths, shares, strict=True)]
    majority = [_scores(truth, np.full(len(truth), truth.mean() > 0.5)) for truth in truths]
    for name, rows in ((MAJORITY, majority), (COIN, coin), (THRESHOLD, threshold)):
        yield _row(name, "", 0, n, np.array(rows), baseline, kept)


def _row(
    name: str,
    chosen: str,
    k: int,
    n: int,
    scores: Floats,
    baseline: Floats | None,
    kept: list[tuple[Judged, NDArray[np.bool_]]],
) -> Row:
    accuracy = scores[:, 0]
    p_value = None
    if baseline is not None and len(accuracy) > 1 and np.ptp(accuracy - baseline) > 0:
        p_value = float(stats.ttest_rel(accuracy, baseline).pvalue)
    return {
        "method": name,
        "experts": chosen,
        "k": k,
        "n_train": n,
        "accuracy": float(accuracy.mean()),
        "balanced_accuracy": float(np.nanmean(scores[:, 1])) if not np.isnan(scores[:, 1]).all() else None,
        "deviation": float(accuracy.std(ddof=1)) if len(accuracy) > 1 else None,
        "n_pages": len(accuracy),
        "n_predictions": int(sum(mask.sum() for _, mask in kept)),
        "p_value": p_value,  # paired t-test over pages against the method the part is about
    }


def _scores(truth: NDArray[np.bool_], says: NDArray[np.bool_]) -> tuple[float, float]:
    """Accuracy and balanced accuracy; NaN where there is one class only."""
    right = says == truth
    if truth.all() or not truth.any():
        return float(right.mean()), np.nan
    return float(right.mean()), float((right[truth].mean() + right[~truth].mean()) / 2)


def _coin(truth: NDArray[np.bool_], share: Floats) -> tuple[float, float]:
    """The expectation over coins that show "change" with the given probabilities."""
    right = np.where(truth, share, 1 - share)
    if truth.all() or not truth.any():
        return float(right.mean()), np.nan
    return float(right.mean()), float((right[truth].mean() + right[~truth].mean()) / 2)
