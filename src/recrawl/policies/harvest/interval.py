"""How sure an expectation is: an interval for the new links of each page, calibrated by what visits brought."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.core.whole import Columns
from recrawl.models.distributions import NegativeBinomial
from recrawl.policies.choice import LEVEL
from recrawl.policies.harvest.probability import ProbabilityCalibration

PSEUDO_LINKS = 100.0  #: links, as if they had arrived as expected: one batch must not change all expectations
KEPT = 0.98  #: share of what was learnt that still counts a cycle later
_TAIL = np.array([0.0, 0.001, 0.003, 0.01, 0.025, 0.05])
QUANTILES = np.concatenate([_TAIL, np.arange(1, 10) / 10, 1.0 - _TAIL[::-1]])  #: between which counts are distinguished
#: Kinds of visits, by the number of links that are expected if there are any: each kind has three times as many as the one before.
N_KINDS, KIND = 6, 3.0
PSEUDO_VISITS = 5.0  #: visits, as if they had brought as many links as predicted
PSEUDO_OTHERS = 20.0  #: visits like those of all kinds that count for each kind
MAX_JUDGED = 1_000  #: visits per cycle from which the width of intervals is learnt


class Calibration:
    """Expected links corrected by what visits brought, and intervals as wide as they must be.

    Whether there is any new link on a page, and how many there are if so, are two questions: pages that gain one link per day and
    pages that gain fifty links every fifty days have the same expectation. The probability of any is that of the model (a negative
    binomial count with a variance of φμ + μ²/r on a page that answers: φ because links arrive in batches, r because the page's own
    rate is not known exactly), corrected by how often that was right (`ProbabilityCalibration`). Given any, their number less one
    is taken to be negative binomial, too. The quantiles at which the counts were so far are remembered, and where these are
    not evenly spread, quantiles are moved until they are. Each kind of visit, by how many links are expected if there are any, has
    its own, shrunk towards those of all: counts of busy pages may be further from the expectation than those of others, or nearer.

    References: Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated regression".
    """

    def __init__(self) -> None:
        # Links of pages seen before, and of pages never seen: as found, and as expected.
        self.found, self.due = np.full(2, PSEUDO_LINKS), np.full(2, PSEUDO_LINKS)
        self.any = ProbabilityCalibration(KEPT)
        # Visits that brought links, by kind and by the quantile of how many.
        self.ranks = np.zeros((N_KINDS, len(QUANTILES) - 1))

    def expected(self, raw: Floats, is_unseen: Flags) -> Floats:
        """The links to expect, given those of the model."""
        corrected: Floats = raw * (self.found / self.due)[is_unseen.astype(np.int64)]
        return corrected

    def probability(self, mean: Floats, answers: Floats, shape: Floats, dispersion: float) -> Floats:
        """The probability of at least one new link."""
        likely: Floats = self.any.corrected(_any(mean, answers, shape, dispersion))
        return np.clip(likely, 1e-9, np.clip(mean, 1e-9, 1.0 - 1e-9))

    def interval(
        self, mean: Floats, answers: Floats, shape: Floats, dispersion: float, level: float = LEVEL
    ) -> tuple[Floats, Floats, Floats]:
        """Ends of the interval, and the probability that it states: no less than `level`, since counts are whole numbers."""
        likely = self.probability(mean, answers, shape, dispersion)
        law, kind, seen = _given_any(mean / likely, shape, dispersion), _kind(mean / likely), self._seen()
        even = np.broadcast_to(QUANTILES, seen.shape)

        def end(q: float) -> Floats:
            given = _moved((q - 1.0 + likely) / likely, kind, seen, even)
            return np.where(q <= 1.0 - likely, 0.0, 1.0 + law.quick_quantile(np.clip(given, 1e-12, 1 - 1e-12)))

        low, high = end((1 - level) / 2), end((1 + level) / 2)
        within = _moved(law.cdf(high - 1), kind, even, seen) - _moved(law.cdf(low - 2), kind, even, seen)
        return low, high, likely * within + (1 - likely) * (low == 0)

    def _seen(self) -> Floats:
        """Which share of the counts so far was below each of `QUANTILES`: one row per kind."""
        all_kinds = self.ranks.sum(axis=0) + PSEUDO_VISITS * np.diff(QUANTILES)
        ranks = self.ranks + PSEUDO_OTHERS * all_kinds / all_kinds.sum()
        below = np.hstack([np.zeros((N_KINDS, 1)), np.cumsum(ranks, axis=1)])
        seen: Floats = below / below[:, -1:]
        return seen

    def learn(self, judged: Columns, found: Ints, due: Floats, dispersion: float) -> None:
        """Compare what the model predicted for visits with what they brought, every link counted once.

        judged: a sample of them, a row per visit, with `raw` (links predicted), `brought`, `unseen` (the page had never answered),
        `answers` and `shape`. found, due: links of all visits to pages seen before, and to others, as found and as predicted.
        """
        mean = self.expected(judged["raw"], judged["unseen"] > 0)
        self._learn_spread(mean, judged["brought"], judged["answers"], judged["shape"], dispersion)
        self.found = KEPT * self.found + found + (1 - KEPT) * PSEUDO_LINKS
        self.due = KEPT * self.due + due + (1 - KEPT) * PSEUDO_LINKS

    def _learn_spread(self, mean: Floats, brought: Floats, answers: Floats, shape: Floats, dispersion: float) -> None:
        likely, some = self.probability(mean, answers, shape, dispersion), brought > 0
        of_those = (mean / likely)[some]
        law = _given_any(of_those, shape[some], dispersion)
        self.ranks *= KEPT
        np.add.at(self.ranks, _kind(of_those), _ranks(law, brought[some] - 1.0))
        self.any.learn(_any(mean, answers, shape, dispersion), some)


def _given_any(mean: Floats, shape: Floats, dispersion: float) -> NegativeBinomial:
    """How many links there are beyond the first."""
    beyond = np.maximum(mean - 1.0, 1e-9)
    more = max(dispersion - 1.0, 1e-3) + beyond / np.maximum(shape, 1.0)
    return NegativeBinomial.of_failures(beyond / more, 1.0 / (1.0 + more))


def _ranks(law: NegativeBinomial, count: Floats) -> Floats:
    """Between which of `QUANTILES` each count is; one that spans several is divided among them."""
    below, up_to = law.cdf(count - 1), law.cdf(count)
    width = np.maximum(up_to - below, 1e-12)[:, None]
    parts = (np.clip(QUANTILES, below[:, None], up_to[:, None]) - below[:, None]) / width
    parts[:, -1] = 1.0  # also of counts beyond everything that could be expected
    ranks: Floats = np.diff(parts, axis=1)
    return ranks


def _any(mean: Floats, answers: Floats, shape: Floats, dispersion: float) -> Floats:
    """The probability of any new link by the model."""
    answers = np.clip(answers, 1e-6, 1.0)
    of_those = np.maximum(mean / answers, 1e-9)
    more = max(dispersion - 1.0, 1e-3) + of_those / np.maximum(shape, 1e-3)
    likely: Floats = answers * NegativeBinomial.of_failures(of_those / more, 1.0 / (1.0 + more)).p_positive
    return likely


def _kind(mean: Floats) -> Ints:
    """The kind of each visit, by how many links are expected if there are any.

    >>> _kind(np.array([1.0, 2.9, 3.1, 1e6])).tolist()
    [0, 0, 1, 5]
    """
    power = np.floor(np.log(np.maximum(mean, 1.0)) / np.log(KIND))
    kind: Ints = np.clip(np.nan_to_num(power), 0, N_KINDS - 1).astype(np.int64)
    return kind


def _moved(values: Floats, kind: Ints, old: Floats, new: Floats) -> Floats:
    """Values moved from one scale to another; those of each kind have a row in both."""
    moved = np.empty(len(values))
    for each in range(N_KINDS):
        here = kind == each
        moved[here] = np.interp(values[here], old[each], new[each])
    return moved
