from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from recrawl.policies import Budget
from recrawl.policies.coordinate_ascent import best_weights, ndcg
from recrawl.policies.learning_to_rank import LearningToRank, _thinned, ranking
from recrawl.policies.least_squares import N_PAGE_FEATURES
from recrawl.testing import Case, check_generated, choices, tiny_world

NOW = datetime(2026, 3, 4, 5, tzinfo=UTC)


def lists_of(n_lists: int, size: int, weight: list[float], noise: float = 0.0, seed: int = 0):
    """Lists of pages whose new links follow a known combination of their features."""
    chance = np.random.default_rng(seed)
    made = []
    for _ in range(n_lists):
        x = chance.gamma(2.0, 1.0, (size, len(weight)))
        worth = x @ np.array(weight) * 10 + 200 + noise * chance.standard_normal(size)
        made.append((x, np.maximum(worth.round(), 0).astype(np.int64)))
    return made


@pytest.mark.parametrize("depth", [1, 3, 10, 40])
def test_ndcg_is_that_of_scikit_learn(depth: int) -> None:
    chance = np.random.default_rng(depth)
    sizes = chance.integers(2, 30, 50)
    start = np.cumsum([0, *sizes])
    score, gain = chance.standard_normal(start[-1]), chance.integers(0, 5, start[-1]).astype(float)
    expected = [ndcg_score([gain[a:b]], [score[a:b]], k=depth) if gain[a:b].any() else 1.0 for a, b in pairwise(start)]
    assert ndcg(score, gain, start, depth) == pytest.approx(expected, abs=1e-12)


def test_a_known_ranking_is_recovered() -> None:
    weight = [3.0, -1.0, 0.5, 0.0]
    model = ranking(lists_of(60, 12, weight))
    for x, n_new in lists_of(30, 12, weight, seed=1):
        reached = ndcg(model.predict(x, NOW), np.log1p(n_new), np.array([0, 12]))
        assert reached[0] > 0.995
    learnt = model.weight[:N_PAGE_FEATURES] / model.weight[0]
    assert learnt == pytest.approx([1.0, -1 / 3, 1 / 6, 0.0], abs=0.1)


def test_no_direction_is_much_better_than_the_one_found() -> None:
    chance = np.random.default_rng(3)
    start = np.arange(0, 401, 10)
    x = chance.standard_normal((400, 2))
    gain = np.maximum(x @ [1.0, -0.4] + 1.5 * chance.standard_normal(400), 0.0)
    _, reached = best_weights(x, gain, start)
    angles = np.linspace(0, 2 * np.pi, 2_000)
    best = max(ndcg(x @ [np.cos(a), np.sin(a)], gain, start).mean() for a in angles)
    assert reached == pytest.approx(best, abs=0.005)


def test_what_is_reached_is_what_the_weights_give() -> None:
    made = lists_of(20, 15, [1.0, 2.0, -1.0, 0.0], noise=30.0)
    x, gain = np.vstack([x for x, _ in made]), np.log1p(np.concatenate([n for _, n in made]))
    start = np.arange(0, 301, 15)
    weight, reached = best_weights(x, gain, start, seed=4)
    assert reached == pytest.approx(ndcg(x @ weight, gain, start).mean(), abs=1e-12)
    assert np.abs(weight).sum() == pytest.approx(1.0)


def test_equal_seeds_give_equal_weights() -> None:
    made = lists_of(20, 12, [1.0, 1.0, -2.0, 0.3], noise=20.0)
    assert ranking(made, seed=5).weight.tobytes() == ranking(made, seed=5).weight.tobytes()


def test_the_unit_of_a_feature_does_not_matter() -> None:
    made = lists_of(20, 12, [1.0, 1.0, -2.0, 0.3], noise=20.0)
    other_unit = [(x * [1.0, 64.0, 1.0, 0.125] + [0.0, 8.0, 16.0, 0.0], n_new) for x, n_new in made]
    for (x, n_new), (same, _) in zip(made, other_unit, strict=True):
        first, second = ranking(made).predict(x, NOW), ranking(other_unit).predict(same, NOW)
        assert first == pytest.approx(second, abs=1e-9), n_new


def test_a_constant_feature_and_the_clock_have_no_weight() -> None:
    made = [(np.column_stack([x[:, :3], np.full(len(x), 7.0)]), n) for x, n in lists_of(20, 12, [1.0, 2.0, 0.0, 0.0])]
    model = ranking(made)
    assert not model.weight[N_PAGE_FEATURES - 1 :].any()
    assert np.isfinite(model.predict(made[0][0], NOW)).all()


def test_cycles_are_left_out_evenly_where_there_are_too_many_visits() -> None:
    lists = [(np.zeros((10, 4)), np.full(10, cycle)) for cycle in range(100)]
    kept = [int(n_new[0]) for _, n_new in _thinned(lists, 250)]
    assert len(kept) == 25
    assert kept[0] == 0
    assert kept[-1] == 99
    assert set(np.diff(kept)) <= {4, 5}
    assert len(_thinned(lists, 5_000)) == 100
    assert [int(n_new[0]) for _, n_new in _thinned(lists, 3)] == [99]


def test_no_generated_collection_breaks_the_contract() -> None:
    check_generated(lambda: LearningToRank(bootstrap=1, retrain=1, window=4), 200)


def test_it_learns_to_visit_the_pages_that_gain_most() -> None:
    gains = [[{1_000 * page + 20 * cycle + i for i in range(page)} for page in range(12)] for cycle in range(25)]
    case = Case(tiny_world(gains, site=range(12)), (Budget(3),))
    policy = LearningToRank()
    last = list(choices(policy, case))[-1]
    assert policy.regression_.model_ is not None
    assert {10, 11} < set(last.page.tolist())
    assert last.expected is not None
    assert last.expected.tolist() == last.page.tolist()  # the average so far: a rank is not a number of links
    at = last.page.tolist().index(11)
    assert last.why(at) == "11.0 new links per visit so far, last visit 1 h ago"
