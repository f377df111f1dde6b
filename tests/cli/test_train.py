"""`recrawl train` and `recrawl predict` as commands: what they print, where, and what they refuse."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from recrawl.cli import app
from recrawl.errors import BadOption
from recrawl.history import History
from recrawl.web.visit import Visit

runner = CliRunner()
START = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Visited daily for four weeks and two days; no page ever has a new external link, half of them have internal ones."""
    folder = tmp_path_factory.mktemp("train") / "history"
    History.create(folder).add(
        Visit(
            url=f"https://a.org/{i}",
            at=START + timedelta(days=day, hours=12),
            links=[f"https://a.org/{i}/{day * (i % 2)}"],
            text=f"page{i} of {i % 3} words",
        )
        for i in range(12)
        for day in range(30)
    )
    return str(folder)


def train(history: str, out: Path, *options: str) -> Any:
    return runner.invoke(app, ["train", "--history", history, "--out", str(out), *options])


def test_an_unfinished_week_is_noted_on_standard_error_and_the_last_visit_is_shown(
    history: str, tmp_path: Path
) -> None:
    done = train(history, tmp_path / "m", "--every", "7d", "--links", "all")
    assert done.exit_code == 0, done.output
    assert "has not ended, its newest visit is of 2026-02-03 12:00" in done.stderr
    assert "4 rounds, last visit 2026-02-01 12:00:00 UTC" in " ".join(done.stdout.split())
    done = runner.invoke(app, ["predict", "--history", history, "--model", str(tmp_path / "m"), "--top", "2"])
    assert "has not ended" in done.stderr
    assert "in the round after that of 2026-02-01 12:00 UTC" in done.stdout


def test_scores_that_are_not_a_number_are_a_dash_for_people_and_null_for_scripts(
    history: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")  # too narrow for columns: one score per line
    done = train(history, tmp_path / "m", "--links", "external")
    shown = [line.strip() for line in done.stdout.split("external\n")[1].splitlines()]
    assert shown[:3] == ["Spearman: -", "average-count: -", "previous-count: -"]
    assert "nan" not in done.stdout
    done = train(history, tmp_path / "m", "--links", "external", "--json")
    assert json.loads(done.stdout)["scores"]["external"]["spearman"] is None


@pytest.mark.parametrize("learner", ["average-count", "previous-count"])
def test_a_baseline_can_be_trained(history: str, tmp_path: Path, learner: str) -> None:
    done = train(history, tmp_path / "m", "--learner", learner, "--links", "all", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["scores"]["all"]["spearman"] == pytest.approx(1, abs=1e-12)


def test_what_cannot_be_trained_is_refused_with_a_sentence(history: str, tmp_path: Path) -> None:
    done = train(history, tmp_path / "m", "--learner", "content-change-rate")
    assert "does not predict how many" in str(done.exception)
    done = train(history, tmp_path / "m", "--neighbours", "some")
    assert isinstance(done.exception, BadOption)  # `main` prints it and exits with 2
    assert "auto, exact, approximate" in str(done.exception)


def test_neighbours_and_trusted_pages_can_be_chosen(history: str, tmp_path: Path) -> None:
    options = ("--features", "static", "--learner", "poisson", "--links", "all", "--neighbours", "approximate")
    done = train(history, tmp_path / "m", *options, "--trusted", "a.org", "--trusted", "no.org", "--json")
    assert done.exit_code == 0, done.output
    assert "of the true 30 nearest" in done.stderr
    assert "not trusted: no.org" in done.stderr
    assert json.loads(done.stdout)["neighbours"][0] == "approximate"
    assert json.loads(done.stdout)["recipe"]["trusted"] == ["a.org", "no.org"]


def test_a_model_is_checked_in_one_line_and_related_pages_may_move_alike(history: str, tmp_path: Path) -> None:
    done = train(
        history, tmp_path / "m", "--links", "all", "--learner", "poisson", "--related-by", "correlation", "--json"
    )
    assert json.loads(done.stdout)["recipe"]["related_by"] == "correlation"
    done = runner.invoke(app, ["train", "--history", history, "--check", str(tmp_path / "m")])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == "not due: 0 rounds since it was trained, at least 3 are needed"
    done = runner.invoke(app, ["train", "--history", history, "--check", str(tmp_path / "m"), "--json"])
    assert json.loads(done.stdout)["due"] is False
    done = train(history, tmp_path / "m", "--related-by", "corelation")
    assert "Did you mean 'correlation'" in str(done.exception or done.output)
