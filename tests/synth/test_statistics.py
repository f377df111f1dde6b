"""The made-up web has the statistics of LBLA section 4, over pages seen in all rounds."""

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import zeta
from scipy.stats import norm

from recrawl.synth.settings import SynthSettings
from recrawl.synth.world import SynthWorld
from recrawl.web.urls import top_level_domain

pytestmark = pytest.mark.slow

INTERNAL, EXTERNAL = 0, 1
GROUPS = {INTERNAL: [1, 3, 11], EXTERNAL: [1, 2]}


@pytest.fixture(scope="module")
def new(web) -> NDArray[np.float64]:
    counts = web.n_new[web.complete][:, 1:]
    assert not np.isnan(counts).any()
    return counts


@pytest.mark.parametrize(
    ("kind", "mean", "deviation"), [("total", 3.04, 14.78), ("internal", 2.64, 13.96), ("external", 0.40, 3.42)]
)
def test_mean_and_deviation_of_new_links_are_within_15_percent_of_table_2(new, kind, mean, deviation) -> None:
    counts = {"total": new.sum(axis=2), "internal": new[:, :, 0], "external": new[:, :, 1]}[kind]
    assert counts.mean() == pytest.approx(mean, rel=0.15)
    assert counts.std(axis=0).mean() == pytest.approx(deviation, rel=0.15)


def test_in_every_round_68_to_75_percent_gain_no_internal_and_91_to_94_no_external_links(new) -> None:
    none = (new == 0).mean(axis=0)
    assert ((none[:, INTERNAL] > 0.68) & (none[:, INTERNAL] < 0.75)).all()
    assert ((none[:, EXTERNAL] > 0.91) & (none[:, EXTERNAL] < 0.94)).all()


def test_just_under_half_of_the_pages_never_gain_internal_links_and_many_do_in_every_round(new) -> None:
    rate = (new[:, :, INTERNAL] > 0).mean(axis=1)
    assert 0.43 < (rate == 0).mean() < 0.5
    assert (rate == 1).mean() > 0.06
    middle = [(np.isclose(rate, k / 9)).mean() for k in (4, 5, 6)]
    assert (rate == 1).mean() > max(middle)


def test_few_pages_ever_gain_external_links(new) -> None:
    assert (new[:, :, EXTERNAL] > 0).any(axis=1).mean() < 0.2


@pytest.mark.parametrize("kind", [INTERNAL, EXTERNAL])
def test_pages_mostly_stay_in_their_group_from_round_to_round(new, kind) -> None:
    group = np.digitize(new[:, :, kind], GROUPS[kind])
    before, after = group[:, :-1], group[:, 1:]
    assert (before == after).mean() > 0.7
    for number in range(len(GROUPS[kind]) + 1):
        stays, share = (after[before == number] == number).mean(), (after == number).mean()
        assert stays > min(3 * share, (1 + share) / 2)
    sizes = np.array([(group == number).mean(axis=0) for number in range(len(GROUPS[kind]) + 1)])
    assert (sizes.std(axis=1) < 0.02).all()  # groups keep their size


@pytest.mark.parametrize("kind", [INTERNAL, EXTERNAL])
def test_new_links_are_heavy_tailed_and_best_fitted_by_a_stretched_exponential(new, kind) -> None:
    counts = new[:, -1, kind]
    values = counts[counts > 0].astype(int)
    at = np.unique(np.geomspace(1, np.quantile(values, 0.995), 15).astype(int))
    survival = np.array([(values >= x).mean() for x in at])
    assert np.corrcoef(np.log(at), np.log(survival))[0, 1] < -0.96
    distances = {name: _distance(law, start, values) for name, (law, start) in LAWS.items()}
    assert min(distances, key=distances.__getitem__) == "stretched exponential"
    assert distances["exponential"] > 5 * distances["stretched exponential"]


# Laws on 1, 2, 3, …, as P(X >= x) with parameters made positive by exp.
LAWS: dict[str, tuple[Callable, list[float]]] = {
    "power law": (lambda p, x: zeta(1 + np.exp(p[0]), x) / zeta(1 + np.exp(p[0]), 1), [0.0]),
    "exponential": (lambda p, x: np.exp(-np.exp(p[0]) * (x - 1.0)), [-2.0]),
    "stretched exponential": (
        lambda p, x: np.exp(np.exp(p[0]) * (0.5 ** np.exp(p[1]) - (x - 0.5) ** np.exp(p[1]))),
        [0.0, -1.0],
    ),
    "log-normal": (
        lambda p, x: norm.sf((np.log(x - 0.5) - p[0]) / np.exp(p[1])) / norm.sf((np.log(0.5) - p[0]) / np.exp(p[1])),
        [1.0, 0.0],
    ),
}  # fmt: skip


def _distance(law: Callable, start: list[float], values: NDArray[np.int64]) -> float:
    """Kolmogorov-Smirnov distance of the law fitted by maximum likelihood."""
    x, n = np.unique(values, return_counts=True)

    def loss(p: NDArray[np.float64]) -> float:
        return -float(n @ np.log(np.maximum(law(p, x) - law(p, x + 1), 1e-300)))

    best = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 2_000}).x
    at_least = n[::-1].cumsum()[::-1] / n.sum()
    return float(np.abs(law(best, x) - at_least).max())


def test_the_number_of_outlinks_is_about_30_and_15_percent_are_external(web) -> None:
    sizes = np.array([[len(part) for part in links] for row in web.sets for links in row if links])
    assert sizes.sum(axis=1).mean() == pytest.approx(30, rel=0.1)
    assert sizes[:, 1].sum() / sizes.sum() == pytest.approx(0.15, abs=0.02)


def test_links_leave_again_and_some_come_back(web) -> None:
    gone = returned = gained = 0
    for row in web.sets[:3_000]:
        seen = [internal for internal, _ in filter(None, row)]
        ever: set[int] = set()
        for before, after in itertools.pairwise(seen):
            ever |= before
            gone += len(before - after)
            gained += len(after - before)
            returned += len((after - before) & ever)
    assert gone == pytest.approx(gained, rel=0.25)
    assert 0.001 < returned / gained < 0.1


def test_pages_of_a_site_gain_the_same_new_links(web) -> None:
    gained = Counter[int]()
    for row in web.sets:
        if row[3] and row[4]:
            gained.update(row[4][0] - row[3][0])
    sightings = np.array(list(gained.values()))
    assert 0.2 < sightings[sightings > 1].sum() / sightings.sum() < 0.9


def test_texts_change_more_often_with_the_links_but_not_only_then(web) -> None:
    changed = (np.diff(web.text, axis=1) != 0)[web.complete]
    known = ~np.isnan(np.diff(web.text, axis=1))[web.complete]
    gained = (web.n_new[web.complete][:, 1:].sum(axis=2) > 0) & known
    assert 0.6 < changed[gained].mean() < 0.9
    assert 0.1 < changed[known & ~gained].mean() < 0.4


def test_top_level_domains_are_those_of_the_papers(web) -> None:
    shares = Counter(map(top_level_domain, web.url))
    assert shares["com"] / len(web.url) == pytest.approx(0.468, abs=0.02)
    assert [name for name, _ in shares.most_common(5)] == ["com", "org", "net", "edu", "gov"]
    assert {"de", "uk", "fr"} < set(shares)


def test_a_small_share_of_visits_fails_dies_or_is_not_modified(web) -> None:
    shares = {status: (web.status == status).mean() for status in (0, 304, 404, 410, 500, 503)}
    assert all(0 < share < 0.05 for share in shares.values())
    dead = np.isin(web.status, (404, 410))
    later = np.logical_or.accumulate(dead, axis=1) & ~dead
    assert not np.isin(web.status[later], (200, 304)).any()


def test_a_304_only_follows_a_copy_that_has_not_changed() -> None:
    world = SynthWorld(SynthSettings(pages=3_000, seed=4, not_modified_rate=1, failure_rate=0.05))
    page, number = np.nonzero(world.behaviour.status == 304)
    assert len(page) > 1_000
    assert np.isin(world.behaviour.status[page, number - 1], (200, 304)).all()
    (links, starts, _), (links_before, starts_before, _) = (world.links.lists(page, at) for at in (number, number - 1))
    assert (links == links_before).all()
    assert (starts == starts_before).all()
    assert (world.version[page, number] == world.version[page, number - 1]).all()


def test_sizes_qualities_and_titles_are_plausible(web) -> None:
    visits = web.tables["visits"]
    content, text, quality = (
        visits[name].drop_null().to_numpy() for name in ("content_bytes", "text_bytes", "text_quality")
    )
    assert (content > text).all()
    assert 500 < np.median(text) < 10_000
    assert 0.5 < quality.mean() < 0.95
    assert quality.min() >= 0
    assert quality.max() <= 1
    assert all(len(title.split()) == 3 for title in visits["title"].drop_null().to_pylist()[:100])
