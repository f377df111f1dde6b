"""Predictive distributions of counts: for every page not one number, but how probable every number is.

New links are over-dispersed and mostly zero (Dang et al. 2022, Table 2: mean 2.7, standard deviation 14.6), which a Poisson
distribution cannot be. Each distribution is a struct of arrays over n rows with `mean`, `p_positive` = P(y ≥ 1),
`log_likelihood(y)` and `quantile(q)`.

All are one family. The negative binomial with dispersion a has variance mean + a mean²; a → 0 is Poisson. Its logarithm is written
so that this limit needs no special case::

    log P(y) = Σ_{j<y} log(1 + a j) + y log m − (y + 1/a) log(1 + a m) − log y!
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, gammaln, nbdtrik, pdtrc, xlogy

from recrawl.core.arrays import Floats, Ints

#: A positive part never has a mean of exactly one, or every count of two would be impossible.
SMALLEST_POSITIVE_MEAN = 1 + 1e-6
_NO_DISPERSION = 1e-100  # used instead of 0 as a divisor
_POISSON_BELOW = 1e-10  # with a smaller dispersion the tail is that of a Poisson distribution to ten digits


class CountDistribution(Protocol):
    """What all distributions here offer; every method has one entry per row."""

    @property
    def mean(self) -> Floats:
        """Expected count."""

    @property
    def p_positive(self) -> Floats:
        """P(y ≥ 1)."""

    def log_likelihood(self, y: ArrayLike) -> Floats:
        """Natural logarithm of the probability of each row's own count."""

    def quantile(self, q: float | Floats) -> Ints:
        """The smallest count that is not exceeded with probability q, 0 ≤ q < 1 (one for all, or one per row)."""


@dataclass(frozen=True, eq=False)
class NegativeBinomial:
    """Counts with variance mean + dispersion · mean² (NB2); the dispersion is one number or one per row.

    Also the number of failures before a real number of `successes` = 1 / dispersion, each with probability `chance` =
    1 / (1 + dispersion · mean). `scipy.stats.nbinom` is the same, but takes a second to import.

    >>> heavy = NegativeBinomial(mean=[0.5, 4.0], dispersion=2.0)
    >>> heavy.p_positive.round(3), heavy.quantile(0.9)
    (array([0.293, 0.667]), array([ 2, 11]))
    """

    mean: Floats
    dispersion: Floats | float
    #: The other two parameters, if the distribution was given by them: worked out again they would be off by rounding.
    given: tuple[Floats, Floats] | None = None

    def __post_init__(self) -> None:
        _store(self, mean=self.mean, dispersion=self.dispersion)

    @classmethod
    def of_failures(cls, successes: Floats, chance: Floats) -> NegativeBinomial:
        """The number of failures before a real number of successes.

        >>> heads = NegativeBinomial.of_failures(successes=np.array([1.0]), chance=np.array([0.5]))
        >>> heads.mean, heads.cdf(np.array([1.0]))
        (array([1.]), array([0.75]))
        """
        return cls(successes * (1 - chance) / chance, 1 / successes, (successes, chance))

    @property
    def p_positive(self) -> Floats:
        """P(y ≥ 1), exact also where it is tiny."""
        if self.given is not None:
            successes, chance = self.given
            return np.asarray(-np.expm1(successes * np.log(chance)))
        return np.asarray(-np.expm1(_log_zero(self.mean, self._dispersion)))

    def cdf(self, y: Floats) -> Floats:
        """P(count ≤ y), 0 for y < 0."""
        successes, chance = self.given or (1 / self._dispersion, 1 / (1 + self._dispersion * self.mean))
        return np.where(y < 0, 0.0, betainc(successes, np.maximum(y, 0.0) + 1.0, chance))

    def log_likelihood(self, y: ArrayLike) -> Floats:
        """Natural logarithm of the probability of each row's own count."""
        y, a = np.asarray(y, np.float64), self._dispersion
        not_zero = xlogy(y, self.mean) - y * np.log1p(a * self.mean) + _log_rising(y, a) - gammaln(y + 1)
        return np.asarray(_log_zero(self.mean, a) + not_zero)

    def exceeds(self, y: ArrayLike) -> Floats:
        """P(count > y); the upper tail is kept, because 1 − cdf would lose it."""
        y, a = np.asarray(y, np.float64), self._dispersion
        share = a * self.mean / (1 + a * self.mean)
        heavy = betainc(y + 1, 1 / np.maximum(a, _POISSON_BELOW), share)
        return np.asarray(np.where(a < _POISSON_BELOW, pdtrc(y, self.mean), heavy))

    def quantile(self, q: float | Floats) -> Ints:
        """The smallest count that is not exceeded with probability q, 0 ≤ q < 1 (one for all, or one per row)."""
        return _smallest(self.exceeds, q, self.mean, self.mean + self._dispersion * self.mean**2)

    def quick_quantile(self, q: Floats) -> Floats:
        """As `quantile`, many times as fast, for q that is not too near to 1: rounding of the `cdf` can move it there."""
        successes, chance = self.given or (1 / self._dispersion, 1 / (1 + self._dispersion * self.mean))
        near = np.maximum(np.ceil(np.nan_to_num(nbdtrik(q, successes, chance))), 0.0)  # right but for rounding
        near = np.where(self.cdf(near) < q, near + 1.0, near)
        count: Floats = np.where((near > 0) & (self.cdf(near - 1.0) >= q), near - 1.0, near)
        return count

    @property
    def _dispersion(self) -> Floats:
        return np.maximum(self.dispersion, _NO_DISPERSION)


@dataclass(frozen=True, eq=False)
class Poisson:
    """Counts of independent events: variance = mean.

    >>> Poisson([0.5, 4.0]).quantile(0.9)
    array([1, 7])
    """

    mean: Floats

    def __post_init__(self) -> None:
        _store(self, mean=self.mean)

    @property
    def p_positive(self) -> Floats:
        """P(y ≥ 1) = 1 − exp(−mean) (Dang et al. 2022, section 7)."""
        return np.asarray(-np.expm1(-self.mean))

    def log_likelihood(self, y: ArrayLike) -> Floats:
        """Natural logarithm of the probability of each row's own count."""
        y = np.asarray(y, np.float64)
        return np.asarray(xlogy(y, self.mean) - self.mean - gammaln(y + 1))

    def quantile(self, q: float | Floats) -> Ints:
        """The smallest count that is not exceeded with probability q, 0 ≤ q < 1 (one for all, or one per row)."""
        return NegativeBinomial(self.mean, 0.0).quantile(q)


@dataclass(frozen=True, eq=False)
class Truncated:
    """A negative binomial without its zeros, given by the mean of the positive counts (> 1); dispersion 0: Poisson without zeros.

    Learners predict the mean of the positive counts, so that is the parameter; `untruncated` solves for the distribution that has
    it once its zeros are removed.

    >>> Truncated(mean=[1.5820], dispersion=0.0).untruncated.mean.round(3)
    array([1.])
    """

    mean: Floats
    dispersion: Floats | float

    def __post_init__(self) -> None:
        _store(self, mean=np.maximum(self.mean, SMALLEST_POSITIVE_MEAN), dispersion=self.dispersion)

    @property
    def untruncated(self) -> NegativeBinomial:
        """The negative binomial whose positive part this is."""
        return NegativeBinomial(untruncated_mean(self.mean, self.dispersion), self.dispersion)

    @property
    def p_positive(self) -> Floats:
        """One: there are no zeros."""
        return np.ones_like(self.mean)

    def log_likelihood(self, y: ArrayLike) -> Floats:
        """Natural logarithm of the probability of each row's own count; −∞ for a zero."""
        y, whole = np.asarray(y, np.float64), self.untruncated
        return np.where(y > 0, whole.log_likelihood(y) - np.log(whole.p_positive), -np.inf)

    def quantile(self, q: float | Floats) -> Ints:
        """The smallest count that is not exceeded with probability q, 0 ≤ q < 1 (one for all, or one per row)."""
        positive = (whole := self.untruncated).p_positive
        square = (whole.mean + (whole.dispersion + 1) * whole.mean**2) / positive
        count = _smallest(lambda y: whole.exceeds(y) / positive, q, self.mean, square - self.mean**2)
        return np.maximum(count, 1)


@dataclass(frozen=True, eq=False)
class Hurdle:
    """First whether there is anything new (`p_positive`), then how much (`positive`): zeros have their own cause.

    >>> links = Hurdle(p_positive=[0.3], positive=Truncated(mean=[9.0], dispersion=1.0))
    >>> links.mean, links.quantile(0.5), links.quantile(0.95)
    (array([2.7]), array([0]), array([16]))

    References: Mullahy (1986), Specification and testing of some modified count data models.
    """

    p_positive: Floats
    positive: Truncated

    def __post_init__(self) -> None:
        _store(self, p_positive=self.p_positive)

    @property
    def mean(self) -> Floats:
        """Expected count."""
        return self.p_positive * self.positive.mean

    def log_likelihood(self, y: ArrayLike) -> Floats:
        """Natural logarithm of the probability of each row's own count."""
        y = np.asarray(y, np.float64)
        with np.errstate(divide="ignore"):  # a probability of zero is −∞, as it should be
            some = np.log(self.p_positive) + self.positive.log_likelihood(np.maximum(y, 1))
            return np.where(y > 0, some, np.log1p(-self.p_positive))

    def quantile(self, q: float | Floats) -> Ints:
        """The smallest count that is not exceeded with probability q, 0 ≤ q < 1 (one for all, or one per row)."""
        _check_quantile(q)
        some = np.maximum(self.p_positive, np.finfo(np.float64).tiny)
        beyond_zero = np.clip(1 - (1 - q) / some, 0, np.nextafter(1, 0))
        return np.where(q <= 1 - self.p_positive, 0, self.positive.quantile(beyond_zero))


def untruncated_mean(positive_mean: ArrayLike, dispersion: ArrayLike) -> Floats:
    """The mean m of the negative binomial whose positive counts have the given mean M: the root of m = M (1 − P(0)).

    m − M (1 − P(0; m)) is convex in m and positive at M, so Newton's steps from M come down to the root and never
    pass it, whatever the dispersion.
    """
    target = np.maximum(np.asarray(positive_mean, np.float64), SMALLEST_POSITIVE_MEAN)
    a = np.maximum(np.asarray(dispersion, np.float64), _NO_DISPERSION)
    m = target + 0 * a
    for _ in range(100):
        log_zero = _log_zero(m, a)
        step = (m + target * np.expm1(log_zero)) / (1 - target * np.exp(log_zero) / (1 + a * m))
        m = np.maximum(m - step, np.finfo(np.float64).tiny)
        if np.all(np.abs(step) <= 1e-10 * m):
            break
    return np.asarray(m)


def _log_zero(mean: Floats, dispersion: Floats) -> Floats:
    """log P(0) of the negative binomial."""
    return np.asarray(-np.log1p(dispersion * mean) / dispersion)


def _log_rising(y: Floats, a: Floats) -> Floats:
    """Σ_{j<y} log(1 + a j); by Stirling's series where 1/a is so large that log Γ(y + 1/a) − log Γ(1/a) loses digits."""
    r = 1 / a
    small = np.minimum(r, 1e4)  # keeps the branch not taken finite
    exact = gammaln(y + small) - gammaln(small) - xlogy(y, small)
    tail = (1 / (r + y) - a) / 12 - ((1 / (r + y)) ** 3 - a**3) / 360
    return np.where(r < 1e3, exact, (r + y - 0.5) * np.log1p(a * y) - y + tail)


def _smallest(exceeds: Callable[[Floats], Floats], q: float | Floats, mean: Floats, variance: Floats) -> Ints:
    """The smallest count with P(count > it) ≤ 1 − q, by bisection below Cantelli's bound mean + sd √(q / (1 − q))."""
    _check_quantile(q)
    high = np.ceil(mean + np.sqrt(np.maximum(variance, 0) * q / (1 - q))) + 1
    low = np.full_like(high, -1)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        enough = (exceeds(middle) <= 1 - q) & (middle > low)
        low, high = np.where(enough | (high - low <= 1), low, middle), np.where(enough, middle, high)
    return high.astype(np.int64)


def _check_quantile(q: float | Floats) -> None:
    if not np.all((np.asarray(q) >= 0) & (np.asarray(q) < 1)):
        raise ValueError(f"A quantile needs 0 <= q < 1, not {q}")


def _store(distribution: object, **values: Any) -> None:
    """Set fields of a frozen dataclass as arrays of floats, so that lists and numbers may be given."""
    for name, value in values.items():
        object.__setattr__(distribution, name, np.asarray(value, np.float64))
