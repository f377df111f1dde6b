"""Pages that are gone: since when, how likely they come back, and what is said of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recrawl.history import History
from recrawl.models.gone import IMAGINED, GonePages, gone_pages
from recrawl.models.predictor import Recipe, predict, train
from recrawl.models.reasons import reasons
from recrawl.web.urls import page_id
from recrawl.web.visit import Visit
from recrawl.world.panel import build

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)


def history_of(folder: Path, stories: dict[str, list[int]]) -> History:
    """One status per day and page; 0 where it was not visited. A page that is there gains ten links per day."""
    history = History.create(folder)
    history.add(
        Visit(
            url=f"https://a.org/{name}",
            at=START + r * DAY,
            status=status,
            **({"links": [f"https://a.org/{name}/{r}/{j}" for j in range(10)]} if status == 200 else {}),
        )
        for name, statuses in stories.items()
        for r, status in enumerate(statuses)
        if status
    )
    return history


def gone(history: History, until: int | None = None) -> tuple[dict[str, str], GonePages]:
    pages = history.timeline.pages
    found = gone_pages(history.timeline, pages, build(history, "1d", 0).rounds, until)
    names = [url.rpartition("/")[2] for url in history.urls_of(pages).to_pylist()]
    return {name: str(since)[:10] for name, since in zip(names, found.since, strict=True)}, found


def test_a_page_is_gone_since_the_first_of_the_answers_that_say_so(tmp_path: Path) -> None:
    stories = {
        "there": [200, 200, 200, 200],
        "gone": [200, 404, 410, 404],
        "failed later": [200, 404, 503, 503],
        "back": [200, 404, 404, 200],
        "gone again": [404, 200, 200, 404],
        "only failed": [503, 503, 503, 503],
    }
    since, found = gone(history_of(tmp_path / "h", {k.replace(" ", "-"): v for k, v in stories.items()}))
    assert since == {
        "there": "NaT",
        "gone": "2026-01-06",
        "failed-later": "2026-01-06",
        "back": "NaT",
        "gone-again": "2026-01-08",
        "only-failed": "NaT",
    }
    assert found.chance_of_return == (2 + 1) / (6 - 1 + IMAGINED), "of five times asked again, two were there"


def test_the_past_does_not_know_who_will_be_gone(tmp_path: Path) -> None:
    history = history_of(tmp_path / "h", {"there": [200] * 4, "gone": [200, 200, 404, 404]})
    assert gone(history, until=1)[0]["gone"] == "NaT"
    assert gone(history, until=2)[0]["gone"] == "2026-01-07"


def test_several_visits_in_a_round_count_once(tmp_path: Path) -> None:
    history = history_of(tmp_path / "h", {"there": [200] * 30, "gone": [200] + [404] * 29})
    pages, ends = history.timeline.pages, build(history, "10d", 0).rounds
    assert gone_pages(history.timeline, pages, ends).chance_of_return == 1 / (2 + IMAGINED)


def test_no_visits_and_no_pages_are_no_trouble(tmp_path: Path) -> None:
    empty = History.create(tmp_path / "h").timeline
    rounds = np.array([], "datetime64[us]")
    assert gone_pages(empty, np.array([5, 9]), rounds).is_gone.tolist() == [False, False]
    assert not len(gone_pages(empty, np.array([], np.int64), rounds).since)


def test_next_to_nothing_is_expected_of_a_page_that_is_gone(tmp_path: Path) -> None:
    stories = {f"p{i}": [200] * 12 for i in range(20)} | {"gone": [200] * 9 + [404] * 3}
    history = history_of(tmp_path / "h", stories)
    predictor = train(history, Recipe(links=("internal", "all"), n_jobs=1))
    found = predict(predictor, history)["all"]
    page, other = (int(np.searchsorted(found.panel.page, page_id(f"https://a.org/{name}"))) for name in ("gone", "p1"))
    assert found.expected[other] == pytest.approx(10, rel=0.05)
    chance = 1 / (2 + IMAGINED)
    assert found.expected[page] == pytest.approx(10 * chance, rel=0.1)
    assert found.probability[page] <= chance
    assert (found.low[page], found.high[page]) == (0, 0)
    why = reasons(predictor, found, np.array([page, other]))
    assert why[0][0].words.startswith("gone since 2026-01-14")
    assert why[0][0].effect == pytest.approx(10 * (chance - 1), rel=0.1)
    assert not any("gone" in reason.words for reason in why[1])
