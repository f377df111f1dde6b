"""What every method predicts for every page, round by round, and whether it changed: what the tables on experts are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from recrawl.core.arrays import Flags, Floats, Ints, Ints8
from recrawl.models.experts import learn
from recrawl.models.experts.examples import ExpertExamples
from recrawl.models.experts.selection import Experts, choose
from recrawl.models.experts.votes import vote_by_accuracy
from recrawl.papers.experts.settings import (
    BAGGING,
    BOOSTING,
    BY_ACCURACY,
    EXPERTS,
    RELATED,
    SINGLE,
    UNION,
    ExpertSettings,
)
from recrawl.world.contents import Contents

OnPage = Callable[[int, int], None]  #: called with the number of pages done, and of all pages
ExpertsFrom = tuple[int, Experts]  #: a round, and the experts from that round on


def _methods_needed(settings: ExpertSettings) -> list[str]:
    others = settings.methods if "selection" in settings.parts else ("random",)
    return list(dict.fromkeys((settings.method, *others)))


def choices(
    contents: Contents, settings: ExpertSettings, links: Callable[[Contents], sparse.csr_array] | None = None
) -> dict[str, list[ExpertsFrom]]:
    """For every way to choose experts: the experts from a round on, chosen by what was seen up to it."""
    n_rounds, k = contents.shape[1], max(settings.k, *settings.ks)
    first = settings.n_train - 1
    times = [first] if settings.reselect is None else range(first, n_rounds, settings.reselect)
    chosen: dict[str, list[ExpertsFrom]] = {}
    for name in _methods_needed(settings):
        if name == "graph" and links is None:
            continue
        chosen[name] = []
        for time in times:
            past = contents.window(0, time + 1)
            linked = links(past) if links is not None and name == "graph" else None
            chosen[name].append((time, choose(past, k, name, links=linked, seed=settings.seed)))
    return chosen


class MethodKey(NamedTuple):
    """A method with its settings, as the rows of all tables name it."""

    method: str
    experts: str  # how they are chosen; empty for methods that have none
    k: int  # number of experts beside the page itself
    n_train: int


@dataclass
class PagePredictions:
    """What every method predicts for one page, round by round, and whether it changed."""

    page: int
    label: Ints8  # 1: changed; -1: not known, or not yet to be predicted
    decisions: dict[MethodKey, Flags]  # whether a change is expected
    share: dict[int, Floats]  # rounds of training → the frequency of changes in them
    experts: list[ExpertRecord] = field(
        default_factory=list
    )  # those chosen last, the nearest first; for the part "experts" only


class ExpertRecord(NamedTuple):
    """An expert of a page, the weight of its vote, and how often it was right on its own."""

    expert: int
    weight: float
    right: float | None  # None: no outcome is known


def page_predictions(
    contents: Contents,
    changed: Ints8,
    pages: Ints,
    chosen: dict[str, list[ExpertsFrom]],
    lengths: Sequence[int],
    settings: ExpertSettings,
    on_page: OnPage = lambda done, of: None,
) -> Iterator[PagePredictions]:
    """The predictions for the pages, one after another; threads work on several, since the machines release the interpreter."""
    examples = ExpertExamples(
        contents, changed, l=settings.l, sigma=settings.sigma, word_scale=settings.word_scale, memory=settings.memory
    )
    with ThreadPoolExecutor(settings.n_jobs) as pool:
        work = [
            pool.submit(_predictions, examples, contents.seen, int(page), chosen, lengths, settings) for page in pages
        ]
        try:
            for done, future in enumerate(work):
                yield future.result()
                on_page(done + 1, len(work))
        finally:
            pool.shutdown(cancel_futures=True)  # a caller that stops early does not wait for the rest


def _predictions(
    examples: ExpertExamples,
    seen: Flags,
    page: int,
    chosen: dict[str, list[ExpertsFrom]],
    lengths: Sequence[int],
    settings: ExpertSettings,
) -> PagePredictions:
    label, parts = examples.label(page), settings.parts
    n, k, main = settings.n_train, settings.k, settings.method
    voters = {name: _voters(times, page, max((*settings.ks, k)), seen, n) for name, times in chosen.items()}
    everyone = sorted({expert for each in voters.values() for expert in each.experts})
    opinion = dict(zip([page, *everyone], _opinions(examples, page, [page, *everyone], n, settings), strict=True))
    decisions = {MethodKey(SINGLE, "", 0, n): opinion[page]}
    for name, each in voters.items():
        opinions = np.array([opinion[expert] for expert in [page, *each.experts]])
        for number in {k, *(settings.ks if name == main and "number" in parts else ())}:
            weights = each.first(number)
            decisions[MethodKey(RELATED, name, number, n)] = learn.vote(opinions, weights)
            if name == main:
                by_accuracy = vote_by_accuracy(opinions, weights, label, settings.sigma)
                decisions[MethodKey(BY_ACCURACY, name, number, n)] = by_accuracy
    if "combining" in parts:
        first = chosen[main][0][1].of(page, k)[0]
        for name, combined in _combined(examples, page, first, settings).items():
            decisions[MethodKey(name, main, k, n)] = combined
    if "history" in parts:
        each = voters[main]
        for length in lengths:
            key = MethodKey(RELATED, main, k, length)
            if key not in decisions:
                opinions = np.array(_opinions(examples, page, [page, *each.experts], length, settings))
                decisions[MethodKey(SINGLE, "", 0, length)] = opinions[0]
                decisions[key] = learn.vote(opinions, each.first(k))
    shares = {m: learn.change_frequency(label, m, settings.sigma) for m in {n, *lengths}}
    records = _records(chosen[main][-1][1].of(page, k), opinion, label) if EXPERTS in parts else []
    return PagePredictions(page, label, {key: values > 0 for key, values in decisions.items()}, shares, records)


def _records(chosen: tuple[list[int], Floats], opinion: dict[int, Floats], label: Ints8) -> list[ExpertRecord]:
    records = []
    for expert, weight in zip(*chosen, strict=True):
        judged = (label >= 0) & ~np.isnan(opinion[expert])
        hits = (opinion[expert][judged] > 0) == (label[judged] == 1)
        records.append(ExpertRecord(expert, float(weight), float(hits.mean()) if len(hits) else None))
    return records


def _combined(
    examples: ExpertExamples, page: int, experts: Sequence[int], settings: ExpertSettings
) -> dict[str, Floats]:
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


@dataclass(frozen=True)
class _Voters:
    """All experts that a page ever has; rank and weight are [1 + expert, round], the page itself first, with rank -1."""

    experts: list[int]
    rank: Floats
    weight: Floats

    def first(self, k: int) -> Floats:
        """The weights of the first k experts of each round, and of the page itself."""
        return np.where(self.rank < k, self.weight, 0.0)


def _voters(times: list[ExpertsFrom], page: int, k: int, seen: Flags, memory: int) -> _Voters:
    """Who votes when. An expert that was not seen in the last `memory` rounds has disappeared, and is silent until it is back."""
    n_rounds = seen.shape[1]
    everyone = sorted({expert for _, chosen in times for expert in chosen.of(page, k)[0]})
    rank = np.full((1 + len(everyone), n_rounds), np.inf)
    weight = np.zeros((1 + len(everyone), n_rounds))
    rank[0] = -1
    for start, chosen in times:
        experts, weights = chosen.of(page, k)
        rank[1:, start:], weight[1:, start:] = np.inf, 0.0
        at = 1 + np.searchsorted(everyone, experts)
        rank[at, start:] = np.arange(len(experts))[:, None]
        weight[at, start:] = weights[:, None]
        weight[0, start:] = chosen.own_weight[page]
    weight[1:] *= is_present(seen[everyone], memory)
    weight[0, ~weight.any(axis=0)] = 1.0  # where no expert is left, the page itself decides
    return _Voters(everyone, rank, weight)


def is_present(seen: Flags, memory: int) -> Flags:
    """Whether each page was seen in any of the last `memory` rounds up to each round.

    >>> is_present(np.array([[True, False, False, True]]), 2).tolist()
    [[True, True, False, True]]
    """
    newest = np.maximum.accumulate(np.where(seen, np.arange(seen.shape[1]), -memory), axis=1)
    present: Flags = np.arange(seen.shape[1]) - newest < memory
    return present


def _machine(settings: ExpertSettings, n_train: int) -> learn.Machine:
    return learn.Machine(n_train, c=settings.cs[0])


def _opinions(
    examples: ExpertExamples, page: int, experts: Sequence[int], n_train: int, settings: ExpertSettings
) -> list[Floats]:
    if settings.classifier is not None:
        return list(learn.opinions(examples, page, experts, learn.Classifier(settings.classifier, n_train)))
    if len(settings.cs) == 1:
        until = examples.n_rounds - examples.sigma  # what comes of a later decision is not known
        return list(learn.opinions(examples, page, experts, _machine(settings, n_train), until=until))
    machines = [replace(_machine(settings, n_train), c=c) for c in settings.cs]
    label, sigma, opinions = examples.label(page), examples.sigma, []
    for expert in experts:
        inner = examples.inner(page, expert)
        decisions = [machine.decisions(inner, label, sigma) for machine in machines]
        opinions.append(learn.calibrated(decisions, label, n_train, sigma))
    return opinions
