"""When a model is due to be trained again: by its own past, never by the future."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recrawl.history import History
from recrawl.models import metrics, saved
from recrawl.models.ageing import CHECKED, ERRORS, LEAST, Ageing, check_age, rounds_since
from recrawl.models.predictor import HELD_OUT, Predictor, Recipe, predict, train
from recrawl.web.visit import Visit
from recrawl.world.panel import build

START = datetime(2026, 1, 5, tzinfo=UTC)
RECIPE = Recipe(links=("all",), features="summaries", learner="poisson")
N_PAGES, TRAINED = 24, 12


def web(folder: Path, n_rounds: int, changes_at: int | None = None) -> History:
    """Pages gain links in their own rhythm of one to four rounds; from a round on, the busy ones are quiet and vice versa."""
    history = History.create(folder)
    visits = []
    for i in range(N_PAGES):
        links: list[str] = []
        for r in range(n_rounds):
            turned = changes_at is not None and r >= changes_at
            period = 1 + (N_PAGES - 1 - i if turned else i) % 4
            n = 3 * (4 - period) + i % 3 if r % period == 0 else 0
            links = links + [f"https://e.org/{i}/{r}/{j}" for j in range(n)]
            visits.append(Visit(url=f"https://e.org/{i}", at=START + timedelta(days=7 * r), links=links))
    history.add(visits)
    return history


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return train(web(tmp_path_factory.mktemp("young") / "history", TRAINED), RECIPE)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> History:
    return web(tmp_path_factory.mktemp("grown") / "history", TRAINED + 6)


def test_the_rule_is_that_of_two_samples_with_one_variance() -> None:
    before, since = (0.05, 0.07, 0.06, 0.04), (0.01, 0.02, 0.0)
    pooled = (3 * statistics.variance(before) + 2 * statistics.variance(since)) / 5
    age = Ageing(3, before, since)
    assert age.error == pytest.approx(math.sqrt(pooled * (1 / 4 + 1 / 3)))
    assert age.loss == pytest.approx(0.055 - 0.01)
    assert age.is_due
    assert age.sentence.startswith(
        "due: ranks pages by 0.010 better than average-count in the last 3 rounds, 0.055 when"
    )


def test_a_loss_within_chance_or_too_small_to_matter_is_no_reason() -> None:
    within = Ageing(3, (0.1, 0.0, 0.1), (0.0, 0.1, 0.0))
    assert 0 < within.loss < ERRORS * within.error
    small = Ageing(3, (0.031, 0.031, 0.031), (0.03, 0.03, 0.03))
    assert ERRORS * small.error < small.loss < LEAST
    assert not within.is_due
    assert not small.is_due


def test_where_nothing_can_be_said_the_reason_is() -> None:
    assert "1 round since it was trained" in Ageing(1, (0.1,) * 5, (0.0,)).sentence
    assert "too few rounds" in Ageing(9, (), (0.0,) * 9).sentence
    assert "baseline" in Ageing(9, (), (), is_baseline=True).sentence


def test_a_model_remembers_how_good_it_was_and_so_does_its_file(predictor: Predictor, tmp_path: Path) -> None:
    assert len(predictor.advantage) == HELD_OUT
    saved.save(predictor, tmp_path / "m")
    assert saved.load(tmp_path / "m").advantage == predictor.advantage


def test_what_it_remembers_is_what_a_model_trained_before_says(predictor: Predictor, tmp_path: Path) -> None:
    """The first of the held-out rounds, predicted by the public functions from a history that ends before it."""
    first = TRAINED - HELD_OUT
    past = web(tmp_path / "past", first)
    said = predict(train(past, RECIPE), past)["all"]
    whole = build(web(tmp_path / "whole", TRAINED), "crawl", 0.0)
    new = whole.n_new_internal + whole.n_new_external
    assert said.panel.page.tolist() == whole.page.tolist()
    ours = metrics.spearman(new[:, first], said.expected)
    assert predictor.advantage[0] == pytest.approx(
        ours - metrics.spearman(new[:, first], new[:, 1:first].mean(axis=1)), abs=1e-6
    )


def test_a_web_that_goes_on_as_before_needs_no_training(predictor: Predictor, grown: History) -> None:
    age = check_age(predictor, grown)
    assert (age.n_rounds, len(age.since)) == (6, CHECKED)
    assert not age.is_due


def test_a_web_that_turns_around_does(predictor: Predictor, tmp_path: Path) -> None:
    good = replace(predictor, advantage=(0.3, 0.31, 0.29, 0.3, 0.3))
    assert check_age(good, web(tmp_path / "turned", TRAINED + 4, changes_at=TRAINED)).is_due


def test_later_rounds_change_nothing_of_what_is_said_of_earlier_ones(predictor: Predictor, tmp_path: Path) -> None:
    """The same visits up to a round, and others after it: the rounds before have the same scores."""
    same, other = web(tmp_path / "same", TRAINED + 6), web(tmp_path / "other", TRAINED + 6, changes_at=TRAINED + 3)
    np.testing.assert_array_equal(check_age(predictor, same).since[:2], check_age(predictor, other).since[:2])
    assert check_age(predictor, same).since != check_age(predictor, other).since


def test_rounds_since_training_are_those_with_later_visits_only(predictor: Predictor, grown: History) -> None:
    panel = build(grown, "crawl", 0.0)
    assert rounds_since(panel, predictor.window[1]) == 6
    assert rounds_since(panel, "2026-01-01T00:00:00") == TRAINED + 6
    assert rounds_since(panel, str(panel.at.max())[:19]) == 0
