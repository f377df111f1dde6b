"""How sure an expectation is: an interval for the new links of each page, kept honest by what visits brought."""

from __future__ import annotations

import numpy as np

from recrawl.core.arrays import Flags, Floats, Ints
from recrawl.models.distributions import NegativeBinomial
from recrawl.policies.choice import LEVEL
from recrawl.policies.harvest.chances import Chances

PSEUDO_LINKS = 100.0  #: that are taken to have come as expected: one batch must not turn all expectations
KEPT = 0.98  #: of what was learnt, a cycle later
_TAIL = np.array([0.0, 0.001, 0.003, 0.01, 0.025, 0.05])
QUANTILES = np.concatenate([_TAIL, np.arange(1, 10) / 10, 1.0 - _TAIL[::-1]])  #: between which counts are told apart
N_KINDS, KIND = 6, 3.0  #: of visits by how many links are expected if any, each so many times as many as the one before
PSEUDO_VISITS = 5.0  #: that are taken to have brought as many links as was told
PSEUDO_OTHERS = 20.0  #: as those of all kinds, that count for each
MAX_JUDGED = 1_000  #: visits of a cycle that the width of intervals is learnt from


class Calibration:
    """Expected links corrected by what came, and intervals as wide as they must be.

    Whether there is any new link on a page, and how many there are if so, are told apart: pages on which a link comes each day
    and those on which fifty come once in fifty days expect the same. That there is any is as likely as the model says (a negative
    binomial count with a variance of φμ + μ²/r on a page that answers: φ because links come in batches, r because the page's own
    rate is not known exactly), corrected by how often that came true (`Chances`). Given any, their number less one is negative
    binomial, too, as far as it goes: which quantiles of that the counts were so far is remembered, and where these are not evenly
    spread, quantiles are moved until they are. Each kind of visit, by how many links are expected if there are any, has its own,
    drawn to those of all: counts of busy pages may be further from what is expected than those of others, or nearer.

    References: Kuleshov, Fenner and Ermon (2018), "Accurate uncertainties for deep learning using calibrated regression".
    """

    def __init__(self) -> None:
        self.came, self.due = np.full(2, PSEUDO_LINKS), np.full(2, PSEUDO_LINKS)  # pages seen before, and never
        self.any = Chances(KEPT)
        self.ranks = np.zeros(
            (N_KINDS, len(QUANTILES) - 1)
        )  # visits that brought links, by kind and by the quantile of how many

    def expected(self, raw: Floats, is_unseen: Flags) -> Floats:
        """What to expect, given what the model says."""
        corrected: Floats = raw * (self.came / self.due)[is_unseen.astype(np.int64)]
        return corrected

    def probability(self, mean: Floats, answers: Floats, shape: Floats, dispersion: float) -> Floats:
        """That there is at least one new link."""
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
        """Which share of the counts so far was below each of `QUANTILES`: one row a kind."""
        all_kinds = self.ranks.sum(axis=0) + PSEUDO_VISITS * np.diff(QUANTILES)
        ranks = self.ranks + PSEUDO_OTHERS * all_kinds / all_kinds.sum()
        below = np.hstack([np.zeros((N_KINDS, 1)), np.cumsum(ranks, axis=1)])
        seen: Floats = below / below[:, -1:]
        return seen

    def learn(
        self, raw: Floats, came: Ints, is_unseen: Flags, answers: Floats, shape: Floats, dispersion: float
    ) -> None:
        """Set what the model said before some visits against what they brought, every link counted once."""
        some = slice(None, None, len(raw) // MAX_JUDGED + 1)
        mean = self.expected(raw[some], is_unseen[some])
        self._learn_spread(mean, came[some], answers[some], shape[some], dispersion)
        for kind in (0, 1):
            here = is_unseen == bool(kind)
            self.came[kind] = KEPT * self.came[kind] + came[here].sum() + (1 - KEPT) * PSEUDO_LINKS
            self.due[kind] = KEPT * self.due[kind] + raw[here].sum() + (1 - KEPT) * PSEUDO_LINKS

    def _learn_spread(self, mean: Floats, came: Ints, answers: Floats, shape: Floats, dispersion: float) -> None:
        likely, some = self.probability(mean, answers, shape, dispersion), came > 0
        of_those = (mean / likely)[some]
        law = _given_any(of_those, shape[some], dispersion)
        self.ranks *= KEPT
        np.add.at(self.ranks, _kind(of_those), _ranks(law, (came[some] - 1).astype(np.float64)))
        self.any.learn(_any(mean, answers, shape, dispersion), some)


def _given_any(mean: Floats, shape: Floats, dispersion: float) -> NegativeBinomial:
    """How many links there are beyond the first."""
    beyond = np.maximum(mean - 1.0, 1e-9)
    more = max(dispersion - 1.0, 1e-3) + beyond / np.maximum(shape, 1.0)
    return NegativeBinomial.of_failures(beyond / more, 1.0 / (1.0 + more))


def _ranks(law: NegativeBinomial, count: Floats) -> Floats:
    """Between which of `QUANTILES` each count stands; one that stands for several is shared out among them."""
    below, up_to = law.cdf(count - 1), law.cdf(count)
    parts = (np.clip(QUANTILES, below[:, None], up_to[:, None]) - below[:, None]) / np.maximum(up_to - below, 1e-12)[
        :, None
    ]
    parts[:, -1] = 1.0  # also of those beyond all that could be expected
    ranks: Floats = np.diff(parts, axis=1)
    return ranks


def _any(mean: Floats, answers: Floats, shape: Floats, dispersion: float) -> Floats:
    """The probability of any new link, as the model says."""
    answers = np.clip(answers, 1e-6, 1.0)
    of_those = np.maximum(mean / answers, 1e-9)
    more = max(dispersion - 1.0, 1e-3) + of_those / np.maximum(shape, 1e-3)
    told: Floats = answers * NegativeBinomial.of_failures(of_those / more, 1.0 / (1.0 + more)).p_positive
    return told


def _kind(mean: Floats) -> Ints:
    """Visits of which about as many links are expected, if there are any.

    >>> _kind(np.array([1.0, 2.9, 3.1, 1e6])).tolist()
    [0, 0, 1, 5]
    """
    power = np.floor(np.log(np.maximum(mean, 1.0)) / np.log(KIND))
    kind: Ints = np.clip(np.nan_to_num(power), 0, N_KINDS - 1).astype(np.int64)
    return kind


def _moved(values: Floats, kind: Ints, old: Floats, new: Floats) -> Floats:
    """Values moved from one scale to another; those of each kind have a row in both."""
    moved = np.empty(len(values))
    for one in range(N_KINDS):
        here = kind == one
        moved[here] = np.interp(values[here], old[one], new[one])
    return moved
