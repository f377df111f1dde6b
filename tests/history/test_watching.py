"""Which pages plans leave out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import recrawl as rc
from recrawl.cli import app
from recrawl.history import History
from recrawl.history.watching import Decision, decide, newest, unwatched
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
URLS = [f"https://e.org/{i}" for i in range(10)]


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History.create(tmp_path / "h")
    made.add(
        Visit(url=url, at=MONDAY + timedelta(days=day), links=[f"{url}/{day}/{k}" for k in range(i)])
        for i, url in enumerate(URLS)
        for day in range(3)
    )
    return made


def stop(history: History, urls: list[str], day: int = 3, is_watched: bool = False) -> None:
    at = MONDAY + timedelta(days=day)
    decide(history, [Decision(page=page_id(url), at=at, is_watched=is_watched) for url in urls])


def picked(history: History, **options: Any) -> set[str]:
    return set(rc.plan(history, policy="average-count", **options).url.to_pylist())


def test_pages_that_are_not_watched_are_in_no_plan_and_in_no_share(history: History) -> None:
    assert picked(history, budget="50%") == set(URLS[5:])
    stop(history, URLS[6:])
    plan = rc.plan(history, policy="average-count", budget="50%")
    assert set(plan.url.to_pylist()) == set(URLS[3:6])  # half of the six that are watched
    assert plan.left_out["not watched"] == 4
    assert picked(history, budget="50%", unwatched=True) == set(URLS[5:])
    assert rc.explain(history, URLS[9], policy="average-count").cause == "not watched"


def test_the_newest_decision_counts_and_a_plan_for_an_earlier_time_knows_only_earlier_ones(history: History) -> None:
    stop(history, URLS[8:], day=3)
    stop(history, URLS[9:], day=5, is_watched=True)
    assert unwatched(history).tolist() == [page_id(URLS[8])]
    assert len(unwatched(history.as_of(MONDAY + timedelta(days=4)))) == 2
    assert len(unwatched(history.as_of(MONDAY + timedelta(days=2)))) == 0
    history.compact()
    assert newest(history).num_rows == 2
    assert unwatched(history).tolist() == [page_id(URLS[8])]


def test_visits_of_pages_that_are_not_watched_are_kept(history: History) -> None:
    before = history.timeline.n_visits
    stop(history, URLS)
    assert History.open(history.folder).timeline.n_visits == before
    assert len(rc.plan(history, policy="average-count", budget="1", unwatched=True)) == 1


def ask(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_the_command_stops_watching_lists_and_watches_again(history: History) -> None:
    folder = ("--history", str(history.folder))
    assert "every known page is watched" in ask("watch", *folder)
    assert "2 pages no longer watched" in ask("watch", "--stop", URLS[9], "https://e.org/8*", *folder)
    assert [json.loads(line)["url"] for line in ask("watch", "--json", *folder).splitlines()] == sorted(
        URLS[8:], key=page_id
    )
    assert json.loads(ask("info", "--json", *folder))["unwatched"] == 2
    assert "2 pages not watched" in ask("info", *folder)
    assert "1 page watched again" in ask("watch", URLS[9], *folder)
    assert json.loads(ask("info", "--json", *folder))["unwatched"] == 1


def test_a_page_that_is_not_known_is_named(history: History) -> None:
    result = CliRunner().invoke(app, ["watch", "https://e.org/none", "--history", str(history.folder)])
    assert "no known page matches https://e.org/none" in str(result.exception)
    assert CliRunner().invoke(app, ["watch", "--stop", "--history", str(history.folder)]).exit_code == 2
