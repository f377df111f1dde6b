"""Models for programs: the same numbers as the commands, on a small made-up web."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import recrawl as rc
from recrawl.cli import app
from recrawl.errors import BadModel, BadOption
from recrawl.history import History
from recrawl.models.predictor import Recipe, predict
from recrawl.models.predictor import train as train_predictor
from recrawl.models.trained import Model, Predictions, train
from recrawl.synth import SynthSettings, batches


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    history = History.create(tmp_path_factory.mktemp("trained") / "h")
    for batch in batches(SynthSettings(pages=40, rounds=5)):
        history.append(batch)
    return history


@pytest.fixture(scope="module")
def model(history: History) -> Model:
    return train(history, every="7d", links=("internal", "all"))


def test_the_public_function_is_this_one() -> None:
    assert rc.train is train


def test_a_model_says_what_it_was_trained_on(model: Model) -> None:
    assert repr(model) == (
        "Model(forecast for internal, all links, trained on 40 pages and 5 rounds, 2020-07-13 to 2020-08-10)"
    )
    assert set(model.scores) == {"internal", "all"}
    assert {"spearman", "area", "log_loss"} <= set(model.scores["all"])


def test_predictions_are_those_of_the_predictor(history: History, model: Model) -> None:
    expected = predict(train_predictor(history, Recipe(every="7d", links=("internal", "all"))), history)
    predictions = model.predict(history)
    for links, of_kind in expected.items():
        np.testing.assert_array_equal(predictions.by_kind[links].expected, of_kind.expected)
        np.testing.assert_array_equal(predictions.by_kind[links].high, of_kind.high)


def test_tables_and_records_have_the_most_expected_links_first(history: History, model: Model) -> None:
    predictions = model.predict(history)
    rows, frame = list(predictions.records()), predictions.to_pandas()
    assert len(predictions) == len(rows) == len(frame) == 40
    assert list(frame.columns) == list(rows[0])
    assert frame["rank"].tolist() == list(range(1, 41))
    assert frame["expected_new_all"].is_monotonic_decreasing
    assert frame["url"].tolist() == [row["url"] for row in rows]
    assert frame["interval_all"].map(list).tolist() == [row["interval_all"] for row in rows]
    assert predictions.to_arrow().to_pylist() == rows
    assert list(predictions.records(top=3)) == rows[:3]
    total = predictions.by_kind["all"].expected.sum()
    assert repr(predictions) == f"Predictions(40 pages, {total:,.0f} new links expected)"


def test_records_are_those_of_the_command_line(history: History, model: Model, tmp_path: Path) -> None:
    folder, file, out = str(history.store.folder), str(tmp_path / "m"), tmp_path / "out.jsonl"
    model.save(file)
    result = CliRunner().invoke(app, ["predict", "--history", folder, "--model", file, "--out", str(out)])
    assert result.exit_code == 0, result.output
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert written == json.loads(json.dumps(list(model.predict(history).records())))


def test_a_loaded_model_predicts_the_same(history: History, model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model.recrawl")
    again = Model.load(tmp_path / "model.recrawl")
    assert repr(again) == repr(model)
    assert list(again.predict(history).records()) == list(model.predict(history).records())


def test_pages_never_fetched_can_be_predicted_and_sorted_by_another_kind(history: History, model: Model) -> None:
    predictions = model.predict(history, ["https://New.example/a"], by="internal")
    rows = {row["url"]: row for row in predictions.records()}
    assert len(rows) == 41
    assert rows["https://new.example/a"]["basis"] != "its own past"
    internal = [row["expected_new_internal"] for row in predictions.records()]
    assert internal == sorted(internal, reverse=True)
    assert "new internal links expected" in repr(predictions)


def test_a_model_without_all_links_is_sorted_by_what_it_has(history: History) -> None:
    predictions = train(history, links="external", learner="average-count").predict(history)
    assert predictions.by == "external"
    with pytest.raises(BadOption, match=r"No predicted kind of links named 'internal'\. .*Known: external"):
        Predictions(predictions.predictor, predictions.by_kind, "internal")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lerner": "hurdle"}, r"No option named 'lerner'\. Did you mean 'learner'\?"),
        ({"learner": "hurdles"}, r"learner: No learner named 'hurdles'\. Did you mean 'hurdle'\?"),
        ({"features": "statics"}, r"No features named 'statics'\. Did you mean 'static'\?"),
        ({"links": "outer"}, r"No kind of links named 'outer'\. Known: internal, external, all"),
        ({"neighbours": "fast"}, r"No neighbours named 'fast'"),
        ({"every": "fortnight"}, "every: 'fortnight' is not a period"),
        ({"rounds": 1}, "rounds is 1; it must be 2 or more"),
        ({"look_back": 9}, "look-back is 9; it must be between 0 and 8"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        train(None, **options)  # type: ignore[arg-type]


def test_a_model_of_other_pages_is_refused(model: Model, tmp_path: Path) -> None:
    other = History.create(tmp_path / "h")
    for batch in batches(SynthSettings(pages=5, rounds=3, seed=9)):
        other.append(batch)
    with pytest.raises(
        BadModel, match=r"this model was trained on 40 pages up to .*, none of which is in this history"
    ):
        model.predict(other)
