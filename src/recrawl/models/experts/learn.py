"""Whether a page will change, by its past, by the page itself, by related pages as experts, or by all of them in one learner.

Every function gives one number for each decision time t, from what was known at t and the labels of the `n_train` rounds up to t:
above 0 the page is expected to change, at 0 or below it is not, NaN where there are not yet `n_train` rounds. A training set with
one class predicts that class, an empty one no change.

References: Radinsky and Bennett (2013), "Predicting content change on the web", section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from recrawl.core.arrays import Floats, Ints8
from recrawl.models.experts import svm
from recrawl.models.experts.asking import decisions_of
from recrawl.models.experts.examples import ExpertExamples
from recrawl.models.experts.svm import MAX_ITERATIONS, TOLERANCE


@dataclass(frozen=True)
class Machine:
    """A support vector machine with the polynomial kernel (gamma ⟨x, x'⟩ + coef0)^degree, trained on the last `n_train` rounds.

    The paper gives the degree, and 50 rounds; gamma, coef0 and C it "calibrated on the training data": see `calibrated`.
    """

    n_train: int = 50
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0
    c: float = 1.0

    def ask(
        self, examples: ExpertExamples, page: int, others: Sequence[int], since: int = 0, until: int | None = None
    ) -> Floats:
        """Its decisions on a page by the features of these pages together, at the times from `since` to before `until`."""
        if len(others) == 1:
            return decisions_of(
                examples,
                page,
                int(others[0]),
                examples.label(page),
                kernel=(self.gamma, self.coef0, self.degree),
                n_train=self.n_train,
                c=self.c,
                since=since,
                until=examples.n_rounds if until is None else until,
            )
        inner = sum((examples.inner(page, int(other)) for other in others[1:]), examples.inner(page, int(others[0])))
        return self.decisions(inner, examples.label(page), examples.sigma)

    def decisions(self, inner: Floats, label: Ints8, sigma: int) -> Floats:
        """Trained again at every time; `inner` are the inner products of the examples."""
        return svm.decisions(self.kernel(inner), label, self.n_train, sigma, self.c)

    def kernel(self, inner: Floats) -> Floats:
        """The kernel of examples whose inner products are given."""
        return svm.polynomial(inner, self.gamma, self.coef0, self.degree)


@dataclass(frozen=True)
class Classifier:
    """Any scikit-learn classifier in place of the machine, trained on the last `n_train` rounds; much slower.

    For bagging and boosting, wrap it in those of scikit-learn.
    """

    classifier: Any
    n_train: int = 50

    def ask(
        self, examples: ExpertExamples, page: int, others: Sequence[int], since: int = 0, until: int | None = None
    ) -> Floats:
        """Its decisions on a page by the features of these pages together; `since` and `until` are for machines."""
        x = sparse.hstack([examples.matrix(page, int(other)) for other in others], format="csr")
        return by_classifier(self.classifier, x, examples.label(page), self.n_train, examples.sigma)


ExpertLearner = Machine | Classifier


def change_frequency(label: Ints8, n_train: int, sigma: int) -> Floats:
    """The share of changes among the known labels that a learner would be trained on at each time (1D, section 5.1).

    NaN where none is known yet.

    >>> change_frequency(np.array([1, 0, 1, -1, 0], np.int8), 3, 1).round(2).tolist()
    [nan, nan, 0.5, 0.5, 1.0]
    """
    n = len(label)
    known, changed = np.append(0, np.cumsum(label >= 0)), np.append(0, np.cumsum(label == 1))
    start, stop = np.maximum(np.arange(n) - n_train + 1, 0), np.maximum(np.arange(n) - sigma + 1, 0)
    n_known, n_changed = known[stop] - known[start], changed[stop] - changed[start]
    share: Floats = np.divide(n_changed, n_known, out=np.full(n, np.nan), where=n_known > 0)
    share[: n_train - 1] = np.nan
    return share


def opinions(
    examples: ExpertExamples,
    page: int,
    experts: Sequence[int],
    learner: ExpertLearner,
    since: int = 0,
    until: int | None = None,
) -> Floats:
    """The decisions of each expert [expert, time], each trained on its own features and the label of the page.

    The page itself as the only expert is the paper's 2D predictor (section 5.2). Only the times from `since` to before `until`
    need to be decided.
    """
    decisions = [learner.ask(examples, page, [expert], since, until) for expert in experts]
    return np.array(decisions).reshape(len(decisions), examples.n_rounds)


def vote(opinions: Floats, weight: Floats) -> Floats:
    """The weighted majority (3D, Fig. 3): the sum of the weights of those that expect a change, minus that of the others.

    `weight` is one number per expert, or [expert, time] where experts are chosen again later; 0 silences an expert. The page itself
    is one of the experts (section 5.3.1).

    >>> vote(np.array([[0.3], [-2.0], [-1.0]]), np.array([1.0, 0.4, 0.5])).round(1)
    array([0.1])
    """
    weight = weight if weight.ndim == 2 else weight[:, None]
    result: Floats = np.where(opinions > 0, weight, -weight).sum(axis=0)
    result[np.isnan(opinions).any(axis=0)] = np.nan
    return result


def union_inner(examples: ExpertExamples, page: int, experts: Sequence[int]) -> Floats:
    """Inner products of examples that hold the features of the page and of all experts."""
    return sum((examples.inner(page, int(expert)) for expert in experts), examples.inner(page, page))


def relational_union(examples: ExpertExamples, page: int, experts: Sequence[int], learner: ExpertLearner) -> Floats:
    """One learner with the features of the page and of all its experts (section 5.3.2)."""
    return learner.ask(examples, page, [page, *experts])


def bagging(
    examples: ExpertExamples, page: int, experts: Sequence[int], machine: Machine, n_models: int = 10, seed: int = 0
) -> Floats:
    """The majority of `n_models` learners, each trained on a sample of the examples, drawn with replacement (section 5.3.3)."""
    kernel = machine.kernel(union_inner(examples, page, experts))
    label, draws = examples.label(page), np.random.default_rng(seed)
    uniform = draws.random((n_models, examples.n_rounds, machine.n_train))
    decisions: Floats = _bagged(kernel, label, machine.n_train, examples.sigma, machine.c, uniform)
    return decisions


def boosting(
    examples: ExpertExamples, page: int, experts: Sequence[int], machine: Machine, n_models: int = 10
) -> Floats:
    """AdaBoost of at most `n_models` learners with the features of the page and of all its experts (section 5.3.3)."""
    kernel = machine.kernel(union_inner(examples, page, experts))
    decisions: Floats = _boosted(kernel, examples.label(page), machine.n_train, examples.sigma, machine.c, n_models)
    return decisions


def by_classifier(classifier: Any, x: sparse.csr_matrix, label: Ints8, n_train: int, sigma: int) -> Floats:
    """The decisions of any scikit-learn classifier, trained again at every time on the feature vectors `x`."""
    from sklearn.base import clone

    decisions = np.full(len(label), np.nan)
    for t in range(n_train - 1, len(label)):
        rows = np.arange(t - n_train + 1, t - sigma + 1)
        rows = rows[label[rows] >= 0]
        y = label[rows]
        if len(y) == 0 or y.min() == y.max():
            decisions[t] = 1.0 if len(y) and y[0] == 1 else -1.0
        else:
            decisions[t] = 1.0 if clone(classifier).fit(x[rows], y).predict(x[t])[0] == 1 else -1.0
    return decisions


def calibrated(decisions: Sequence[Floats], label: Ints8, memory: int, sigma: int) -> Floats:
    """At each time the decision of the setting that was right most often in the `memory` rounds before; of equals the first.

    `decisions` has those of each setting. Only decisions whose outcome is known by then are compared, so nothing of the future is
    used, and no setting is chosen by what it is tested on.
    """
    right = np.array([np.where((label >= 0) & ~np.isnan(d), (d > 0) == (label == 1), 0.0) for d in decisions])
    so_far = np.hstack([np.zeros((len(decisions), 1)), np.cumsum(right, axis=1)])
    n = len(label)
    stop = np.maximum(np.arange(n) - sigma + 1, 0)
    start = np.maximum(stop - memory, 0)
    best = np.argmax(so_far[:, stop] - so_far[:, start], axis=0)
    chosen: Floats = np.array(decisions)[best, np.arange(n)]
    return chosen


@njit(cache=True, nogil=True)
def _training_set(kernel, label, t, n_train, sigma):  # type: ignore[no-untyped-def]
    """The examples that a learner may be trained on at time t, their kernel and their classes."""
    rows = np.empty(n_train, np.int64)
    n = positive = 0
    for s in range(t - n_train + 1, t - sigma + 1):
        if label[s] >= 0:
            rows[n] = s
            n += 1
            positive += label[s]
    rows = rows[:n]
    own = np.empty((n, n))
    y = np.empty(n)
    for i in range(n):
        y[i] = 1.0 if label[rows[i]] == 1 else -1.0
        for j in range(n):
            own[i, j] = kernel[rows[i], rows[j]]
    return rows, own, y, positive


@njit(cache=True, nogil=True)
def _side(alpha, rho, y, compared, rows):  # type: ignore[no-untyped-def]
    """On which side of a machine an example lies, 1 or -1; `compared` is its kernel with all examples."""
    value = -rho
    for i in range(len(rows)):
        value += alpha[i] * y[i] * compared[rows[i]]
    return 1.0 if value > 0 else -1.0


@njit(cache=True, nogil=True)
def _bagged(kernel, label, n_train, sigma, c, uniform):  # type: ignore[no-untyped-def]
    decisions = np.full(len(label), np.nan)
    for t in range(n_train - 1, len(label)):
        rows, own, y, positive = _training_set(kernel, label, t, n_train, sigma)
        n = len(rows)
        if positive == 0 or positive == n:
            decisions[t] = 1.0 if positive else -1.0
            continue
        votes = 0.0
        for model in range(uniform.shape[0]):
            upper = np.zeros(n)
            drawn = 0
            for i in range(n):
                row = int(uniform[model, t, i] * n)
                upper[row] += c
                drawn += y[row] > 0
            if drawn == 0 or drawn == n:
                votes += 1.0 if drawn else -1.0
                continue
            alpha, rho = svm.compiled_solve(own, y, upper, TOLERANCE, MAX_ITERATIONS)
            votes += _side(alpha, rho, y, kernel[t], rows)
        decisions[t] = votes / uniform.shape[0]
    return decisions


@njit(cache=True, nogil=True)
def _boosted(kernel, label, n_train, sigma, c, n_models):  # type: ignore[no-untyped-def]
    decisions = np.full(len(label), np.nan)
    for t in range(n_train - 1, len(label)):
        rows, own, y, positive = _training_set(kernel, label, t, n_train, sigma)
        n = len(rows)
        if positive == 0 or positive == n:
            decisions[t] = 1.0 if positive else -1.0
            continue
        weight = np.full(n, 1.0 / n)
        total = 0.0
        for _ in range(n_models):
            alpha, rho = svm.compiled_solve(own, y, weight * n * c, TOLERANCE, MAX_ITERATIONS)
            wrong = 0.0
            says = np.empty(n)
            for j in range(n):
                says[j] = _side(alpha, rho, y, kernel[rows[j]], rows)
                wrong += weight[j] * (says[j] != y[j])
            if wrong >= 0.5:  # no better than a coin: the ensemble ends here, and an empty one expects no change
                break
            trust = 0.5 * np.log((1.0 - wrong) / max(wrong, 1e-10))
            total += trust * _side(alpha, rho, y, kernel[t], rows)
            if wrong <= 1e-10:
                break
            weight *= np.exp(-trust * y * says)
            weight /= weight.sum()
        decisions[t] = total
    return decisions
