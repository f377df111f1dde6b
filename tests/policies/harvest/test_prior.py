import copy
from typing import Any

import numpy as np
import pytest

from recrawl.policies.harvest import prior as prior_module
from recrawl.policies.harvest.prior import POWERS, Prior
from recrawl.world.related import Related

N, PER_SITE = 400, 10
SITE = np.arange(N) // PER_SITE
HOURS = np.full(N, 50.0)
SIZE = np.full(N, 30.0)


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The weights learnt so far, in batches: one per group and one for related pages, in every fit."""
    learnt: list[float] = []
    best_weight = prior_module._Sample.best_weight

    def spy(sample: Any, name: str, factor: Any, mean: Any, fitted: Any, dispersion: float) -> float:
        weight = best_weight(sample, name, factor, mean, fitted, dispersion)
        learnt.append(weight / dispersion)
        return weight

    monkeypatch.setattr(prior_module._Sample, "best_weight", spy)
    return learnt


def fitted(
    arrivals: np.ndarray,
    exposure: np.ndarray = HOURS,
    size: np.ndarray = SIZE,
    related: Related | None = None,
    dispersion: float = 1.0,
    around: bool = True,
) -> Prior:
    prior = Prior(N)
    for _ in range(2):  # the mixture of the first time serves the second
        prior.refit(
            arrivals.astype(float),
            exposure,
            size=size,
            groups=(SITE,),
            related=related,
            dispersion=dispersion,
            cycle_hours=1.0,
            around=around,
        )
    return prior


def by_site(seed: int, spread: float) -> np.ndarray:
    """Links that arrive in 50 hours, 10 per page on average; rates differ from site to site."""
    chance = np.random.default_rng(seed)
    level = chance.gamma(1 / spread, spread, SITE.max() + 1) if spread else np.ones(SITE.max() + 1)
    return chance.poisson(10.0 * level[SITE])


def test_a_rate_is_the_expected_one_times_the_factor_of_the_mixture_for_batches() -> None:
    prior = Prior(3)
    prior.mean = np.array([2.0, 0.5, 4.0])
    arrivals, exposure, page = np.array([30.0, 0.0]), np.array([10.0, 7.0]), np.array([0, 2])
    rate, shape = prior.posterior(arrivals, exposure, page, 4.0)
    factor, known = prior.mixture.posterior(np.array([30 / 4, 0.0]), np.array([2.0 * 10 / 4, 4.0 * 7 / 4]))
    assert np.allclose(rate, [2.0 * factor[0], 4.0 * factor[1]])
    assert np.array_equal(shape, known)


def test_power_is_that_under_which_the_counts_are_likeliest() -> None:
    chance = np.random.default_rng(3)
    size = chance.integers(1, 200, N).astype(float)
    exposure = chance.uniform(5, 50, N)
    arrivals = chance.poisson(chance.gamma(0.7, 1 / 0.7, N) * 0.02 * size**0.75 * exposure).astype(float)
    prior = Prior(N)
    for _ in range(3):
        mixture = copy.deepcopy(prior.mixture)  # as it was learnt the last time
        groups = (np.arange(N),)
        prior.refit(arrivals, exposure, size=size, groups=groups, related=None, dispersion=1.0, cycle_hours=1e-9)

    def level(power: float) -> np.ndarray:
        base = size**power
        return base * (arrivals.sum() + 1) / (base * exposure).sum()

    def likelihood(power: float) -> float:
        return mixture.log_likelihood(arrivals, level(power) * exposure)

    assert prior.power == max(POWERS, key=likelihood)
    assert np.allclose(
        prior.mean, level(prior.power)
    )  # every page is a site of its own: there is no other to learn from
    assert prior.power == 0.75


def test_a_page_without_a_past_begins_with_what_its_site_brings(weights: list[float]) -> None:
    arrivals, exposure = by_site(0, spread=1.0), HOURS.copy()
    new = np.arange(0, N, PER_SITE)
    arrivals[new], exposure[new] = 0, 0.0
    prior = fitted(arrivals, exposure)
    assert weights[-1] <= 10
    of_site = np.bincount(SITE, arrivals) / np.bincount(SITE, exposure)
    rate = prior.posterior(arrivals.astype(float), exposure, slice(None), 1.0)[0][new]
    assert np.corrcoef(rate, of_site)[0, 1] > 0.98
    assert np.median(np.abs(rate / np.maximum(of_site, 0.01) - 1)) < 0.15


def test_a_page_does_not_count_for_its_own_prior(weights: list[float]) -> None:
    arrivals = by_site(0, spread=1.0)
    prior, more = fitted(arrivals), arrivals.copy()
    before = weights[-1]
    more[5] += 200
    later = fitted(more)
    assert weights[-1] == before
    ratio = later.mean / prior.mean
    assert ratio[4] > 1.5  # of the same site
    assert np.isclose(ratio[5], ratio[-1], rtol=0.1)  # itself, as pages elsewhere: only the level of all has moved


def test_a_page_does_not_count_for_its_own_prior_nor_twice_for_that_of_others() -> None:
    folder = np.arange(N) // 5
    arrivals = by_site(0, spread=1.0).astype(float)
    more = arrivals.copy()
    more[5] += 200
    raised = {}
    for groups in ((SITE,), (SITE, folder), (SITE, SITE, SITE)):
        means = []
        for counts in (arrivals, more):
            prior = Prior(N)
            for _ in range(2):
                prior.refit(counts, HOURS, size=SIZE, groups=groups, related=None, dispersion=1.0, cycle_hours=1.0)
            means.append(prior.mean)
        ratio = means[1] / means[0]
        assert np.isclose(ratio[5], ratio[-1], rtol=0.1)
        raised[len(groups)] = ratio[6]  # of the same site and folder
    assert raised[1] > 1.5
    assert raised[2] < 3 * raised[1]  # the folder is half as large, so that the page counts for more
    assert np.isclose(raised[3], raised[1], rtol=0.2)


def test_where_sites_do_not_differ_they_hardly_count() -> None:
    for seed in range(5):
        mean = fitted(by_site(seed, spread=0.0)).mean
        assert mean.std() < 0.06 * mean.mean()


def ring(n_neighbours: int) -> Related:
    """Pages are related to those of the same colour, whatever their site; a few have none."""
    n_colours = 8
    neighbour = (np.arange(N)[:, None] + n_colours * np.arange(1, n_neighbours + 1)) % N
    neighbour[:5] = -1
    weight = np.where(neighbour >= 0, 1 / n_neighbours, 0)
    return Related(neighbour.astype(np.int32), weight.astype(np.float32), "exact", 1.0)


def test_a_page_without_a_past_begins_with_what_related_pages_bring(weights: list[float]) -> None:
    chance = np.random.default_rng(0)
    colour = np.arange(N) % 8
    arrivals, exposure = chance.poisson(4.0 * (1 + colour)), HOURS.copy()
    new = np.arange(0, N, 9)
    arrivals[new], exposure[new] = 0, 0.0
    prior = fitted(arrivals, exposure, related=ring(6))
    assert weights[-1] <= 10  # that of the related pages, which come last
    rate = prior.mean[new[new >= 5]]
    truth = 4.0 * (1 + colour[new[new >= 5]]) / 50
    assert np.corrcoef(rate, truth)[0, 1] > 0.9
    without = fitted(arrivals, exposure).mean[new[new >= 5]]
    assert abs(np.corrcoef(without, truth)[0, 1]) < 0.5
    assert np.allclose(prior.mean[:5], fitted(arrivals, exposure).mean[:5])  # those without related pages


def test_related_pages_that_do_not_differ_hardly_count() -> None:
    arrivals = by_site(0, spread=0.0)
    mean = fitted(arrivals, related=ring(6)).mean
    assert mean.std() < 0.06 * mean.mean()


def test_without_other_pages_all_pages_begin_equal() -> None:
    size = np.where(np.arange(N) % 3, 30.0, np.nan)
    prior = fitted(by_site(0, 1.0), size=size, related=ring(6), around=False)
    assert np.ptp(prior.mean) == 0
    assert prior.power == 0


def test_batches_of_links_are_not_taken_for_differences_between_pages() -> None:
    chance = np.random.default_rng(0)
    arrivals = 10.0 * chance.poisson(1.0, N)  # ten at a time, the same for every page
    spread = []
    for dispersion in (10.0, 1.0):
        rate, _ = fitted(arrivals, dispersion=dispersion).posterior(arrivals, HOURS, slice(None), dispersion)
        spread.append(rate.std() / rate.mean())
    assert spread[0] < 0.75 * spread[1]


def test_what_a_site_brings_is_weighed_in_batches_of_links(weights: list[float]) -> None:
    arrivals = 3 * by_site(0, spread=0.03)
    prior = fitted(arrivals, dispersion=3.0)
    assert 10 <= weights[-1] <= 100
    level = (arrivals.sum() + 1) / HOURS.sum()
    for p in (0, 17, 399):
        others = [q for q in range(N) if SITE[q] == SITE[p] and q != p]
        arrived, weight = sum(arrivals[q] for q in others), 3.0 * weights[-1]
        by_hand = level * (arrived + weight) / (level * 50 * len(others) + weight)
        assert np.isclose(prior.mean[p], by_hand, rtol=0.003)


def slow_means(arrivals: np.ndarray, groups: tuple[np.ndarray, ...], weights: tuple[float, ...]) -> np.ndarray:
    """What is expected of every page, page by page."""
    level = (arrivals.sum() + 1) / (HOURS.sum() + 10.0)
    with_it = np.ones(N)
    without_it = np.ones(N)
    for k, (group, weight) in enumerate(zip(groups, weights, strict=True)):
        if np.isinf(weight):
            continue
        next_with, next_without = with_it.copy(), without_it.copy()
        for p in range(N):
            mates = np.flatnonzero(group == group[p])
            arrived = due = 0.0
            for q in mates[mates != p]:
                shares_all = all(earlier[q] == earlier[p] for earlier in groups[:k])
                arrived += arrivals[q]
                due += level * HOURS[q] * (without_it[p] if shares_all else with_it[q])
            next_without[p] *= (arrived + weight) / (due + weight)
            whole = (level * HOURS * with_it)[mates].sum()
            next_with[p] *= (arrivals[mates].sum() + weight) / (whole + weight)
        with_it, without_it = next_with, next_without
    return level * without_it


def test_groups_count_one_after_the_other_each_given_those_before_it(weights: list[float]) -> None:
    chance = np.random.default_rng(2)
    folder, name = np.arange(N) // 5, np.arange(N) % 5  # two folders per site; five names
    level = chance.gamma(2.0, 0.5, N // 5)[folder] * np.array([0.2, 0.5, 1.0, 1.5, 2.0])[name]
    arrivals = chance.poisson(10.0 * level).astype(float)
    prior = Prior(N)
    groups = (SITE, folder, name)
    for _ in range(2):
        prior.refit(arrivals, HOURS, size=SIZE, groups=groups, related=None, dispersion=1.0, cycle_hours=1.0)
    assert len(weights) == 2 * 3
    assert max(weights[-2:]) < np.inf
    assert np.allclose(prior.mean, slow_means(arrivals, groups, tuple(weights[-3:])))
    by_site_only = fitted(arrivals).mean
    assert np.corrcoef(prior.mean, level)[0, 1] > np.corrcoef(by_site_only, level)[0, 1] + 0.1
