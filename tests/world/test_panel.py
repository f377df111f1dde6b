from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from recrawl.core.times import parse_period
from recrawl.errors import NotEnoughData
from recrawl.history import History
from recrawl.web.visit import Visit
from recrawl.world.panel import BASE, build
from recrawl.world.rounds import by_crawl, by_period, by_times

START = datetime(2026, 1, 1, 3, tzinfo=UTC)
A, B, C = "https://a.org/x/", "https://a.org/y/z", "https://www.sub.b.org/"


def seen(url: str, hours: float, *links: str, **more: object) -> Visit:
    at = START + timedelta(hours=hours)
    return Visit(url=url, at=at, links=[f"https://a.org/{link}" for link in links], **more)  # type: ignore[arg-type]


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Three crawls a day apart, each an hour long; C fails in the second and comes twice in the third."""
    history = History.create(tmp_path / "h")
    history.add(
        [
            seen(A, 0, "1", text_digest="t", content_bytes=100),
            seen(B, 0.5, "1"),
            seen(C, 1, "1"),
            seen(A, 24, "1", "2", text_digest="t"),
            Visit(url=B, at=START + timedelta(hours=24.5), status=304),
            Visit(url=C, at=START + timedelta(hours=25), status=503),
            seen(A, 48, "1", "2", "3", text_digest="u"),
            seen(B, 48.5, "4", "5", baseline=True),
            seen(C, 48.6, "1", "2"),
            seen(C, 49, "2", "3"),
        ]
    )
    return history


def test_rounds_by_crawl_are_the_crawls(history: History) -> None:
    rounds = by_crawl(history.timeline)
    assert len(rounds.ends) == 3
    assert np.bincount(rounds.of_visit).tolist() == [3, 3, 4]


def test_a_panel_has_the_last_successful_visit_of_each_round(history: History) -> None:
    panel = build(history, "crawl", min_share=0.5)
    row = {url: i for i, url in enumerate(panel.url.to_pylist())}
    assert panel.shape == (3, 3)
    assert panel.n_new_external[row[C]].tolist()[2] == 2  # "2" and "3" since the first crawl, not since 24 minutes ago
    assert panel.n_new_internal[row[A]].tolist()[1:] == [1, 1]
    assert np.isnan(panel.n_new_internal[:, 0]).all()
    assert np.isnan(panel.at[row[C], 1])
    assert np.isnan(panel.base["n_external"][row[C], 1])
    assert panel.content_changed[row[A]].tolist()[1:] == [0, 1]
    assert np.isnan(panel.n_new_internal[row[B], 2]), "a baseline is compared with nothing"
    assert panel.n_new_internal[row[B], 1] == 0, "a 304 shows the links of the copy it confirms"
    assert panel.base["content_bytes"][row[A], 0] == 100
    assert panel.base["path_depth"][row[B], 0] == 2
    assert panel.base["domain_depth"][row[C], 0] == 3
    assert list(panel.base) == list(BASE)


def test_pages_seen_in_all_rounds_only_by_default(history: History) -> None:
    assert sorted(build(history).url.to_pylist()) == [A, B]
    assert build(history).shape == (2, 3)


def test_rounds_by_period_begin_at_midnight(history: History) -> None:
    rounds = by_period(history.timeline, parse_period("1d"))
    assert len(rounds.ends) == 3
    assert build(history, "12h", min_share=0.1).shape == (3, 5)
    assert build(history, timedelta(days=30)).shape == (3, 1)


def test_rounds_by_explicit_times_leave_out_later_visits(history: History) -> None:
    times = [START + timedelta(hours=h) for h in (2, 26)]
    rounds = by_times(history.timeline, times)
    assert (rounds.of_visit == -1).sum() == 4
    panel = build(history, times, min_share=0.5)
    assert panel.shape == (3, 2)
    assert build(history, ",".join(time.isoformat() for time in times), min_share=0.5).shape == (3, 2)


def test_a_baseline_between_two_chosen_visits_separates_them(tmp_path: Path) -> None:
    history = History.create(tmp_path / "h")
    history.add([seen(A, 0, "1"), seen(A, 24, "2", baseline=True), seen(A, 25, "2", "3"), seen(A, 48, "2", "3", "4")])
    panel = build(history, "1d")
    assert np.isnan(panel.n_new_internal[0, :2]).all()
    assert panel.n_new_internal[0, 2] == 1


def test_too_strict_a_choice_says_the_way_out(history: History) -> None:
    with pytest.raises(NotEnoughData, match="--min-share"):
        build(history, "1h")
    with pytest.raises(ValueError, match="'fortnight' is not a period"):
        parse_period("fortnight")


def test_an_empty_history_has_no_panel(tmp_path: Path) -> None:
    with pytest.raises(NotEnoughData):
        build(History.create(tmp_path / "h"))


def test_absurd_rounds_are_refused(history: History) -> None:
    with pytest.raises(ValueError, match="is not a period"):
        parse_period("0.0000001s")
    with pytest.raises(ValueError, match="time without zone"):
        build(history, "2026-01-01T00:00,2026-01-02T00:00")
