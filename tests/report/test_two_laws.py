"""One law against two: likelihoods from the definitions, Vuong's ratio against the one of `powerlaw`."""

from __future__ import annotations

import math

import numpy as np
import powerlaw
import pytest

from recrawl.report.stats import tables
from recrawl.report.stats.tails import TailFits, fit_tails
from recrawl.report.stats.two_laws import PAPERS, FittedLaw, LawComparison, compare_laws, vuong

N_VALUES = 4000


def law(name: str, lower: int, probabilities: list[float], n_parameters: int = 1) -> dict[str, FittedLaw]:
    return {name: FittedLaw(name, lower, n_parameters, np.array(probabilities))}


def geometric(rate: float, lower: int, upper: int) -> list[float]:
    weights = [(1 - rate) ** (x - lower) for x in range(lower, upper + 1)]
    return [weight / sum(weights) for weight in weights]


@pytest.fixture(scope="module")
def broken() -> np.ndarray:
    """A steep body up to 4, and from 5 on a flat tail that holds a third of the values."""
    random = np.random.default_rng(2)
    body = random.choice([1, 2, 3, 4], N_VALUES, p=geometric(0.7, 1, 4))
    tail = random.choice(np.arange(5, 31), N_VALUES // 2, p=geometric(0.05, 5, 30))
    return np.sort(np.concatenate([body, tail])).astype(np.float64)


def slow_log_likelihood(values: np.ndarray, one: list[float]) -> float:
    return sum(math.log(one[int(value) - 1]) for value in values)


def test_likelihoods_bic_and_distance_are_those_of_the_definitions(broken: np.ndarray) -> None:
    whole, body, tail = geometric(0.2, 1, 30), geometric(0.7, 1, 4), geometric(0.05, 5, 30)
    (found,) = compare_laws(broken, law("w", 1, whole), law("b", 1, body), law("t", 5, tail, 2))
    share = sum(value >= 5 for value in broken) / len(broken)
    both = [(1 - share) * p for p in body] + [share * p for p in tail]
    assert (found.one.laws, found.two.laws) == (("w",), ("b", "t"))
    assert (found.one.n_parameters, found.two.n_parameters) == (1, 1 + 2 + 2)
    for model, probabilities in ((found.one, whole), (found.two, both)):
        assert model.log_likelihood == pytest.approx(slow_log_likelihood(broken, probabilities))
        assert model.bic == pytest.approx(
            model.n_parameters * math.log(len(broken)) - 2 * slow_log_likelihood(broken, probabilities)
        )
        below = [sum(value <= x for value in broken) / len(broken) for x in range(1, 31)]
        assert model.distance == pytest.approx(max(abs(np.cumsum(probabilities) - below)))


def test_two_laws_win_where_the_data_breaks_and_not_where_one_law_made_them(broken: np.ndarray) -> None:
    laws = law("w", 1, geometric(0.2, 1, 30)), law("b", 1, geometric(0.7, 1, 4)), law("t", 5, geometric(0.05, 5, 30))
    (found,) = compare_laws(broken, *laws)
    assert found.two.bic < found.one.bic
    assert found.ratio > 5
    assert found.verdict == "two laws are significantly better"
    random = np.random.default_rng(0)
    smooth = np.sort(random.choice(np.arange(1, 31), N_VALUES, p=geometric(0.3, 1, 30))).astype(np.float64)
    parts = law("b", 1, geometric(0.3, 1, 4)), law("t", 5, geometric(0.3, 5, 30))
    (found,) = compare_laws(smooth, law("w", 1, geometric(0.3, 1, 30)), *parts)
    assert found.one.bic < found.two.bic, "the same curve, with more parameters"
    assert found.ratio < 0


@pytest.mark.parametrize(("n_first", "n_second"), [(2, 2), (5, 1), (1, 4)])
def test_vuongs_ratio_is_that_of_powerlaw_but_for_the_charge(n_first: int, n_second: int) -> None:
    random = np.random.default_rng(3)
    first, second = np.log(random.random((2, 500)))
    theirs, their_p = powerlaw.loglikelihood_ratio(first, second, normalized_ratio=True)
    deviation = np.std(first - second) * math.sqrt(500)
    ratio, p = vuong(first, second, n_first, n_second)
    assert ratio + (n_first - n_second) / 2 * math.log(500) / deviation == pytest.approx(theirs)
    if n_first == n_second:
        assert p == pytest.approx(their_p, rel=1e-6)
    assert p == pytest.approx(math.erfc(abs(ratio) / math.sqrt(2)))


def test_equal_models_are_decided_by_their_parameters_alone() -> None:
    same = np.log(np.full(9, 0.5))
    assert vuong(same, same, 1, 1) == (0.0, 1.0)
    assert vuong(same, same, 3, 1) == (-math.inf, 0.0)


def test_a_law_that_excludes_a_value_does_not_compete(broken: np.ndarray) -> None:
    never = [0.0, *geometric(0.2, 2, 30)]
    laws = law("w", 1, geometric(0.2, 1, 30)) | law("never", 1, never)
    parts = law("b", 1, geometric(0.7, 1, 4)), law("t", 5, geometric(0.05, 5, 30))
    (found,) = compare_laws(broken, laws, *parts)
    assert found.one.laws == ("w",)
    assert compare_laws(broken, law("never", 1, never), *parts) == ()
    assert compare_laws(broken, laws, parts[0], {}) == ()


@pytest.fixture(scope="module")
def fits() -> TailFits:
    random = np.random.default_rng(5)
    return fit_tails(np.minimum(np.ceil(random.pareto(1.3, 800) * 3), 120), "internal", 9)


def test_fitted_laws_are_compared_the_likeliest_and_those_of_the_preprint(fits: TailFits) -> None:
    named = {compared.chosen: compared for compared in fits.comparisons}
    assert set(named) == {"likeliest", "papers"}
    assert (*named["papers"].one.laws, *named["papers"].two.laws) == PAPERS
    best = {part.name: max(part.fits, key=lambda fit: fit.log_likelihood or -math.inf) for part in fits.parts}
    assert named["likeliest"].one.laws == (best["whole"].law,)
    assert named["likeliest"].two.laws == (best["body"].law, best["tail"].law)
    whole = next(fit for fit in fits.parts[0].fits if fit.law == best["whole"].law)
    assert named["likeliest"].one.log_likelihood == pytest.approx(whole.log_likelihood)
    assert named["likeliest"].one.distance == pytest.approx(whole.distance)
    assert named["likeliest"].two.log_likelihood >= named["papers"].two.log_likelihood


def test_the_comparison_is_a_table_with_its_verdict(fits: TailFits) -> None:
    (table,) = tables._comparison_table(fits)
    assert len(table.rows) == 2 * len(fits.comparisons)
    compared: LawComparison = fits.comparisons[0]
    assert table.note.startswith(f"Likeliest: {compared.verdict} (ratio")
    assert [row[0] for row in table.rows] == ["likeliest", "likeliest", "papers", "papers"]
    assert table.rows[1][1] == " + ".join(compared.two.laws)
    assert tables._comparison_table(TailFits("internal", 1, 0, 0)) == []
