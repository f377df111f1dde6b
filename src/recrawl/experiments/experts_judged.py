"""What every method says of every page, round by round, and what came: the predictions behind the tables on experts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from recrawl.contents import Contents
from recrawl.experiments.experts_settings import BAGGING, BOOSTING, RELATED, SINGLE, UNION, ExpertSettings
from recrawl.experts import learn
from recrawl.experts.examples import Changes, Examples
from recrawl.experts.selection import Experts, choose

Floats = NDArray[np.float64]
OnPage = Callable[[int, int], None]  #: pages done, and all


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
