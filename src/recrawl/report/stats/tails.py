"""Which law do the numbers of new links follow? Five skewed candidates, fitted to the whole, the tail and the body.

Fitting is done by maximum likelihood with the `powerlaw` package, as in the papers; zeros are discarded. The distance
D = max |S(x) − P(x)| is taken here, over all whole numbers x and from the probabilities that were fitted: for counts,
the package's own distance compares the data with a continuous curve, which for small counts can be off by 0.1 and more.
It is kept as `package_distance` for comparison with published figures. Exponents of power laws are sought between 1
and 3, the package's range.

References: LBLA preprint section 4, Fig. 6, Appendix A1 (Table 5, Fig. 20); Clauset, Shalizi and Newman (2009).
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recrawl.core.arrays import Floats
from recrawl.core.words import count
from recrawl.report.stats.newlinks import Links, ccdf, spread
from recrawl.report.stats.two_laws import FittedLaw, LawComparison, compare_laws, distance

# powerlaw imports matplotlib for plots that are not used here; its notices about fonts would reach the user's terminal.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

import powerlaw  # noqa: E402

MAX_FITTED = 50_000  # values the package is given; it needs time in proportion
MIN_VALUES, MIN_DISTINCT = 10, 3  # fewer say nothing about a law with two parameters
N_CURVE_POINTS = 100


class _BoundedSum:
    """Normalises a law on [xmin, xmax] by summing it; the package's formula for these two laws forgets xmax itself."""

    @property
    def _pdf_discrete_normalizer(self) -> float:
        law: Any = self
        return float(1 / np.sum(law._pdf_base_function(np.arange(law.xmin, law.xmax + 1))))


class BoundedExponential(_BoundedSum, powerlaw.Exponential):  # type: ignore[misc]
    """Exponential on a bounded range of whole numbers."""


class BoundedTruncatedPowerLaw(_BoundedSum, powerlaw.Truncated_Power_Law):  # type: ignore[misc]
    """Truncated power law on a bounded range of whole numbers."""


#: Name → law without and with an upper bound (LBLA Table 5).
LAWS: dict[str, tuple[type, type]] = {
    "power law": (powerlaw.Power_Law, powerlaw.Power_Law),
    "truncated power law": (powerlaw.Truncated_Power_Law, BoundedTruncatedPowerLaw),
    "exponential": (powerlaw.Exponential, BoundedExponential),
    "stretched exponential": (powerlaw.Stretched_Exponential, powerlaw.Stretched_Exponential),
    "log-normal": (powerlaw.Lognormal, powerlaw.Lognormal),
}


@dataclass(frozen=True, slots=True)
class LawFit:
    """One law fitted to one part of the data, and how far it is from it."""

    law: str
    parameters: dict[str, float]
    distance: float | None  # D, Kolmogorov-Smirnov; None: could not be fitted
    package_distance: float | None
    x: tuple[int, ...] = ()  # the fitted curve:
    share: tuple[float, ...] = ()  # share of the part's values that are at least x
    note: str = ""
    log_likelihood: float | None = None  # of all values of the part


@dataclass(frozen=True, slots=True)
class DataPart:
    """The whole, the tail or the body of the data, and the laws fitted to it."""

    name: str
    lower: int  # smallest number of new links in this part
    upper: int | None  # largest; None: no bound
    n_values: int
    x: tuple[int, ...] = ()  # the data's curve:
    share: tuple[float, ...] = ()  # share of the part's values that are at least x
    fits: tuple[LawFit, ...] = ()
    note: str = ""  # why nothing was fitted

    @property
    def best(self) -> LawFit | None:
        """The law with the smallest distance."""
        fitted = [fit for fit in self.fits if fit.distance is not None]
        return min(fitted, key=lambda fit: fit.distance or 0.0, default=None)


@dataclass(frozen=True, slots=True)
class TailFits:
    """The laws fitted to the numbers of new links of one kind in one round."""

    links: Links
    round: int
    n_pages: int
    n_values: int  # pages with at least one new link
    lower_tail: int | None = None  # x_min: where the tail begins; None: not found
    tail_rate: float | None = None  # share of the values in the tail
    parts: tuple[DataPart, ...] = ()
    note: str = ""  # what is missing, and why
    comparisons: tuple[LawComparison, ...] = ()  # one law against two, for body and tail


def fit_tails(counts: Floats, links: Links, round: int) -> TailFits:
    """Fit all laws to the whole, the tail and the body of the pages' numbers of new links.

    The tail begins at the x_min that `powerlaw` estimates. With more than `MAX_FITTED` values, x_min and parameters
    come from that many evenly spaced order statistics (always the same ones); the distances from all values.
    """
    values = np.sort(counts[counts > 0])
    nothing = TailFits(links, round, counts.size, values.size)
    if reason := _too_poor(values):
        return replace(nothing, note=f"No law was fitted: {reason}.")
    sample = thinned(values, MAX_FITTED)
    with _quiet():
        whole, of_whole = _fit_part(values, sample, "whole", 1, None)
        lower_tail = _lower_tail(sample)
        if lower_tail is None:
            note = "No tail and no body: powerlaw found no x_min, the numbers are too few or too alike."
            return replace(nothing, parts=(whole,), note=note)
        if lower_tail == 1:
            note = "The tail begins at 1 new link: it is the whole, and there is no body."
            return replace(nothing, lower_tail=1, tail_rate=1.0, parts=(whole,), note=note)
        tail, of_tail = _fit_part(values, sample, "tail", lower_tail, None)
        body, of_body = _fit_part(values, sample, "body", 1, lower_tail - 1)
    return replace(
        nothing,
        lower_tail=lower_tail,
        tail_rate=float((values >= lower_tail).mean()),
        parts=(whole, tail, body),
        comparisons=compare_laws(values, of_whole, of_body, of_tail),
    )


def thinned(ordered: Floats, n: int) -> Floats:
    """`n` evenly spaced values of an ascending array: its distribution up to 1/n, without chance.

    >>> thinned(np.arange(10.0), 5)
    array([1., 3., 5., 7., 9.])
    """
    if ordered.size <= n:
        return ordered
    return ordered[((np.arange(n) + 0.5) * ordered.size / n).astype(np.int64)]


def _fit_part(
    values: Floats, sample: Floats, name: str, lower: int, upper: int | None
) -> tuple[DataPart, dict[str, FittedLaw]]:
    inside, fitted = _between(values, lower, upper), _between(sample, lower, upper)
    x, share = ccdf(inside)
    part = DataPart(name, lower, upper, inside.size, x=x, share=share)
    if reason := _too_poor(fitted):
        return replace(part, note=f"The {name} was not fitted: {reason}."), {}
    fits = {law: _fit_law(law, lower, upper, inside, fitted) for law in LAWS}
    known = {law: made for law, (_, made) in fits.items() if made is not None}
    return replace(part, fits=tuple(fit for fit, _ in fits.values())), known


def _fit_law(
    law: str, lower: int, upper: int | None, values: Floats, fitted: Floats
) -> tuple[LawFit, FittedLaw | None]:
    try:
        unbounded, bounded = LAWS[law]
        make = unbounded if upper is None else bounded
        model = make(data=fitted, xmin=lower, xmax=upper, discrete=True, verbose=0)
        probabilities = _probabilities(model, lower, upper or int(values[-1]), bounded=upper is not None)
    except Exception as error:  # the package and mpmath raise whatever their numerics run into
        return LawFit(law, {}, None, None, note=f"could not be fitted: {error}"), None
    parameters = {name.lower(): float(value) for name, value in model.parameters.items()}
    if not np.isfinite(probabilities).all() or not model.in_range():
        return LawFit(law, parameters, None, None, note="could not be fitted: no parameters in range"), None
    package_distance = float(model.D) if np.isfinite(model.D) else None
    x, share = _curve(lower, probabilities)
    fit = LawFit(
        law=law,
        parameters=parameters,
        distance=distance(values, lower, probabilities),
        package_distance=package_distance,
        x=x,
        share=share,
        log_likelihood=float(np.log(probabilities[values.astype(np.int64) - lower]).sum()),
    )
    return fit, FittedLaw(law, lower, len(parameters), probabilities)


def _probabilities(model: Any, lower: int, upper: int, *, bounded: bool) -> Floats:
    probabilities = np.asarray(model.pdf(np.arange(lower, upper + 1, dtype=np.float64)), dtype=np.float64)
    return probabilities / probabilities.sum() if bounded else probabilities


def _curve(lower: int, probabilities: Floats) -> tuple[tuple[int, ...], tuple[float, ...]]:
    x = spread(np.arange(lower, lower + probabilities.size, dtype=np.float64), N_CURVE_POINTS).astype(np.int64)
    below = np.concatenate(([0.0], np.cumsum(probabilities)))[x - lower]
    return tuple(x.tolist()), tuple(np.clip(1 - below, 0, 1).tolist())


def _lower_tail(sample: Floats) -> int | None:
    if np.unique(sample).size < 4:  # the package leaves out the two largest and wants two more
        return None
    x_min = powerlaw.Fit(sample, discrete=True, verbose=0).xmin
    return int(x_min) if np.isfinite(x_min) else None


def _between(values: Floats, lower: int, upper: int | None) -> Floats:
    return values[(values >= lower) & (values <= (np.inf if upper is None else upper))]


def _too_poor(values: Floats) -> str:
    if values.size < MIN_VALUES:
        return f"{count(values.size, 'page')} with new links, at least {MIN_VALUES} are needed"
    if (n_distinct := np.unique(values).size) < MIN_DISTINCT:
        return f"{n_distinct} different numbers of new links, at least {MIN_DISTINCT} are needed"
    return ""


@contextmanager
def _quiet() -> Iterator[None]:
    """Parameters that overflow are part of the search; what matters of it is said in the notes."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
