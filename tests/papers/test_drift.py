"""How a model ages: rows against models trained and asked one by one, ways to retrain by hand, and no future."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from recrawl.history import History
from recrawl.insight.features import default, known_before
from recrawl.insight.targets import NewLinkCount
from recrawl.models import metrics
from recrawl.models.learners import named
from recrawl.papers.outlinks.drift import drift, drift_features, predicted_rounds, retraining
from recrawl.papers.outlinks.drift_report import age_rows
from recrawl.papers.outlinks.evaluation import OutlinkEvaluation, evaluate
from recrawl.papers.outlinks.page import findings, outlink_tables, sections
from recrawl.papers.outlinks.settings import OutlinkSettings
from recrawl.synth import SynthSettings, batches
from recrawl.world.panel import build

SETTINGS = OutlinkSettings(links=("all",), parts=("drift",), seeds=(0,), quick=True, trees=5, n_jobs=1)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    made = History.create(tmp_path_factory.mktemp("made") / "history")
    for batch in batches(SynthSettings(pages=60, rounds=14, every=timedelta(days=7), terms=False)):
        made.append(batch)
    return made


@pytest.fixture(scope="module")
def found(history: History) -> OutlinkEvaluation:
    return evaluate(history, build(history), SETTINGS)


def test_every_model_predicts_all_later_rounds_and_average_count_each_once(found: OutlinkEvaluation) -> None:
    rows = found.rows["drift"]
    rounds = list(range(7, 14))
    assert predicted_rounds(14) == rounds
    assert [(r["origin"], r["round"], r["age"]) for r in rows if r.get("model") == "forecast"] == [
        (origin, t, t - origin + 1) for origin in rounds for t in rounds if t >= origin
    ]
    assert [r["round"] for r in rows if r.get("model") == "average-count"] == rounds
    assert [r["way"] for r in rows if "way" in r] == ["never", "every round", "every 5 rounds", "when due"]


def test_the_scores_are_those_of_a_model_trained_and_asked_by_hand(history: History, found: OutlinkEvaluation) -> None:
    panel = build(history)
    target, features = NewLinkCount("all"), default(NewLinkCount("all"))
    known = known_before(history, panel, 7, drift_features(SETTINGS))
    truth = [target.values(panel, r) for r in range(14)]
    x = np.vstack([known.matrix(features, r)[~np.isnan(truth[r])] for r in range(3, 9)])
    y = np.concatenate([truth[r][~np.isnan(truth[r])] for r in range(3, 9)])
    model = SETTINGS.with_trees(named("forecast").for_columns(2, "number", "all", 8, seed=0, n_jobs=1)).fit(x, y)
    row = next(r for r in found.rows["drift"] if (r.get("origin"), r.get("round")) == (9, 12))
    said = model.predict_distribution(known.matrix(features, 12)).mean
    assert row["spearman"] == pytest.approx(metrics.spearman(truth[12], said), abs=1e-6)
    assert row["n_test"] == panel.shape[0]


def test_shuffling_what_comes_later_changes_no_earlier_score(history: History, found: OutlinkEvaluation) -> None:
    panel = build(history)
    order = np.random.default_rng(0).permutation(panel.shape[0])

    def mixed(values: np.ndarray) -> np.ndarray:
        return np.hstack([values[:, :11], values[order, 11:]])

    later = replace(panel, n_new_internal=mixed(panel.n_new_internal), n_new_external=mixed(panel.n_new_external))
    other = list(drift(known_before(history, later, 7, drift_features(SETTINGS)), SETTINGS))
    before = [[r for r in rows if r.get("round", 99) < 11] for rows in (found.rows["drift"], other)]
    assert before[0] == before[1]
    assert [r for r in other if r.get("round", 0) >= 11] != [r for r in found.rows["drift"] if r.get("round", 0) >= 11]


def test_losses_are_paired_with_the_model_just_trained(found: OutlinkEvaluation) -> None:
    ages = {row["age"]: row for row in age_rows(found, "all")}
    assert list(ages) == list(range(1, 8))
    assert ages[1]["spearman_loss"] == 0
    models = {(r["origin"], r["round"]): r["spearman"] for r in found.rows["drift"] if r.get("origin")}
    losses = [models[t, t] - models[t - 2, t] for t in range(9, 14)]
    assert ages[3]["spearman_loss"] == pytest.approx(np.mean(losses))
    assert ages[3]["spearman_error"] == pytest.approx(np.std(losses, ddof=1) / np.sqrt(5))


def made_scores(loss_per_round: float, n: int = 12) -> tuple[dict, dict]:
    """Models that lose a bit in every round, and an average that is always 0.5."""
    wiggle = np.random.default_rng(2).normal(0, 0.002, (n, n))
    models = {
        (o, t): {"spearman": 0.6 - loss_per_round * (t - o) + wiggle[o, t], "area": 0.5, "log_loss": 0.1}
        for o in range(n)
        for t in range(o, n)
    }
    return models, {t: {"spearman": 0.5} for t in range(n)}


def test_the_rule_retrains_a_model_that_ages_and_leaves_one_that_does_not() -> None:
    steady = {row["way"]: row for row in retraining(*made_scores(0.0))}
    assert [steady[way]["trainings"] for way in steady] == [1, 9, 2, 1]
    ageing = {row["way"]: row for row in retraining(*made_scores(0.03))}
    assert 1 < ageing["when due"]["trainings"] < ageing["every round"]["trainings"]
    assert ageing["never"]["spearman"] < ageing["when due"]["spearman"] < ageing["every round"]["spearman"]


def test_the_page_the_terminal_and_the_findings_show_it(found: OutlinkEvaluation) -> None:
    assert [table.title for table in outlink_tables(found)] == [
        "How a model ages (all links)",
        "When to retrain (all links)",
    ]
    assert sections(found)[0].title == "How fast a model ages, and when to retrain it"
    assert len(sections(found)[0].items) == 3
    assert any("After it was trained, a model loses" in sentence for sentence in findings(found))
