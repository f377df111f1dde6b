"""How sure an expectation is: an interval for the new links of each page, kept honest by what visits brought."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, nbdtrik

from recrawl.policies.base import LEVEL, Flags, Floats, Ints

PSEUDO_LINKS = 20.0
KEPT = 0.98  #: of what was learnt, a cycle later
STEP = 0.2
MAX_JUDGED = 1_000  #: visits of a cycle that the width of intervals is learnt from


@dataclass(frozen=True)
class NegativeBinomial:
    """The number of failures before a real number of successes. As `scipy.stats.nbinom`, which takes a second to import."""

    successes: Floats
    chance: Floats

    def cdf(self, count: Floats) -> Floats:
        """The probability of at most so many."""
        below = np.maximum(count, 0.0)
        return np.where(count < 0, 0.0, betainc(self.successes, below + 1.0, self.chance))

    def quantile(self, q: Floats) -> Floats:
        """The smallest count that is not exceeded with probability q."""
        near = np.maximum(np.ceil(np.nan_to_num(nbdtrik(q, self.successes, self.chance))), 0.0)  # but for rounding
        near = np.where(self.cdf(near) < q, near + 1.0, near)
        count: Floats = np.where((near > 0) & (self.cdf(near - 1.0) >= q), near - 1.0, near)
        return count

    def any(self) -> Floats:
        """The probability of at least one."""
        some: Floats = -np.expm1(self.successes * np.log(self.chance))
        return some


class Calibration:
    """Expected links corrected by what came, and intervals as wide as they must be.

    The number of new links on a page is negative binomial with a variance of s·φ·μ + μ²/r: φ because links come in batches, r
    because the page's own rate is not known exactly. With probability 1 - p the page does not answer. The width s grows when fewer
    counts than stated fall into their intervals and shrinks when more do (adaptive conformal inference, Gibbs and Candès 2021).
    """

    def __init__(self) -> None:
        self.came, self.due = np.full(2, PSEUDO_LINKS), np.full(2, PSEUDO_LINKS)  # pages seen before, and never
        self.width = 1.0

    def expected(self, raw: Floats, is_unseen: Flags) -> Floats:
        """What to expect, given what the model says."""
        corrected: Floats = raw * (self.came / self.due)[is_unseen.astype(np.int64)]
        return corrected

    def interval(
        self, mean: Floats, answers: Floats, shape: Floats, dispersion: float, level: float = LEVEL
    ) -> tuple[Floats, Floats, Floats]:
        """Ends of the interval, and the probability that it states: no less than `level`, since counts are whole numbers."""
        answers = np.clip(answers, 1e-6, 1.0)
        law = self._law(mean / answers, shape, dispersion)
        low, high = (self._quantile(law, answers, q) for q in ((1 - level) / 2, (1 + level) / 2))
        stated = answers * (law.cdf(high) - law.cdf(low - 1)) + (1 - answers) * (low == 0)
        return low, high, stated

    def probability(self, mean: Floats, answers: Floats, shape: Floats, dispersion: float) -> Floats:
        """That there is at least one new link."""
        answers = np.clip(answers, 1e-6, 1.0)
        any_: Floats = answers * self._law(mean / answers, shape, dispersion).any()
        return any_

    def _law(self, mean: Floats, shape: Floats, dispersion: float) -> NegativeBinomial:
        mean = np.maximum(mean, 1e-9)
        # Few links cannot come in large batches.
        variance = mean * np.maximum(1.001, self.width * dispersion) + mean**2 / np.maximum(shape, 1e-3)
        return NegativeBinomial(mean**2 / (variance - mean), mean / variance)

    @staticmethod
    def _quantile(law: NegativeBinomial, answers: Floats, q: float) -> Floats:
        given = (q - (1 - answers)) / answers
        return np.where(given <= 0, 0.0, law.quantile(np.clip(given, 1e-12, 1 - 1e-12)))

    def learn(
        self, raw: Floats, came: Ints, is_unseen: Flags, answers: Floats, shape: Floats, dispersion: float
    ) -> None:
        """Set what the model said before some visits against what they brought, every link counted once."""
        some = slice(None, None, len(raw) // MAX_JUDGED + 1)
        mean = self.expected(raw[some], is_unseen[some])
        if len(mean):
            low, high, stated = self.interval(mean, answers[some], shape[some], dispersion)
            missed = ((came[some] < low) | (came[some] > high)).mean() - (1.0 - stated).mean()
            self.width = float(np.clip(self.width * np.exp(STEP * missed), 0.05, 50.0))
        for kind in (0, 1):
            here = is_unseen == bool(kind)
            self.came[kind] = KEPT * self.came[kind] + came[here].sum() + (1 - KEPT) * PSEUDO_LINKS
            self.due[kind] = KEPT * self.due[kind] + raw[here].sum() + (1 - KEPT) * PSEUDO_LINKS
