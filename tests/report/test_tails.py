from __future__ import annotations

import math
import warnings

import numpy as np
import powerlaw
import pytest
from scipy.special import zeta
from scipy.stats import norm

from recrawl.report.stats import tails
from recrawl.report.stats.tails import DataPart, LawFit, TailFits, fit_tails, thinned


def probability(law: str, p: dict[str, float], x: int, lower: int) -> float:
    """The law's weight at x on [lower, ∞), written from the definitions (LBLA Table 5)."""
    if law == "power law":
        return float(x ** -p["alpha"] / zeta(p["alpha"], lower))
    if law == "truncated power law":
        weights = np.arange(lower, 200_000.0) ** -p["alpha"] * np.exp(-p["lambda"] * np.arange(lower, 200_000.0))
        return float(weights[x - lower] / weights.sum())
    if law == "exponential":
        return (1 - math.exp(-p["lambda"])) * math.exp(-p["lambda"] * (x - lower))
    if law == "stretched exponential":
        above = [math.exp(-((p["lambda"] * y) ** p["beta"])) for y in (x - 0.5, x + 0.5, lower - 0.5)]
    else:
        above = [norm.sf((math.log(y) - p["mu"]) / p["sigma"]) for y in (x - 0.5, x + 0.5, lower - 0.5)]
    return float((above[0] - above[1]) / above[2])


def slow_distance(values: np.ndarray, fit: LawFit, part: DataPart) -> float:
    upper = part.upper or int(values.max())
    inside = [v for v in values.tolist() if part.lower <= v <= upper]
    weights = [probability(fit.law, fit.parameters, x, part.lower) for x in range(part.lower, upper + 1)]
    total = sum(weights) if part.upper else 1.0
    worst = below = 0.0
    for x, weight in enumerate(weights, part.lower):
        below += weight / total
        worst = max(worst, abs(sum(v <= x for v in inside) / len(inside) - below))
    return worst


@pytest.fixture(scope="module")
def heavy() -> np.ndarray:
    random = np.random.default_rng(5)
    return np.concatenate([np.zeros(400), np.minimum(np.ceil(random.pareto(1.3, 800) * 3), 120)])


@pytest.fixture(scope="module")
def fits(heavy: np.ndarray) -> TailFits:
    return fit_tails(heavy, "internal", 9)


def test_distances_agree_with_ones_computed_from_the_definitions(heavy: np.ndarray, fits: TailFits) -> None:
    values = heavy[heavy > 0]
    assert [part.name for part in fits.parts] == ["whole", "tail", "body"]
    for part in fits.parts:
        assert [fit.law for fit in part.fits] == list(tails.LAWS)
        for fit in part.fits:
            assert fit.distance == pytest.approx(slow_distance(values, fit, part), abs=1e-6), (part.name, fit.law)


def test_the_power_laws_distance_agrees_with_the_packages(fits: TailFits) -> None:
    whole = fits.parts[0].fits[0]
    assert whole.law == "power law"
    assert whole.distance == pytest.approx(whole.package_distance, abs=0.01)


def test_the_tail_begins_where_powerlaw_says(heavy: np.ndarray, fits: TailFits) -> None:
    values = heavy[heavy > 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = powerlaw.Fit(values, discrete=True, verbose=0).xmin
    assert fits.lower_tail == expected
    assert fits.tail_rate == pytest.approx((values >= expected).mean())
    assert fits.parts[1].lower == expected
    assert (fits.parts[2].lower, fits.parts[2].upper) == (1, expected - 1)


def test_zeros_are_discarded(heavy: np.ndarray, fits: TailFits) -> None:
    assert (fits.n_pages, fits.n_values) == (1200, 800)
    assert fits.parts[0].n_values == 800


def test_a_geometric_sample_is_found_to_be_exponential_also_when_cut_off() -> None:
    sample = np.random.default_rng(1).geometric(0.4, 4000).astype(np.float64)
    whole = tails._fit_part(sample[np.argsort(sample)], np.sort(sample), "whole", 1, None)[0]
    body = tails._fit_part(np.sort(sample), np.sort(sample), "body", 1, 5)[0]
    for part in (whole, body):
        exponential = next(fit for fit in part.fits if fit.law == "exponential")
        assert exponential.parameters["lambda"] == pytest.approx(-math.log(0.6), rel=0.06)
        assert exponential.distance is not None
        assert exponential.distance < 0.02


def test_parameters_from_thinned_values_are_close_to_those_from_all(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.minimum(np.random.default_rng(2).zipf(2.2, 20_000), 2000).astype(np.float64)
    all_values = fit_tails(values, "internal", 1).parts[0].fits[0]
    monkeypatch.setattr(tails, "MAX_FITTED", 2000)
    some = fit_tails(values, "internal", 1).parts[0]
    assert some.n_values == 20_000
    assert some.fits[0].parameters["alpha"] == pytest.approx(all_values.parameters["alpha"], rel=0.02)


def test_thinning_keeps_the_distribution() -> None:
    ordered = np.sort(np.random.default_rng(0).lognormal(0, 2, 10_001))
    for q in (0.01, 0.5, 0.99):
        assert np.mean(thinned(ordered, 1000) <= np.quantile(ordered, q)) == pytest.approx(q, abs=0.002)


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([], "0 pages with new links"),
        ([0.0] * 50, "0 pages with new links"),
        ([3.0] * 50, "1 different numbers"),
        ([1.0, 2.0] * 50, "2 different numbers"),
        ([1.0, 2.0, 9.0], "3 pages with new links"),
    ],
)
def test_too_little_data_is_said_and_not_fitted(counts: list[float], reason: str) -> None:
    found = fit_tails(np.array(counts), "external", 2)
    assert found.parts == ()
    assert reason in found.note


def test_three_different_numbers_have_a_whole_but_no_tail(recwarn: pytest.WarningsRecorder) -> None:
    found = fit_tails(np.array([1.0] * 30 + [2.0] * 10 + [3.0] * 5), "internal", 1)
    assert [part.name for part in found.parts] == ["whole"]
    assert "No tail" in found.note
    assert not recwarn.list
