from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.tree import DecisionTreeClassifier

from recrawl.errors import NotEnoughData
from recrawl.insight.choices import LINKS
from recrawl.insight.features import Feature, FeatureInputs, Features, default, everything, look_back_look_around
from recrawl.insight.related import related_pages
from recrawl.insight.targets import ALL, HasNewLinks, LinkChangeRate, NewLinkCount, Target
from recrawl.models.learners import Learner, named
from recrawl.papers.outlinks import protocol
from recrawl.papers.outlinks.protocol import (
    PredictionTask,
    by_pages,
    by_time,
    fit_predict,
    page_split,
    pooled,
    positive_probability,
    predicted,
    tuned,
)
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.world.panel import BASE, Panel

PAGES, ROUNDS = 40, 6
TARGETS = [target(links) for target in ALL for links in LINKS]


def known_of(n_pages: int = PAGES, n_rounds: int = ROUNDS, missing: float = 0.2, seed: int = 0) -> FeatureInputs:
    """Pages of different eagerness, some visits missing, with related pages."""
    rng = np.random.default_rng(seed)
    shape = (n_pages, n_rounds)
    rounds = np.datetime64("2020-07-13", "us") + np.arange(n_rounds) * np.timedelta64(7, "D")
    seen = rng.random(shape) >= missing
    compared = seen & (np.cumsum(seen, axis=1) > 1)
    eagerness = rng.gamma(0.5, 2.0, (n_pages, 1))

    def gained() -> Any:
        return np.where(compared, rng.poisson(eagerness, shape), np.nan).astype(np.float32)

    panel = Panel(
        page=np.arange(n_pages),
        url=pa.array([f"https://site{i % 5}.org/{i}" for i in range(n_pages)]),
        rounds=rounds,
        at=np.where(seen, rounds, np.datetime64("NaT", "us")),
        n_new_internal=gained(),
        n_new_external=gained(),
        content_changed=np.where(compared, rng.random(shape) < 0.5, np.nan).astype(np.float32),
        base={name: np.where(seen, rng.random(shape), np.nan).astype(np.float32) for name in BASE},
    )
    return FeatureInputs(panel, related_pages(rng.normal(size=(n_pages, 4)).astype(np.float32), 3))


@pytest.fixture(scope="module")
def known() -> FeatureInputs:
    return known_of()


def noisy(known: FeatureInputs, of_round: int) -> FeatureInputs:
    """The same with another truth, other pages seen and other sizes from a round on."""
    rng = np.random.default_rng(99)

    def other(matrix: Any) -> Any:
        matrix = matrix.copy()
        part = matrix[:, of_round:]
        part[:] = np.where(rng.random(part.shape) < 0.5, rng.integers(0, 50, part.shape), np.nan)
        return matrix

    panel = known.panel
    changed = replace(
        panel,
        n_new_internal=other(panel.n_new_internal),
        n_new_external=other(panel.n_new_external),
        content_changed=other(panel.content_changed),
        base={name: other(matrix) for name, matrix in panel.base.items()},
    )
    return FeatureInputs(changed, known.related)


def features_of(target: Target) -> Features:
    return tuple(dict.fromkeys(everything(3) + default(target, 3)))


# -- which rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 12, 100, 1003, 384_322])
def test_a_quarter_of_the_pages_is_for_testing_and_a_third_of_the_rest_for_tuning(n: int) -> None:
    split = page_split(n, seed=1)
    assert len(split.test) == pytest.approx(n / 4, abs=0.5)
    assert len(split.tune) == pytest.approx(n / 4, abs=1)
    assert sorted([*split.train, *split.test]) == [*range(n)]
    assert set(split.tune) <= set(split.train)


def test_the_seed_decides_the_split() -> None:
    first, again, other = page_split(200, 0), page_split(200, 0), page_split(200, 1)
    assert first.test.tolist() == again.test.tolist()
    assert first.tune.tolist() == again.tune.tolist()
    assert set(first.test) != set(other.test)
    assert 0.1 < len(set(first.test) & set(other.test)) / 50 < 0.4, "by chance a quarter of them"


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_papers_task_splits_the_pages_with_a_known_target_of_the_last_round(
    known: FeatureInputs, target: Target
) -> None:
    features = everything(2)
    task = by_pages(known, target, features, seed=3)
    truth = target.values(known.panel, ROUNDS - 1)
    pages = np.flatnonzero(~np.isnan(truth))
    split = page_split(len(pages), 3)
    x = known.matrix(features, ROUNDS - 1)[pages]
    for rows, (found_x, found_y) in {
        "train": (task.x_train, task.y_train),
        "tune": (task.x_tune, task.y_tune),
        "test": (task.x_test, task.y_test),
    }.items():
        chosen = getattr(split, rows)
        np.testing.assert_array_equal(found_x, x[chosen])
        np.testing.assert_array_equal(found_y, truth[pages][chosen])
    np.testing.assert_array_equal(truth[task.test_pages], task.y_test)


def test_features_of_an_earlier_round_can_be_asked_for(known: FeatureInputs) -> None:
    target, features = LinkChangeRate("internal"), everything(0)
    task = by_pages(known, target, features, 0, features_of=1)
    late = by_pages(known, target, features, 0)
    np.testing.assert_array_equal(task.y_test, late.y_test)
    np.testing.assert_array_equal(task.x_test, known.matrix(features, 1)[task.test_pages])


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("n_rounds", [3, 5, ROUNDS])
def test_the_crawlers_task_does_not_learn_from_the_predicted_round(target: Target, n_rounds: int) -> None:
    known, features = known_of(n_rounds=n_rounds), features_of(target)
    truth, noise = (by_time(each, target, features) for each in (known, noisy(known, n_rounds - 1)))
    for name in ("x_train", "y_train", "x_tune", "y_tune"):
        np.testing.assert_array_equal(getattr(truth, name), getattr(noise, name))
    both, at, in_noise = np.intersect1d(truth.test_pages, noise.test_pages, return_indices=True)
    assert len(both)
    np.testing.assert_array_equal(truth.x_test[at], noise.x_test[in_noise])
    assert (truth.y_test[at] != noise.y_test[in_noise]).any(), "only the answer differs"


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_crawlers_task_predicts_every_page_with_a_known_target(known: FeatureInputs, target: Target) -> None:
    features = features_of(target)
    task = by_time(known, target, features)
    truth = target.values(known.panel, ROUNDS - 1)
    assert task.test_pages.tolist() == np.flatnonzero(~np.isnan(truth)).tolist()
    np.testing.assert_array_equal(task.y_test, truth[task.test_pages])
    np.testing.assert_array_equal(task.x_test, known.matrix(features, ROUNDS - 1)[task.test_pages])


def test_the_crawlers_task_learns_from_all_earlier_rounds(known: FeatureInputs) -> None:
    target, features = NewLinkCount("all"), look_back_look_around(NewLinkCount("all"), 2)

    def rows(rounds: range) -> tuple[np.ndarray, np.ndarray]:
        truths = [target.values(known.panel, r) for r in rounds]
        blocks = [known.matrix(features, r)[~np.isnan(y)] for r, y in zip(rounds, truths, strict=True)]
        return np.vstack(blocks), np.concatenate([y[~np.isnan(y)] for y in truths])

    task = by_time(known, target, features)
    x, y = rows(range(1, 5))
    np.testing.assert_array_equal(task.x_train, x)
    np.testing.assert_array_equal(task.y_train, y)
    newest_x, newest_y = rows(range(4, 5))
    np.testing.assert_array_equal(task.x_tune, newest_x)
    np.testing.assert_array_equal(task.y_tune, newest_y)


def test_pooled_rows_are_capped_and_still_belong_together() -> None:
    known = known_of(300, 5, missing=0)
    target, features = NewLinkCount("internal"), (Feature("new_internal"),)  # the answer itself, to recognise rows by
    x, y = pooled(known, target, features, range(1, 5))
    assert len(y) == 4 * 300
    x, y = pooled(known, target, features, range(1, 5), seed=1, max_rows=200)
    assert 150 < len(y) <= 200
    np.testing.assert_array_equal(x[:, 0], y)
    again, other = (pooled(known, target, features, range(1, 5), seed=seed, max_rows=200)[1] for seed in (1, 2))
    assert y.tolist() == again.tolist()
    assert y.tolist() != other.tolist()


@pytest.mark.parametrize("n_rounds", [1, 2])
def test_too_few_rounds_are_refused(n_rounds: int) -> None:
    known, target = known_of(20, n_rounds, missing=0), HasNewLinks("all")
    with pytest.raises(NotEnoughData, match="at least three rounds"):
        by_time(known, target, everything(1))
    if n_rounds == 1:
        with pytest.raises(NotEnoughData, match="0 pages with a known has-new-links in round 0"):
            by_pages(known, target, everything(1), 0)
    else:
        assert len(by_pages(known, target, everything(1), 0).y_test) == 5


@pytest.mark.parametrize("n_pages", [1, 2])
def test_too_few_pages_are_refused(n_pages: int) -> None:
    known = known_of(n_pages, 4, missing=0)
    with pytest.raises(NotEnoughData, match="too few to learn and to test"):
        by_pages(known, NewLinkCount("all"), everything(1), 0)
    assert len(by_time(known, NewLinkCount("all"), everything(1)).y_test) == n_pages


def test_rounds_without_visits_are_refused() -> None:
    known = known_of(20, 4, missing=0)
    known.panel.n_new_internal[:, 3] = np.nan
    with pytest.raises(NotEnoughData, match="no page with a known new-link-count in round 3"):
        by_time(known, NewLinkCount("internal"), everything(1))
    known.panel.n_new_internal[:] = np.nan
    known.panel.n_new_internal[:, 3] = 1
    with pytest.raises(NotEnoughData, match="or none before it"):
        by_time(known, NewLinkCount("internal"), everything(1))


# -- tuning -----------------------------------------------------------------------------------------------------------


class Scaled(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The first column times a factor: right only if the factor is 1."""

    def __init__(self, factor: float = 0.0) -> None:
        self.factor = factor

    def fit(self, x: Any, y: Any) -> Scaled:
        self.fitted_ = True
        return self

    def predict(self, x: Any) -> Any:
        return self.factor * x[:, 0]


def task_of(target: Target, n_tune: int = 60, seed: int = 0) -> PredictionTask:
    """The first column is the answer, the second is noise; the answers for tuning are mostly right."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 2)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.float32) if target.kind == "presence" else x[:, 0]
    return PredictionTask(
        target=target,
        features=(),
        x_train=x[:100],
        y_train=y[:100],
        x_tune=x[:n_tune],
        y_tune=y[:n_tune],
        x_test=x[100:],
        y_test=y[100:],
        test_pages=np.arange(100),
    )


def tune(learner: Learner, task: PredictionTask, history: int = 8, **settings: Any) -> Any:
    return tuned(learner, task, OutlinkSettings(**{"n_jobs": 1} | settings), history=history, seed=0).model


def test_a_tuned_model_says_which_settings_it_has_and_whether_they_were_searched_for() -> None:
    small = replace(named("extra-trees"), ranges={"n_estimators": (5,), "min_samples_leaf": (1, 45)})
    task, one_core = task_of(HasNewLinks("external")), OutlinkSettings(n_jobs=1)
    searched = tuned(small, task, one_core, history=8, seed=0)
    assert (searched.settings, searched.is_searched) == ({"n_estimators": 5, "min_samples_leaf": 1}, True)
    quick = tuned(small, task, replace(one_core, quick=True), history=3, seed=0)
    assert (quick.settings, quick.is_searched) == ({"n_estimators": 200, "min_samples_leaf": 10}, False), "Table 3"
    assert tuned(named("always-zero"), task, one_core, history=0, seed=0).settings == {}
    found = protocol.learn(searched, task)
    assert (found.settings, found.is_tuned) == (searched.settings, True)


def test_tuning_picks_the_setting_that_predicts_best() -> None:
    learner = Learner("scaled", None, lambda task: Scaled(), ranges={"factor": (0.0, 0.9, 1.5, -1.0)})
    assert tune(learner, task_of(NewLinkCount())).factor == 0.9
    assert tune(learner, task_of(NewLinkCount()), quick=True).factor == 0, "quick: as the papers tuned it"


def test_tuning_of_presence_goes_by_balanced_accuracy() -> None:
    """One page in five has new links: never saying so is right four times in five, but no use."""
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.2).astype(np.float32)
    x = np.column_stack([y + rng.normal(0, 0.7, 200), rng.normal(size=200)]).astype(np.float32)
    task = replace(task_of(HasNewLinks()), x_train=x, y_train=y, x_tune=x, y_tune=y, x_test=x, y_test=y)
    ranges = {"class_weight": (None, "balanced"), "max_depth": (1,)}
    learner = Learner("tree", None, lambda task: DecisionTreeClassifier(random_state=0), ranges=ranges)
    assert tune(learner, task).class_weight == "balanced"


def test_tuning_works_inside_the_wrappers_of_real_learners() -> None:
    small = replace(named("extra-trees"), ranges={"n_estimators": (5,), "min_samples_leaf": (1, 45)})
    model = tune(small, task_of(HasNewLinks()))
    assert model.get_params()["estimator__min_samples_leaf"] == 1
    assert model.get_params()["estimator__n_estimators"] == 5
    found = fit_predict(model, task_of(HasNewLinks()))
    assert (found.value == task_of(HasNewLinks()).y_test).mean() > 0.9


def test_too_few_rows_or_one_class_to_tune_on_leave_the_papers_settings() -> None:
    small = replace(named("extra-trees"), ranges={"n_estimators": (5,)})
    assert tune(small, task_of(NewLinkCount(), n_tune=9)).n_estimators == 400
    assert tune(small, task_of(NewLinkCount(), n_tune=9), folds=4).n_estimators == 5, "fewer folds need fewer rows"
    task = task_of(HasNewLinks())
    rare = replace(task, y_tune=np.r_[np.ones(4), np.zeros(56)].astype(np.float32))
    for unlearnable in (rare, replace(task, y_tune=np.zeros(60, np.float32))):
        model = tune(small, unlearnable, history=1)
        assert (
            model.get_params()["estimator__n_estimators"]
            == named("extra-trees").make("presence", "all", 1).get_params()["estimator__n_estimators"]
        )
    assert tune(named("always-zero"), task) is not None, "nothing to tune"


def test_every_model_that_is_tried_has_fewer_trees() -> None:
    quick, searched = (tune(named("extra-trees"), task_of(NewLinkCount()), trees=3, quick=q) for q in (True, False))
    assert quick.n_estimators == searched.n_estimators == 3


def test_the_scores_are_those_of_the_papers() -> None:
    assert protocol.SCORING == {"rate": "r2", "number": "r2", "presence": "balanced_accuracy"}


# -- predicting -------------------------------------------------------------------------------------------------------


def test_a_model_that_knows_one_class_only_is_sure() -> None:
    x = np.zeros((3, 1), np.float32)
    never, always = (DummyClassifier().fit(x, np.full(3, value)) for value in (0, 1))
    assert positive_probability(never, x).tolist() == [0, 0, 0]
    assert positive_probability(always, x).tolist() == [1, 1, 1]
    both = DummyClassifier().fit(x, [0, 1, 1])
    assert positive_probability(both, x) == pytest.approx([2 / 3] * 3)
    both_ways = predicted(both, "presence", x)
    assert both_ways.value.tolist() == [1, 1, 1]
    assert both_ways.probability is not None
    assert both_ways.value.dtype == both_ways.probability.dtype == np.float32


def test_a_regressor_gives_a_value_and_no_probability() -> None:
    task = task_of(NewLinkCount())
    found = fit_predict(ExtraTreesRegressor(20, random_state=0), task)
    assert found.probability is None
    assert found.distribution is None
    assert found.value.dtype == np.float32
    assert np.corrcoef(found.value, task.y_test)[0, 1] > 0.9


def test_a_model_of_counts_gives_mean_and_probability_of_any() -> None:
    task = task_of(NewLinkCount())
    counts = replace(task, y_train=np.maximum(task.y_train, 0).round(), y_test=np.maximum(task.y_test, 0).round())
    found = fit_predict(named("poisson").make("number", n_jobs=1, max_iter=20), counts)
    assert found.distribution is not None
    np.testing.assert_allclose(found.value, found.distribution.mean, rtol=1e-5)
    assert found.probability is not None
    np.testing.assert_allclose(found.probability, 1 - np.exp(-found.value.astype(float)), rtol=1e-3)
