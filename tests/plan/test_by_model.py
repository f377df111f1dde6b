from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from commands import command, output
from planning import explain, request, surveyed
from recrawl.history import History
from recrawl.models.predictor import Recipe, predict, train
from recrawl.models.saved import save
from recrawl.plan.by_model import FILE, situation_by_model
from recrawl.plan.formats import records
from recrawl.plan.planner import make_plan
from recrawl.plan.score import scores, store
from recrawl.policies.round_robin import RoundRobin
from recrawl.synth import SynthSettings, batches
from recrawl.web.visit import Visit

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[History, Path]:
    """A web with pages that fail and pages that die, and a model of it."""
    folder = tmp_path_factory.mktemp("by_model")
    history = History.create(folder / "history")
    for batch in batches(SynthSettings(pages=150, rounds=6, terms=False, failure_rate=0.1, death_rate=0.05, seed=3)):
        history.append(batch)
    save(train(history, Recipe(learner="average-count", features="default", n_jobs=1)), folder / "m.model")
    return history, folder / "m.model"


def test_the_plan_has_the_order_of_the_predictions(made: tuple[History, Path]) -> None:
    history, model = made
    plan = make_plan(situation_by_model(history, model), request(10), NOW)
    from recrawl.models.saved import load

    prediction = predict(load(model), history)["all"]
    by_page = dict(zip(prediction.panel.page.tolist(), prediction.expected.tolist(), strict=True))
    assert plan.expected.tolist() == pytest.approx([by_page[page] for page in plan.page.tolist()])
    gone = set(situation_by_model(history, model).page[situation_by_model(history, model).pages.is_gone].tolist())
    alive = sorted((value for page, value in by_page.items() if page not in gone), reverse=True)
    assert gone
    assert plan.expected.tolist() == pytest.approx(alive[:10])
    assert "new links predicted" in plan.reason[0]


def test_pages_are_known_as_a_policy_that_saw_every_visit_knows_them(made: tuple[History, Path]) -> None:
    history, model = made
    seen, read = surveyed(history, RoundRobin()), situation_by_model(history, model)
    assert read.url.to_pylist() == seen.url.to_pylist()
    for name in ("site", "host", "n_failures", "is_gone", "n_answers"):
        assert getattr(read.pages, name).tolist() == getattr(seen.pages, name).tolist(), name
    assert (seen.pages.n_failures > 0).any()


def test_predictions_are_kept_until_there_are_new_visits(made: tuple[History, Path], tmp_path: Path) -> None:
    _, model = made
    history = History.create(tmp_path / "history")
    for batch in batches(SynthSettings(pages=150, rounds=6, terms=False, failure_rate=0.1, death_rate=0.05, seed=3)):
        history.append(batch)
    notes: list[str] = []
    first = situation_by_model(history, model, on_note=notes.append)
    assert len([note for note in notes if "predicting first" in note]) == 1
    again = situation_by_model(History.open(tmp_path / "history"), model, on_note=notes.append)
    assert len([note for note in notes if "predicting first" in note]) == 1
    assert (
        again.expectation.expect(again.pages, NOW)[0].tolist() == first.expectation.expect(first.pages, NOW)[0].tolist()
    )
    newest = datetime.fromtimestamp(int(history.timeline.at.max()) / 1e6, UTC)
    history.add([Visit(url="https://new.example/", at=newest + timedelta(hours=1), links=["https://new.example/a"])])
    later = situation_by_model(History.open(tmp_path / "history"), model, on_note=notes.append)
    assert len([note for note in notes if "predicting first" in note]) == 2
    assert len(later.pages) == len(first.pages) + 1
    (tmp_path / "history" / FILE).write_bytes(b"PAR1 damaged")
    assert np.array_equal(situation_by_model(history, model).page, later.page)


def test_explain_knows_the_past_of_a_page(made: tuple[History, Path]) -> None:
    history, model = made
    situation = situation_by_model(history, model)
    best = make_plan(situation, request(1), NOW).url[0].as_py()
    explanation = explain(situation, request(1), best, NOW)
    assert (explanation.is_picked, explanation.rank) == (True, 1)
    assert explanation.n_new_links > 0
    assert explanation.last_change_at is not None


def test_a_model_of_links_does_not_predict_whether_pages_changed(made: tuple[History, Path]) -> None:
    history, model = made
    situation = situation_by_model(history, model)
    plan = make_plan(situation, request(5), NOW)
    assert [row["probability_changed"] for row in records(plan)] == [None] * 5
    explanation = explain(situation, request(5), plan.url[0].as_py(), NOW)
    assert (explanation.probability_changed, explanation.n_compared) == (None, 0)
    store(history, plan)
    (score,) = scores(history, plan.id)
    assert (score.changed, score.expected_changed) == (None, None)


def test_the_command(made: tuple[History, Path]) -> None:
    history, model = made
    args = ["plan", "--budget", "5", "--history", str(history.store.folder), "--model", str(model)]
    urls = output(*args, "--format", "urls", "--dry-run").splitlines()
    assert [url.startswith("http") for url in urls] == [True] * 5
    refused = command(*args, "--policy", "bandit")
    assert refused.code == 2
    assert refused.stderr == "error: model plans by its own predictions: leave policy and settings out\n"
