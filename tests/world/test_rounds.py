"""Rounds by crawl, by period and by times; and whether the last one has ended."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from recrawl.core.times import parse_period
from recrawl.history import History
from recrawl.web.visit import Visit
from recrawl.world.rounds import by_crawl, by_period, has_ended

START = datetime(2026, 1, 1, 3, tzinfo=UTC)
PAGE = "https://a.org/x/"


def test_short_rounds_begin_with_the_first_visit(tmp_path: Path) -> None:
    made, half_past = History.create(tmp_path / "h"), datetime(2026, 1, 5, 15, 50, 20, tzinfo=UTC)
    made.add([Visit(url="https://e.org/", at=half_past + timedelta(minutes=m), links=[]) for m in range(0, 12, 3)])
    rounds = by_period(made.timeline, parse_period("5m"))
    assert (len(rounds.ends), rounds.of_visit.tolist()) == (2, [0, 0, 1, 1])
    assert len(by_period(made.timeline, parse_period("1h")).ends) == 1  # from 15:00


def visited(folder: Path, *days: float) -> History:
    history = History.create(folder)
    history.add([Visit(url=PAGE, at=START + timedelta(hours=24 * day - 3), links=[]) for day in days])
    return history


def test_a_period_whose_newest_visit_comes_earlier_than_usual_has_not_ended(tmp_path: Path) -> None:
    daily = visited(tmp_path / "daily", *(day + 0.5 for day in range(24)))
    assert not has_ended(daily.timeline, "7d"), "three weeks and three days"
    assert has_ended(daily.timeline, "1d")
    assert has_ended(daily.timeline, "8d"), "three times eight"
    assert not has_ended(daily.as_of(START + timedelta(days=16)).timeline, timedelta(days=7))


def test_a_period_that_is_always_visited_early_has_ended(tmp_path: Path) -> None:
    weekly = visited(tmp_path / "weekly", *(7 * week + 0.2 for week in range(5)))
    assert has_ended(weekly.timeline, "7d")
    assert has_ended(visited(tmp_path / "gaps", 0.2, 7.3, 28.2).timeline, "7d"), "weeks without a visit say nothing"


def test_crawls_times_and_single_periods_have_ended(tmp_path: Path) -> None:
    daily = visited(tmp_path / "daily", 0.2, 1.2, 2.2)
    assert has_ended(daily.timeline, "crawl")
    assert has_ended(daily.timeline, [START + timedelta(hours=h) for h in (2, 26, 500)])
    assert has_ended(visited(tmp_path / "one", 0.2, 0.3).timeline, "7d")
    assert has_ended(History.create(tmp_path / "empty").timeline, "7d")


def test_crawls_of_a_few_pages_each_are_recognised_by_the_pauses_between_them(tmp_path: Path) -> None:
    """Each page is visited every fifth day; visits of a day are seconds apart, but for one that waited for half a minute."""
    history = History.create(tmp_path / "h")
    start = datetime(2026, 1, 5, tzinfo=UTC)
    waits = [0, 1, 3, 33]
    history.add(
        Visit(url=f"https://e.org/{day % 5}/{i}", at=start + timedelta(days=day, seconds=wait), links=[])
        for day in range(15)
        for i, wait in enumerate(waits)
    )
    rounds = by_crawl(history.timeline)
    assert len(rounds.ends) == 15
    assert np.bincount(rounds.of_visit).tolist() == [4] * 15


def test_visits_at_random_times_are_not_split_by_chance(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    start, chance = datetime(2026, 1, 5, tzinfo=UTC), np.random.default_rng(0)
    for page in range(20):
        times = np.cumsum(chance.exponential(5.0, 30))
        history.add(Visit(url=f"https://e.org/{page}", at=start + timedelta(days=t), links=[]) for t in times.tolist())
    gaps = np.diff(history.timeline.at)[np.diff(history.timeline.page) == 0]
    moments = np.unique(history.timeline.at)
    assert len(by_crawl(history.timeline).ends) == 1 + int((np.diff(moments) > np.median(gaps) / 2).sum())


def test_a_page_that_was_fetched_twice_in_a_crawl_does_not_split_it(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add(Visit(url=f"https://e.org/{i}", at=START + timedelta(seconds=3 * i), links=[]) for i in range(50))
    history.add([Visit(url="https://e.org/0", at=START + timedelta(seconds=2), links=[])])
    assert len(by_crawl(history.timeline).ends) == 1
