import warnings

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMModel
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV

from recrawl.errors import RecrawlError
from recrawl.models.counts import HurdleCounts, PoissonCounts
from recrawl.models.learners import KINDS, LEARNERS, Learner, named, papers_settings
from recrawl.models.probability import ConstantIfOneClass, PresenceFromCounts

pytestmark = pytest.mark.usefixtures("ngboost_is_loaded")
PAIRS = [(learner, kind) for learner in LEARNERS for kind in KINDS if kind in learner.kinds]
every_pair = pytest.mark.parametrize(("learner", "kind"), PAIRS, ids=[f"{a.name}-{b}" for a, b in PAIRS])
FEW = {"n_estimators": 12, "max_iter": 12}


def small(learner: Learner, kind: str, **more):
    """The learner with a dozen trees, on one core."""
    estimator = learner.make(kind, n_jobs=1, **more)
    known = estimator.get_params()
    prefix = "estimator__" if "estimator" in known else ""
    return estimator.set_params(**{prefix + name: n for name, n in FEW.items() if prefix + name in known})


def target(kind: str, counts: np.ndarray) -> np.ndarray:
    return {"rate": np.minimum(counts, 3) / 3, "presence": counts > 0, "number": counts}[kind]


def features_for(learner: Learner, features: np.ndarray) -> np.ndarray:
    return np.abs(features[:, [1]]) if learner.column else features


def answers(estimator, features: np.ndarray) -> np.ndarray:
    return estimator.predict_proba(features) if is_classifier(estimator) else estimator.predict(features)


@every_pair
def test_every_learner_learns_from_holed_empty_and_constant_columns(learner, kind, awkward):
    features = features_for(learner, awkward[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator = small(learner, kind).fit(features, target(kind, awkward[1]))
        output = answers(estimator, features)
        with_nothing_known = answers(estimator, np.full_like(features[:3], np.nan))
    assert is_classifier(estimator) == (kind == "presence")
    assert is_regressor(estimator) == (kind != "presence")
    assert np.isfinite(output).all()
    assert np.isfinite(with_nothing_known).all()
    assert output.shape == ((80, 2) if kind == "presence" else (80,))


@every_pair
@pytest.mark.parametrize("rows", [1, 2, 30])
@pytest.mark.parametrize("value", [0, 1])
def test_one_class_one_value_and_one_row_are_answered(learner, kind, rows, value):
    table = np.ones((rows, 1 if learner.column else 3))
    estimator = small(learner, kind).fit(table, np.full(rows, value))
    output = answers(estimator, table)
    if kind != "presence":
        assert learner.baseline or output == pytest.approx(value, abs=0.5)
        return
    assert estimator.classes_.tolist() == [0, 1]
    assert output.shape == (rows, 2)
    if learner.name != "always-zero":
        assert (output[0, 1] > 0.5) == (value == 1)
        assert estimator.predict(table)[0] == (1 if learner.baseline else value)


@every_pair
def test_the_same_seed_gives_the_same_answer_and_a_clone_learns_the_same(learner, kind, awkward):
    features, wanted = features_for(learner, awkward[0]), target(kind, awkward[1])
    first = small(learner, kind, seed=3).fit(features, wanted)
    again = clone(first).fit(features, wanted)
    assert np.array_equal(answers(first, features), answers(again, features))


@every_pair
def test_tables_with_names_and_float32_are_taken(learner, kind, awkward):
    features, wanted = features_for(learner, awkward[0]).astype(np.float32), target(kind, awkward[1])
    frame = pd.DataFrame(features, columns=[f"lag {i}" for i in range(features.shape[1])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named_columns = answers(small(learner, kind).fit(frame, wanted.astype(np.float32)), frame)
        plain = answers(small(learner, kind).fit(features, wanted.astype(np.float32)), features)
    np.testing.assert_allclose(named_columns, plain, rtol=1e-6)


@every_pair
def test_every_setting_of_the_grid_is_one_of_the_estimator(learner, kind, awkward):
    estimator, grid = learner.make(kind), learner.grid(kind)
    for name, values in grid.items():
        estimator.set_params(**{name: values[0]})
    assert (
        learner.baseline or learner.name in ("ngboost", "forecast") or grid
    )  # these choose for themselves, or not at all


def test_a_grid_search_takes_learner_and_grid_as_they_are(awkward):
    learner = named("extra-trees")
    grid = {name: values[:2] if "leaf" in name else [5] for name, values in learner.grid("presence").items()}
    search = GridSearchCV(learner.make("presence"), grid, cv=3, scoring="balanced_accuracy")
    best = search.fit(awkward[0], awkward[1] > 0).best_params_
    assert learner.make("presence", **best).get_params()["estimator__n_estimators"] == 5


@pytest.mark.parametrize(
    ("kind", "links", "history", "trees", "leaf"),
    [
        ("presence", "internal", 0, 300, 2),
        ("presence", "internal", 1, 500, 2),
        ("presence", "internal", 5, 300, 2),
        ("presence", "internal", 8, 400, 2),
        ("presence", "external", 0, 300, 10),
        ("presence", "external", 3, 200, 10),
        ("presence", "external", 6, 500, 10),
        ("presence", "external", 7, 400, 10),
        ("presence", "external", 8, 500, 10),
        ("presence", "all", 2, 400, 2),
        ("presence", "external", 30, 500, 10),
        ("rate", "external", 8, 400, 2),
        ("number", "internal", 8, 400, 2),
    ],
)
def test_extra_trees_are_set_as_table_3_prints(kind, links, history, trees, leaf):
    assert papers_settings(kind, links, history) == {"n_estimators": trees, "min_samples_leaf": leaf}
    made = named("extra-trees").make(kind, links, history)
    inner = made.estimator if kind == "presence" else made
    assert (inner.n_estimators, inner.min_samples_leaf) == (trees, leaf)
    assert inner.max_features == ("sqrt" if kind == "presence" else 1.0)
    theirs = named("scikit-extra-trees").make(kind, links, history)
    theirs = theirs.estimator if kind == "presence" else theirs
    assert inner.get_params().items() <= theirs.get_params().items(), "the same settings as those of scikit-learn"
    assert theirs.criterion == ("gini" if kind == "presence" else "squared_error")


def test_the_trees_are_those_of_table_3_for_every_history_size():
    trees = {
        links: [papers_settings("presence", links, h)["n_estimators"] for h in range(9)]
        for links in ("internal", "external")
    }
    assert trees == {
        "internal": [300, 500, 400, 500, 500, 300, 400, 500, 400],
        "external": [300, 300, 400, 200, 300, 400, 500, 400, 500],
    }


def test_boosting_is_set_as_the_papers_say_and_does_not_stop_early():
    made = named("hist-gradient-boosting").make("rate")
    assert (made.learning_rate, made.max_iter, made.min_samples_leaf) == (0.04, 500, 25)
    assert (made.max_leaf_nodes, made.max_depth, made.early_stopping) == (None, None, False)


def test_given_settings_win_and_unknown_ones_are_named():
    assert named("lightgbm").make("presence", num_leaves=5, seed=9).estimator.get_params()["num_leaves"] == 5
    with pytest.raises(RecrawlError, match=r"No setting of lightgbm named 'num_leafs'. Did you mean 'num_leaves'\?"):
        named("lightgbm").make("presence", num_leafs=5)


def test_what_a_learner_cannot_do_is_said_with_those_that_can():
    with pytest.raises(RecrawlError, match=r"'ngboost' cannot predict a presence. These can: extra-trees, .*hurdle"):
        named("ngboost").make("presence")
    with pytest.raises(RecrawlError, match=r"No kind of target named 'numbr'. Did you mean 'number'\?"):
        named("poisson").make("numbr")
    with pytest.raises(RecrawlError, match=r"No kind of links named 'inner'\. .*Known: internal, external, all"):
        named("poisson").make("number", "inner")
    with pytest.raises(RecrawlError, match="history size is -1"):
        papers_settings("presence", "internal", -1)


def test_names_are_unique_and_only_baselines_have_a_column():
    assert len({learner.name for learner in LEARNERS}) == len(LEARNERS)
    assert {learner.column for learner in LEARNERS if learner.baseline} == {
        "previous", "average", "content-change-rate", None
    }  # fmt: skip
    assert all(learner.column is None for learner in LEARNERS if not learner.baseline)


def test_balancing_lifts_the_probability_of_the_rarer_class():
    rng = np.random.default_rng(0)
    features, rare = rng.normal(size=(300, 2)), rng.uniform(size=300) < 0.1
    settings = {"n_estimators": 30, "min_samples_leaf": 25}
    made = named("extra-trees").make("presence", **settings)
    plain = named("extra-trees").make("presence", class_weight=None, **settings)
    lifted, as_it_is = (model.fit(features, rare).predict_proba(features)[:, 1].mean() for model in (made, plain))
    assert lifted > 0.35 > 0.2 > as_it_is


def test_presence_from_counts_is_calibrated_whether_taught_counts_or_only_presence():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(2000, 1))
    counts = rng.poisson(np.exp(features[:, 0]))
    for model in (PoissonCounts(max_iter=60), HurdleCounts(max_iter=60)):
        for wanted in (counts, counts > 0):
            output = PresenceFromCounts(model).fit(features, wanted).predict_proba(features)[:, 1]
            assert output.mean() == pytest.approx(np.mean(counts > 0), abs=0.02)


def test_what_is_no_presence_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="NaN in 1 row"):
        ConstantIfOneClass(None).fit(np.ones((2, 1)), [np.nan, 1])


@pytest.mark.parametrize("kind", ["presence", "number"])
def test_lightgbm_keeps_to_one_thread_for_a_small_table_whatever_n_jobs_says(kind, awkward, monkeypatch):
    threads = []
    monkeypatch.setattr(
        LGBMModel, "_process_n_jobs", lambda self, n_jobs: threads.append(n_jobs) or n_jobs, raising=True
    )
    estimator = named("lightgbm").make(kind, n_jobs=2, n_estimators=3).fit(awkward[0], target(kind, awkward[1]))
    answers(estimator, awkward[0])
    assert threads == [1, 1]
    assert estimator.get_params()["estimator__n_jobs"] == estimator.estimator_.n_jobs == 2
    monkeypatch.setattr("recrawl.models.boosting.ONE_THREAD_UP_TO", 10)
    answers(clone(estimator).fit(awkward[0], target(kind, awkward[1])), awkward[0])
    assert threads[2:] == [2, 2]


def leaves_per_tree(estimator) -> list[int]:
    return [tree["num_leaves"] for tree in estimator.estimator_.booster_.dump_model()["tree_info"]]


@pytest.mark.parametrize("kind", ["rate", "presence"])
def test_lightgbm_without_a_limit_grows_every_leaf_that_its_rows_allow(kind):
    """The papers' setting. Where 31 leaves suffice both learners are the same; where not, only one of them stops there."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3000, 4))
    counts = rng.poisson(np.exp(features[:, 0] + features[:, 1] * features[:, 2]))
    limited, free, plenty = (
        named(name)
        .make(kind, n_jobs=1, n_estimators=5, min_child_samples=10, **more)
        .fit(features, target(kind, counts))
        for name, more in (("lightgbm", {}), ("lightgbm-unlimited", {}), ("lightgbm", {"num_leaves": 3000}))
    )
    assert max(leaves_per_tree(limited)) == 31
    assert max(leaves_per_tree(free)) > 100
    assert leaves_per_tree(free) == leaves_per_tree(plenty), "as with a limit that no tree can reach"
    np.testing.assert_array_equal(answers(free, features), answers(plenty, features))
    assert free.estimator_.num_leaves is None
    few = [named(name).make(kind, n_jobs=1, n_estimators=5) for name in ("lightgbm", "lightgbm-unlimited")]
    small = [answers(model.fit(features[:200], target(kind, counts[:200])), features) for model in few]
    np.testing.assert_array_equal(*small)


def test_only_the_papers_lightgbm_bears_their_name():
    assert [learner.name for learner in LEARNERS if learner.paper == "LightGBM"] == ["lightgbm-unlimited"]
    made = named("lightgbm-unlimited").make("presence").estimator
    assert (made.num_leaves, made.max_depth, made.class_weight) == (None, -1, "balanced")
