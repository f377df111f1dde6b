"""Regression: content, the paper's own bootstrap, and fits whose columns depend on each other."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import recrawl as rc
from recrawl.core.times import microseconds, moment
from recrawl.history import History
from recrawl.policies import Bandit, LearningToRank, Regression, WindowedOutdegree
from recrawl.policies.budget import Budget
from recrawl.policies.learning_to_rank import ranking
from recrawl.policies.least_squares import N_CLOCK, N_PAGE_FEATURES, CycleExamples, LeastSquares, Linear
from recrawl.policies.page_content import N_SCALARS, PageContent, hashed_words
from recrawl.testing import Case, check_generated, check_policy, choices, tiny_world
from recrawl.web.visit import Visit
from recrawl.world.crawler import Crawler
from recrawl.world.pages import Need

MONDAY = datetime(2026, 1, 5, 9, tzinfo=UTC)
DIMENSIONS = 8


# -- fits -------------------------------------------------------------------------------------------------------------


def examples(x: Any, n_new: Any, hours: Any = 0) -> CycleExamples:
    at = microseconds(MONDAY) + np.broadcast_to(np.asarray(hours, np.int64), (len(x),)) * 3_600_000_000
    return CycleExamples(np.asarray(x, np.float64), np.asarray(n_new, np.int64), at)


def fitted(x: Any, n_new: Any, hours: Any = 0) -> Linear:
    return LeastSquares().fit([examples(x, n_new, hours)])


def made(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    x = chance.gamma(2.0, 2.0, (n, N_PAGE_FEATURES))
    return x, chance.poisson(1.0 + 2.0 * x[:, 0] + 0.5 * x[:, 2])


def test_a_column_that_is_there_twice_changes_no_prediction_and_shares_its_weight() -> None:
    x, n_new = made()
    one = x.copy()
    one[:, 3] = 7.0  # constant: has no weight
    two = x.copy()
    two[:, 3] = x[:, 0]
    plain, twice = fitted(one, n_new), fitted(two, n_new)
    assert plain.weight[3] == 0
    assert twice.weight[3] == pytest.approx(twice.weight[0])
    assert twice.weight[0] + twice.weight[3] == pytest.approx(plain.weight[0])
    assert twice.predict(two, MONDAY) == pytest.approx(plain.predict(one, MONDAY), abs=1e-9)


@pytest.mark.parametrize("noise", [1e-15, 1e-12, 1e-10])
def test_columns_that_differ_by_rounding_only_get_no_huge_weights(noise: float) -> None:
    x, n_new = made()
    chance = np.random.default_rng(1)
    x[:, 1] = x[:, 0] * (1 + noise * chance.standard_normal(len(x)))
    x[:, 3] = noise * chance.standard_normal(len(x))
    model = fitted(x, n_new)
    assert np.abs(model.weight).max() < 10
    other = np.array([[3.0, 3.0, 2.0, 1.0]])  # another value of what seemed constant
    assert model.predict(other, MONDAY) == pytest.approx([1 + 6 + 1], abs=1.5)
    lists = [(x[start : start + 20], n_new[start : start + 20]) for start in range(0, 200, 20)]
    assert np.abs(ranking(lists).weight).max() < 10


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_the_unit_of_a_column_does_not_matter(unit: float) -> None:
    x, n_new = made()
    scaled = x * [unit, 1, 1, 1]
    assert fitted(scaled, n_new).predict(scaled, MONDAY) == pytest.approx(fitted(x, n_new).predict(x, MONDAY))


def test_of_one_visit_and_of_equal_visits_the_prediction_is_what_was_seen() -> None:
    for n in (1, 5):
        model = fitted([[3.0, 1.0, 24.0, 72.0]] * n, [4] * n)
        assert not model.weight.any()
        assert model.predict(np.array([[3.0, 1.0, 24.0, 72.0], [9.0, 0.0, 500.0, 0.0]]), MONDAY) == pytest.approx(
            [4, 4]
        )


def test_fewer_visits_than_columns_are_fitted_exactly_with_small_weights() -> None:
    x, n_new = made(6)
    model = fitted(x, n_new, hours=[0, 1, 2, 30, 31, 55])
    seen = [model.predict(x[i : i + 1], MONDAY + timedelta(hours=h))[0] for i, h in enumerate([0, 1, 2, 30, 31, 55])]
    assert seen == pytest.approx(n_new.tolist(), abs=1e-6)
    assert np.abs(model.weight * np.append(x.std(axis=0), np.ones(N_CLOCK))).max() <= n_new.max()


def test_content_is_shrunk_as_a_plain_ridge_regression_does_it() -> None:
    chance = np.random.default_rng(3)
    x = np.hstack([made(60)[0], chance.standard_normal((60, 10))])
    n_new = chance.poisson(4, 60)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    penalty = np.diag([0.0] * N_PAGE_FEATURES + [10.0] * 10)
    slow = np.linalg.solve(z.T @ z + penalty, z.T @ (n_new - n_new.mean()))
    assert fitted(x, n_new).predict(x, MONDAY) == pytest.approx(z @ slow + n_new.mean(), abs=1e-8)


# -- bootstrap --------------------------------------------------------------------------------------------------------


def test_the_papers_bootstrap_is_windowed_outdegree_overlaps_or_not() -> None:
    """Pages 2 and 3 show the same new links, most of all: the paper's OD-WIN visits both, Algorithm 2 only one of them."""
    per_page = (1, 2, 5, 5, 3)
    names = (0, 1, 2, 2, 4)
    pages = list(zip(names, per_page, strict=True))
    gains = [[{1_000 * name + 10 * cycle + i for i in range(n)} for name, n in pages] for cycle in range(14)]
    case = Case(tiny_world(gains, site=[0] * 5), (Budget(2),))
    plain = [choice.page.tolist() for choice in choices(Regression(bootstrap=10, plain_bootstrap=True), case)]
    outdegree = [choice.page.tolist() for choice in choices(WindowedOutdegree(), case)]
    careful = [choice.page.tolist() for choice in choices(Regression(bootstrap=10), case)]
    assert plain[:10] == outdegree[:10]
    assert set(plain[9]) == {2, 3}
    assert set(careful[9]) != {2, 3}
    assert set(plain[-1]) != {2, 3}  # the regression itself leaves overlaps out


# -- content ----------------------------------------------------------------------------------------------------------


def slow_columns(texts: list[dict[int, int] | None], changed: list[bool]) -> list[float]:
    """The columns of one page after it said these texts, by plain Python."""

    def hashed(words: dict[int, int]) -> list[float]:
        out, total = [0.0] * DIMENSIONS, sum(words.values())
        for word, n in words.items():
            mixed = (word + 1) * 0x9E3779B97F4A7C15 % 2**64
            out[(mixed >> 32) % DIMENSIONS] += (-1 if mixed >> 63 else 1) * n / total
        return out

    known = [words for words in texts if words is not None]
    if not known:
        return [0.0] * (N_SCALARS + DIMENSIONS)
    now = hashed(known[-1])
    moved = math.dist(now, hashed(known[-2])) if len(known) > 1 else 0.0
    share = sum(changed) / len(changed) if changed else 0.0
    return [math.log1p(sum(known[-1].values())), moved, float(changed[-1]) if changed else 0.0, share, *now]


def test_columns_of_content_are_those_of_a_plain_version() -> None:
    chance = np.random.default_rng(5)
    n_cycles, n_pages = 9, 6

    def text() -> dict[int, int]:
        return {int(word): int(chance.integers(1, 9)) for word in chance.choice(30, 5, replace=False)}

    says: list[list[dict[int, int]]] = [[text() for _ in range(n_pages)] for _ in range(n_cycles)]
    world = tiny_world([[{page} for page in range(n_pages)] for _ in range(n_cycles)], says=says)
    crawler = Crawler(world, frozenset({Need.WORDS}))
    content = PageContent(n_pages, DIMENSIONS, window=100)
    said: list[list[dict[int, int] | None]] = [[] for _ in range(n_pages)]
    changed: list[list[bool]] = [[] for _ in range(n_pages)]
    visits = crawler.first.visits
    for cycle in range(n_cycles):
        if cycle:
            visits = crawler.visit(np.flatnonzero(chance.random(n_pages) < 0.6)).visits
        content.observe(visits)
        for page, has_changed in zip(visits.page.tolist(), visits.changed.tolist(), strict=True):
            said[page].append(says[cycle][page])
            if has_changed >= 0:
                changed[page].append(bool(has_changed))
    expected = [slow_columns(texts, flags) for texts, flags in zip(said, changed, strict=True)]
    assert content.columns() == pytest.approx(np.array(expected), abs=1e-6)
    assert content.columns(np.array([2, 4])).shape == (2, N_SCALARS + DIMENSIONS)


def test_hashing_keeps_inner_products_in_expectation() -> None:
    chance = np.random.default_rng(2)
    counts = sparse.random(40, 3_000, 0.03, "csr", rng=chance)
    dense = counts.toarray()
    hashed = hashed_words(counts, np.ones(40), 4_096)
    assert hashed @ hashed.T == pytest.approx(dense @ dense.T, abs=3.0)
    assert np.linalg.norm(hashed, axis=1) == pytest.approx(np.linalg.norm(dense, axis=1), rel=0.05)


def announcing(n_pages: int = 12, n_cycles: int = 60) -> Any:
    """Pages that say "soon" a cycle before they gain six links, each on average as often as the others."""
    chance = np.random.default_rng(4)
    soon = chance.random((n_cycles, n_pages)) < 0.25

    def shown(cycle: int, page: int) -> set[int]:
        announced = cycle > 0 and soon[cycle - 1, page]
        return {10_000 * page + 10 * cycle + i for i in range(6)} if announced else {page}

    gains = [[shown(cycle, page) for page in range(n_pages)] for cycle in range(n_cycles)]
    says = [[{0: 20, 1: 5 if soon[cycle, page] else 1, 2: 1} for page in range(n_pages)] for cycle in range(n_cycles)]
    return tiny_world(gains, says=says, site=range(n_pages))


@pytest.mark.parametrize("kind", [Regression, LearningToRank])
def test_words_that_announce_new_links_are_learnt(kind: Any) -> None:
    """Every page is visited in every cycle; who is ranked first is what the policy would visit with a small budget."""
    world, found = announcing(), {0: 0, 16: 0}
    for content in found:
        policy = kind(content=content, retrain=1, window=40)
        crawler = Crawler(world, policy.needs)
        policy.start(crawler.pages)
        policy.observe(crawler.first.visits)
        for cycle in range(1, 60):
            best = policy.choose(crawler.pages, Budget(3), moment(int(world.time[cycle]))).page
            visits = crawler.visit(np.arange(12)).visits
            if cycle > 40:
                found[content] += int(visits.n_new[best].sum())
            policy.observe(visits)
    assert found[16] > 1.8 * found[0]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Regression(content=4, bootstrap=1, retrain=1, window=4), id="regression"),
        pytest.param(lambda: Regression(plain_bootstrap=True, bootstrap=4, retrain=1, window=4), id="plain bootstrap"),
        pytest.param(
            lambda: LearningToRank(content=4, bootstrap=1, retrain=1, window=4),
            id="learning-to-rank",
            marks=pytest.mark.more,
        ),
        pytest.param(lambda: Bandit(content=4, bootstrap=1, window=4), id="bandit", marks=pytest.mark.more),
    ],
)
def test_policies_with_these_settings_keep_the_contract(make: Any) -> None:
    check_policy(make)
    check_generated(make, 40)


def test_words_are_asked_for_only_with_content() -> None:
    assert Regression().needs == LearningToRank().needs == frozenset()
    assert Regression(content=8).needs == LearningToRank(content=8).needs == Bandit(content=8).needs == {Need.WORDS}
    with pytest.raises(ValueError, match="content is -1"):
        Regression(content=-1)


@pytest.mark.parametrize("policy", ["regression", "learning-to-rank"])
def test_what_was_learnt_from_content_is_carried_on_to_the_byte(policy: str, tmp_path: Path) -> None:
    history, chance = History.create(tmp_path / "h"), np.random.default_rng(6)
    settings = (f"{policy}.content=8", f"{policy}.bootstrap=2", f"{policy}.plain_bootstrap=yes")
    for day in range(9):
        history.add(
            Visit(
                url=f"https://e.org/{page}",
                at=MONDAY + timedelta(days=day, minutes=page),
                links=[f"https://e.org/{page}/{day}/{i}" for i in range(int(chance.poisson(page)))],
                text=" ".join(chance.choice(["alpha", "beta", "gamma", "delta", "news"], 30)),
            )
            for page in range(8)
        )
        if day > 4:
            now = MONDAY + timedelta(days=day, hours=12)
            options: dict[str, Any] = {"budget": 3, "policy": policy, "settings": settings, "now": now}
            carried = rc.plan(history, keep=True, **options)
            again = rc.plan(history, relearn=True, **options)
            assert carried.url.to_pylist() == again.url.to_pylist()
            assert carried.expected.tobytes() == again.expected.tobytes()
