"""One law for all numbers of new links, or one for the body and one for the tail? Their likelihoods compared.

Two laws have more parameters, so they always come closer. The comparison charges for them: by Schwarz's criterion (BIC), and by
Vuong's test with Schwarz's correction, which also says whether the difference could be chance.

References: the preprint of Dang et al. (2021), section 4, fits an exponential body and a stretched exponential tail, and finds no
significant improvement over one stretched exponential, without printing a test; Vuong (1989), "Likelihood ratio tests for model
selection and non-nested hypotheses"; Clauset, Shalizi and Newman (2009), section 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from recrawl.core.arrays import Floats

SPLIT_PARAMETERS = 2  #: of two laws beside their own: where the tail begins, and the share of the values in it
SIGNIFICANT = 0.05
PAPERS = ("stretched exponential", "exponential", "stretched exponential")  #: one law; body; tail


@dataclass(frozen=True, slots=True)
class FittedLaw:
    """A law's probabilities for the whole numbers of its part, from the smallest on."""

    name: str
    lower: int
    n_parameters: int
    probabilities: Floats


@dataclass(frozen=True, slots=True)
class LawModel:
    """One law, or a law for the body and one for the tail, and how well they describe all values."""

    laws: tuple[str, ...]
    n_parameters: int
    log_likelihood: float
    bic: float  # the smaller, the better
    distance: float  # D, Kolmogorov-Smirnov


@dataclass(frozen=True, slots=True)
class LawComparison:
    """One law against two."""

    chosen: str  # "likeliest": the likeliest of each; "papers": the laws that the preprint compares
    one: LawModel
    two: LawModel
    ratio: float  # Vuong's normalised log-likelihood ratio, charged for parameters; above 0: two laws are better
    p: float  # probability of a ratio at least as far from 0 if both were equally close to the truth

    @property
    def verdict(self) -> str:
        """The result in words."""
        if self.p > SIGNIFICANT:
            return "neither is significantly better"
        return "two laws are significantly better" if self.ratio > 0 else "one law is significantly better"


Fitted = Mapping[str, FittedLaw]


def compare_laws(values: Floats, whole: Fitted, body: Fitted, tail: Fitted) -> tuple[LawComparison, ...]:
    """The likeliest single law against the likeliest two, and the preprint's against each other.

    `values` are all, in ascending order; laws that give any of them no probability at all are left out.
    """
    if not tail:
        return ()
    split = next(iter(tail.values())).lower
    parts = (values, values[values < split], values[values >= split])
    logs = [_log_probabilities(part, laws) for part, laws in zip(parts, (whole, body, tail), strict=True)]
    if not all(logs):
        return ()
    best = tuple(max(of_part, key=lambda law: float(of_part[law].sum())) for of_part in logs)
    chosen = dict(_chosen(best, logs))
    fitted = (whole, body, tail)
    return tuple(
        _compared(name, values, [laws[law] for laws, law in zip(fitted, triple, strict=True)])
        for triple, name in chosen.items()
    )


def _chosen(best: tuple[str, ...], logs: list[dict[str, Floats]]) -> Iterator[tuple[tuple[str, ...], str]]:
    yield best, "likeliest"
    if best != PAPERS and all(law in of_part for law, of_part in zip(PAPERS, logs, strict=True)):
        yield PAPERS, "papers"


def _log_probabilities(values: Floats, laws: Fitted) -> dict[str, Floats]:
    """Of every value by every law that gives all of them a probability above 0."""
    logs = {name: _logs(values, law) for name, law in laws.items()}
    return {name: of_law for name, of_law in logs.items() if np.isfinite(of_law).all()}


def _logs(values: Floats, law: FittedLaw) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(law.probabilities[values.astype(np.int64) - law.lower])


def _compared(chosen: str, values: Floats, laws: list[FittedLaw]) -> LawComparison:
    one, body, tail = laws
    in_tail = float((values >= tail.lower).mean())
    joined = np.concatenate([(1 - in_tail) * body.probabilities, in_tail * tail.probabilities])
    n_two = body.n_parameters + tail.n_parameters + SPLIT_PARAMETERS
    two = FittedLaw("two", one.lower, n_two, joined)
    ratio, p = vuong(_logs(values, two), _logs(values, one), n_two, one.n_parameters)
    models = _model(values, one, (one.name,)), _model(values, two, (body.name, tail.name))
    return LawComparison(chosen, *models, ratio=ratio, p=p)


def _model(values: Floats, law: FittedLaw, names: tuple[str, ...]) -> LawModel:
    log_likelihood = float(_logs(values, law).sum())
    bic = law.n_parameters * math.log(values.size) - 2 * log_likelihood
    return LawModel(names, law.n_parameters, log_likelihood, bic, distance(values, law.lower, law.probabilities))


def distance(values: Floats, lower: int, probabilities: Floats) -> float:
    """D = max |S(x) − P(x)| over the whole numbers from `lower`, given a law's probabilities for them.

    >>> distance(np.array([1.0, 1.0, 2.0, 4.0]), 1, np.array([0.25, 0.25, 0.25, 0.25]))
    0.25
    """
    x = np.arange(lower, lower + probabilities.size)
    empirical = np.searchsorted(np.sort(values), x, side="right") / values.size
    return float(np.abs(empirical - np.cumsum(probabilities)).max())


def vuong(first: Floats, second: Floats, n_first: int, n_second: int) -> tuple[float, float]:
    """The normalised ratio of two models by the log-likelihoods of every value, and its p-value; above 0 for the first.

    The first pays ½ ln n for every parameter that it has more than the second.

    >>> vuong(np.log([0.5, 0.5, 0.2]), np.log([0.5, 0.5, 0.2]), 2, 2)
    (0.0, 1.0)
    """
    difference = first - second
    total = float(difference.sum()) - (n_first - n_second) / 2 * math.log(difference.size)
    deviation = float(difference.std()) * math.sqrt(difference.size)
    if not deviation:
        return (0.0, 1.0) if not total else (math.copysign(math.inf, total), 0.0)
    return total / deviation, math.erfc(abs(total / deviation) / math.sqrt(2))
